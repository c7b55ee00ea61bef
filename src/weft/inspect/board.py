"""Records of a board: what woke an agent, what it was shown, and what it published."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from weft.engine.board.state import Artifact, BoardState
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    ContextFetched,
    DeliveryDeferred,
    DeliveryMissed,
    Event,
    RunStarted,
)
from weft.engine.state import State
from weft.inspect.steps import record_of


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """An artifact by id and type; an item that a provider created itself has no id."""

    id: str
    type: str


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """The result of one provider, and its duration."""

    provider: str
    items: tuple[ArtifactRef, ...]
    #: The keys of payloads that were dropped or replaced.
    redacted: tuple[str, ...]
    #: The number of items that were dropped because the agent may not see them.
    foreign: int
    started_at: int
    ms: float
    #: The engines that received it, counted from 0.
    engines: tuple[int, ...]
    #: Of a fallback: the provider it replaced, and why.
    instead_of: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class PublishedRecord:
    """An artifact that was published, or that came from another run."""

    seq: int
    at: int
    id: str
    type: str
    by: str
    tags: tuple[str, ...]
    #: The subscriptions that match it.
    wakes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissedRecord:
    """Collected artifacts that woke no agent; `why` as in `MissedReason`."""

    seq: int
    at: int
    subscription: str
    artifacts: tuple[str, ...]
    why: str
    detail: str


@dataclass(frozen=True, slots=True)
class BoardLeftOut:
    """Items that a call was not sent."""

    call: int
    items: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """Artifacts that wait for others (`for_others`), a batch, a time, or their agent."""

    subscription: str
    what: str
    artifacts: tuple[ArtifactRef, ...]


@dataclass(slots=True)
class BoardTurn:
    """One activation; filled while the events of the run are read."""

    subscription: str
    inputs: tuple[ArtifactRef, ...]
    #: What components decided before: continue, skip, defer or block, and why.
    verdict: str = "continue"
    detail: str = ""
    #: Whether components replaced the inputs.
    inputs_changed: bool = False
    slices: list[SliceRecord] = field(default_factory=list[SliceRecord])
    #: What was left out over budget.
    left_out: list[BoardLeftOut] = field(default_factory=list[BoardLeftOut])
    published: list[PublishedRecord] = field(default_factory=list[PublishedRecord])
    missed: list[MissedRecord] = field(default_factory=list[MissedRecord])
    deferred_until: int | None = None

    def add_fetched(self, data: ContextFetched) -> None:
        """Record the results of components and providers."""
        given = cast("Mapping[str, Any]", data.board or {})
        self.verdict = given.get("verdict", "continue")
        self.detail = given.get("detail", "")
        self.inputs_changed = "inputs" in given
        self.slices = list(slice_records(given))

    def add_left_out(self, call: int, manifest: Mapping[str, Any]) -> None:
        """Record what was left out of a call."""
        for entry in manifest.get("left_out", ()):
            if entry.get("kind") == "board":
                names = tuple(name or "" for name in entry["names"])
                self.left_out.append(BoardLeftOut(call, names, entry["reason"]))


@dataclass(slots=True)
class BoardRun:
    """The events of a board outside its turns; filled while the run is read."""

    correlation: str = ""
    #: The subscription this run collects for, or the agent whose schedule it runs.
    collects: str = ""
    schedule: str = ""
    #: Artifacts from outside, and from other runs.
    published: list[PublishedRecord] = field(default_factory=list[PublishedRecord])
    arrived: list[PublishedRecord] = field(default_factory=list[PublishedRecord])
    missed: list[MissedRecord] = field(default_factory=list[MissedRecord])
    waiting: tuple[WaitingRecord, ...] = ()


def add_board_event(
    record: BoardTurn | BoardRun, event: Event, cause: BoardTurn | BoardRun | None
) -> None:
    """Record what happened on the board.

    `cause` is the turn that led to it; a missed delivery has no turn of its own.
    """
    match event.data:
        case ArtifactPublished(wakes=wakes):
            record.published.append(record_of(PublishedRecord, event, wakes=tuple(wakes)))
        case ArtifactArrived(subscription=name) if isinstance(record, BoardRun):
            record.arrived.append(record_of(PublishedRecord, event, wakes=(name,)))
        case DeliveryDeferred(at=at) if isinstance(record, BoardTurn):
            record.deferred_until = at
        case DeliveryMissed(why="failed" | "skipped" | "blocked"):
            (cause or record).missed.append(record_of(MissedRecord, event))
        case DeliveryMissed():
            record.missed.append(record_of(MissedRecord, event))
        case _:
            pass


def board_turn(state: State, turn: int) -> BoardTurn | None:
    """Return the record of an activation that begins; None for a turn outside a board."""
    active = state.active.get(turn)
    if state.board is None or active is None:
        return None
    return BoardTurn(active.step, refs(active.inputs))


def slice_records(given: Mapping[str, Any]) -> Iterator[SliceRecord]:
    """Yield the result of each provider for an activation."""
    engines: Sequence[int] = given.get("engines", ())
    for place, slice_ in enumerate(given.get("slices", ())):
        items = (ArtifactRef(str(one.get("id") or ""), _type(one)) for one in slice_["items"])
        yield SliceRecord(
            provider=slice_["provider"],
            items=tuple(items),
            redacted=tuple(sorted(set(_redacted_keys(slice_["metadata"])))),
            foreign=slice_["foreign"],
            started_at=slice_["started_at"],
            ms=slice_["ms"],
            engines=tuple(at for at, slice_ in enumerate(engines) if slice_ == place),
            instead_of=slice_.get("instead_of", ""),
            error=slice_.get("error", ""),
        )


def _redacted_keys(metadata: object) -> Iterator[str]:
    """Yield the keys that were redacted by a provider or an inner one."""
    if isinstance(metadata, dict):
        details = cast("dict[str, Any]", metadata)
        yield from (key for key in details.get("redacted") or () if isinstance(key, str))
        for inner in details.get("providers") or ():
            yield from _redacted_keys(inner)


def _type(item: Mapping[str, Any]) -> str:
    key = item.get("key")
    return f"{item.get('type')} {key}" if key else str(item.get("type") or "")


def board_run(state: State, events: Sequence[Event], record: BoardRun) -> BoardRun | None:
    """Return the completed record of a board; None for any other run."""
    begun = events[0].data if events else None
    if state.board is None or not isinstance(begun, RunStarted):
        return None
    record.correlation = state.board.correlation
    record.collects, record.schedule = begun.collects, begun.schedule
    record.waiting = () if state.status == "ended" else tuple(waiting(state.board))
    return record


def waiting(board: BoardState) -> Iterator[WaitingRecord]:
    """Yield the artifacts that wait and have not woken an agent yet."""
    for name, queue in board.queues.items():
        found = (artifact for delivery in queue for artifact in delivery.artifacts)
        yield WaitingRecord(name, "for its agent", refs(found))
    for name, windows in board.joins.items():
        for window in windows.windows.values():
            found = (artifact for of_type in window.waiting.values() for artifact in of_type)
            yield WaitingRecord(name, "for others", refs(found))
    for name, held in board.batches.items():
        found = (artifact for group in held.groups for artifact in group)
        yield WaitingRecord(name, "for a batch", refs(found))
    for delayed in board.delayed.values():
        for name in delayed.wakes:
            yield WaitingRecord(name, "until it is visible", refs((delayed.artifact,)))
    for name, delivery in board.deferred.values():
        yield WaitingRecord(name, "to be tried again", refs(delivery.artifacts))


def refs(artifacts: Iterable[Artifact]) -> tuple[ArtifactRef, ...]:
    return tuple(ArtifactRef(artifact.id, artifact.type) for artifact in artifacts)
