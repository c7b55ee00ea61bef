"""Starts and extensions: what begins runs, and what operators see and do of it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from fastapi import Depends, Header, Path, Request
from fastapi.responses import Response
from pydantic import JsonValue
from typing_extensions import TypedDict

from weft.errors import AccessDenied, UsageError
from weft.server.actions import KEY_KNOWN, PEOPLE, StartBody, Values, start_run
from weft.server.answers import ContinuedAnswer, Started, page_of
from weft.server.context import ServerContext
from weft.server.extensions.package import PackageExtensions
from weft.server.extensions.services import ServiceState
from weft.server.identity import OPERATOR, PUBLIC
from weft.server.parameters import Body, Cursor, IdPath, Limit, RequestKey, RunPath, log_page
from weft.server.problems import Folders
from weft.server.routing import Caller, Context, Routes, json_answer
from weft.server.signatures import DELIVERY_HEADER, SIGNATURE_HEADER
from weft.server.starts.firing import Start, State
from weft.server.starts.forms import require_form
from weft.server.starts.hooks import Delivery
from weft.server.starts.schedules import next_time
from weft.spec.orchestrator import ScheduleStart, WebhookStart

routes: Final = Routes("starts")


class FiringAnswer(TypedDict):
    """An event that should begin a run: the run, or why there is none."""

    at: int
    #: What made it happen; `manual`: an operator.
    by: Literal["schedule", "webhook", "document", "form", "manual"]
    run: str | None
    error: str
    #: The time of a schedule, the id of a delivery, or the key of a document.
    due: NotRequired[int]
    delivery: NotRequired[str]
    document: NotRequired[str]


class StartAnswer(TypedDict):
    """How the runs of a workflow begin; its id is the name of the workflow."""

    id: str
    type: Literal["form_submit", "schedule", "webhook", "database_condition"]
    #: As the package declares it.
    trigger: dict[str, JsonValue]
    #: The address to which webhooks are sent.
    path: str | None
    paused: bool
    #: When a schedule is due next; null for the others, and while it is paused.
    next_at: int | None
    last: FiringAnswer | None
    #: Why the package or its schedule cannot be used, or why the last event began no run.
    error: str


class ExtensionAnswer(TypedDict):
    """A router or a service of a package."""

    workflow: str
    kind: Literal["api_router", "startup_service"]
    entrypoint: str
    #: The address below which a router answers; null for a service.
    path: str | None
    #: Whether callers of the router need no key.
    public: bool
    #: `ended`: a service that is a function, and has returned.
    state: ServiceState
    #: Why it does not work, or why an earlier version of a router answers.
    error: str


class FireBody(Body):
    """What a form, a webhook or a document would bring."""

    input: Values | None = None


async def _find(
    id_: Annotated[IdPath, Path(alias="id")], caller: Caller, context: Context
) -> Start:
    return await context.starts.find(caller.app, id_)


#: The start of the caller's tenant that a path names.
FoundStart: TypeAlias = Annotated[Start, Depends(_find)]


@routes.add_start("POST", "/api/starts/{workflow}/form", roles=PEOPLE)
async def submit_form(
    workflow: IdPath, body: Values, caller: Caller, context: Context, key: RequestKey = None
) -> Started:
    """Begin a run of the caller's with the values of a form."""
    require_form(await context.host.current_workflow(workflow, app=caller.app), body)
    return await start_run(context, caller, StartBody(workflow=workflow, input=body), key=key)


@routes.add(
    "POST",
    "/hooks/{app}/{path:path}",
    roles=PUBLIC,
    answer=ContinuedAnswer,
    status=HTTPStatus.ACCEPTED,
)
async def receive_webhook(
    app: RunPath,
    path: RunPath,
    request: Request,
    context: Context,
    signature: Annotated[str, Header(alias=SIGNATURE_HEADER, max_length=2000)] = "",
    delivery: Annotated[
        str, Header(alias=DELIVERY_HEADER, max_length=200, pattern=r"^[\x20-\x7e]*$")
    ] = "",
) -> object:
    """Begin a run with a signed JSON object; a delivery that is repeated answers with its run.

    The path is that of the start, or else the name of the workflow. The signature is
    `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY` with the secret.
    """
    given = Delivery(signature, delivery, await request.body())
    return {"run": await context.hooks.receive(app, path, given)}


@routes.add("GET", "/api/starts", roles=OPERATOR, answer=page_of(StartAnswer))
async def list_starts(caller: Caller, context: Context) -> object:
    """List the starts of the tenant."""
    found = await context.starts.of_app(caller.app)
    return [await _shown(context, start) for start in found]


@routes.add("POST", "/api/starts/{id}/pause", roles=OPERATOR, answer=StartAnswer)
async def pause(start: FoundStart, context: Context) -> object:
    """Let a start begin no more runs; what happens in the meantime is not made up for."""
    return await _set_paused(context, start, is_paused=True)


@routes.add("POST", "/api/starts/{id}/resume", roles=OPERATOR, answer=StartAnswer)
async def resume(start: FoundStart, context: Context) -> object:
    """Let a start begin runs again, from now on."""
    return await _set_paused(context, start, is_paused=False)


@routes.add(
    "POST",
    "/api/starts/{id}/fire",
    roles=OPERATOR,
    answer=ContinuedAnswer,
    status=HTTPStatus.CREATED,
    also={HTTPStatus.OK: "The run of an earlier request with the same key."},
)
async def fire(
    start: FoundStart,
    caller: Caller,
    context: Context,
    body: FireBody | None = None,
    key: RequestKey = None,
) -> Response:
    """Begin a run now, also if the start is paused."""
    now, run = context.clock.now(), context.clock.new_id()
    if key is not None:
        hour = now // KEY_KNOWN * KEY_KNOWN
        run, earlier = start.run_id(hour, key), start.run_id(hour - KEY_KNOWN, key)
        with suppress(AccessDenied):  # The first request came in this hour.
            await context.host.run(earlier, scope=caller.scope)
            return json_answer({"run": earlier})
    given = None if body is None else body.input
    is_new = await context.starts.fire(start, run, at=now, by="manual", input=given)
    return json_answer({"run": run}, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@routes.add("GET", "/api/starts/{id}/firings", roles=OPERATOR, answer=page_of(FiringAnswer))
async def list_firings(
    start: FoundStart,
    context: Context,
    cursor: Cursor = None,
    limit: Limit = 50,
    refused: bool = False,  # noqa: FBT001, FBT002 - a query
) -> object:
    """List what a start began, and why it could not: the newest of the last 1,000 entries first.

    With `refused`, requests without a valid signature: at most one in a second is kept.
    """
    log, show = start.refusals if refused else start.log, partial(_firing, context)
    return await log_page(context.starts.logs, start.app, log, cursor, limit, show)


async def _set_paused(context: ServerContext, start: Start, *, is_paused: bool) -> dict[str, Any]:
    now = context.clock.now()

    def change(state: State) -> None:
        if bool(state.get("paused")) != is_paused:
            # What happened while it was paused is passed over.
            state.update(paused=is_paused, after=now, position=None)

    await context.starts.update(start, change)
    return await _shown(context, start)


async def _shown(context: ServerContext, start: Start) -> dict[str, Any]:
    state = await context.starts.state(start)
    last = await context.starts.last(start)
    trigger, next_at = start.trigger, None
    error = start.error or ("" if last is None else str(last["error"]))
    is_paused = bool(state.get("paused"))
    if isinstance(trigger, ScheduleStart) and not is_paused:
        try:
            next_at = next_time(trigger, context.clock.now())
        except UsageError as found:
            error = str(found)
    return {
        "id": start.workflow,
        "type": trigger.type,
        "trigger": trigger.model_dump(mode="json"),
        "path": _path(start),
        "paused": is_paused,
        "next_at": next_at,
        "last": None if last is None else _firing(context, last),
        "error": context.folders.hide(error),
    }


def _firing(context: ServerContext, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "error": context.folders.hide(str(entry["error"]))}


def _path(start: Start) -> str | None:
    if not isinstance(start.trigger, WebhookStart):
        return None
    return f"/hooks/{start.app}/{start.trigger.path or start.workflow}"


@routes.add("GET", "/api/extensions", roles=OPERATOR, answer=page_of(ExtensionAnswer))
async def list_extensions(caller: Caller, context: Context) -> object:
    """List the routers and services of the tenant's packages, as they are on this server."""
    found = sorted(context.extensions.of_app(caller.app).items())
    return [shown for _, package in found for shown in _extensions_shown(package, context.folders)]


def _extensions_shown(package: PackageExtensions, folders: Folders) -> Iterator[ExtensionAnswer]:
    for each in package.extensions:
        declared = each.declared
        path = "/".join(part for part in ("/x", package.name, declared.prefix) if part)
        yield {
            "workflow": package.name,
            "kind": declared.kind,
            "entrypoint": declared.entrypoint,
            "path": path if declared.kind == "api_router" else None,
            "public": declared.public,
            "state": each.state,
            # What is wrong with the package now, before what was wrong when it was loaded.
            "error": folders.hide(package.error or each.error),
        }
