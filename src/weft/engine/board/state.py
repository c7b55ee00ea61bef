"""The state of a board: queues, joins, batches and counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

from weft.engine.log import Fifo, KeyLog
from weft.findings import Json

#: An artifact as engines give it: type and payload, and optionally tags, partition, visibility.
JsonDraft: TypeAlias = dict[str, Json]


class Artifact(NamedTuple):
    """An artifact as agents get it."""

    id: str
    type: str
    payload: Json
    by: str
    tags: tuple[str, ...]
    partition: str
    correlation: str
    created_at: int
    #: The policy as it is written down; None where it is not known.
    visibility: Json = None


class Delivery(NamedTuple):
    """Artifacts that are to wake an agent, in the order they came to it."""

    artifacts: tuple[Artifact, ...]
    order: int
    #: How often it was deferred.
    tries: int = 0


class Delayed(NamedTuple):
    """An artifact that is not visible yet."""

    artifact: Artifact
    wakes: Mapping[str, str]
    direct: bool = False
    counts: tuple[str, ...] = ()


class JoinWindow(NamedTuple):
    """What was collected for a subscription and a key, by type, and since when."""

    waiting: Mapping[str, Fifo[Artifact]]
    timer: str = ""
    #: How many artifacts had come to the subscription then.
    seen: int = 0


class PendingBatch(NamedTuple):
    """PendingBatch of artifacts that are to be handled together."""

    groups: Fifo[tuple[Artifact, ...]]
    timer: str = ""


class BoardChanges(TypedDict, total=False):
    """What changes in the course of a run."""

    correlation: str
    counts: Mapping[str, Mapping[str, int]]
    queues: Mapping[str, Fifo[Delivery]]
    joins: Mapping[tuple[str, str], JoinWindow]
    batches: Mapping[str, PendingBatch]
    delayed: Mapping[str, Delayed]
    deferred: Mapping[str, tuple[str, Delivery]]
    seen: Mapping[str, int]
    outside: int
    woken: Mapping[str, int]
    ids: KeyLog
    last_at: int
    ticks: int


@dataclass(frozen=True)
class BoardState:
    """Everything of a board that is not in its index: it ends with the run."""

    correlation: str
    #: For each subscription that waits for a number: how many of each type its agent may see.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    #: What is ready, by subscription.
    queues: Mapping[str, Fifo[Delivery]] = field(default_factory=dict[str, Fifo[Delivery]])
    #: What is not complete, by subscription and key.
    joins: Mapping[tuple[str, str], JoinWindow] = field(
        default_factory=dict[tuple[str, str], JoinWindow]
    )
    batches: Mapping[str, PendingBatch] = field(default_factory=dict[str, PendingBatch])
    #: What waits for a time, by timer: artifacts that are not visible yet, deferred deliveries.
    delayed: Mapping[str, Delayed] = field(default_factory=dict[str, Delayed])
    deferred: Mapping[str, tuple[str, Delivery]] = field(
        default_factory=dict[str, tuple[str, Delivery]]
    )
    #: How many artifacts have come to each subscription that counts them.
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Since nothing was to be done: how many artifacts came from outside, and how often each agent
    #: was woken.
    outside: int = 0
    woken: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Ids from outside and of letters that were read; each is accepted once.
    ids: KeyLog = field(default_factory=KeyLog)
    last_at: int = 0
    #: The agent whose schedule this run keeps, and how often it has fired.
    schedule: str = ""
    ticks: int = 0

    def replace(self, **changes: Unpack[BoardChanges]) -> "BoardState":
        """Return the board as it is afterwards. `replace` would set every field one by one."""
        twin: BoardState = object.__new__(BoardState)
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(changes)
        return twin
