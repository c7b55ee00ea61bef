"""A server in this process, in a thread of its own, and requests to it over HTTP."""

import asyncio
import json
import os
import re
import threading
from collections.abc import Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

import weft
from weft.cli.codes import CODES
from weft.server.auth.authenticator import cookie_name
from weft.server.identity import Principal
from weft.server.serve import Opened, open_server
from weft.server.settings import ServerSettings

T = TypeVar("T")

#: What a test waits for must happen within so many seconds.
PATIENCE = 20


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @cached_property
    def data(self) -> Any:
        """The JSON in it."""
        return json.loads(self.content)


@dataclass
class Server:
    """A server that listens, and its keys."""

    opened: Opened
    loop: asyncio.AbstractEventLoop
    _keys: dict[object, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.opened.url

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def key(self, user: str, *roles: str, app: str = "local", groups: Iterable[str] = ()) -> str:
        """Return the text of a key; the same one for the same caller."""
        caller = (app, user, roles, tuple(groups))
        if caller not in self._keys:
            keys = self.opened.context.authenticator.keys
            made = self.run(keys.create(app, user, roles, groups=groups))
            self._keys[caller] = made.text
        return self._keys[caller]

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; an answer in JSON must be what the OpenAPI document says."""
        given = {"Authorization": f"Bearer {key}"} if key else {}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if content is not None and not isinstance(body, bytes):
            given["Content-Type"] = "application/json"
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        try:
            connection.request(method, path, content, {**given, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            reply = Reply(answer.status, found, answer.read())
        finally:
            connection.close()
        if reply.headers.get("content-type") == "application/json":
            self._require_declared(method, path, reply)
        self._require_no_folder(method, path, reply)
        if reply.status >= 400:
            assert reply.data["code"] == f"HTTP{reply.status}"
            assert reply.data["code"] in CODES, "weft explain does not know it"
            assert reply.data["message"]
        return reply

    def get(self, path: str, *, key: str, status: int = 200) -> Any:
        """Read JSON."""
        return self.send("GET", path, key=key, status=status)

    def post(self, path: str, body: object = None, *, key: str, status: int = 200) -> Any:
        """Send JSON, and return what comes back."""
        return self.send("POST", path, body, key=key, status=status)

    def send(
        self, method: str, path: str, body: object = None, *, key: str, status: int = 200
    ) -> Any:
        reply = self.call(method, path, body, key=key)
        assert reply.status == status, (reply.status, reply.content)
        return reply.data

    def until(self, path: str, key: str, *, is_so: Any) -> Any:
        """Read until it is so."""
        end = monotonic() + PATIENCE
        while not is_so(data := self.get(path, key=key)):
            assert monotonic() < end, data
            sleep(0.02)
        return data

    def settled(self, run: str, key: str) -> Any:
        """Return a run when it waits or has ended."""
        return self.until(f"/api/runs/{run}", key, is_so=lambda row: row["status"] != "running")

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return self.call("GET", "/openapi.json").data

    def _require_declared(self, method: str, path: str, reply: Reply) -> None:
        if path == "/openapi.json":
            return
        route = self._route(method, path.partition("?")[0])
        if route is None:
            assert reply.status in (404, 405), f"{method} {path} is not in the document"
            return
        declared = route["responses"].get(str(reply.status))
        assert declared is not None, f"{method} {path} does not declare {reply.status}"
        schema = declared["content"]["application/json"]["schema"]
        components = {"components": self.document["components"]}
        Draft202012Validator({**schema, **components}).validate(reply.data)

    def _require_no_folder(self, method: str, path: str, reply: Reply) -> None:
        """No answer tells where the server keeps its files, or where it is installed."""
        for folder in (self.opened.context.workspace, Path(weft.__file__).parent):
            assert str(folder).encode() not in reply.content, f"{method} {path} names {folder}"

    def _route(self, method: str, path: str) -> Any:
        # The last one: parameters that are paths, of the longest route that fits.
        routes = sorted(self.document["paths"].items(), key=lambda route: -route[0].count("/"))
        for inside in ("[^/@]+", "[^/]+", ".+"):
            for declared, methods in routes:
                wanted = re.sub(r"\\{\w+\\}", inside, re.escape(declared))
                if method.lower() in methods and re.fullmatch(wanted, path):
                    return methods[method.lower()]
        return None


def session_header(server: Server, principal: Principal) -> str:
    """Return the Cookie header of a new session."""
    cookie = server.run(server.opened.context.authenticator.sessions.begin(principal))
    return f"{cookie_name({'host': urlsplit(server.url).netloc})}={cookie}"


@contextmanager
def serving(
    workspace: Path,
    environment: Mapping[str, str] | None = None,
    *,
    settings: ServerSettings | None = None,
    **options: Any,
) -> Generator[Server]:
    """Serve a workspace on a free port; `options` are those of `open_server`."""
    started: list[Server] = []
    failed: list[BaseException] = []
    is_ready, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        given = {"PATH": os.environ["PATH"], "WEFT_MODEL": "sample", **(environment or {})}
        opening = open_server(workspace, settings or ServerSettings(port=0), given, **options)
        async with opening as opened:
            started.append(Server(opened, loop))
            is_ready.set()
            await asyncio.to_thread(is_over.wait)

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised in the test
            failed.append(error)
        finally:
            is_ready.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    is_ready.wait(PATIENCE)
    try:
        if failed:
            raise failed[0]
        yield started[0]
    finally:
        is_over.set()
        thread.join(PATIENCE)
    if failed:
        raise failed[0]
