"""Boards: publish and find artifacts, follow changes; agents, and the state of correlations."""

import asyncio
import copy
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from weft.errors import AccessDenied, NotFoundError
from weft.ids import derived_id
from weft.ports.board import StoredArtifact
from weft.server.actions import PEOPLE
from weft.server.answers import page_of
from weft.server.board_view import BoardView, cursor_after, place_of, shown_artifact
from weft.server.identity import DEVELOPER
from weft.server.parameters import (
    PRINTABLE,
    Body,
    Cursor,
    IdPath,
    Limit,
    RequestKey,
    cursor_of,
    page,
)
from weft.server.routes.stream import MEDIA, Stream, sent
from weft.server.routing import Caller, Context, Routes, json_answer
from weft.spec.board import TICK
from weft.spec.type_field import OutputModel
from weft.wire.rows import whole_artifact_data

routes: Final = Routes("boards")

BoardPath = Annotated[str, Path(min_length=1, max_length=200, pattern=PRINTABLE)]
ArtifactPath = Annotated[IdPath, Path(alias="id")]
_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]


class ArtifactsQuery(Body):
    """Which artifacts are listed."""

    type: Annotated[list[_Name], Field(max_length=50)] = Field(default_factory=list[str])
    tag: Annotated[list[_Name], Field(max_length=50)] = Field(default_factory=list[str])
    #: An agent, or `user:NAME`.
    producer: Annotated[list[_Name], Field(max_length=50)] = Field(default_factory=list[str])
    correlation: _Name | None = None
    partition: _Name | None = None
    #: Only what this agent may see now; for developers.
    agent: _Name | None = None
    #: Occurs in the payload, in any case.
    text: _Name | None = None
    #: Milliseconds since 1970.
    since: int | None = Field(default=None, ge=0, le=2**53)
    cursor: str | None = Field(default=None, max_length=800, pattern=PRINTABLE)
    limit: int = Field(default=50, ge=1, le=200)


class ArtifactBody(Body):
    """An artifact. Without a correlation it begins one of its own."""

    type: _Name
    payload: JsonValue
    tags: Annotated[list[_Name], Field(max_length=100)] = Field(default_factory=list[str])
    #: By default everyone who may read the board sees it.
    visibility: dict[str, JsonValue] | None = None
    correlation: _Name | None = None
    partition: Annotated[str, Field(max_length=200)] = ""
    #: The only agent that it wakes.
    agent: Annotated[str, Field(max_length=200)] = ""


class ArtifactTypeAnswer(TypedDict):
    """A type of artifacts; its schema is JSON Schema."""

    type: str
    schema: dict[str, JsonValue]


class PublishedAnswer(TypedDict):
    """Where an artifact is."""

    artifact: str
    correlation: str
    run: str


class ArtifactAnswer(TypedDict):
    """An artifact; `produced_by` is an agent, or `user:NAME`."""

    id: str
    type: str
    payload: JsonValue
    produced_by: str
    tags: list[str]
    correlation_id: str
    partition_key: str | None
    created_at: int
    version: int


class ArtifactsAnswer(TypedDict):
    """A page of artifacts, newest first; `changes` is the cursor of what appears after it."""

    items: list[ArtifactAnswer]
    next: str | None
    changes: str


class VisibilityAnswer(TypedDict):
    """A policy of visibility, the names in it, and from when on it holds."""

    policy: Literal["public", "private", "labelled", "tenant", "hidden"]
    names: list[str]
    visible_at: int


class ConsumptionAnswer(TypedDict):
    """An agent that was woken by an artifact."""

    agent: str
    artifact: str
    run: str
    turn: int
    at: int


class WholeArtifactAnswer(ArtifactAnswer, total=False):
    """An artifact; for developers also who may see it, where it stands, and whom it has woken."""

    visibility: VisibilityAnswer
    run: str
    seq: int
    consumed: list[ConsumptionAnswer]


class WhyAnswer(TypedDict):
    """Whether an agent may see an artifact now, and why not."""

    artifact: str
    agent: str
    visible: bool
    reason: str | None


class ChangeAnswer(TypedDict):
    """An artifact that has appeared; `cursor` is where to go on after it."""

    cursor: str
    artifact: ArtifactAnswer


class ChangesAnswer(TypedDict):
    """Changes in the order in which they appeared.

    `next` is the `after` of the next page, which may be empty. With `gap`, changes after the cursor
    that was given have been removed.
    """

    items: list[ChangeAnswer]
    next: str
    has_more: bool
    gap: bool


async def _find(workflow: BoardPath, caller: Caller, context: Context) -> BoardView:
    return BoardView(context.host, caller, workflow)


#: The board that a path names; whether it exists is to be seen.
FoundBoard: TypeAlias = Annotated[BoardView, Depends(_find)]


@routes.add(
    "POST",
    "/api/boards/{workflow}/artifacts",
    roles=PEOPLE,
    answer=PublishedAnswer,
    status=HTTPStatus.CREATED,
    also={HTTPStatus.OK: "The artifact of an earlier request with the same key."},
)
async def publish(
    workflow: BoardPath,
    body: ArtifactBody,
    caller: Caller,
    context: Context,
    key: RequestKey = None,
) -> Response:
    """Publish an artifact as the caller."""
    id_, status = "", HTTPStatus.CREATED
    if key is not None:
        id_ = derived_id(0, "artifact", caller.app, caller.user, workflow, key)
        with suppress(NotFoundError):
            await context.host.artifact(workflow, id_, scope=caller.person)
            status = HTTPStatus.OK
    published = await context.host.publish(
        workflow,
        body.type,
        body.payload,
        scope=caller.person,
        tags=body.tags,
        visibility=body.visibility,
        correlation=body.correlation,
        partition=body.partition,
        agent=body.agent,
        id=id_,
    )
    return json_answer(
        PublishedAnswer(
            artifact=published.id, correlation=published.correlation_id, run=published.run
        ),
        status,
    )


@routes.add("GET", "/api/boards/{workflow}/types", roles=PEOPLE, answer=page_of(ArtifactTypeAnswer))
async def list_types(board: FoundBoard) -> object:
    """List the types of artifacts that can be published."""
    await board.require()
    linked = await board.host.current_workflow(board.workflow, app=board.caller.app)
    return [
        {"type": name, "schema": _described(schema, linked.spec.models)}
        for name, schema in linked.types.schemas.items()
        if name != TICK
    ]


def _described(schema: dict[str, Any], models: Sequence[OutputModel]) -> dict[str, Any]:
    """Return a schema with the descriptions of the fields of models, for people who fill it."""
    texts = {
        model.name: {name: field.description for name, field in model.fields.items()}
        for model in models
    }
    shown = copy.deepcopy(schema)
    for model, part in shown.get("$defs", {}).items():
        for name, field in part.get("properties", {}).items():
            text = texts.get(model, {}).get(name)
            if text:
                field["description"] = text
    return shown


@routes.add("GET", "/api/boards/{workflow}/artifacts", roles=PEOPLE, answer=ArtifactsAnswer)
async def list_artifacts(board: FoundBoard, wanted: Annotated[ArtifactsQuery, Query()]) -> object:
    """List the artifacts that the caller may see, newest first.

    Of a filter that is given several times, one must fit; of several filters, all.
    """
    await board.require()
    if wanted.agent is not None and board.reader is not None:
        raise AccessDenied("what agents see is for developers")
    limit = wanted.limit
    changes = cursor_of(*board.host.newest_change())
    found = await board.artifacts(
        agent=wanted.agent,
        limit=limit + 1,
        types=tuple(wanted.type),
        tags=tuple(wanted.tag),
        producers=tuple(wanted.producer),
        correlation=wanted.correlation,
        partition=wanted.partition,
        since=wanted.since,
        text=wanted.text,
        after=place_of(wanted.cursor),
    )

    def place(last: StoredArtifact) -> str:
        return cursor_of(last.artifact.created_at, last.run, last.seq)

    return {**page(found.items, limit, place, shown_artifact), "changes": changes}


@routes.add(
    "GET", "/api/boards/{workflow}/artifacts/{id}", roles=PEOPLE, answer=WholeArtifactAnswer
)
async def show_artifact(board: FoundBoard, id_: ArtifactPath) -> object:
    """Show an artifact; one that the caller may not see is not found."""
    found = await board.host.artifact(board.workflow, id_, scope=board.scope, reader=board.reader)
    if board.reader is not None:
        return shown_artifact(found)
    consumed = await board.host.consumed(board.workflow, scope=board.scope, artifact=id_)
    return whole_artifact_data(found, consumed)


@routes.add("GET", "/api/boards/{workflow}/artifacts/{id}/why", roles=DEVELOPER, answer=WhyAnswer)
async def show_why(
    board: FoundBoard, id_: ArtifactPath, agent: Annotated[str, Query(min_length=1, max_length=200)]
) -> object:
    """Say whether an agent may see an artifact now, and why not."""
    reason = await board.host.why(board.workflow, id_, agent, scope=board.caller.scope)
    return {"artifact": id_, "agent": agent, "visible": reason is None, "reason": reason}


@routes.add(
    "GET",
    "/api/boards/{workflow}/changes",
    roles=PEOPLE,
    answer=ChangesAnswer,
    also_media=MEDIA,
)
async def list_changes(
    board: FoundBoard,
    request: Request,
    caller: Caller,
    context: Context,
    after: Cursor = None,
    limit: Limit = 100,
    stream: bool = False,  # noqa: FBT001, FBT002 - a query
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=800)] = None,
) -> object:
    """Return what has appeared after a cursor to the caller, the oldest first.

    With `stream`, or if the request accepts `text/event-stream`, changes are sent as they appear,
    a second or two after: `id` is a cursor, `event` is `artifact` or `gap`.
    """
    after = last or after
    if stream or MEDIA in request.headers.get("accept", ""):
        place_of(after)  # Raises if it is not valid.
        await board.require()
        with ExitStack() as stack:
            outlet = stack.enter_context(context.connected(caller))
            stack.callback(asyncio.create_task(board.send(after, outlet)).cancel)
            return Stream(sent(context, caller, request, outlet), stack.pop_all())
    found = await board.changes(after, limit)
    return {
        "items": [
            {"cursor": cursor_after(each), "artifact": shown_artifact(each)} for each in found.items
        ],
        "next": cursor_of(*found.after),
        "has_more": found.has_more,
        "gap": found.gap,
    }
