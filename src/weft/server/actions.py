"""What callers do to runs: the one meaning of each command, for HTTP and for sockets.

`key` names a request of the caller's: an `Idempotency-Key`, or the id of a command. A request that
is repeated with its key within an hour finds what the first one did.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

from pydantic import Field, JsonValue

from weft.engine.events import Event, RequestAnswered, RunStarted, TurnFailed, TurnStarted
from weft.engine.rows import RunRow
from weft.errors import AccessDenied, ConflictError, UsageError
from weft.findings import Json
from weft.ids import derived_id
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, CancelRequest, Stop, StopMode, UserMessage
from weft.server.answers import Started
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, STAFF, Principal, Role, authorize
from weft.server.parameters import Body

#: Who takes part in runs, and who changes what a run would not have said by itself.
PEOPLE: Final[frozenset[Role]] = frozenset({"end_user", "developer", "operator"})

#: Milliseconds in which a start is the same as an identical one, and in which a key is known.
SAME_START: Final = 15_000
KEY_KNOWN: Final = 3_600_000

#: Names of runs that a caller may choose: they stand in paths.
_RUN: Final = re.compile(r"[A-Za-z0-9._~-]{1,100}")

#: Seconds between two looks for a run that another request is starting, and how often.
_LOOK: Final = 0.05
_LOOKS: Final = 40


Values: TypeAlias = Annotated[dict[str, JsonValue], Field(max_length=1000)]


class StartBody(Body):
    """Which workflow starts, with what. Values and the model are for developers and operators."""

    workflow: str = Field(min_length=1, max_length=200)
    message: str | None = None
    values: Values | None = None
    #: The content of a form, the body of a webhook, or a document.
    input: Values | None = None
    model: str | None = Field(default=None, min_length=1, max_length=200)
    #: The id of the new run; by default the server chooses one.
    run: str | None = Field(default=None, min_length=1, max_length=100)
    #: Start another run even if an identical start came within the last 15 seconds.
    force: bool = False


class MessageBody(Body):
    """What the user says."""

    text: str


class AnswerBody(Body):
    """An answer; the request has the schema of it."""

    value: JsonValue


class CancelBody(Body):
    """When the run stops."""

    mode: StopMode = "now"


class ForkBody(Body):
    """Which turn is repeated: by its number, or by an event of it; and what is different."""

    turn: int | None = Field(default=None, ge=1, le=2**53)
    at: int | None = Field(default=None, ge=1, le=2**53)
    #: Other values of variables.
    edits: Values = Field(default_factory=dict)
    #: What the user says instead of the message that began the turn.
    message: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, min_length=1, max_length=200)


async def start_run(
    context: ServerContext, caller: Principal, body: StartBody, *, key: str | None = None
) -> Started:
    """Start a run of the caller's.

    Without a key, an identical start of the same user within 15 s is the same, unless `force`. A
    `run` that was started before is the same only if it was started with the same content.
    """
    authorize(caller, PEOPLE)
    if (body.values or body.model) and not caller.has(STAFF):
        raise UsageError(
            "values and models are chosen by developers and operators", hint="leave them out"
        )
    _require_id(body.run)
    candidates = [body.run] if body.run is not None else []
    if not candidates and key is not None:
        candidates = _ids(context, KEY_KNOWN, "start", caller.app, caller.user, key)
    elif not candidates and not body.force:
        content = body.model_dump(include={"workflow", "message", "values", "input", "model"})
        candidates = _ids(context, SAME_START, "same", caller.app, caller.user, content)
    recent = 0 if key or body.run else context.clock.now() - SAME_START

    async def is_same(row: RunRow) -> bool:
        """Tell whether a run was begun by this request, or by one that was the same."""
        if row.user != caller.user:
            return False
        if body.run is None:  # Its id was made from what is the same.
            return True
        if body.force and key is None:
            return False
        name = (await context.host.current_workflow(body.workflow, app=caller.app)).name
        return _began_with(await _events(context, caller.person, row.run), name, body)

    for candidate in candidates:
        row = await _row(context, caller, candidate)
        if row is not None and row.started_at > recent and await is_same(row):
            return Started(row.run, row.seq, is_new=False)
    try:
        started = await context.host.start(
            body.workflow,
            scope=caller.person,
            message=body.message,
            values=body.values,
            input=body.input,
            model=body.model,
            run=candidates[0] if candidates else None,
            streamed=True,
        )
    except ConflictError:
        # The same request may have come twice at once: the other one has begun the run.
        row = await _begun(context, caller, candidates[:1]) if key or body.run is None else None
        if row is None or not await is_same(row):
            raise
        return Started(row.run, row.seq, is_new=False)
    row = await context.host.run(started, scope=caller.person)
    return Started(started, row.seq, is_new=True)


async def send_message(
    context: ServerContext, caller: Principal, run: str, text: str, *, key: str | None = None
) -> None:
    """Say something in a run that waits for it."""
    message = UserMessage(text) if key is None else UserMessage(text, id=key)
    scope = await _scope_for(context, caller, run, speaks=True)
    await context.host.deliver(run, message, scope=scope)


async def answer_request(
    context: ServerContext, caller: Principal, run: str, request: str, value: Json
) -> None:
    """Answer a question of a run; the same answer of the same user may be repeated."""
    await _close(context, caller, run, Answer(request, value))


async def cancel_request(context: ServerContext, caller: Principal, run: str, request: str) -> None:
    """Close a question without an answer: what was declared for this case follows."""
    await _close(context, caller, run, CancelRequest(request))


async def cancel_run(
    context: ServerContext, caller: Principal, run: str, mode: StopMode = "now"
) -> None:
    """End a run: now, or after the turn under way."""
    scope = await _scope_for(context, caller, run)
    try:
        await context.host.deliver(run, Stop(mode), scope=scope)
    except ConflictError:
        row = await context.host.run(run, scope=scope)
        if row.outcome != "cancelled":
            raise


async def retry_run(
    context: ServerContext, caller: Principal, run: str, *, key: str | None = None
) -> str:
    """Continue a run that has stopped, or repeat the failed turn of one as a new run.

    Returns the run that continues.
    """
    scope = await _scope_for(context, caller, run)
    row = await context.host.run(run, scope=scope)
    if row.status != "ended":
        await context.host.wake(run, scope=scope)
        return run
    if row.outcome != "failed":
        raise ConflictError(
            f"run {run} has ended, and did not fail", hint="start another run, or fork this one"
        )
    events = await _events(context, scope, run)
    failed = [event.turn for event in events if isinstance(event.data, TurnFailed) and event.turn]
    turn = (failed or [row.turns])[-1]
    return await _fork(context, caller, scope, run, turn=turn, body=ForkBody(), key=key)


async def fork_run(
    context: ServerContext, caller: Principal, run: str, body: ForkBody, *, key: str | None = None
) -> str:
    """Repeat a turn of a run with other values, as a new run: for developers.

    The turn is given by its number, or by the number of an event of it.
    """
    authorize(caller, DEVELOPER)
    if (body.at is None) == (body.turn is None):
        raise UsageError("a fork needs a turn, or an event of it", hint="give one of `turn`, `at`")
    scope, turn = await _scope_for(context, caller, run), body.turn or 0
    if body.at is not None:
        turn = _turn_of(await _events(context, scope, run), run, body.at)
    return await _fork(context, caller, scope, run, turn=turn, body=body, key=key)


# -- parts


async def _scope_for(
    context: ServerContext,
    caller: Principal,
    run: str,
    request: str | None = None,
    *,
    speaks: bool = False,
) -> Scope:
    """Return the scope in which a caller acts on a run: as its user, or for the whole tenant.

    A question that is for others is answered for the tenant, by those who may. Operators speak
    and answer only for themselves.
    """
    authorize(caller, PEOPLE)
    person, scope = caller.person, caller.scope
    if scope == person or (speaks and not caller.sees_all):
        return person
    try:
        row = await context.host.run(run, scope=person)
    except AccessDenied:
        return scope
    if request is None:
        return person
    asked = await context.host.requests(scope=scope, run=run)
    for each in asked:
        if each.id == request and not person.answers(row.app, row.user, each.addressee):
            return scope
    return person


async def _close(
    context: ServerContext, caller: Principal, run: str, signal: Answer | CancelRequest
) -> None:
    scope = await _scope_for(context, caller, run, signal.request, speaks=True)
    try:
        await context.host.deliver(run, signal, scope=scope)
    except ConflictError:
        if not await context.host.was_closed(run, signal, scope=scope):
            raise


async def _fork(
    context: ServerContext,
    caller: Principal,
    scope: Scope,
    run: str,
    *,
    turn: int,
    body: ForkBody,
    key: str | None = None,
) -> str:
    children: list[str] = []
    if key is not None:
        children = _ids(context, KEY_KNOWN, "fork", caller.app, caller.user, run, key)
    for child in children:
        if await _row(context, caller, child) is not None:
            return child
    try:
        return await context.host.fork(
            run,
            scope=scope,
            turn=turn,
            values=body.edits,
            message=body.message,
            model=body.model,
            child=children[0] if children else None,
            streamed=True,
        )
    except ConflictError:
        row = await _begun(context, caller, children[:1])
        if row is None:
            raise
        return row.run


def _began_with(events: Sequence[Event], workflow: str, body: StartBody) -> bool:
    """Tell whether the first events of a run say that it was started with some content."""
    begun = events[0].data
    if not isinstance(begun, RunStarted):
        return False
    values, input_ = body.values or {}, body.input or {}
    answers = (each.data.value for each in events if isinstance(each.data, RequestAnswered))
    said = next(answers, None) if begun.with_message else None
    is_given = all(begun.values.get(name, value) == value for name, value in values.items())
    known = (begun.workflow, said, begun.input or {}, begun.model)
    return (
        known == (workflow, body.message, input_, body.model)
        and is_given
        and set(values) <= set(begun.given) <= {*values, *input_}
    )


def _ids(context: ServerContext, span: int, *parts: object) -> list[str]:
    """Return the ids that belong to some values in this span of time and in the one before."""
    begun = context.clock.now() // span * span
    return [derived_id(begun, *parts), derived_id(begun - span, *parts)]


async def _row(context: ServerContext, caller: Principal, run: str) -> RunRow | None:
    try:
        return await context.host.run(run, scope=caller.scope)
    except AccessDenied:
        return None


async def _begun(context: ServerContext, caller: Principal, runs: Sequence[str]) -> RunRow | None:
    """Return a run that another request of the caller's is about to write."""
    for _ in range(_LOOKS if runs else 0):
        row = await _row(context, caller, runs[0])
        if row is not None:
            return row
        await asyncio.sleep(_LOOK)
    return None


def _require_id(run: str | None) -> None:
    if run is not None and not _RUN.fullmatch(run):
        raise UsageError(
            f"{run!r} cannot be the id of a run",
            hint="use 1 to 100 letters, digits and . _ ~ -, or leave it out",
        )


async def _events(context: ServerContext, scope: Scope, run: str) -> list[Event]:
    found = context.host.events(run, scope=scope)
    return [event async for event in found if isinstance(event, Event)]


def _turn_of(events: Sequence[Event], run: str, at: int) -> int:
    """Return the turn that an event belongs to: its own, or the last that had begun before."""
    if not 0 < at <= len(events):
        raise UsageError(f"run {run} has no event {at}", hint=f"its events are 1 to {len(events)}")
    begun = (event.turn for event in reversed(events[:at]) if isinstance(event.data, TurnStarted))
    return events[at - 1].turn or next(begun, 0)
