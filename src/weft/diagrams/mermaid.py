"""Mermaid text of a graph and of a sequence.

Every label is written so that no character of it can have a meaning in Mermaid's grammar: letters,
digits and a few harmless signs are written as they are, everything else as a number.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.diagrams.nodes import Edge, Graph, Node, NodeKind
from weft.diagrams.sequence import Block, Message, Note, Sequence, Step

_HARMLESS: Final = frozenset(" _.,()=/'+")

#: A letter that Mermaid itself uses to mark numbers while it reads.
_RESERVED: Final = "\ufb02"

_SHAPES: Final[dict[NodeKind, tuple[str, str]]] = {
    "start": ("([", "])"),
    "agent": ("[", "]"),
    "undeclared": ("[", "]"),
    "user": ("([", "])"),
    "end": ("((", "))"),
    "step": ("[", "]"),
    "branch": ("{", "}"),
    "fork": ("{{", "}}"),
    "approval": ("[/", "/]"),
    "undo": ("[", "]"),
}


def mermaid_graph(graph: Graph) -> str:
    ids = _ids(node.key for node in graph.nodes)
    lines = [f"flowchart {_direction(graph)}", *_comment(graph.description)]
    lines += [f"    {_node(node, ids[node.key])}" for node in graph.nodes]
    lines += [f"    {_edge(edge, ids)}" for edge in graph.edges]
    for kind in ("undeclared", "undo"):
        drawn = [ids[node.key] for node in graph.nodes if node.kind == kind]
        if drawn:
            lines.append(f"    classDef {kind} stroke-dasharray:4 3")
            lines.append(f"    class {','.join(drawn)} {kind}")
    return _text(lines)


def _direction(graph: Graph) -> str:
    """Return the direction of a graph: steps downwards, everything else to the right."""
    return "TD" if any(node.kind == "step" for node in graph.nodes) else "LR"


def mermaid_sequence(sequence: Sequence) -> str:
    """Write a sequence as a Mermaid sequence diagram; the legend is a note at its end."""
    ids = _ids(one.key for one in sequence.participants)
    lines = ["sequenceDiagram", f"    title {escape(sequence.title)}"]
    lines += _comment(sequence.description)
    for one in sequence.participants:
        word = "actor" if one.kind == "user" else "participant"
        lines.append(f"    {word} {ids[one.key]} as {_label(one.title, one.role)}")
    lines += _steps(sequence.steps, ids, "    ")
    if sequence.legend:
        ends = ",".join(dict.fromkeys([next(iter(ids.values())), list(ids.values())[-1]]))
        lines.append(f"    Note over {ends}: {_label(*sequence.legend)}")
    return _text(lines)


def escape(text: str) -> str:
    """Write a text so that it is a label and nothing else, wherever Mermaid allows a label."""
    return "".join(
        char if (char.isalnum() and char != _RESERVED) or char in _HARMLESS else f"#{ord(char)};"
        for char in text
    )


def _comment(text: str) -> Iterator[str]:
    """Write a comment; Mermaid would find its directives even there."""
    if text:
        yield f"    %% {escape(text)}"


def _ids(keys: Iterable[str]) -> dict[str, str]:
    return {key: f"n{number}" for number, key in enumerate(keys)}


def _label(*lines: str) -> str:
    return "<br/>".join(escape(line) for line in lines if line)


def _node(node: Node, key: str) -> str:
    opening, closing = _SHAPES[node.kind]
    return f'{key}{opening}"{_label(node.title, node.role, *node.notes)}"{closing}'


def _edge(edge: Edge, ids: dict[str, str]) -> str:
    arrow = ("<" if edge.returns else "") + ("-.->" if edge.dashed else "-->")
    label = f'|"{escape(edge.label)}"|' if edge.label else ""
    return f"{ids[edge.source]} {arrow}{label} {ids[edge.target]}"


def _steps(steps: Iterable[Step], ids: dict[str, str], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Message():
                arrow = "-->>" if step.before else "->>"
                yield f"{indent}{ids[step.source]}{arrow}{ids[step.target]}: {escape(step.text)}"
            case Note():
                yield f"{indent}Note over {ids[step.over]}: {escape(step.text)}"
            case _:
                yield from _block(step, ids, indent)


def _block(block: Block, ids: dict[str, str], indent: str) -> Iterator[str]:
    word = block.kind
    for branch in block.branches:
        yield f"{indent}{word} {escape(branch.label)}"
        yield from _steps(branch.steps, ids, indent + "    ")
        word = block.word
    yield f"{indent}end"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
