"""The state of a board: queues, joins, batches and counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

from weft.engine.persistent import Fifo, KeyLog, SharedDict
from weft.findings import Json

#: An artifact in JSON, as `Artifact.as_json` writes it; a draft has no id and no producer yet.
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

    def as_json(self) -> JsonDraft:
        """Return the artifact as code gets it."""
        return {
            "id": self.id,
            "type": self.type,
            "payload": self.payload,
            "produced_by": self.by,
            "tags": list(self.tags),
            "partition_key": self.partition or None,
            "correlation_id": self.correlation,
            "created_at": self.created_at,
            "visibility": self.visibility,
        }


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


class OpenWindows(NamedTuple):
    """The windows of a subscription that are not complete. There may be many thousands."""

    windows: SharedDict[str, JoinWindow]
    #: The key of the window that each timer closes.
    timed: SharedDict[str, str]
    #: Where windows are closed by a count: `seen` and key of each as it was opened. Some are gone.
    opened: Fifo[tuple[int, str]]

    def stored(self, key: str, window: JoinWindow, *, is_counted: bool) -> "OpenWindows":
        """Return the windows with one of them replaced."""
        known = self.windows.get(key)
        timed, opened = self.timed, self.opened
        if known is not None and known.timer != window.timer:
            timed = timed.removed(known.timer)
        if window.timer and (known is None or known.timer != window.timer):
            timed = timed.added(window.timer, key)
        if is_counted and (known is None or known.seen != window.seen):
            opened = opened.added((window.seen, key))
        return OpenWindows(self.windows.added(key, window), timed, opened)

    def closed(self, key: str) -> "OpenWindows":
        """Return the windows without one."""
        timed = self.timed.removed(self.windows[key].timer)
        return OpenWindows(self.windows.removed(key), timed, self.opened)


class PendingBatch(NamedTuple):
    """A batch that is not full yet: groups of artifacts that are processed together."""

    groups: Fifo[tuple[Artifact, ...]]
    timer: str = ""


class BoardChanges(TypedDict, total=False):
    """The fields that change during a run."""

    correlation: str
    counts: Mapping[str, Mapping[str, int]]
    queues: Mapping[str, Fifo[Delivery]]
    joins: Mapping[str, OpenWindows]
    batches: Mapping[str, PendingBatch]
    delayed: SharedDict[str, Delayed]
    deferred: SharedDict[str, tuple[str, Delivery]]
    seen: Mapping[str, int]
    outside: int
    woken: Mapping[str, int]
    ids: KeyLog
    last_at: int
    ticks: int


def board_owner(user: str, *, shared: bool) -> str:
    """Return who owns what is on a board: empty for all users of the tenant, or `user:NAME`."""
    return "" if shared else f"user:{user}"


def run_name(board: str, owner: str, correlation: str) -> str:
    """Return the name of the open run of a correlation; each owner has their own."""
    owner = owner.replace("%", "%25").replace("/", "%2F")  # Only a correlation may have slashes.
    return f"{board}/{owner}/{correlation}"


@dataclass(frozen=True)
class BoardState:
    """Everything of a board that is not in its index: it ends with the run."""

    correlation: str
    #: As `board_owner` says.
    owner: str = ""
    #: For each subscription that waits for a number: how many of each type its agent may see.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    #: The deliveries that are ready, by subscription.
    queues: Mapping[str, Fifo[Delivery]] = field(default_factory=dict[str, Fifo[Delivery]])
    #: The joins and batches that are not complete, by subscription.
    joins: Mapping[str, OpenWindows] = field(default_factory=dict[str, OpenWindows])
    batches: Mapping[str, PendingBatch] = field(default_factory=dict[str, PendingBatch])
    #: Artifacts that are not visible yet and deferred deliveries, by their timers.
    delayed: SharedDict[str, Delayed] = field(default_factory=SharedDict[str, Delayed])
    deferred: SharedDict[str, tuple[str, Delivery]] = field(
        default_factory=SharedDict[str, tuple[str, Delivery]]
    )
    #: How many artifacts have come to each subscription that counts them.
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Since the board was last idle: how many artifacts came from outside, and how often each
    #: agent was woken.
    outside: int = 0
    woken: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The ids of artifacts from outside and of mail; each is accepted once.
    ids: KeyLog = field(default_factory=KeyLog)
    last_at: int = 0
    #: The agent whose schedule this run keeps, and how often it has fired.
    schedule: str = ""
    ticks: int = 0

    def enqueued(
        self, subscription: str, artifacts: tuple[Artifact, ...], order: int, tries: int = 0
    ) -> "BoardState":
        """Return a board with artifacts in the queue of their agent."""
        queue = self.queues.get(subscription) or Fifo[Delivery]()
        queue = queue.added(Delivery(artifacts, order, tries))
        return self.replace(queues={**self.queues, subscription: queue})

    def replace(self, **changes: Unpack[BoardChanges]) -> "BoardState":
        """Return a changed copy. `dataclasses.replace` would set every field one by one."""
        twin: BoardState = object.__new__(BoardState)
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(changes)
        return twin

    def with_windows(self, subscription: str, windows: OpenWindows) -> "BoardState":
        """Return the board with the windows of a subscription as they are now."""
        joins = {**self.joins, subscription: windows}
        if not windows.windows:
            del joins[subscription]
        return self.replace(joins=joins)
