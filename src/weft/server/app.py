"""The application: all routes behind the guards."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from weft.errors import WeftError
from weft.server.context import ServerContext
from weft.server.http.guards import Guards
from weft.server.http.observing import Observed
from weft.server.identity import Principal
from weft.server.live.socket import socket_route
from weft.server.page import PAGE_ROUTES
from weft.server.problems import causes_of, problem, problem_answer, problem_of, status_problem
from weft.server.routes import ALL_ROUTES
from weft.server.routing import context_of

#: What runs as long as the server does.
Lifespan = Callable[[], AbstractAsyncContextManager[None]]


def make_app(context: ServerContext, lifespan: Lifespan | None = None) -> FastAPI:
    """Return the application of a server, without its guards."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncGenerator[None]:
        if lifespan is None:
            yield
            return
        async with lifespan():
            yield

    app = FastAPI(
        title="Weft",
        version=version("weft-agents"),
        description="Runs of multi-agent workflows: start, follow, answer and inspect them.",
        docs_url=None,
        redoc_url=None,
        lifespan=live,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.weft = context
    for routes in ALL_ROUTES:
        app.include_router(routes.router)
    app.router.routes += [socket_route(context), *PAGE_ROUTES]
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(WeftError, _error)
    app.add_exception_handler(Exception, _error)
    return app


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document, which depends on no setting: for generated files."""
    return make_app(cast("ServerContext", None)).openapi()


def guarded(app: FastAPI) -> ASGIApp:
    """Return an application behind the guards; its requests are counted and logged."""
    settings = app.state.weft.settings
    inner: ASGIApp = app
    if settings.origins:
        inner = CORSMiddleware(
            app,
            allow_origins=sorted(settings.origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["authorization", "content-type", "idempotency-key", "last-event-id"],
        )
    return Observed(Guards(inner, settings), app.state.weft.metrics)


async def _invalid(_request: Request, error: Exception) -> Response:
    found = cast("RequestValidationError", error)
    errors, status = found.errors(), HTTPStatus.UNPROCESSABLE_ENTITY
    if errors[0]["type"] == "json_invalid":
        cause = _json_cause(errors[0], str(found.body))
        made = problem(HTTPStatus.BAD_REQUEST, "the body is not valid JSON", cause=[cause])
    elif isinstance(found.body, bytes):  # FastAPI parses what is sent as JSON.
        hint = "send Content-Type: application/json"
        made = problem(status, "the body was not sent as JSON", hint)
    else:
        made = problem(status, "the request does not fit this route", cause=causes_of(errors))
    return problem_answer(made)


def _json_cause(error: Mapping[str, Any], body: str) -> str:
    """Return what is wrong with a body in JSON; the error has the place as a number."""
    before = body[: error["loc"][-1]]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    text = str(error["ctx"]["error"])
    return f"body, line {line}, column {column}: {text[:1].lower()}{text[1:]}"


async def _http_error(_request: Request, error: Exception) -> Response:
    found = cast("HTTPException", error)
    return problem_answer(status_problem(HTTPStatus(found.status_code)), found.headers)


async def _error(request: Request, error: Exception) -> Response:
    caller: Principal | None = getattr(request.state, "principal", None)
    return problem_answer(problem_of(error, context_of(request).folders, caller))
