"""Events about the board; `events` has the union of all."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from weft.engine.events.context import Values
from weft.findings import Json

#: Everybody sees it.
PUBLIC: Final = {"kind": "public"}

#: Why artifacts did not come to what they were collected for. failed: the activation has failed;
#: expired: the others did not come in time; no_key: they have no key to be joined by; predicate: a
#: function could not tell whether they are wanted; breaker: the agent was woken too often; skipped,
#: blocked: a component has decided so; unfinished: the run is over.
MissedReason: TypeAlias = Literal[
    "failed", "expired", "no_key", "predicate", "breaker", "skipped", "blocked", "unfinished"
]


@dataclass(frozen=True, slots=True)
class ArtifactPublished:
    """An artifact is on the board, and whom it wakes is decided."""

    type: str
    payload: Json
    #: Who published it: an agent, `user:NAME` or `schedule:AGENT`.
    by: str
    #: What it is called; nothing of it counts other events, which not every agent may know of.
    id: str
    tags: tuple[str, ...] = ()
    partition: str = ""
    visibility: Values = field(default_factory=lambda: dict[str, Json](PUBLIC))
    #: Milliseconds until it can be seen by anybody.
    delay: int = 0
    #: The subscriptions that want it, each with the key it is joined by.
    wakes: dict[str, str] = field(default_factory=dict[str, str])
    #: The runs that collect it beyond its correlation, each with the subscription it does that for.
    letters: dict[str, str] = field(default_factory=dict[str, str])
    #: The subscriptions that wait for a number of artifacts, and whose agents may see this one.
    counts: tuple[str, ...] = ()
    #: The subscriptions that could not be asked, and why.
    faults: dict[str, str] = field(default_factory=dict[str, str])
    #: The agent it is given to, whatever else it would wake; empty for all.
    direct: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True)
class ArtifactArrived:
    """An artifact of another run is here, for a subscription that collects beyond correlations."""

    letter: str
    id: str
    type: str
    payload: Json
    by: str
    subscription: str
    key: str
    correlation: str
    created_at: int
    tags: tuple[str, ...] = ()
    partition: str = ""
    visible_at: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryMissed:
    """Artifacts did not come to what they were collected for."""

    subscription: str
    artifacts: tuple[str, ...]
    why: MissedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryDeferred:
    """A component wants an activation to wait; it is tried again at a time."""

    subscription: str
    artifacts: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class BatchesFlushed:
    """What was collected for batches is handled now, however little it is."""

    user: str
