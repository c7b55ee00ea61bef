"""Routers of packages are mounted below `/x/NAME`, and their services run beside the server."""

import json
import shutil
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support.server_play import PATIENCE, Reply, Server, serving
from support.start_play import make_started, until_runs
from weft.server.extensions import services

API = """
from fastapi import APIRouter, HTTPException, Request, WebSocket

from weft import Scope

STATUS = {status!r}

def get_router(host):
    router = APIRouter()

    @router.get("/status")
    async def status(request: Request):
        caller = request.state.caller
        return {{"status": STATUS, "caller": caller and f"{{caller.app}}/{{caller.user}}"}}

    @router.get("/audit", openapi_extra={{"x-weft-roles": ["operator"]}})
    def audit():
        return "all is well"

    inner = APIRouter()

    @inner.get("/audit", openapi_extra={{"x-weft-roles": ["operator"]}})
    def inner_audit():
        return "all is well"

    router.include_router(inner, prefix="/inner")

    @router.post("/orders")
    async def order(request: Request, order: dict[str, int]):
        caller = request.state.caller
        scope = Scope(caller.app, caller.user)
        return {{"run": await host.start("Orders", scope=scope, input=order)}}

    @router.get("/tenant/{{app}}")
    async def tenant(app: str):
        return {{"run": await host.start("Orders", scope=Scope(app, "eve"))}}

    @router.get("/full")
    def full():
        raise HTTPException(409, "no room for orders")

    @router.get("/broken")
    async def broken(how: str = ""):
        if how == "exit":
            raise SystemExit(1)
        raise ValueError("the secret is 4711")

    @router.websocket("/echo")
    async def echo(socket: WebSocket):
        await socket.accept()
        await socket.send_text(socket.state.caller.user + await socket.receive_text())
        await socket.close()

    return router
"""

HOOKS = """
from fastapi import APIRouter

def get_router():
    router = APIRouter()

    @router.get("/ping")
    async def ping():
        return {"ping": "pong"}

    @router.get("/staff", openapi_extra={"x-weft-roles": ["developer"]})
    async def staff():
        return {"staff": True}

    return router
"""

SERVICES = """
import asyncio
from pathlib import Path

SAID = Path({folder!r})

def say(text):
    with SAID.open("a") as file:
        file.write(text + chr(10))

class Outbox:
    def __init__(self, host):
        self.host = host

    async def start(self):
        say("start {version} " + self.host.settings()["OUTBOX"])

    def stop(self):
        say("stop {version}")

async def ticker(host):
    say("tick")
    await asyncio.Event().wait()

class Failing:
    def start(self):
        raise OSError("no such outbox")

    def stop(self):
        say("never")
"""


def make_orders(workspace: Path, said: Path, *, status: str = "open", version: int = 1) -> Path:
    """Write a package with two routers and three services, of which one fails."""
    return make_started(
        workspace,
        "Orders",
        {"type": "webhook"},
        files={
            "tools/api.py": API.format(status=status),
            "tools/callbacks.py": HOOKS,
            "tools/services.py": SERVICES.format(folder=str(said), version=version),
        },
        runtime_extensions=[
            {"kind": "api_router", "entrypoint": "workflows.Orders.tools.api:get_router"},
            {
                "kind": "api_router",
                "entrypoint": "tools.callbacks:get_router",
                "prefix": "callbacks",
                "public": True,
            },
            {"kind": "startup_service", "entrypoint": "workflows.Orders.tools.services:Outbox"},
            {"kind": "startup_service", "entrypoint": "tools.services:ticker"},
            {"kind": "startup_service", "entrypoint": "tools.services:Failing"},
        ],
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extensions")
    make_orders(folder, folder / "said.txt")
    make_started(
        folder,
        "Odd",
        files={
            "tools/api.py": "get_router = lambda: 17\n",
            "tools/loop.py": "class Loop: ...\nraise OSError(17)\n",
        },
        runtime_extensions=[
            {"kind": "api_router", "entrypoint": "tools.api:get_router"},
            {"kind": "startup_service", "entrypoint": "tools.loop:Loop"},
        ],
    )
    return folder


@pytest.fixture(scope="module")
def server(workspace: Path) -> Iterator[Server]:
    with serving(workspace, {"OUTBOX": "mail"}) as server:
        yield server


def send(
    server: Server,
    path: str,
    *,
    key: str = "",
    body: object = None,
    headers: Mapping[str, str] = {},
) -> Reply:
    """Send a request to a router, which the OpenAPI document does not describe."""
    given = {**headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    try:
        method = "GET" if body is None else "POST"
        given |= {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        answer = connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def until(condition: Any) -> None:
    """Wait until it is so."""
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end
        sleep(0.05)


def shown(server: Server, workflow: str, app: str = "local") -> dict[str, Any]:
    """Return the extensions of a package by entry point."""
    items = server.get("/api/extensions", key=server.key("op", "operator", app=app))["items"]
    return {each["entrypoint"]: each for each in items if each["workflow"] == workflow}


def test_kind_entrypoint_prefix_and_public_say_what_is_mounted(server: Server, workspace: Path):
    file = workspace / "workflows" / "Orders" / "orchestrator.json"
    for declared in json.loads(file.read_text("utf-8"))["runtime_extensions"]:
        found = shown(server, "Orders")[declared["entrypoint"]]
        is_router = declared["kind"] == "api_router"
        prefix = "/" + declared["prefix"] if declared.get("prefix") else ""
        assert found["kind"] == declared["kind"]
        assert found["path"] == (f"/x/Orders{prefix}" if is_router else None)
        assert found["public"] == declared.get("public", False)


# -- routers


def test_router_is_mounted_for_known_callers(server: Server):
    ada = server.key("ada", "end_user")
    assert send(server, "/x/Orders/status", key=ada).data == {
        "status": "open",
        "caller": "local/ada",
    }
    refused = send(server, "/x/Orders/status")
    assert (refused.status, refused.data["code"]) == (401, "HTTP401")
    assert send(server, "/x/Orders/status", key="weft_forged").status == 401
    assert send(server, "/x/Nothing/status", key=ada).data["code"] == "HTTP404"
    assert send(server, "/x/Nothing/status").status == 401
    unknown = send(server, "/x/Orders/nothing", key=ada)
    assert (unknown.status, unknown.data["code"]) == (404, "HTTP404")
    other = send(server, "/x/Orders/status", key=ada, body={})
    assert (other.status, other.data["code"], other.headers["allow"]) == (405, "HTTP405", "GET")
    assert send(server, "/x/Orders/full", key=ada).data == {"detail": "no room for orders"}


@pytest.mark.parametrize("path", ["/x/Orders/audit", "/x/Orders/inner/audit"])
def test_route_with_declared_roles_is_for_these_only(server: Server, path: str):
    assert send(server, path, key=server.key("ada", "end_user")).status == 404
    assert send(server, path, key=server.key("op", "operator")).data == "all is well"


def test_public_router_is_open_and_its_routes_with_roles_are_not(server: Server):
    assert send(server, "/x/Orders/callbacks/ping").data == {"ping": "pong"}
    foreign = {"Authorization": "Basic b3RoZXI6c3lzdGVt"}
    assert send(server, "/x/Orders/callbacks/ping", headers=foreign).status == 200
    assert send(server, "/x/Orders/callbacks/staff").status == 401
    assert send(server, "/x/Orders/callbacks/staff", key=server.key("dev", "developer")).data


def test_router_starts_runs_of_its_caller(server: Server):
    ada = server.key("ada", "end_user")
    answer = send(server, "/x/Orders/orders", key=ada, body={"order": 17})
    (run,) = until_runs(server, "Orders", 1)
    assert (run["run"], run["user"]) == (answer.data["run"], "ada")


def test_sockets_of_a_router_need_a_caller(server: Server):
    address = server.url.replace("http", "ws") + "/x/Orders/echo"
    headers = {"Authorization": f"Bearer {server.key('ada', 'end_user')}"}
    with connect(address, additional_headers=headers) as socket:
        socket.send(" says hello")
        assert socket.recv(PATIENCE) == "ada says hello"
    with pytest.raises(InvalidStatus) as error, connect(address):
        pass
    assert error.value.response.status_code == 401


@pytest.mark.parametrize("how", ["", "exit"])
def test_failing_route_ends_its_request_only(server: Server, how: str, caplog):
    ada = server.key("ada", "end_user")
    reply = send(server, f"/x/Orders/broken?how={how}", key=ada)
    assert (reply.status, reply.data["code"]) == (502, "HTTP502")
    until(lambda: "the router of Orders failed" in caplog.text or how == "exit")
    assert "4711" not in reply.content.decode() + caplog.text
    assert send(server, "/x/Orders/status", key=ada).status == 200


def test_own_router_of_a_tenant_acts_for_this_tenant_only(server: Server, workspace: Path):
    server.post("/api/apps", {"app": "shop"}, key=server.key("root", "administrator"))
    own = workspace / "apps" / "shop"
    make_orders(own, workspace / "shop.txt", status="of the shop")
    zoe, ada = server.key("zoe", "end_user", app="shop"), server.key("ada", "end_user")
    until(lambda: send(server, "/x/Orders/status", key=zoe).data.get("status") == "of the shop")
    assert send(server, "/x/Orders/status", key=ada).data["status"] == "open"
    assert send(server, "/x/Orders@shop/status", key=ada).status == 404
    assert send(server, "/x/Orders@shop/callbacks/ping").data == {"ping": "pong"}
    assert send(server, "/x/Orders@nowhere/callbacks/ping").status == 401
    assert "run" in send(server, "/x/Orders/tenant/shop", key=zoe).data
    assert send(server, "/x/Orders/tenant/local", key=zoe).data["code"] == "HTTP404"
    assert "run" in send(server, "/x/Orders/tenant/shop", key=ada).data  # That of all tenants.


# -- services


def test_failing_extensions_are_named_and_the_others_continue(server: Server, workspace: Path):
    until(lambda: shown(server, "Orders")["tools.services:Failing"]["state"] == "failed")
    found = shown(server, "Orders")
    assert "OSError" in found["tools.services:Failing"]["error"]
    assert found["workflows.Orders.tools.services:Outbox"]["state"] == "running"
    assert found["tools.services:ticker"]["state"] == "running"
    assert found["tools.callbacks:get_router"]["path"] == "/x/Orders/callbacks"
    assert "start 1 mail" in (workspace / "said.txt").read_text("utf-8")
    odd = shown(server, "Odd")
    assert "which is not an APIRouter" in odd["tools.api:get_router"]["error"]
    assert "OSError: 17" in odd["tools.loop:Loop"]["error"]
    assert {each["state"] for each in odd.values()} == {"failed"}


def test_changed_package_replaces_its_extensions_and_a_broken_one_does_not(
    server: Server, workspace: Path
):
    ada, said = server.key("ada", "end_user"), workspace / "said.txt"
    folder = make_orders(workspace, said, status="closed", version=2)
    until(lambda: send(server, "/x/Orders/status", key=ada).data["status"] == "closed")
    until(lambda: "start 2 mail" in said.read_text("utf-8"))
    lines = said.read_text("utf-8").splitlines()
    assert lines.index("stop 1") < lines.index("start 2 mail")
    api = (folder / "tools" / "api.py").read_text("utf-8")
    (folder / "tools" / "api.py").write_text(f"{api}\nraise OSError\n", "utf-8")
    until(lambda: shown(server, "Orders")["workflows.Orders.tools.api:get_router"]["error"])
    assert send(server, "/x/Orders/status", key=ada).data["status"] == "closed"
    (folder / "orchestrator.json").write_text("{", "utf-8")
    until(lambda: shown(server, "Orders")["tools.services:ticker"]["error"])
    newest = {each["error"] for each in shown(server, "Orders").values()}
    assert len(newest) == 1, "no error of a version before is left"
    assert send(server, "/x/Orders/callbacks/ping").status == 200


def test_removed_package_is_unmounted_and_its_services_stop(tmp_path: Path):
    said = tmp_path / "said.txt"
    folder = make_orders(tmp_path, said)
    make_orders(tmp_path / "apps" / "local", tmp_path / "own.txt")
    with serving(tmp_path, {"OUTBOX": "mail"}) as server:
        assert send(server, "/x/Orders/callbacks/ping").status == 200
        shutil.rmtree(tmp_path / "apps")
        shutil.rmtree(folder)
        until(lambda: send(server, "/x/Orders/callbacks/ping").status == 401)
        until(lambda: "stop 1" in (tmp_path / "own.txt").read_text("utf-8"))


def test_services_start_and_stop_with_the_server(tmp_path: Path):
    said = tmp_path / "said.txt"
    make_orders(tmp_path, said)
    with serving(tmp_path, {"OUTBOX": "mail"}, works=False):  # Others work on its runs.
        until(lambda: said.exists() and "start 1" in said.read_text("utf-8"))
    assert said.read_text("utf-8").splitlines()[-1] == "stop 1"


def test_hanging_extension_is_named_and_the_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(services, "SECONDS", 0.5)
    make_orders(tmp_path, tmp_path / "said.txt")
    make_started(
        tmp_path,
        "Hanging",
        files={
            "tools/api.py": "import time\n\ntime.sleep(60)\n\ndef get_router(): ...\n",
            "tools/never.py": "import time\n\ndef never():\n    time.sleep(60)\n",
        },
        runtime_extensions=[
            {"kind": "api_router", "entrypoint": "tools.api:get_router"},
            {"kind": "api_router", "entrypoint": "tools.never:never", "prefix": "never"},
        ],
    )
    environment = {"OUTBOX": "mail", "WEFT_TOOL_TIMEOUT": "2"}
    with serving(tmp_path, environment) as server:
        assert send(server, "/x/Orders/callbacks/ping").status == 200
        until(lambda: len(shown(server, "Hanging")) == 2)
        found = shown(server, "Hanging")
        assert "takes longer than 2 s" in found["tools.api:get_router"]["error"]
        assert "longer than 0.5 seconds" in found["tools.never:never"]["error"]
