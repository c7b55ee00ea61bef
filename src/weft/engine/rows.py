"""The rows that a store writes with a batch of events, so that lists need no folding.

These are tuples: one is made with every batch, and a frozen class takes three times as long.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from weft.engine.board.visibility import Policy, stored_audience
from weft.engine.events import ArtifactArrived, ArtifactPublished, Event, Outcome, TurnStarted
from weft.engine.state import Request, State, Status
from weft.findings import Json


class RunRow(NamedTuple):
    """The summary of a run."""

    run: str
    app: str
    user: str
    workflow: str
    digest: str
    status: Status
    seq: int
    started_at: int
    changed_at: int
    turns: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int
    preview: str
    outcome: Outcome | None
    reason: str
    parent: str
    uncounted: int = 0
    #: The worker that has the run while it is running; else empty.
    owner: str = ""
    #: The batch that was written last.
    batch: str = ""
    #: When the owner was last known to be alive; a store tells it, no batch does.
    heartbeat: int = 0


class RequestRow(NamedTuple):
    """The summary of an open request."""

    id: str
    run: str
    app: str
    user: str
    kind: Literal["chat", "ui"]
    agent: str
    tool: str | None
    payload: Json
    opened_at: int
    expires_at: int | None
    #: The variables that the answer sets.
    sets: tuple[str, ...] = ()
    #: What shows it and where, and who is asked, as `role:NAME`; empty: the user of the run.
    component: str = ""
    mode: str = ""
    addressee: str = ""


class OpenRequest(RequestRow):
    """An open question with the JSON Schema of its answer; None where any answer is accepted."""

    response_schema: Mapping[str, Json] | None = None


class RequestClosed(NamedTuple):
    """A request that is closed."""

    id: str


class TimerRow(NamedTuple):
    """A timer that is set."""

    id: str
    run: str
    app: str
    user: str
    at: int


class TimerGone(NamedTuple):
    """A timer that is gone."""

    id: str


class KeptValue(NamedTuple):
    """The value of a variable that later runs of a user begin with."""

    app: str
    user: str
    workflow: str
    name: str
    value: Json


class ArtifactRow(NamedTuple):
    """An artifact as it is looked up; its payload stays in its event."""

    app: str
    run: str
    seq: int
    board: str
    id: str
    type: str
    by: str
    correlation: str
    partition: str
    created_at: int
    visible_at: int
    policy: Policy
    names: tuple[str, ...]
    tags: tuple[str, ...]


class ConsumedRow(NamedTuple):
    """An agent was woken by an artifact."""

    app: str
    board: str
    agent: str
    artifact: str
    run: str
    turn: int
    at: int


class Letter(NamedTuple):
    """An artifact on its way to the run that collects it beyond its correlation."""

    app: str
    #: What the runs of this collection are called, and the workflow they are of.
    to: str
    workflow: str
    digest: str
    user: str
    data: ArtifactArrived


class LetterTaken(NamedTuple):
    """A letter that is in the journal of the run it was for."""

    app: str
    id: str


BoardIndexChange: TypeAlias = ArtifactRow | ConsumedRow | Letter | LetterTaken

#: What a batch changes beside its run, in the same transaction.
IndexChange: TypeAlias = (
    RequestRow | RequestClosed | TimerRow | TimerGone | KeptValue | BoardIndexChange
)


class DueRow(NamedTuple):
    """Something whose time has come: a question that expires, or a timer."""

    kind: Literal["request", "timer"]
    id: str
    run: str
    app: str
    user: str
    at: int


class Batch(NamedTuple):
    """Events that are written together, and the rows as they are afterwards.

    `id` is unique. A writer that does not know whether its batch was written finds the id in the
    row of the run.
    """

    run: str
    #: The number of the last event before these; the run must still stand there.
    expected: int
    events: Sequence[Event]
    row: RunRow
    sides: tuple[IndexChange, ...] = ()
    #: The package of the run, with its first events: kept for as long as a run needs it.
    package: bytes | None = None

    @property
    def id(self) -> str:
        """The name of this batch."""
        return self.row.batch


def batch(
    before: State,
    after: State,
    events: Sequence[Event],
    *,
    id: str,  # noqa: A002 - what it is
    owner: str,
    package: bytes | None = None,
) -> Batch:
    """Return the batch of events that have led from one state to another."""
    row = run_row(after, events[-1].at, owner if after.status == "running" else "", id)
    sides = () if _is_index_unchanged(before, after) else tuple(_index_changes(before, after))
    if after.board is not None:
        sides = (*sides, *board_index_changes(after, events))
    return Batch(after.run, before.seq, events, row, sides, package)


def _is_index_unchanged(before: State, after: State) -> bool:
    """Tell whether nothing beside the run has changed, as after most turns."""
    return (
        before.requests is after.requests
        and before.timers is after.timers
        and (not after.carried_values or before.variables is after.variables)
    )


def _index_changes(before: State, after: State) -> Iterator[IndexChange]:
    for id_, request in after.requests.items():
        if id_ not in before.requests:
            yield request_row(after, request)
    yield from (RequestClosed(id_) for id_ in before.requests if id_ not in after.requests)
    for id_, timer in after.timers.items():
        if before.timers.get(id_) is not timer:  # One that has fired may have been set anew.
            yield TimerRow(id_, after.run, after.app, after.user, timer.at)
    yield from (TimerGone(id_) for id_ in before.timers if id_ not in after.timers)
    for name in (
        after.carried_values if not after.forked_from else ()
    ):  # What if: a fork is nobody's history.
        if after.set_by.get(name) != before.set_by.get(name):
            value = after.variables.get(name)
            yield KeptValue(after.app, after.user, after.workflow, name, value)


def run_row(state: State, changed_at: int, owner: str = "", batch: str = "") -> RunRow:
    spent = state.spent
    return RunRow(
        run=state.run,
        app=state.app,
        user=state.user,
        workflow=state.workflow,
        digest=state.digest,
        status=state.status,
        seq=state.seq,
        started_at=state.started_at,
        changed_at=changed_at,
        turns=state.turns,
        calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
        unpriced=spent.unpriced,
        preview=state.preview,
        outcome=state.outcome,
        reason=state.reason,
        parent=state.forked_from,
        uncounted=spent.uncounted,
        owner=owner,
        batch=batch,
    )


def request_row(state: State, request: Request) -> RequestRow:
    """Return the row of an open question."""
    return RequestRow(
        id=request.id,
        run=state.run,
        app=state.app,
        user=state.user,
        kind=request.kind,
        agent=request.agent,
        tool=request.tool,
        payload=request.payload,
        opened_at=request.opened_at,
        expires_at=request.expires_at,
        sets=request.sets,
        component=request.component,
        mode=request.mode,
        addressee=request.addressee,
    )


# -- boards


def board_index_changes(state: State, events: Sequence[Event]) -> Iterator[BoardIndexChange]:
    """Yield what a batch of a board writes beside its events."""
    correlation = state.board.correlation if state.board else ""
    for event in events:
        match event.data:
            case ArtifactPublished() as data:
                yield _artifact(state, correlation, event, data)
                if not state.forked_from:  # A fork sends nothing to other runs.
                    yield from _letters(state, correlation, event, data)
            case TurnStarted(agent=agent, inputs=inputs):
                for artifact in inputs:
                    yield ConsumedRow(
                        state.app, state.workflow, agent, artifact, state.run, event.turn, event.at
                    )
            case ArtifactArrived(letter=letter):
                yield LetterTaken(state.app, letter)
            case _:
                pass


def _artifact(state: State, correlation: str, event: Event, data: ArtifactPublished) -> ArtifactRow:
    seen = stored_audience(data.visibility, created_at=event.at, tenant=state.app)
    return ArtifactRow(
        app=state.app,
        board=state.workflow,
        id=data.id,
        type=data.type,
        by=data.by,
        correlation=correlation,
        partition=data.partition,
        created_at=event.at,
        visible_at=seen.visible_at,
        policy=seen.policy,
        names=seen.names,
        tags=data.tags,
        run=state.run,
        seq=event.seq,
    )


def _letters(
    state: State, correlation: str, event: Event, data: ArtifactPublished
) -> Iterator[Letter]:
    for to, subscription in data.letters.items():
        arrived = ArtifactArrived(
            letter=f"{state.run}.{event.seq}.{subscription}",
            id=data.id,
            type=data.type,
            payload=data.payload,
            by=data.by,
            subscription=subscription,
            key=data.wakes[subscription],
            correlation=correlation,
            created_at=event.at,
            tags=data.tags,
            partition=data.partition,
            visible_at=event.at + data.delay,
        )
        yield Letter(state.app, to, state.workflow, state.digest, state.user, arrived)
