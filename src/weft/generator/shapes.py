"""Shapes: what a generated function takes and gives, before anybody writes its code.

Variables and models are bound to these shapes, and the code is written after them, so that the
signature of a tool is decided in one place.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.spec.tools import Surface

#: decision: records what an agent decided in its structured reply; ui: asks a person; ask: lets the
#: agent's model work something out; access: reads or writes variables; external: asks a service.
ToolKind: TypeAlias = Literal["decision", "ui", "ask", "access", "external"]


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One argument or one field of a result; its type in the language of packages."""

    name: str
    type: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolShape:
    """One tool of one agent; it lives in a file of its own, named after it."""

    name: str
    agent: str
    kind: ToolKind
    purpose: str
    #: What a model passes. A decision is passed the fields of the reply; what a person is asked
    #: shows them.
    parameters: tuple[FieldShape, ...] = ()
    #: What comes back. Of a person, the fields of the answer.
    result: tuple[FieldShape, ...] = ()
    #: The variables it reads or sets, in the order of the plan.
    variables: tuple[str, ...] = ()
    integration: str | None = None
    auto_invoke: bool = False
    component: str | None = None
    mode: Surface | None = None
    label: str = ""
    summary: str = ""

    @property
    def file(self) -> str:
        """The file of its Python side, under `tools/`."""
        return f"{self.name}.py"
