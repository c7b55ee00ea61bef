"""Routers of packages below `/x/NAME`: who may call them is decided before their code runs."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias, cast

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.requests import HTTPConnection
from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from weft.adapters.python_tools.calling import reporting_failures
from weft.app.folders import LOCAL
from weft.errors import AccessDenied, WeftError
from weft.ports.tools import Call
from weft.server.auth.authenticator import Authenticator
from weft.server.identity import KNOWN, ROLES_KEY, Principal, Unauthenticated, authorize
from weft.server.problems import (
    NOT_FOUND,
    Folders,
    problem,
    problem_answer,
    problem_of,
    status_problem,
)

#: Stands between the name of a package and its tenant, for callers without a key.
_OF: Final = "@"


class RouterApp:
    """The routers of a package that have one prefix."""

    def __init__(self, name: str, prefix: str, *, public: bool) -> None:
        self.name = name
        self.prefix = prefix
        self.public = public
        # Problems of values and HTTPExceptions of its routes are answered as FastAPI does: it is
        # the author's interface.
        self._app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        self._app.add_exception_handler(HTTPException, _answer_status)
        self._app.add_exception_handler(WeftError, _answer_error)
        self._app.add_exception_handler(Exception, _answer_failure)

    def add(self, router: APIRouter) -> None:
        """Add a router; raises what FastAPI says of it."""
        prefix = f"/{self.prefix}" if self.prefix else ""
        self._app.include_router(router, prefix=prefix, dependencies=[Depends(_require_roles)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; what the code of the router raises ends this request only."""
        is_answered = False

        async def answer(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            with reporting_failures(Call(self.name, log_name=f"the router of {self.name}")):
                await self._app(scope, receive, answer)
        except Exception:  # noqa: BLE001 - the author's code; it is in the log
            if not is_answered:
                await problem_answer(_FAILED)(scope, receive, send)


#: Finds the routers that answer a path: by the tenant, the name of a package, and the path.
FindRouter: TypeAlias = Callable[[str, str, str], RouterApp | None]


class ExtensionRoutes:
    """Answers all requests below `/x`: the first part of the path names the package.

    The package is that of the caller's tenant; a caller without a key reaches routers that are
    declared public, of the tenant `local` or the one that is named: `/x/NAME@TENANT/...`.
    """

    def __init__(self, find: FindRouter, authenticator: Authenticator, folders: Folders) -> None:
        self._find_router = find
        self._authenticator = authenticator
        self._folders = folders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the router of a package, if the caller may use it."""
        first, _, path = _path(scope).strip("/").partition("/")
        try:
            caller, refused = await self._caller(scope)
            router = self._find(first, path, caller)
            if router is None or not router.public:
                if refused is not None:
                    raise refused
                authorize(caller, KNOWN)
            if router is None:
                raise AccessDenied(NOT_FOUND)
        except WeftError as error:
            if scope["type"] == "websocket":
                await receive()
            await problem_answer(problem_of(error, self._folders))(scope, receive, send)
            return
        inner = {
            **scope,
            "root_path": f"{scope.get('root_path', '')}/{first}",
            "state": {**scope.get("state", {}), "caller": caller, "folders": self._folders},
        }
        await router(inner, receive, send)

    async def _caller(self, scope: Scope) -> tuple[Principal | None, Unauthenticated | None]:
        """Return the caller, and why there is none: a public router may have keys of its own."""
        try:
            return await self._authenticator.caller(Headers(raw=scope["headers"])), None
        except Unauthenticated as error:
            return None, error

    def _find(self, first: str, path: str, caller: Principal | None) -> RouterApp | None:
        name, _, app = first.partition(_OF)
        own = LOCAL.app if caller is None else caller.app
        if caller is not None and app not in ("", own):
            return None
        return self._find_router(app or own, name, path)


def _path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


async def _require_roles(connection: HTTPConnection) -> None:
    """Refuse callers without a role that the route declares in `openapi_extra`."""
    declared: Mapping[str, Any] = getattr(connection.scope["route"], "openapi_extra", None) or {}
    if ROLES_KEY in declared:
        authorize(connection.state.caller, declared[ROLES_KEY])


async def _answer_status(request: Request, error: Exception) -> Response:
    """Answer with a problem what no route has answered: Starlette then raises its own exception."""
    found = cast("HTTPException", error)
    status = HTTPStatus(found.status_code)
    if type(found) is not HTTPException or found.detail != status.phrase:
        return await http_exception_handler(request, found)
    return problem_answer(status_problem(status), found.headers)


async def _answer_error(request: Request, error: Exception) -> Response:
    return problem_answer(problem_of(error, request.state.folders))


async def _answer_failure(_request: Request, _error: Exception) -> Response:
    return problem_answer(_FAILED)


_FAILED: Final = problem(
    HTTPStatus.BAD_GATEWAY, "the router of the package failed", "the log of the server says where"
)
