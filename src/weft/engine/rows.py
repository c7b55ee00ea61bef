"""What a store keeps beside the events, so that lists need no folding. Worked out here, purely.

These are tuples: one is made with every batch, and a frozen class takes three times as long.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from weft.engine.events import Event, Outcome
from weft.engine.state import Request, State, Status
from weft.findings import Json


class RunRow(NamedTuple):
    """A run at a glance."""

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


class RequestRow(NamedTuple):
    """An open question at a glance."""

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


class Batch(NamedTuple):
    """Events that are written together, and the rows as they are afterwards."""

    run: str
    #: The number of the last event before these; the run must still stand there.
    expected: int
    events: Sequence[Event]
    row: RunRow
    opened: tuple[RequestRow, ...]
    closed: tuple[str, ...]
    #: The package of the run, with its first events: kept for as long as a run needs it.
    package: bytes | None = None


def batch(
    before: State, after: State, events: Sequence[Event], package: bytes | None = None
) -> Batch:
    """Put together what is to be written when events have led from one state to another."""
    opened = [it for id_, it in after.requests.items() if id_ not in before.requests]
    return Batch(
        run=after.run,
        expected=before.seq,
        events=events,
        row=run_row(after, events[-1].at),
        opened=tuple(request_row(after, it) for it in opened),
        closed=tuple(id_ for id_ in before.requests if id_ not in after.requests),
        package=package,
    )


def run_row(state: State, changed_at: int) -> RunRow:
    """Return the row of a run."""
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
        calls=state.spent.calls,
        input_tokens=state.spent.input_tokens,
        output_tokens=state.spent.output_tokens,
        cost_usd=state.spent.cost_usd,
        unpriced=state.spent.unpriced,
        preview=state.preview,
        outcome=state.outcome,
        reason=state.reason,
        parent=state.parent,
        uncounted=state.spent.uncounted,
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
    )
