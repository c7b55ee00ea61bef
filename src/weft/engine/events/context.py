"""Events about variables and about what agents are sent; `events` has the union of all."""

from dataclasses import dataclass
from typing import TypeAlias

from weft.findings import Json

Values: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class ContextAssembled:
    """What the agent is about to see: origins, sizes, what was left out, hash of what is sent."""

    agent: str
    call: int
    manifest: Values
    digest: str


@dataclass(frozen=True, slots=True)
class ContextFetched:
    """What an activation needs from outside is there; values of variables stand beside it.

    `found` says of each origin what was asked and how long it took, `faults` why there was nothing.
    """

    found: Values
    faults: dict[str, str]
    #: The tools that servers offer, by server.
    tools: dict[str, list[Values]] | None = None


@dataclass(frozen=True, slots=True)
class DocumentWritten:
    """The document of an entity variable was written, or why not."""

    name: str
    #: The event whose value was written.
    seq: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class VariableSet:
    """A variable has a new value."""

    name: str
    value: Json
    #: What set it: `trigger`, `tool:NAME`, `source:KIND`, `computed`, or `edit` in a fork.
    writer: str


@dataclass(frozen=True, slots=True)
class VariableRefused:
    """A value was offered for a variable and did not fit; the variable keeps its value."""

    name: str
    writer: str
    fault: str
