"""The rows that a store writes with a batch of events, so that lists need no folding.

These are tuples: one is made with every batch, and a frozen class takes three times as long.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from weft.engine.board.state import run_name
from weft.engine.board.visibility import Policy, stored_audience
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    Event,
    EventData,
    Outcome,
    RunStarted,
    TurnStarted,
)
from weft.engine.state import Request, State, Status
from weft.engine.timers import NEVER
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
    unpriced_calls: int
    preview: str
    outcome: Outcome | None
    reason: str
    parent: str
    unmetered_calls: int = 0
    #: The batch that was written last.
    batch: str = ""
    #: The correlation or the collection; an app has one open run of a name. Empty for a chat.
    name: str = ""
    #: The worker that owns the run, the time of its last heartbeat, and when the run needs
    #: attention next. A store adds these; no batch has them.
    owner: str = ""
    heartbeat: int = 0
    due_at: int = NEVER


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
    #: The component that shows it, where, and the addressee as `role:NAME`; empty: the run's user.
    component: str = ""
    mode: str = ""
    addressee: str = ""


class OpenRequest(RequestRow):
    """An open question with the JSON Schema of its answer; None where any answer is accepted."""

    response_schema: Mapping[str, Json] | None = None


class RequestClosed(NamedTuple):
    """A request that is closed."""

    id: str


class CarriedValue(NamedTuple):
    """The value of a variable that later runs of a user begin with."""

    app: str
    user: str
    workflow: str
    name: str
    value: Json


class ArtifactRow(NamedTuple):
    """The index entry of an artifact; its payload stays in its event."""

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
    visibility: Policy
    visible_to: tuple[str, ...]
    tags: tuple[str, ...]
    #: Who may find it: empty for all users of the tenant, or `user:NAME`.
    owner: str


class ConsumedRow(NamedTuple):
    """An agent was woken by an artifact."""

    app: str
    board: str
    agent: str
    artifact: str
    run: str
    turn: int
    at: int
    owner: str


class Mail(NamedTuple):
    """An event from outside a run; the owner of the run takes it into the next batch."""

    app: str
    #: The run, or with `start` the name of the run.
    to: str
    #: Unique per receiver: mail with a known id is not delivered again.
    id: str
    actor: str
    data: EventData
    #: The first event of the run that begins if no open run has the name.
    start: RunStarted | None = None
    #: The open request that it answers; empty if it answers none.
    request: str = ""


class MailTaken(NamedTuple):
    """Mail that was written to the journal of its run, or dropped."""

    id: str


class OutgoingEvent(NamedTuple):
    """An event that is to be sent to a webhook of the tenant."""

    app: str
    run: str
    seq: int
    webhook: str
    #: When the event was written.
    at: int


class Snapshot(NamedTuple):
    """The state of a run after `seq` events, as bytes.

    It is a cache: a reader ignores it if its format or the digest of the workflow differs.
    """

    seq: int
    format: str
    digest: str
    content: bytes


BoardIndexChange: TypeAlias = ArtifactRow | ConsumedRow | Mail

#: The other rows that a batch changes in the same transaction.
IndexChange: TypeAlias = (
    RequestRow | RequestClosed | CarriedValue | MailTaken | BoardIndexChange | OutgoingEvent
)


class Batch(NamedTuple):
    """Events that are written together, and the rows as they are afterwards.

    `id` is unique: a writer that does not know whether its batch was written looks for the id in
    the row of the run.
    """

    run: str
    #: The number of the last event before these; the run must still stand there.
    expected: int
    events: Sequence[Event]
    row: RunRow
    changes: tuple[IndexChange, ...] = ()
    #: The package of the run, with its first events: kept for as long as a run needs it.
    package: bytes | None = None
    #: When the run needs attention next: a time in milliseconds, or NEVER.
    due_at: int = NEVER
    #: Whether the writer continues to work on the run, and so stays its owner.
    held: bool = False
    #: Whether it was made from a signal that did not come as mail. It is refused while mail is
    #: unread, since mail that came before must be taken before.
    direct: bool = False

    @property
    def id(self) -> str:
        """The name of this batch."""
        return self.row.batch


def batch(  # noqa: PLR0913 - what is written, by name
    before: State,
    after: State,
    events: Sequence[Event],
    *,
    id: str,  # noqa: A002 - what it is
    at: int | None = None,
    package: bytes | None = None,
    taken: Sequence[Mail] = (),
    held: bool = False,
    direct: bool = False,
) -> Batch:
    """Return the batch of events that have led from one state to another.

    `taken` is the mail that it contains or drops. A batch without events, which takes mail or
    releases the run, gives the time of the last change with `at`.
    """
    row = run_row(after, events[-1].at if at is None else at, id)
    changes = () if _is_index_unchanged(before, after) else tuple(_index_changes(before, after))
    if after.board is not None:
        changes = (*changes, *board_index_changes(after, events))
    if taken:
        changes = (*changes, *_mail_changes(after, taken))
    is_left = after.status == "running" and not held  # Another worker continues it.
    due_at = row.changed_at if is_left else after.due_at
    return Batch(after.run, before.seq, events, row, changes, package, due_at, held, direct)


def _mail_changes(after: State, taken: Sequence[Mail]) -> Iterator[IndexChange]:
    for mail in taken:
        yield MailTaken(mail.id)
        if mail.request in after.requests:  # The run has dropped the answer: it is open again.
            yield request_row(after, after.requests[mail.request])


def _is_index_unchanged(before: State, after: State) -> bool:
    """Return whether only the row of the run has changed, as after most turns."""
    return before.requests is after.requests and (
        not after.carried_values or before.variables is after.variables
    )


def _index_changes(before: State, after: State) -> Iterator[IndexChange]:
    for id_, request in after.requests.items():
        if id_ not in before.requests:
            yield request_row(after, request)
    yield from (RequestClosed(id_) for id_ in before.requests if id_ not in after.requests)
    if after.forked_from:  # What a fork sets is not carried into later runs.
        return
    for name in after.carried_values:
        if after.set_by.get(name) != before.set_by.get(name):
            value = after.variables.get(name)
            yield CarriedValue(after.app, after.user, after.workflow, name, value)


def run_row(state: State, changed_at: int, batch: str = "") -> RunRow:
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
        unpriced_calls=spent.unpriced_calls,
        preview=state.preview,
        outcome=state.outcome,
        reason=state.reason,
        parent=state.forked_from,
        unmetered_calls=spent.unmetered_calls,
        batch=batch,
        name=state.name,
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
    """Yield the rows that a batch of a board writes besides its events."""
    correlation, owner = (state.board.correlation, state.board.owner) if state.board else ("", "")
    for event in events:
        match event.data:
            case ArtifactPublished() as data:
                yield _artifact(state, correlation, event, data)
                if not state.forked_from:  # A fork sends nothing to other runs.
                    yield from _mails(state, correlation, event, data)
            case TurnStarted(agent=agent, inputs=inputs):
                for artifact in inputs:
                    yield ConsumedRow(
                        state.app,
                        state.workflow,
                        agent,
                        artifact,
                        state.run,
                        event.turn,
                        event.at,
                        owner,
                    )
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
        visibility=seen.policy,
        visible_to=seen.names,
        tags=data.tags,
        run=state.run,
        seq=event.seq,
        owner=state.board.owner if state.board else "",
    )


def _mails(state: State, correlation: str, event: Event, data: ArtifactPublished) -> Iterator[Mail]:
    """Yield the mail that brings an artifact to its collections, each of which begins with it."""
    owner = state.board.owner if state.board else ""
    for to, subscription in data.forwarded_to.items():
        arrived = ArtifactArrived(
            mail=f"{state.run}.{event.seq}.{subscription}",
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
        name = run_name(state.workflow, owner, to)
        start = RunStarted(
            state.workflow, state.digest, state.app, state.user, {},
            model=state.model, correlation=to, collects=subscription, name=name,
        )  # fmt: skip
        yield Mail(state.app, name, arrived.mail, "mail", arrived, start)
