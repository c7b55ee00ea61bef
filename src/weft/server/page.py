"""The built web page: static files for everyone, because they hold no data.

Every address of a screen answers with `index.html`; the page itself reads the address.
"""

import asyncio
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from gzip import compress
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from weft.app.folders import INDEX, NOT_BUILT, PAGE, is_built

#: The screens of the page: the first parts of their addresses.
SCREENS: Final = ("runs", "inbox", "workflows", "design", "board", "starts", "settings")

#: Where the page shows components of packages, in a sandbox.
FRAME: Final = "/frame"

_HTML: Final = "text/html; charset=utf-8"
_SCRIPT: Final = "text/javascript; charset=utf-8"
_TYPES: Final = {
    ".html": _HTML,
    ".js": _SCRIPT,
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
#: Compressed already.
_COMPACT: Final = frozenset({".woff2"})

#: A file in the folder itself may change with the next version; the name of an asset has a hash.
_CHECKED: Final = "no-cache"
_IMMUTABLE: Final = "public, max-age=31536000, immutable"

_ASSET: Final = re.compile(r"\w[\w.-]*", re.ASCII)
_HOST: Final = re.compile(r"([a-z0-9.-]+)(:\d+)?")

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; worker-src 'self'; connect-src 'self'; frame-src {frame}; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page as it is sent."""

    content: bytes
    compressed: bytes | None
    media: str
    etag: str


class BuiltPage:
    """The files of the page. Each is read and compressed once, until it is built again."""

    def __init__(self, folder: Path = PAGE) -> None:
        self.folder = folder
        self._files: dict[str, tuple[tuple[int, int], PageFile]] = {}

    @property
    def is_built(self) -> bool:
        """Whether there is a page; a clone of the sources has none until `make web`."""
        return is_built(self.folder)

    def file(self, path: str) -> PageFile | None:
        """Return a file by its path in the folder; None if there is none that may be served."""
        place = self.folder / path
        try:
            found = place.stat()
        except OSError:
            return None
        if place.suffix not in _TYPES:
            return None
        stamp = (found.st_mtime_ns, found.st_size)
        known = self._files.get(path)
        if known is None or known[0] != stamp:
            known = self._files[path] = stamp, _read(place)
        return known[1]


def _read(place: Path) -> PageFile:
    content = place.read_bytes()
    compressed = None if place.suffix in _COMPACT else compress(content, mtime=0)
    etag = f'W/"{sha256(content).hexdigest()[:20]}"'
    return PageFile(content, compressed, _TYPES[place.suffix], etag)


def content_policy(host: str) -> str:
    """Return the content-security policy of the page at a host.

    A policy limits frames to a path only together with the host. It cannot name IP addresses other
    than 127.0.0.1: there it allows frames of this server.
    """
    found = _HOST.fullmatch(host.lower())
    is_named = found is not None and (
        found[1] == "127.0.0.1" or not found[1].replace(".", "").isdecimal()
    )
    return _POLICY.format(frame=f"{host.lower()}{FRAME}" if is_named else "'self'")


async def _screen(request: Request) -> Response:
    return await _answer(request, INDEX, _CHECKED)


async def _file(request: Request) -> Response:
    return await _answer(request, request.scope["path"].removeprefix("/"), _CHECKED)


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if not _ASSET.fullmatch(name):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return await _answer(request, f"assets/{name}", _IMMUTABLE)


async def _answer(request: Request, path: str, caching: str) -> Response:
    page: BuiltPage = request.app.state.weft.page
    file = await asyncio.to_thread(page.file, path)
    if file is None:
        if path == INDEX:
            return PlainTextResponse(f"{NOT_BUILT}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        raise HTTPException(HTTPStatus.NOT_FOUND)
    policy = content_policy(request.headers.get("host", ""))
    headers = {"cache-control": caching, "content-security-policy": policy}
    if file.media == _HTML:
        headers["x-frame-options"] = "DENY"
        headers["permissions-policy"] = "camera=(), microphone=(), geolocation=()"
    return file_answer(request, file, headers)


def file_answer(request: Request, file: PageFile, headers: Mapping[str, str]) -> Response:
    """Return a file: compressed if the browser takes that, empty if it has this version."""
    sent = {**headers, "etag": file.etag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=sent)
    content = file.content
    if file.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content = file.compressed
        sent["content-encoding"] = "gzip"
    return Response(content, headers=sent, media_type=file.media)


class _PageRoute(Route):
    """A route of static files; requests are counted under its path."""

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        match, child = super().matches(scope)
        return match, {**child, "route": self}


#: They declare no roles and are not in the OpenAPI document: they are no part of the API.
PAGE_ROUTES: Final = (
    _PageRoute("/", _screen),
    *(_PageRoute(f"/{screen}", _screen) for screen in SCREENS),
    *(_PageRoute(f"/{screen}/{{rest:path}}", _screen) for screen in SCREENS),
    _PageRoute("/theme.js", _file),
    _PageRoute("/icon.svg", _file),
    _PageRoute("/assets/{name}", _asset),
)
