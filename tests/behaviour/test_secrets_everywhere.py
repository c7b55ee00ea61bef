"""What is marked secret reaches the code that needs it, and nothing that is written or shown."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import traceback
import zipfile
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from support.service_play import Service
from support.source_play import declared, derived, desk, store_at, tell, variable
from weft.adapters.files import WorkspaceFiles
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.services.http_services import HttpServices
from weft.adapters.sql import SqliteStore
from weft.adapters.system_clock import SystemClock
from weft.app.folders import LOCAL
from weft.cli.app import main
from weft.engine.events import ToolFailed, ToolReturned
from weft.errors import UsageError
from weft.packages.writer import write_package
from weft.ports.external import ExternalPorts
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, call

CANARY = "canary-81f0c2e7"
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"

#: A tool that tells the secret in every way there is, and one that has a person type it first.
CODE = desk(
    '''
import contextlib

from weft import Refuse, RetryModel, use_ui_tool
from weft.errors import ToolError
from weft.runtime.tools.tool_api import show_ui_tool


async def leak(way: str, context_variables) -> object:
    """Tell the secret."""
    key = context_variables["key"]
    return await tell(way, key["key"] if isinstance(key, dict) else key, context_variables)


async def type_in(way: str, context_variables) -> object:
    """Have the secret typed in, and tell it."""
    typed = await use_ui_tool("type_in", {"way": way})
    return await tell(way, typed["account"]["key"], context_variables)


async def look() -> object:
    """Show a box."""
    return await use_ui_tool("look")


async def tell(way, key, context):
    if way == "length":
        return len(key)
    if way == "nest":
        return {"a": [key, {key: f"it is {key}!"}]}
    if way == "set":
        context.set("seen", f"it is {key}!")
    if way == "raise":
        raise ValueError(f"{key} is no good")
    if way == "refuse":
        raise Refuse(f"not with {key}")
    if way == "retry":
        raise RetryModel(f"without {key}")
    if way == "show":
        await show_ui_tool("look", {"key": key})
    if way == "progress":
        context.progress(0.5, f"with {key}")
    if way == "model":
        return await context.ask(f"What is {key}?")
    if way == "refresh":
        with contextlib.suppress(ToolError):
            await context.refresh("key")
    if way == "ask":
        return await use_ui_tool("look", {"key": key})
    return key
'''
)
WAYS = (
    *("length", "return", "nest", "set", "raise", "refuse", "retry", "show", "progress", "model"),
    *("refresh", "ask"),
)
PASSWORD = {"type": "string", "format": "password"}
FORM = {
    "type": "object",
    "properties": {
        "account": {"type": "object", "properties": {"name": {"type": "string"}, "key": PASSWORD}}
    },
}


def ui(name, schema=None):
    shown = {"component": "Box", "mode": "inline"}
    tool = {"tool_type": "UI_Tool", "agent": "A", "file": "desk.py", "function": name, "ui": shown}
    return {**tool, "response_schema": schema} if schema else tool


async def look(_request):
    return web.json_response(CANARY)


async def echo(request):
    return web.json_response(f"you are {request.headers['Authorization']}")


def secret(kind, **source):
    return {**variable("str", kind, **source), "secret": True}


def auth(kind="bearer"):
    return {"type": kind, "secret_env": "SHOP_KEY"}


def place(name, service):
    """Declare what has the secret, and say what a model calls to have it told."""
    url = {"service": "keys", "operation": "get", "url": service.url("/")}
    variables = {
        "environment": secret("environment", env_var="SHOP_KEY"),
        "document": secret("database", collection="Keys", search_by="user_id", field="key"),
        "external": secret("external", **url, auth=auth()),
        "file": secret("file", path="key.txt"),
        "object": {**secret("file", path="key.json", format="json"), "type": "dict[str, any]"},
        "service": variable("str", "external", **url, auth=auth()),
    }
    found = {"key": variables[name]} if name in variables else {"key": derived()}
    servers = {
        "server": {
            "command": [sys.executable, str(SERVER)],
            "env": {"KEY": {"secret_env": "SHOP_KEY"}},
        },
        "login": {"url": "", "auth": auth()},
    }
    more = {}
    if name in servers:
        more = {"mcp_servers": [{"name": "box", "approval": "always", **servers[name]}]}
        lines = [call("box_whoami")]
    elif name == "form":
        lines = [call("type_in", way=way) for way in WAYS]
    else:
        lines = [call("leak", way=way) for way in WAYS]
    spec = declared(
        {**found, "seen": derived()},
        tools=["leak", ui("type_in", FORM), ui("look")],
        **more,
    )
    return spec, lines


@contextmanager
def login_server():
    """Start a tool server over HTTP that knows one login, and has it in its environment."""
    env = {**os.environ, "LOGINS": f"authorization=Bearer {CANARY}"}
    command = [sys.executable, str(SERVER), "--http"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


async def answered(host, run):
    """Answer what is asked until the run has ended."""
    while (await host.settled(run, scope=LOCAL)).status != "ended":
        for request in await host.requests(scope=LOCAL, run=run):
            given = {
                "type_in": {"account": {"name": "ada", "key": CANARY}},
                "approve_tool_call:box": {"approved": True},
            }.get(request.tool, {"ok": True})
            await host.deliver(run, Answer(request.id, given), scope=LOCAL)


def play(workspace, name, url="", change=lambda spec: spec):
    """Play a run that tells a secret, and return it with all that was sent and streamed."""

    async def scenario():
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(Service(echo if name == "service" else look))
            store = await stack.enter_async_context(
                store_at(
                    workspace / "d.db",
                    {"Keys": {"user_id": "me", "key": CANARY, "tenant": "local"}},
                )
            )
            spec, lines = place(name, service)
            spec = change(spec)
            if url:
                server = spec.mcp_servers[0].model_copy(update={"url": url})
                spec = spec.model_copy(update={"mcp_servers": (server,)})
            clock = SystemClock()
            environment = {"SHOP_KEY": CANARY}
            outside = ExternalPorts(
                documents=store,
                services=HttpServices(clock, frozenset({service.place})),
                files=WorkspaceFiles(workspace),
                servers=McpToolServers(clock=clock, environment=dict(os.environ)),
                environment=environment,
            )
            journal = await SqliteStore.open(workspace / ".weft/journal.db", durability="normal")

            def reply(request):
                return (
                    "It is nothing." if request.question else (lines.pop(0) if lines else "Done.")
                )

            model = FunctionModel(reply)
            options = {"store": journal, "environment": environment, "outside": outside}
            streamed = []
            async with host_for(spec, model, code=CODE, **options) as host:
                run = await host.start("W", scope=LOCAL, message="hello", streamed=True)

                async def follow():
                    streamed.extend(
                        [str(event) async for event in host.events(run, scope=LOCAL, follow=True)]
                    )

                following = asyncio.create_task(follow())
                await asyncio.wait_for(answered(host, run), 60)
                await following
                told = await tell(host, run, LOCAL)
            return told, [str(model.requests), *streamed, str(told.row), str(told.state)]

    return asyncio.run(asyncio.wait_for(scenario(), 90))


def shown(workspace, run, capsys):
    """Return all that the command line shows of a run, and what is on the disk."""
    for words in (
        ["inspect", run, "--json"],
        ["inspect", run],
        ["inspect", f"{run}@1", "--json"],
        ["runs", "show", run, "--json"],
        ["runs", "tail", run, "--json"],
        ["runs", "tail", run, "--as-user"],
        ["replay", run, "--check", "--json"],
    ):
        main(["--workspace", str(workspace), *words])
        printed = capsys.readouterr()
        yield printed.out + printed.err
    for file in (workspace / ".weft").iterdir():
        yield file.read_bytes().decode("latin-1")


PLACES = (
    *("environment", "document", "external", "file", "object", "service", "form"),
    *("server", "login"),
)


@pytest.mark.parametrize("name", PLACES)
def test_a_canary_in_any_place_marked_secret_is_nowhere_to_be_seen(name, tmp_path, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    (tmp_path / ".weft").mkdir()
    (tmp_path / "key.txt").write_text(CANARY)
    (tmp_path / "key.json").write_text(json.dumps({"user": "ada", "key": CANARY}))
    if name == "login":
        with login_server() as url:
            told, said = play(tmp_path, name, url)
    else:
        told, said = play(tmp_path, name)
    assert told.row.outcome == "completed", told.row.reason
    for text in (*said, *shown(tmp_path, told.run, capsys), caplog.text):
        assert CANARY not in text
    told.expect_same_again()
    expect_it_was_there(name, told)


@pytest.mark.parametrize("name", ["document", "external", "file"])
@pytest.mark.parametrize("shape", ["int", "dict[str, any]"])
def test_no_error_quotes_a_missing_secret(name, shape, tmp_path, capsys, caplog):
    """Its type is another one, or it is no JSON where some is declared."""
    caplog.set_level(logging.DEBUG)
    (tmp_path / ".weft").mkdir()
    (tmp_path / "key.txt").write_text(CANARY)
    type_ = declared({"a": derived(shape)}).variables["a"].type

    def other(spec):
        key = spec.variables["key"].model_copy(update={"type": type_})
        if name == "file" and shape == "int":
            source = key.source.model_copy(update={"format": "json"})
            key = key.model_copy(update={"source": source})
        return spec.model_copy(update={"variables": {**spec.variables, "key": key}})

    told, said = play(tmp_path, name, change=other)
    for text in (*said, *shown(tmp_path, told.run, capsys), caplog.text):
        assert CANARY not in text
    assert told.of(ToolFailed)[0].error.startswith("the secret key could not be read: ")


def test_an_exported_package_names_its_secrets_and_holds_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHOP_KEY", CANARY)
    key = secret("environment", env_var="SHOP_KEY")
    look = b'def look(context) -> str:\n    """Look."""\n    return context["key"]\n'
    (tmp_path / "workflows").mkdir()
    spec = declared({"key": key}, tools=["look"], exposure={}, agents=("Helper",))
    write_package(tmp_path / "workflows/W", spec, {"tools/desk.py": look})
    target = tmp_path / "W.zip"
    assert main(["--workspace", str(tmp_path), "export", "W", "-o", str(target)]) == 0
    with zipfile.ZipFile(target) as archive:
        content = b"".join(archive.read(item) for item in archive.namelist())
    assert b"SHOP_KEY" in content
    assert CANARY.encode() not in content
    assert CANARY not in "".join(capsys.readouterr())


def test_no_error_quotes_a_secret_of_the_environment_that_does_not_fit():
    key = {**variable("int", "environment", env_var="SHOP_KEY"), "secret": True}
    model = FunctionModel(lambda _: "Done.")
    host = host_for(declared({"key": key}), model, environment={"SHOP_KEY": CANARY})

    async def scenario():
        async with host:
            await host.start("W", scope=LOCAL, message="hello")

    with pytest.raises(UsageError, match="SHOP_KEY is invalid for key") as caught:
        asyncio.run(scenario())
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("typed", [CANARY, "a'b\\c", "4711"])
def test_no_error_quotes_a_secret_that_a_person_has_typed_wrong(typed):
    long = {**PASSWORD, "minLength": 40}
    form = {
        "type": "object",
        "properties": {"account": {"type": "object", "properties": {"key": long}}},
    }
    spec = declared({"key": derived(), "seen": derived()}, tools=[ui("type_in", form), ui("look")])
    model = FunctionModel(lambda _: call("type_in", way="length"))

    async def scenario():
        async with host_for(spec, model, code=CODE) as host:
            run = await host.start("W", scope=LOCAL, message="hello")
            await host.settled(run, scope=LOCAL)
            (request,) = await host.requests(scope=LOCAL, run=run)
            answer = Answer(request.id, {"account": {"key": typed}})
            await host.deliver(run, answer, scope=LOCAL)

    with pytest.raises(UsageError, match=r"account\.key: the typed value is invalid") as caught:
        asyncio.run(scenario())
    assert typed not in str(caught.value)


def expect_it_was_there(name, told):
    """Check that the code had the secret itself: else the test above would say nothing."""
    returned = [event.value for event in told.of(ToolReturned)]
    if name in ("server", "login"):
        assert "(secret)" in json.dumps(returned)
    elif name == "service":
        assert told.state.variables["key"] == "you are Bearer (secret)"
    else:
        assert returned[0] == len(CANARY)
        assert told.state.variables["seen"] == "it is (secret)!"
        assert "(secret) is no good" in " ".join(event.error for event in told.of(ToolFailed))
