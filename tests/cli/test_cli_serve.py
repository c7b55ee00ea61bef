"""weft serve as a process: who gets in, how it stops, and what keeps it from starting."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.slow_tool import SLOW_GREET
from support.terminal_play import Terminal

DEMO = Path(__file__).parents[2] / "scripts" / "demo.py"


@pytest.fixture
def shop(desk, monkeypatch):
    """A workspace whose package HelloWorld has a tool that takes a while."""
    (desk / "workflows/HelloWorld/tools/greet.py").write_text(SLOW_GREET)
    for name in ("WEFT_STORE", "WEFT_SERVER", "WEFT_SERVER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WEFT_MODEL", "sample")
    return desk


class Serving:
    """A server in a process of its own."""

    def __init__(self, process):
        self.process = process
        self.ready = json.loads(process.stdout.readline())["ready"]
        self.url, self.page = self.ready["url"], self.ready["page"]

    @property
    def file(self):
        """Where the key of this user is."""
        return Path(f".weft/server-{urlsplit(self.url).port}.json")

    @property
    def key(self):
        """The key of this user, while only programs on this machine can connect."""
        return json.loads(self.file.read_text())["key"]

    def call(self, method, path, body=None, **headers):
        """Return the status, the cookie and the content of an answer."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        try:
            given = {"Content-Type": "application/json", **headers}
            connection.request(method, path, json.dumps(body) if body else None, given)
            answer = connection.getresponse()
            cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
            return answer.status, cookie, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def start(self):
        body = {"workflow": "HelloWorld", "message": "hi", "model": "sample"}
        status, _, found = self.call("POST", "/api/runs", body, Authorization=f"Bearer {self.key}")
        assert status == 201, found
        return found["run"]

    def end(self, seconds=30):
        """Return the exit code and what was printed to stderr, when the server has ended."""
        _, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, err


@contextmanager
def serving(*options):
    """A server that is ready; it is killed at the end if it still runs."""
    words = ["serve", "--port", "0", "--no-open", "--json", *options]
    with subprocess.Popen(
        [sys.executable, "-m", "weft", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Serving(process)
        finally:
            if process.poll() is None:
                process.kill()


def wait_until(is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def calls():
    file = Path("calls.txt")
    return file.read_text().split() if file.exists() else []


def test_the_token_of_the_page_is_exchanged_once_and_the_key_is_for_this_user(shop, weft):
    with serving() as server:
        token = server.page.removeprefix(f"{server.url}/#token=")
        assert server.call("GET", "/api/me")[0] == 401
        status, cookie, _ = server.call("POST", "/api/session", {"token": token})
        assert (status, cookie.split("=")[0] != "") == (200, True)
        status, _, me = server.call("GET", "/api/me", Cookie=cookie)
        assert (status, me["app"], me["user"], "administrator" in me["roles"]) == (
            200,
            "local",
            "me",
            True,
        )
        assert server.call("POST", "/api/session", {"token": token})[0] == 401
        assert server.call("GET", "/readyz")[0] == 200
        mode = server.file.stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        assert server.ready["pid"] == server.process.pid
        # Another one with the same port says what to do.
        second = weft("serve", "--no-open", "--port", server.url.rpartition(":")[2])
        assert (second.code, second.out) == (3, "")
        assert "cannot listen on 127.0.0.1:" in second.err
        assert "use another one: --port 8766" in second.err
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == (0, "")
        assert not server.file.exists()


@pytest.mark.parametrize("hosts", ["", "shop.example"])
def test_server_that_others_can_reach_prints_no_token(shop, weft, monkeypatch, hosts):
    monkeypatch.setenv("WEFT_HOSTS", hosts)
    weft("keys", "create", "--role", "administrator")
    with serving("--host", "0.0.0.0") as server:
        assert server.page == f"{server.url}/"
        server.process.send_signal(signal.SIGTERM)
        code, err = server.end()
    assert code == 0
    assert ("set WEFT_HOSTS to the names of this server" in err) == (not hosts), err


def test_server_without_a_model_or_its_key_warns(shop, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("WEFT_MODEL", "")
    monkeypatch.setenv("WEFT_FALLBACK_MODEL", "openai:m")
    with serving() as server:
        server.process.send_signal(signal.SIGTERM)
        code, err = server.end()
    assert code == 0
    assert "warning: no model is set: set WEFT_MODEL" in err
    assert "warning: WEFT_FALLBACK_MODEL: openai:m needs a key; set OPENAI_API_KEY" in err


@pytest.mark.parametrize(("command", "options"), [("serve", ["--no-open"]), ("worker", [])])
@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("WEFT_MODEL", "bogus", "WEFT_MODEL is not valid: bogus names no provider"),
        ("WEFT_FALLBACK_MODEL", "nope:m", "WEFT_FALLBACK_MODEL is not valid: there is no model"),
    ],
)
def test_model_that_does_not_exist_is_refused_at_the_start(
    shop, weft, monkeypatch, command, options, setting, value, message
):
    monkeypatch.setenv(setting, value)
    result = weft(command, *options)
    assert (result.code, result.out) == (3, "")
    assert message in result.err


def test_ctrl_c_finishes_the_call_under_way(shop, weft):
    Path("seconds.txt").write_text("1.5")
    with serving() as server:
        run = server.start()
        wait_until(lambda: calls() == ["begin"])
        server.process.send_signal(signal.SIGINT)
        code, _ = server.end()
    assert (code, calls()) == (0, ["begin", "end"])
    Path("seconds.txt").write_text("0")
    assert "completed" in weft("runs", "resume", run).err  # With the result of the call.
    assert calls() == ["begin", "end"]


def test_second_signal_stops_at_once(shop):
    Path("seconds.txt").write_text("30")
    with serving() as server:
        server.start()
        wait_until(lambda: calls() == ["begin"])
        begun = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: server_is_stopping(server))
        server.process.send_signal(signal.SIGINT)
        code, _ = server.end()
    assert (code, time.monotonic() - begun < 25) == (0, True)


def server_is_stopping(server):
    try:
        return server.call("GET", "/readyz")[0] == 503
    except OSError:
        return True


def test_gateway_leaves_runs_to_workers(shop, weft):
    Path("seconds.txt").write_text("0")
    with serving("--no-work") as server:
        run = server.start()
        key = {"Authorization": f"Bearer {server.key}"}
        assert server.call("GET", "/api/me", **key)[2]["mode"] == "gateway"
        row = server.call("GET", f"/api/runs/{run}", **key)[2]
        assert (row["status"], row["owner"], calls()) == ("running", "", [])
        assert "completed" in weft("runs", "resume", run).err
        wait_until(
            lambda: server.call("GET", f"/api/runs/{run}", **key)[2]["outcome"] == "completed"
        )


def test_weft_alone_in_a_terminal_serves_and_opens_a_page_that_exists(shop):
    browser = shop / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened.txt\n')
    browser.chmod(0o755)
    settings = {"WEFT_PORT": "0", "BROWSER": f"{browser} %s"}
    with Terminal(cwd=shop, environment=settings) as terminal:
        terminal.wait_for("page   ")
        page = terminal.wait_for("\n")
        terminal.wait_for("API    ")
        terminal.wait_for("store  .weft/journal.db\n")
        wait_until(lambda: Path("opened.txt").exists() and Path("opened.txt").read_text().strip())
        opened = Path("opened.txt").read_text().strip()
        connection = HTTPConnection(urlsplit(opened).netloc, timeout=20)
        connection.request("GET", urlsplit(opened).path)
        assert connection.getresponse().status == 200
        connection.close()
        terminal.press(b"\x03")
        terminal.wait_for("stopping; press Ctrl-C again to stop at once")
        terminal.wait_for("stopped: 0 runs released")
        assert terminal.end() == 0
    assert opened == page
    assert "/#token=" in page


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--port", "70000"], 2, 'invalid value "70000" for --port'),
        (["--port", "x"], 2, 'invalid value "x" for --port'),
        (["--drain", "-1"], 2, 'invalid value "-1" for --drain'),
        (["--journal", ":memory:"], 2, "keeps nothing after the command ends"),
        (["--host", "0.0.0.0", "--port", "0"], 3, "weft keys create --role administrator"),
        (["--server", "http://127.0.0.1:1"], 2, "unknown option --server"),
    ],
)
def test_server_that_cannot_start_says_why(weft, shop, words, code, message):
    result = weft("serve", "--no-open", *words)
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_settings_of_the_environment_are_checked(weft, shop, monkeypatch):
    monkeypatch.setenv("WEFT_PORT", "many")
    result = weft("serve", "--no-open")
    assert (result.code, "WEFT_PORT is a port from 0 to 65535" in result.err) == (2, True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("WEFT_PORT", str(taken.getsockname()[1]))
        result = weft("serve", "--no-open", "--json")
    assert (result.code, result.data["error"]["code"]) == (3, "CLI003")


# -- make run


def test_make_run_shows_a_run_over_http_and_ends_without_a_terminal(desk):
    done = subprocess.run(
        [sys.executable, DEMO, desk],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "of CustomerSupportRouter over HTTP: I was charged twice" in done.stdout
    assert "   1  RunStarted         CustomerSupportRouter starts\n" in done.stdout
    assert "ToolReturned       analyze_request returned" in done.stdout
    last = done.stdout.splitlines()[-2:]
    assert re.fullmatch(r"page   http://127\.0\.0\.1:\d+", last[0])
    assert last[1] == (
        "There is no terminal, so the server stops now. "
        f"Serve the workspace: weft serve --workspace {desk}"
    )
    assert not list(desk.glob(".weft/server-*.json"))


def test_make_run_serves_in_a_terminal_until_ctrl_c(desk):
    with Terminal(str(DEMO), str(desk), cwd=desk, module=False, environment=os.environ) as terminal:
        terminal.wait_for("\npage   ")
        assert "/#token=" in terminal.wait_for("\n")
        terminal.wait_for("Ctrl-C stops the server.")
        url = json.loads(next(desk.glob(".weft/server-*.json")).read_text())["url"]
        connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 200
        connection.close()
        terminal.press(b"\x03")
        assert terminal.end() == 0
