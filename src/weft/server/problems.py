"""Errors as problems: `{code, message, cause[], hint[], findings[], run?}` with an HTTP status.

No problem names a folder of the machine of the server.
"""

import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from os import sep
from pathlib import Path
from typing import Any, Final

from fastapi.responses import Response
from pydantic_core import to_json

import weft
from weft.errors import (
    AccessDenied,
    CheckFailed,
    ConflictError,
    DeclarationError,
    NotFoundError,
    PortError,
    RunError,
    SetupError,
    StoreConflict,
    UnknownModel,
    UsageError,
    WeftError,
)
from weft.findings import Finding
from weft.server.identity import STAFF, Principal, Stopping, TooMany, Unauthenticated
from weft.server.starts.forms import InvalidForm
from weft.wire.findings import Problem, problem_data

_log: Final = logging.getLogger("weft.server")

#: The beginning of the codes; the status follows.
_HTTP: Final = "HTTP"

#: What a caller may not see has this text, and what does not exist as well.
NOT_FOUND: Final = "not found"

_TEXTS: Final = {
    HTTPStatus.NOT_FOUND: NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: "the path has no such method",
    HTTPStatus.BAD_REQUEST: "the request is malformed",
}

#: How many wrong values one problem names.
MOST_CAUSES: Final = 10

#: Errors that tell of packages, models and stores, and what end users see instead.
_INSIDE: Final = (DeclarationError, SetupError, UnknownModel, PortError, RunError)
_ASK: Final = "ask those who run this server: its log says why"


def code_of(status: int) -> str:
    """Return the code of a status; `weft explain` knows it."""
    return f"{_HTTP}{int(status)}"


def status_problem(status: HTTPStatus) -> Problem:
    """Return the problem of a status that the routing itself answers with."""
    return problem(status, _TEXTS.get(status, status.phrase.lower()))


def causes_of(errors: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what is wrong with the first values that pydantic has refused, and where each is."""
    return tuple(_cause_of(error) for error in errors[:MOST_CAUSES])


def _cause_of(error: Mapping[str, Any]) -> str:
    where, text = ".".join(str(part) for part in error["loc"]), str(error["msg"])
    if text[1:2].islower():
        text = text[:1].lower() + text[1:]
    return f"{where}: {text}" if where else text


def problem(status: int, message: str, *hint: str, cause: Sequence[str] = ()) -> Problem:
    """Return the problem with the code of a status."""
    return Problem(code_of(status), message, tuple(cause), hint)


def problem_bytes(found: Problem) -> bytes:
    """Return a problem as JSON."""
    return to_json(problem_data(found))


def problem_answer(found: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer with a problem; its status is that of its code."""
    status = int(found.code.removeprefix(_HTTP))
    given = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    content, media = problem_bytes(found), "application/json"
    return Response(content, status, given | dict(headers or {}), media_type=media)


def status_of(error: Exception) -> HTTPStatus:
    """Return the status that says what kind of error it is."""
    match error:
        case Unauthenticated():
            return HTTPStatus.UNAUTHORIZED
        case TooMany():
            return HTTPStatus.TOO_MANY_REQUESTS
        case AccessDenied() | NotFoundError():
            return HTTPStatus.NOT_FOUND
        case ConflictError() | StoreConflict():
            return HTTPStatus.CONFLICT
        case SetupError() | PortError() | RunError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case UsageError() | DeclarationError():
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def problem_of(error: Exception, folders: "Folders", caller: Principal | None = None) -> Problem:
    """Return what an error says to a caller; no folder of this machine, nothing of a bug.

    Only developers and operators see what is wrong with a package, a model or a store.
    """
    status = status_of(error)
    if isinstance(error, AccessDenied):
        return problem(status, NOT_FOUND)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("a request failed", exc_info=error)
        return problem(status, "the server failed; its log says why")
    is_staff = caller is not None and caller.has(STAFF)
    if isinstance(error, _INSIDE) and not isinstance(error, Stopping) and not is_staff:
        _log.warning("a request of an end user cannot be performed: %s", error)
        return problem(status, "this cannot be done now", _ASK)
    hint = getattr(error, "hint", None)
    found = Problem(
        code_of(status),
        error.message if isinstance(error, CheckFailed) else str(error),
        cause=_causes(error),
        hint=(hint,) if isinstance(hint, str) else (),
        findings=error.findings if isinstance(error, DeclarationError) else (),
        run=str(getattr(error, "run", "")),
    )
    return folders.hide_in(found)


def _causes(error: Exception) -> tuple[str, ...]:
    if isinstance(error, InvalidForm):
        return error.causes
    cause = error.__cause__
    return (str(cause),) if isinstance(cause, WeftError) and str(cause) != str(error) else ()


class Folders:
    """Removes folders of this machine from texts: files are named from the workspace on."""

    def __init__(self, workspace: Path) -> None:
        known = {
            workspace: "the workspace",
            Path(weft.__file__).parent: "weft",
            Path(sys.prefix): "python",
            Path(tempfile.gettempdir()): "tmp",
        }
        names = {
            str(place): name
            for folder, name in known.items()
            for place in (folder, folder.absolute(), folder.resolve())
            if place.is_absolute()
        }
        #: The longest first: one folder can be inside another.
        self._names = sorted(names.items(), key=lambda entry: len(entry[0]), reverse=True)

    def hide(self, text: str) -> str:
        """Return a text without these folders."""
        for folder, name in self._names:
            inside = "" if name == "the workspace" else f"{name}/"
            text = text.replace(folder + sep, inside).replace(folder, name)
        return text

    def hide_in(self, problem: Problem) -> Problem:
        """Return a problem without these folders."""
        return replace(
            problem,
            message=self.hide(problem.message),
            cause=tuple(map(self.hide, problem.cause)),
            hint=tuple(map(self.hide, problem.hint)),
            findings=tuple(map(self._hide_in_finding, problem.findings)),
        )

    def _hide_in_finding(self, finding: Finding) -> Finding:
        return replace(
            finding,
            message=self.hide(finding.message),
            place=replace(finding.place, file=self.hide(finding.place.file)),
            cause=tuple(map(self.hide, finding.cause)),
            hint=tuple(map(self.hide, finding.hint)),
        )
