"""Runs: start, list and read them, everything that callers do to them, and recorded ones."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, cast

from fastapi import Path, Query
from typing_extensions import TypedDict

from weft.app.recordings import find_recording, recorded_events, recorded_package, recordings
from weft.context.audience import Audience
from weft.engine.events import Event
from weft.engine.rows import OpenRequest, RunRow
from weft.ports.scope import Scope
from weft.runtime.workflow import Workflow
from weft.server.actions import (
    PEOPLE,
    AnswerBody,
    CancelBody,
    ForkBody,
    MessageBody,
    StartBody,
    answer_request,
    cancel_request,
    cancel_run,
    fork_run,
    retry_run,
    send_message,
    start_run,
)
from weft.server.answers import (
    ContinuedAnswer,
    EventsAnswer,
    RequestAnswer,
    RowAnswer,
    RunAnswer,
    Started,
    page_of,
)
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import (
    PRINTABLE,
    Cursor,
    EventNumber,
    IdPath,
    Limit,
    Milliseconds,
    NameFilter,
    RequestKey,
    RunPath,
    cursor_of,
    page,
    parts_of,
)
from weft.server.routing import Caller, Context, Routes
from weft.wire.events import event_data, user_event_data
from weft.wire.rows import request_data, row_data, user_request_data, user_row_data

routes: Final = Routes("runs")


RecordingPath = Annotated[str, Path(min_length=1, max_length=100, pattern=PRINTABLE)]


class RecordingAnswer(TypedDict):
    """A recorded run, and the workflow that performed it."""

    name: str
    workflow: str
    title: str


@routes.add_start("POST", "/api/runs", roles=PEOPLE)
async def start(
    body: StartBody, caller: Caller, context: Context, key: RequestKey = None
) -> Started:
    """Start a run of the caller's."""
    return await start_run(context, caller, body, key=key)


@routes.add("GET", "/api/runs", roles=PEOPLE, answer=page_of(RowAnswer, "RunsAnswer"))
async def list_runs(
    caller: Caller,
    context: Context,
    workflow: NameFilter = None,
    status: Literal["running", "waiting", "ended"] | None = None,
    user: NameFilter = None,
    since: Milliseconds = 0,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> object:
    """List runs, newest first: all of the tenant, or the end user's own.

    `user` is for developers and operators; `since` leaves out runs that were started before.
    """
    scope = caller.scope
    if user is not None and scope.user is None:
        scope = Scope(caller.app, user)
    rows = await context.host.runs(
        scope=scope,
        status=status,
        workflow=workflow,
        before=cursor,
        limit=limit + 1,
        only_own=True,
    )
    found = [row for row in rows if row.started_at >= since]
    return page(found, limit, lambda row: row.run, lambda row: _shown_row(caller, row))


@routes.add("GET", "/api/requests", roles=PEOPLE, answer=page_of(RequestAnswer))
async def list_requests(
    caller: Caller,
    context: Context,
    addressed: Annotated[Literal["me"] | None, Query(alias="for")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> object:
    """List open requests, oldest first: with `for=me` those that the caller is to answer.

    Without it, developers and operators get all open requests of the tenant.
    """
    after = None if cursor is None else parts_of(cursor, int, str, str)
    found = await context.host.requests(
        scope=caller.person if addressed == "me" else caller.scope,
        after=cast("tuple[int, str, str] | None", after),
        limit=limit + 1,
    )
    return page(
        found,
        limit,
        lambda request: cursor_of(request.opened_at, request.run, request.id),
        lambda request: _shown_request(caller, request),
    )


@routes.add("GET", "/api/runs/{run}", roles=PEOPLE, answer=RunAnswer)
async def show_run(run: RunPath, caller: Caller, context: Context) -> object:
    """Show a run with its open requests."""
    row = await context.host.run(run, scope=caller.scope)
    requests = await context.host.requests(scope=caller.scope, run=run)
    shown = [_shown_request(caller, request) for request in requests]
    return {**_shown_row(caller, row), "requests": shown}


@routes.add("GET", "/api/runs/{run}/events", roles=PEOPLE, answer=EventsAnswer)
async def list_events(
    run: RunPath,
    caller: Caller,
    context: Context,
    after: EventNumber = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> object:
    """Return events of a run; an end user gets those events of a page that are for users."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    row = await context.host.run(run, scope=caller.scope)
    show = _events_shown_to(caller, row, workflow)
    found = context.host.events(run, scope=caller.scope, after=after, limit=limit + 1)
    events = [event async for event in found if isinstance(event, Event)]
    return {
        "items": [shown for event in events[:limit] if (shown := show(event)) is not None],
        "next": after + limit if len(events) > limit else None,
    }


@routes.add("POST", "/api/runs/{run}/messages", roles=PEOPLE)
async def message(
    run: RunPath, body: MessageBody, caller: Caller, context: Context, key: RequestKey = None
) -> None:
    """Say something in a run that waits for it."""
    await send_message(context, caller, run, body.text, key=key)


@routes.add("POST", "/api/runs/{run}/answers/{request}", roles=PEOPLE)
async def answer(
    run: RunPath, request: IdPath, body: AnswerBody, caller: Caller, context: Context
) -> None:
    """Answer an open request; a second answer is refused."""
    await answer_request(context, caller, run, request, body.value)


@routes.add("DELETE", "/api/runs/{run}/answers/{request}", roles=PEOPLE)
async def refuse(run: RunPath, request: IdPath, caller: Caller, context: Context) -> None:
    """Close an open request without an answer: what was declared for this case follows."""
    await cancel_request(context, caller, run, request)


@routes.add("POST", "/api/runs/{run}/cancel", roles=PEOPLE)
async def cancel(
    run: RunPath, caller: Caller, context: Context, body: CancelBody | None = None
) -> None:
    """Stop a run, now or after the turn under way."""
    await cancel_run(context, caller, run, (body or CancelBody()).mode)


@routes.add("POST", "/api/runs/{run}/retry", roles=PEOPLE, answer=ContinuedAnswer)
async def retry(run: RunPath, caller: Caller, context: Context, key: RequestKey = None) -> object:
    """Continue a run that has stopped, or repeat the failed turn of one as a new run."""
    return {"run": await retry_run(context, caller, run, key=key)}


@routes.add(
    "POST",
    "/api/runs/{run}/fork",
    roles=DEVELOPER,
    answer=ContinuedAnswer,
    status=HTTPStatus.CREATED,
)
async def fork(
    run: RunPath, body: ForkBody, caller: Caller, context: Context, key: RequestKey = None
) -> object:
    """Repeat a turn of a run with other values or another model, as a new run."""
    return {"run": await fork_run(context, caller, run, body, key=key)}


@routes.add("GET", "/api/recordings", roles=DEVELOPER, answer=page_of(RecordingAnswer))
async def list_recordings(caller: Caller) -> object:  # noqa: ARG001 - the same for everyone
    """List the recorded runs that come with Weft."""
    found = await asyncio.to_thread(recordings)
    return [each._asdict() for each in found]


@routes.add(
    "POST",
    "/api/recordings/{name}",
    roles=DEVELOPER,
    answer=ContinuedAnswer,
    status=HTTPStatus.CREATED,
)
async def play_recording(name: RecordingPath, caller: Caller, context: Context) -> object:
    """Copy a recorded run into the caller's runs: it has ended, and can be forked.

    Its first event has the actor `recording`.
    """
    recording = await asyncio.to_thread(find_recording, name)
    package = await asyncio.to_thread(recorded_package, recording)
    workflow = await context.host.packed_workflow(package)
    run, scope = context.clock.new_id(), caller.person
    events = recorded_events(recording, workflow, run=run, scope=scope, now=context.clock.now())
    await context.host.add_ended(workflow, run, events, scope=scope)
    return {"run": run}


# -- what callers see: end users only what is listed for them


def _shown_row(caller: Principal, row: RunRow) -> dict[str, Any]:
    """Return a run as a caller sees it, without its requests."""
    if caller.scope.user is not None:
        return user_row_data(row)
    data = row_data(row)
    return data if caller.takes_part(row.user) else {**data, "preview": ""}


def _shown_request(caller: Principal, request: OpenRequest) -> dict[str, Any]:
    """Return an open request as a caller sees it."""
    if caller.sees_all:
        return request_data(request)
    return user_request_data(request, caller.person)


def _events_shown_to(
    caller: Principal, row: RunRow, workflow: Workflow
) -> Callable[[Event], dict[str, Any] | None]:
    """Return what shows a caller the events of a run."""
    if caller.sees_all:
        return lambda event: event_data(event, row.run, workflow)
    audience = Audience(
        workflow.spec,
        caller.user,
        caller.person.addresses,
        takes_part=caller.takes_part(row.user),
    )
    return lambda event: user_event_data(event, row.run, workflow, audience)
