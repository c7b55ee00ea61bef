"""Tool servers: real programs and a real server over HTTP, started here and ended again."""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.tool_play import until
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.system_clock import SystemClock
from weft.errors import SetupError, ToolError
from weft.ports.external import ServiceLogin, ToolServer
from weft.testing.clock import ManualClock

SUPPORT = Path(__file__).parents[2] / "support"
PYTHON = (sys.executable, "-I", "-S")
CANARY = "canary-7f3a9c"

#: Enough for a busy machine; only what hangs on purpose takes so long.
PATIENT = 20.0

#: A server of the library, and one by hand that starts at once.
REAL = ToolServer(
    "app",
    "real",
    command=(sys.executable, str(SUPPORT / "mcp_server.py")),
    env={"KEY": CANARY},
    timeout=PATIENT,
)
OLD = ToolServer(
    "app", "old", command=(*PYTHON, str(SUPPORT / "mcp_old_server.py")), timeout=PATIENT
)


def tool_servers(**options: Any) -> McpToolServers:
    environment = {**os.environ, "LANG": "C.UTF-8", "PRIVATE": CANARY}
    return McpToolServers(**{"clock": SystemClock(), "environment": environment, **options})


class Play:
    """One loop and one set of connections, for tests that leave them as they are."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.run = runner.run
        self.servers = tool_servers()

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.run(self.servers.call(REAL, tool, arguments))

    def failed(self, tool: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.call(tool, **arguments)
        return str(caught.value)


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    with asyncio.Runner() as runner:
        played = Play(runner)
        yield played
        runner.run(played.servers.close())


def playing(test: Callable[[McpToolServers], Awaitable[None]], **options: Any) -> None:
    """Play with connections of their own, and see that nothing of them is left."""

    async def played() -> None:
        servers = tool_servers(**options)
        try:
            await test(servers)
        finally:
            await servers.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(played())


async def refused(asked: Awaitable[object]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await asked
    return caught.value


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; one that nobody has waited for counts as well."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


async def pid_of(servers: McpToolServers, server: ToolServer = OLD) -> int:
    return int(str(await servers.call(server, "pid", {})))


# -- what a server offers and answers


def test_all_tools_of_all_pages_are_offered_but_names_no_model_accepts(
    play: Play, caplog: pytest.LogCaptureFixture
):
    tools = play.run(play.servers.tools(REAL))
    names = [tool.schema.name for tool in tools]
    assert names == ["echo", "add", "slow", "die", "fail", "crash", "big", "mixed", "whoami"]
    assert [tool.schema.name for tool in tools if tool.reads] == ["add"]
    assert tools[0].schema.description == "It is echo"
    assert tools[0].schema.parameters["properties"] == {"a": {"type": "integer"}}
    assert "'no name for a model' of the MCP server real is left out" in caplog.text


def test_a_result_is_its_data_or_else_its_text(play: Play):
    assert play.call("add", a=2, b=3) == {"sum": 5}
    assert play.call("echo", text_="hello") == "hello"
    assert json.loads(play.call("echo", deep={"list": [1, None, "ö"]})) == {
        "deep": {"list": [1, None, "ö"]}
    }


def test_binary_result_keeps_its_place(play: Play):
    data = "AAAAAAAAAAAAAA=="
    assert play.call("mixed", length=10) == [
        "look",
        {"type": "image", "mime_type": "image/png", "data": data},
        {"type": "resource", "mime_type": "application/pdf", "uri": "file:///b", "data": data},
        {"type": "resource", "mime_type": "text/plain", "uri": "file:///t", "text": "noted"},
        {
            "type": "resource_link",
            "mime_type": None,
            "uri": "file:///m",
            "name": "more",
            "description": "",
        },
    ]
    image = play.call("mixed", length=90_000)[1]
    assert image == {
        "type": "image",
        "mime_type": "image/png",
        "left_out": "90,000 bytes are too many",
    }


def test_a_large_result_comes_whole_and_too_large_a_one_is_refused(play: Play):
    before = play.call("whoami")["pid"]
    assert play.call("big", length=1_000_000) == "x" * 1_000_000
    assert "5,000,002 bytes" in play.failed("big", length=5_000_000)
    assert play.call("whoami")["pid"] == before


def test_a_failure_says_what_the_server_says(play: Play):
    assert play.failed("fail", words="no such file") == (
        "fail of the MCP server real failed: no such file"
    )
    assert "it does not say why" in play.failed("fail", words="")
    assert "real failed in crash: Internal server error" in play.failed("crash")


def test_progress_is_a_share(play: Play):
    told: list[tuple[float, str]] = []
    call = play.servers.call(
        REAL, "slow", {"seconds": 0.01}, on_progress=lambda *progress: told.append(progress)
    )
    assert play.run(call) == "awake"
    assert told == [(0.25, "step 1"), (0.5, "step 2"), (0.0, "somewhere")]


def test_a_program_gets_three_variables_and_its_own(play: Play):
    env = play.call("whoami")["env"]
    assert env["KEY"] == CANARY
    assert env["PATH"] == os.environ["PATH"]
    # Python itself may add the last one.
    assert set(env) <= {"PATH", "HOME", "LANG", "KEY", "LC_CTYPE"}


def test_concurrent_calls_share_one_connection(play: Play):
    async def both() -> None:
        slow = asyncio.create_task(play.servers.call(REAL, "slow", {"seconds": 0.3}))
        await asyncio.sleep(0.05)
        first = await play.servers.call(replace(REAL), "whoami", {})
        second = await play.servers.call(REAL, "whoami", {})
        assert isinstance(first, Mapping)
        assert first == second
        assert not slow.done()
        assert await slow == "awake"

    play.run(both())


def test_servers_that_differ_in_anything_have_connections_of_their_own():
    async def test(servers: McpToolServers) -> None:
        one = await pid_of(servers)
        others = [
            replace(OLD, app="another tenant"),
            replace(OLD, env={"KEY": "1"}),
            replace(OLD, timeout=PATIENT + 1),
            replace(OLD, login=ServiceLogin("bearer", "x")),
        ]
        pids = [await pid_of(servers, item) for item in (OLD, *others)]
        assert pids[0] == one
        assert len(set(pids)) == 5

    playing(test)


def test_those_who_need_a_server_first_start_it_once():
    async def test(servers: McpToolServers) -> None:
        assert len(set(await asyncio.gather(*(pid_of(servers) for _ in range(5))))) == 1

    playing(test)


def test_an_endless_list_has_an_end():
    async def test(servers: McpToolServers) -> None:
        endless = replace(OLD, command=(*OLD.command, "--endless"))
        assert len(await servers.tools(endless)) == 100

    playing(test)


# -- what goes wrong


def test_tool_server_that_dies_is_reported_and_restarted(
    play: Play, caplog: pytest.LogCaptureFixture
):
    async def died() -> None:
        before: Any = await play.servers.call(REAL, "whoami", {})
        other = asyncio.create_task(play.servers.call(REAL, "slow", {"seconds": 60}))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        words = f"{'x' * 1000} the key {CANARY} is wrong"
        error = await refused(play.servers.call(REAL, "die", {"words": words}))
        assert time.monotonic() - began < PATIENT / 2
        assert "was lost during die: its program ended with exit code 3" in str(error)
        assert str(error).endswith("xx the key (secret) is wrong")
        assert len(str(error)) < 700
        assert "lost during slow" in str(await refused(other))
        after: Any = await play.servers.call(REAL, "whoami", {})
        assert after["pid"] != before["pid"]

    play.run(died())
    assert "not listed" not in caplog.text  # All pages were read anew before the call.


def test_an_end_is_noticed_while_another_program_holds_the_pipes():
    async def test(servers: McpToolServers) -> None:
        error = str(await refused(servers.call(OLD, "abandon", {})))
        assert "was lost during abandon: its program ended with exit code 4" in error
        child = int(error.rpartition(" ")[2])
        await asyncio.to_thread(until, lambda: is_gone(child))

    playing(test)


def python(code: str) -> tuple[str, ...]:
    return (*PYTHON, "-c", code)


@pytest.mark.parametrize(
    ("command", "fact"),
    [
        (("no-such-program", CANARY), "no-such-program cannot be started: No such file"),
        ((str(SUPPORT),), "cannot be started: Permission denied"),
        (("a\0b",), "holds a null character"),
        (python("raise SystemExit('no key')"), "ended with exit code 1; its stderr ends with: no"),
        (
            python("print('Usage: x')"),
            "exit code 0; it printed 'Usage: x', which is not an MCP message",
        ),
        (python("while True: print('y')"), "it printed 'y', which is not an MCP message"),
        (python(f"print('x' * {17 * 1024 * 1024})"), "a line of more than 16777216 bytes"),
        (("cat",), "Method not found"),
    ],
)
def test_invalid_server_is_refused(command: tuple[str, ...], fact: str):
    async def test(servers: McpToolServers) -> None:
        error = str(
            await refused(servers.tools(ToolServer("app", "odd", command, timeout=PATIENT)))
        )
        assert error.startswith("the MCP server odd did not start as an MCP server: ")
        assert fact in error
        assert error.endswith("; check its command")
        assert CANARY not in error

    playing(test)


def test_a_server_that_does_not_start_in_time_is_given_up_and_ended(tmp_path: Path):
    noted = tmp_path / "pid"
    command = ("sh", "-c", f"echo $$ > '{noted}'; exec sleep 60")

    async def test(servers: McpToolServers) -> None:
        server = ToolServer("app", "slow", command, timeout=0.5)
        error = await refused(servers.tools(server))
        assert str(error) == "the MCP server slow did not start within 0.5 seconds"
        assert isinstance(error.__cause__, TimeoutError)

    playing(test)
    assert is_gone(int(noted.read_text()))


def test_a_late_call_is_given_up_and_the_connection_kept_until_it_hangs():
    quick = replace(OLD, timeout=1)

    async def test(servers: McpToolServers) -> None:
        before = await pid_of(servers, quick)
        error = await refused(servers.call(quick, "hang", {}))
        assert str(error) == "the MCP server old took longer than 1 second for hang"
        assert isinstance(error.__cause__, TimeoutError)
        assert await pid_of(servers, quick) == before
        assert await servers.call(quick, "cancelled", {}) == "1"
        await asyncio.gather(*(refused(servers.call(quick, "hang", {})) for _ in range(2)))
        assert await pid_of(servers, quick) != before
        await asyncio.to_thread(until, lambda: is_gone(before))

    playing(test)


def test_a_caller_who_goes_away_stops_the_work_and_nothing_else():
    async def test(servers: McpToolServers) -> None:
        before = await pid_of(servers)
        call = asyncio.create_task(servers.call(OLD, "hang", {}))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await servers.call(OLD, "cancelled", {}) == "1"
        assert await pid_of(servers) == before

    playing(test)


def test_words_between_the_messages_do_no_harm_unless_they_do_not_end():
    async def test(servers: McpToolServers) -> None:
        assert await servers.call(OLD, "chatter", {"words": "hm", "times": 90}) == "said"
        assert await servers.call(OLD, "chatter", {"words": "hm", "times": 90}) == "said"
        error = await refused(servers.call(OLD, "chatter", {"words": "hm", "times": 101}))
        assert "was lost during chatter: it printed 'hm'" in str(error)

    playing(test)


def test_invalid_json_arguments_fail_only_their_call():
    async def test(servers: McpToolServers) -> None:
        before = await pid_of(servers)
        for value in ("\ud800", float("nan"), object()):
            error = await refused(servers.call(OLD, "pid", {"x": value}))
            assert str(error).startswith("pid was given a value of type dict that is not JSON: it")
        assert await pid_of(servers) == before

    playing(test)


def test_response_that_is_not_mcp_is_refused():
    async def test(servers: McpToolServers) -> None:
        error = await refused(servers.call(OLD, "nonsense", {}))
        assert str(error) == "the MCP server old failed in nonsense: its answer is not valid MCP"
        await pid_of(servers)

    playing(test)


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch):
    for name in [module for module in sys.modules if module.startswith("weft.adapters.mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(SetupError, match="MCP servers need a library") as caught:
        asyncio.run(tool_servers().tools(OLD))
    assert caught.value.hint == 'install it: pip install "weft-agents[mcp]"'


# -- the end


def test_unused_connection_is_closed():
    clock = ManualClock()

    async def test(servers: McpToolServers) -> None:
        first = await pid_of(servers)
        await clock.advance(299)
        assert await pid_of(servers) == first
        await clock.advance(299)
        hanging = asyncio.create_task(servers.call(OLD, "hang", {}))
        await asyncio.sleep(0.05)
        await clock.advance(1000)
        assert await pid_of(servers) == first
        hanging.cancel()
        await asyncio.wait({hanging})
        await clock.advance(301)
        await asyncio.to_thread(until, lambda: is_gone(first))
        assert await pid_of(servers) != first

    playing(test, clock=clock)


def test_closing_ends_a_program_that_will_not_and_what_it_started():
    async def test(servers: McpToolServers) -> None:
        stubborn = replace(OLD, command=(*OLD.command, "--stubborn"))
        pids = [await pid_of(servers, stubborn)]
        pids.append(int(str(await servers.call(stubborn, "spawn", {}))))
        call = asyncio.create_task(servers.call(stubborn, "hang", {}))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await servers.close()
        assert time.monotonic() - began < 5
        assert "lost during hang" in str(await refused(call))
        await asyncio.to_thread(until, lambda: all(map(is_gone, pids)))

    playing(test)


def test_after_closing_it_can_be_used_again_on_another_loop_too():
    servers = tool_servers()

    async def twice() -> list[int]:
        pids = [await pid_of(servers)]
        await servers.close()
        pids.append(await pid_of(servers))
        return pids

    # The second connection ends with its loop.
    pids = [*asyncio.run(twice()), *asyncio.run(twice())]
    assert len(set(pids)) == 4
    until(lambda: all(map(is_gone, pids[:3])))
    until(lambda: is_gone(pids[3]))


def test_closing_does_not_wait_for_a_server_that_is_still_starting():
    async def test(servers: McpToolServers) -> None:
        server = ToolServer("app", "slow", python("import time; time.sleep(60)"), timeout=PATIENT)
        asked = asyncio.create_task(servers.tools(server))
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await servers.close()
        assert time.monotonic() - began < 5
        assert "did not start as an MCP server" in str(await refused(asked))

    playing(test)


# -- over HTTP


LOGINS = {
    "bearer": (ServiceLogin("bearer", CANARY), f"authorization=Bearer {CANARY}"),
    "basic": (
        ServiceLogin("basic", f"ada:{CANARY}"),
        "authorization=Basic YWRhOmNhbmFyeS03ZjNhOWM=",
    ),
    "header": (ServiceLogin("header", CANARY, "X-Key"), f"x-key={CANARY}"),
}


@contextmanager
def http_server() -> Iterator[ToolServer]:
    """Start a real server over HTTP and end it again."""
    logins = "|".join(header for _, header in LOGINS.values())
    command = [sys.executable, str(SUPPORT / "mcp_server.py"), "--http"]
    env = {**os.environ, "LOGINS": logins}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
            yield ToolServer("app", "web", url=url, login=LOGINS["bearer"][0], timeout=PATIENT)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def web() -> Iterator[ToolServer]:
    with http_server() as server:
        yield server


def test_over_http_it_is_the_same(web: ToolServer):
    told: list[tuple[float, str]] = []

    async def test(servers: McpToolServers) -> None:
        assert len(await servers.tools(web)) == 9
        slow = servers.call(
            web, "slow", {"seconds": 0.2}, on_progress=lambda *progress: told.append(progress)
        )
        calls = [slow, servers.call(web, "add", {"a": 1, "b": 2})]
        assert await asyncio.gather(*calls) == ["awake", {"sum": 3}]
        # Whoever wants to hear of progress gets the result in a stream of events.
        for listener in (None, lambda *_: None):
            big = servers.call(web, "big", {"length": 2_000_000}, on_progress=listener)
            assert await big == "x" * 2_000_000
        error = await refused(servers.call(web, "fail", {"words": "no"}))
        assert str(error) == "fail of the MCP server web failed: no"

    playing(test)
    assert told == [(0.25, "step 1"), (0.5, "step 2"), (0.0, "somewhere")]


@pytest.mark.parametrize("kind", LOGINS)
def test_every_login_is_sent_as_its_kind_wants(web: ToolServer, kind: str):
    async def test(servers: McpToolServers) -> None:
        assert await servers.tools(replace(web, login=LOGINS[kind][0]))

    playing(test)


def test_a_wrong_login_is_refused(web: ToolServer):
    async def test(servers: McpToolServers) -> None:
        wrong = replace(web, login=ServiceLogin("bearer", "wrong"))
        for server in (wrong, replace(web, login=None)):
            error = str(await refused(servers.tools(server)))
            assert "web cannot be reached as an MCP server" in error
            assert "it answered with HTTP 401; check its url and its login" in error
        broken = replace(web, login=ServiceLogin("bearer", f"{CANARY}\n"))
        error = str(await refused(servers.tools(broken)))
        assert "characters that no header may have" in error
        assert CANARY not in error

    playing(test)


def test_address_without_a_server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async def test(servers: McpToolServers) -> None:
        url = f"http://ada:{CANARY}@127.0.0.1:{port}/mcp?key={CANARY}"
        error = str(
            await refused(servers.tools(ToolServer("app", "web", url=url, timeout=PATIENT)))
        )
        assert "web cannot be reached as an MCP server: ConnectError" in error
        assert f"its address is http://127.0.0.1:{port}/mcp;" in error
        assert "UnsupportedProtocol" in str(
            await refused(servers.tools(ToolServer("app", "x", url="x")))
        )

    playing(test)


def test_an_address_that_never_answers():
    async def test(servers: McpToolServers) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            error = await refused(servers.tools(ToolServer("app", "web", url=url, timeout=0.3)))
            assert str(error).startswith("the MCP server web did not start within 0.3 seconds")
            assert isinstance(error.__cause__, TimeoutError)

    playing(test)


def test_a_late_call_over_http_leaves_the_connection_usable(web: ToolServer):
    async def test(servers: McpToolServers) -> None:
        quick = replace(web, timeout=1.0)
        error = await refused(servers.call(quick, "slow", {"seconds": 60}))
        assert str(error).startswith("the MCP server web took longer than 1 second for slow")
        assert isinstance(error.__cause__, TimeoutError)
        assert await servers.call(quick, "echo", {"text_": "on"}) == "on"

    playing(test)


def test_an_address_that_dies_in_a_call():
    async def test(servers: McpToolServers) -> None:
        with http_server() as server:
            await servers.tools(server)
            error = await refused(servers.call(server, "die", {}))
            assert "web was lost during die" in str(error)
            assert "cannot be reached" in str(await refused(servers.call(server, "echo", {})))

    playing(test)


class OldSessions(BaseHTTPRequestHandler):
    """A server of 2025 that knows only the session it has begun last, if any."""

    session = 0
    known = ""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = self.headers.get("mcp-session-id") == type(self).known
        if "id" not in message:
            self._send(202, None)
        elif message["method"] == "initialize":
            type(self).session += 1
            type(self).known = str(self.session)
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            self._send(200, {"id": message["id"], "result": result})
        elif not known:
            self._send(404, None)
        elif message["method"] == "tools/list":
            self._send(200, {"id": message["id"], "result": {"tools": []}})
        else:
            content = [{"type": "text", "text": self.known}]
            self._send(200, {"id": message["id"], "result": {"content": content}})

    def do_GET(self) -> None:
        self._send(405, None)

    def do_DELETE(self) -> None:
        self._send(200, None)

    def _send(self, status: int, message: dict[str, Any] | None) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode() if message else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", self.known)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_a_session_that_the_server_has_forgotten_begins_anew():
    async def test(servers: McpToolServers) -> None:
        server = ToolServer(
            "app", "old", url=f"http://127.0.0.1:{web.server_port}/", timeout=PATIENT
        )
        assert await servers.call(server, "echo", {}) == "1"
        OldSessions.known = ""
        assert "Session terminated" in str(await refused(servers.call(server, "echo", {})))
        assert await servers.call(server, "echo", {}) == "2"

    with HTTPServer(("127.0.0.1", 0), OldSessions) as web:
        thread = threading.Thread(target=web.serve_forever, args=(0.01,))
        thread.start()
        try:
            playing(test)
        finally:
            web.shutdown()
            thread.join()


# -- secrets


def test_a_secret_is_in_no_error_no_log_and_no_representation(
    play: Play, web: ToolServer, caplog: pytest.LogCaptureFixture
):
    errors: list[ToolError] = []
    told: list[str] = []
    secret = replace(OLD, env={"KEY": CANARY})
    leaking = f"import sys; print('{CANARY}'); sys.exit('x' * 499 + '{CANARY}' + 'x' * 490)"
    broken = (
        replace(secret, command=python(leaking)),
        replace(secret, command=("no-such-program",)),
        replace(web, url=web.url + "/nowhere"),
        replace(web, login=ServiceLogin("basic", f"ada:{CANARY}-wrong")),
    )

    async def test() -> None:
        errors.extend([await refused(play.servers.tools(server)) for server in broken])
        for server, tool, arguments in (
            (secret, "chatter", {"words": CANARY, "times": 101}),
            (REAL, "fail", {"words": CANARY}),
            (REAL, "fail", {"words": f"{'x' * 1995}{CANARY}"}),
        ):
            errors.append(await refused(play.servers.call(server, tool, arguments)))
        arguments = {"seconds": 0, "words": CANARY}
        await play.servers.call(
            REAL, "slow", arguments, on_progress=lambda _, item: told.append(item)
        )

    with caplog.at_level(logging.DEBUG):
        play.run(test())
    shown = "".join("".join(traceback.format_exception(error)) for error in errors)
    assert shown.count("(secret)") >= 4
    assert told[0] == "(secret) 1"
    for text in (shown, caplog.text, repr(errors), repr(secret), repr(web), " ".join(told)):
        assert CANARY not in text
