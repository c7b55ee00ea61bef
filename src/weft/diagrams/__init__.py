"""Diagrams of a workflow, as text: its agents and the handoffs between them."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from weft.diagrams.ascii import ascii_graph, ascii_sequence
from weft.diagrams.graph import graph
from weft.diagrams.mermaid import mermaid_graph, mermaid_sequence
from weft.diagrams.nodes import Graph
from weft.diagrams.sequence import Sequence, sequence
from weft.spec.workflow import WorkflowSpec

__all__ = ["Form", "Kind", "draw"]

Kind: TypeAlias = Literal["graph", "sequence"]
Form: TypeAlias = Literal["mermaid", "ascii"]

_GRAPHS: Final[Mapping[Form, Callable[[Graph], str]]] = {
    "mermaid": mermaid_graph,
    "ascii": ascii_graph,
}
_SEQUENCES: Final[Mapping[Form, Callable[[Sequence], str]]] = {
    "mermaid": mermaid_sequence,
    "ascii": ascii_sequence,
}


def draw(spec: WorkflowSpec, *, kind: Kind = "graph", form: Form = "mermaid") -> str:
    """Draw a workflow; the same spec always gives the same text, ending in a newline."""
    if kind == "graph":
        return _GRAPHS[form](graph(spec))
    return _SEQUENCES[form](sequence(spec))
