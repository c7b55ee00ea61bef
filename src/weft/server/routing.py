"""Routes: each declares who may call it, and answers with JSON or a problem."""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from fastapi import APIRouter, Depends, Request
from fastapi.requests import HTTPConnection
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic_core import to_json

from weft.server.answers import DoneAnswer, ProblemAnswer, Started, StartedAnswer
from weft.server.context import ServerContext
from weft.server.identity import ROLES_KEY, Principal, Role, authorize

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
#: It returns data for JSON, or a response that is ready. A list is answered as a page without a
#: next one, None as `{"ok": true}`.
Handler: TypeAlias = Callable[..., Awaitable[object]]

#: What a route for everyone has in the place of roles.
_PUBLIC: Final = "public"

_PROBLEM_STATUSES: Final = (
    400, 401, 403, 404, 405, 408, 409, 413, 414, 421, 422, 429, 431, 500, 503,
)  # fmt: skip
_PROBLEM: Final = {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}
#: What every route may answer besides its own answer. One status has the type, and the others refer
#: to it: FastAPI makes a validator for each type, which took half of the start of a server.
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        **(
            {"model": ProblemAnswer}
            if status == 500
            else {"content": {"application/json": _PROBLEM}}
        ),
    }
    for status in _PROBLEM_STATUSES
}


class GuardedRoute(APIRoute):
    """A route that finds out who calls before it reads anything else of the request."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401
        extra = cast("dict[str, list[str]]", options.get("openapi_extra") or {})
        roles = extra.get(ROLES_KEY)
        if roles is None:
            raise TypeError(f"the route {path} does not declare its roles")
        self._roles = None if _PUBLIC in roles else frozenset(cast("list[Role]", roles))
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            if self._roles is not None:
                request.state.principal = authorize(await caller_of(request), self._roles)
            return await handle(request)

        return guarded


class Routes:
    """A group of routes. Roles are part of every route: none is open to everyone by mistake."""

    def __init__(self, tag: str) -> None:
        self.router = APIRouter(tags=[tag], route_class=GuardedRoute)

    def add(
        self,
        method: Method,
        path: str,
        *,
        roles: Collection[Role],
        answer: Any = DoneAnswer,  # noqa: ANN401 - a type
        status: int = HTTPStatus.OK,
        also: Mapping[int, str] | None = None,
        media: str = "application/json",
        also_media: str = "",
    ) -> Callable[[Handler], Handler]:
        """Return what adds a function as a route.

        `answer` is the type of its answer, for the OpenAPI document; `also` are other statuses
        with the same answer; `media` is the type of an answer that is not JSON, and `also_media`
        another type that a client may ask for.
        """
        responses = dict(PROBLEMS)
        for other, text in (also or {}).items():
            responses[other] = {"model": answer, "description": text}
        is_json = media == "application/json"
        if not is_json:
            responses[status] = {"content": {media: {}}, "description": "The content."}
        elif also_media:
            content: dict[str, dict[str, Any]] = {"application/json": {}, also_media: {}}
            responses[status] = {"content": content, "description": "The content."}

        def decorate(function: Handler) -> Handler:
            @wraps(function)
            async def answered(**parameters: object) -> Response:
                found = await function(**parameters)
                if isinstance(found, Response):
                    return found
                if isinstance(found, Started):
                    data = {"run": found.run, "seq": found.seq}
                    return json_answer(data, status if found.is_new else HTTPStatus.OK)
                if found is None:
                    found = DoneAnswer(ok=True)
                elif isinstance(found, list):
                    found = {"items": cast("list[object]", found), "next": None}
                return json_answer(found, status)

            self.router.add_api_route(
                path,
                answered,
                methods=[method],
                response_model=answer if is_json else None,
                response_class=JSONResponse if is_json else Response,
                status_code=status,
                responses=responses,
                openapi_extra={ROLES_KEY: sorted(roles) or [_PUBLIC]},
            )
            return function

        return decorate

    def add_start(
        self, method: Method, path: str, *, roles: Collection[Role]
    ) -> Callable[[Handler], Handler]:
        """Return what adds a route that starts a run; a repeated request finds that run."""
        return self.add(
            method,
            path,
            roles=roles,
            answer=StartedAnswer,
            status=HTTPStatus.CREATED,
            also={HTTPStatus.OK: "The run of an earlier request that was the same."},
        )


async def caller_of(connection: HTTPConnection) -> Principal | None:
    """Return who sends a request or opens a socket; raises Unauthenticated."""
    return await context_of(connection).authenticator.caller(connection.headers)


def context_of(connection: HTTPConnection) -> ServerContext:
    """Return what the routes of a server share."""
    return connection.app.state.weft


# FastAPI runs what is not async in a thread.
async def _principal(request: Request) -> Principal:
    return request.state.principal


async def _context(request: Request) -> ServerContext:
    return context_of(request)


#: The parameters of routes: who calls, and what the routes share.
Caller: TypeAlias = Annotated[Principal, Depends(_principal)]
Context: TypeAlias = Annotated[ServerContext, Depends(_context)]


def json_answer(data: object, status: int = HTTPStatus.OK) -> Response:
    """Return data as JSON."""
    return Response(to_json(data), status, media_type="application/json")
