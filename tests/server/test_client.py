"""The client does over HTTP what a host does in its process."""

import asyncio
import inspect
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from support.desk_play import make_desk
from support.package_play import write
from support.server_play import serving
from weft.app.folders import server_file
from weft.client import Client
from weft.client.connection import Connection
from weft.engine.events import Event, RunEnded
from weft.inspect.run import inspect_run
from weft.inspect.turn import inspect_turn
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Stop, UserMessage
from weft.server.settings import ServerSettings

#: The public methods of a host that a client does not have, and why.
_OF_THE_PROCESS = "it is about the process that works on runs"
_OF_THE_OPERATOR = "it is for the operator of the store"
_IN_PACKAGES = "the code of packages stays on the server"
_RECORDED = "POST /api/recordings/NAME copies a run"
ABSENT = {
    "apps": _OF_THE_OPERATOR,
    "prune": _OF_THE_OPERATOR,
    "records": _OF_THE_OPERATOR,
    "outbox": _OF_THE_OPERATOR,
    "documents": _OF_THE_OPERATOR,
    "retrievers": _OF_THE_OPERATOR,
    "workload": _OF_THE_OPERATOR,
    "busy": _OF_THE_PROCESS,
    "changed": _OF_THE_PROCESS,
    "changed_or_quiet": _OF_THE_PROCESS,
    "add_ended": _RECORDED,
    "packed_workflow": _RECORDED,
    "drain": _OF_THE_PROCESS,
    "new_id": _OF_THE_PROCESS,
    "observe": _OF_THE_PROCESS,
    "on_close": _OF_THE_PROCESS,
    "owner": _OF_THE_PROCESS,
    "recover": _OF_THE_PROCESS,
    "runs_in_use": _OF_THE_PROCESS,
    "start_schedules": _OF_THE_PROCESS,
    "find": _IN_PACKAGES,
    "objects": _IN_PACKAGES,
    "package": _IN_PACKAGES,
    "was_closed": "the server knows repeated answers",
    "webhooks": _OF_THE_OPERATOR,
    "environment_of": _OF_THE_OPERATOR,
    "flush": _OF_THE_PROCESS,
    "artifact_page": "`artifacts` reads page after page",
    "board_changes": "`follow_board` begins with what has appeared before",
    "newest_change": "`follow_board` begins with what has appeared before",
    "consumed": "an artifact is shown with the agents it has woken",
}

#: Methods that read boards in another form: as the caller sees them, with the server's cursors.
OTHER = {"artifact", "artifacts", "follow_board"}

#: Parameters of a host that a client does not have, and why.
LEFT_OUT = {
    ("fork", "child"): "an Idempotency-Key names the new run",
    ("publish", "model"): "the settings of the server name it",
}


def test_client_has_the_methods_of_a_host():
    found = {name for name in dir(Host) if not name.startswith("_")}
    assert found - set(dir(Client)) == ABSENT.keys()


@pytest.mark.parametrize(
    "name",
    sorted({name for name in dir(Host) if not name.startswith("_")} - ABSENT.keys() - OTHER),
)
def test_methods_have_the_parameters_of_a_host(name):
    ours = inspect.signature(getattr(Client, name))
    theirs = inspect.signature(getattr(Host, name))
    for parameter in theirs.parameters.values():
        if (name, parameter.name) in LEFT_OUT:
            continue
        found = ours.parameters[parameter.name]
        assert found.kind == parameter.kind, parameter
        if parameter.name not in ("scope", "app", "streamed"):
            assert (found.default, found.annotation) == (parameter.default, parameter.annotation)
    assert ours.return_annotation == theirs.return_annotation or name == "events"


# -- against a server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    make_desk(folder)
    with serving(folder) as server:
        yield server


def perform(server, work, *roles, user="ada"):
    """Perform work with a client."""

    async def whole():
        key = server.key(user, *(roles or ("developer", "operator", "end_user")))
        async with Client(server.url, key=key) as client:
            return await asyncio.wait_for(work(client), 20)

    return asyncio.run(whole())


ME = Scope("local", "ada")


def test_conversation_is_followed_with_streamed_text(server):
    async def talk(client):
        run = await client.start("Desk", scope=ME, message="hello")
        items = []
        following = asyncio.create_task(collect(client.events(run, scope=ME, follow=True), items))
        row = await client.settled(run, scope=ME)
        (asked,) = await client.requests(scope=ME, run=run)
        assert (row.status, asked.kind, asked.run) == ("waiting", "chat", run)
        await client.deliver(run, UserMessage("more"), scope=ME)
        await client.settled(run, scope=ME)
        await client.deliver(run, Stop("now"), scope=ME)
        await following
        return run, items, [event async for event in client.events(run, scope=ME)]

    run, items, events = perform(server, talk)
    assert [item for item in items if isinstance(item, Event)] == events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1].data, RunEnded)
    host = server.opened.context.host
    assert events == server.run(collected(host.events(run, scope=ME)))


async def collect(items, found):
    async for item in items:
        found.append(item)


async def collected(items):
    return [item async for item in items]


def test_script_and_host_read_the_same(server):
    host = server.opened.context.host

    async def read(client):
        run = await client.start("Desk", scope=ME, message="read me", model="sample")
        await client.settled(run)
        return (
            run,
            await client.run(run),
            await client.state(run),
            await client.state(run, at=3),
            await client.runs(scope=ME, workflow="Desk", limit=1),
            await client.requests(scope=ME),
            await client.workflow(run),
            await collected(client.events(run)),
        )

    run, row, state, early, runs, requests, workflow, events = perform(server, read)
    assert row._replace(batch="", heartbeat=0) == server.run(host.run(run, scope=ME))._replace(
        batch="", heartbeat=0
    )
    assert state == server.run(host.state(run, scope=ME))
    assert early == server.run(host.state(run, scope=ME, at=3))
    assert runs[0].run == run
    assert requests == server.run(host.requests(scope=ME))
    assert requests[-1].response_schema == server.run(host.requests(scope=ME))[-1].response_schema
    original = server.run(host.workflow(run, scope=ME))
    assert (workflow.digest, workflow.views) == (original.digest, original.views)
    assert inspect_run(workflow, run, events) == inspect_run(original, run, events)
    assert inspect_turn(workflow, run, events, 1) == inspect_turn(original, run, events, 1)
    assert inspect_turn(workflow, run, events, 1).prompts[0].same


def test_client_with_the_server_key_continues_after_a_restart(tmp_path):
    make_desk(tmp_path)

    async def whole():
        with serving(tmp_path) as server:
            url = server.url

            def key():
                return json.loads(server_file(tmp_path, url).read_text())["key"]

            client = Client(url, key=key)
            run = await client.start("Desk", message="hello")
            await client.settled(run)
        with serving(tmp_path, settings=ServerSettings(port=urlsplit(url).port)):
            async with client:
                return await asyncio.gather(client.run(run), client.me())

    row, me = asyncio.run(asyncio.wait_for(whole(), 40))
    assert (row.status, me["user"]) == ("waiting", "me")


class _Stopping(BaseHTTPRequestHandler):
    """A server that stops, and is another one with the second request."""

    answers: ClassVar = [
        (503, b'{"message": "the server is stopping", "cause": [], "hint": [], "findings": []}'),
        (200, b"id: 1\ndata: {}\n\n"),
    ]

    def do_GET(self):
        status, content = self.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        """Print nothing."""


def test_stream_that_a_stopping_server_refuses_is_asked_for_again():
    async def follow(url):
        connection = Connection(url, "key")
        found = [each async for each in connection.messages("/stream", "")]
        await connection.close()
        return found

    with HTTPServer(("127.0.0.1", 0), _Stopping) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = asyncio.run(follow(f"http://127.0.0.1:{server.server_port}"))
        server.shutdown()
    assert found == [("1", b"{}")]


def test_run_that_waits_for_a_timer_is_not_settled_for_its_user(tmp_path):
    files = {
        "orchestrator.json": {"workflow_name": "Slow"},
        "agents.json": {"agents": []},
        "flow.json": {
            "state": "tools.work:State",
            "steps": [
                {
                    "kind": "step",
                    "name": "try",
                    "work": {"kind": "function", "function": "tools.work:attempt"},
                    "retry": {"attempts": 2, "delay_seconds": 2},
                }
            ],
        },
        "context_variables.json": {"context_variables": {"definitions": {
            "n": {"type": "int", "source": {"type": "derived", "default": 0}}
        }}},
    }  # fmt: skip
    code = """
from pydantic import BaseModel

class State(BaseModel):
    n: int = 0

async def attempt(state, context):
    return {"n": 1 // (context.attempt - 1)}
"""
    write(
        tmp_path / "workflows" / "Slow",
        {**{name: json.dumps(content) for name, content in files.items()}, "tools/work.py": code},
    )
    with serving(tmp_path) as server:

        async def wait(client):
            run = await client.start("Slow", scope=ME)
            return await client.settled(run)

        assert perform(server, wait, "end_user").status == "ended"
