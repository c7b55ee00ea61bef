"""Words of a real model, over HTTP, in a terminal: seen while they are spoken."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from support.desk_play import let_leases_end, make_desk
from support.terminal_play import Terminal


class Speaker(BaseHTTPRequestHandler):
    """Says two words, the second one when it is allowed to."""

    go_on = threading.Event()
    #: How many requests are turned away before one is answered.
    busy = 0
    #: What is said instead, one after the other.
    script: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if Speaker.busy:
            Speaker.busy -= 1
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        if not request.get("stream"):
            self.end_headers()
            message = {"role": "assistant", "content": "Good morning"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.wfile.write(json.dumps({"id": "x", "choices": [choice]}).encode())
            return
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if Speaker.script:
            self._say(Speaker.script.pop(0))
        else:
            self._say("Good")
            self.go_on.wait(30)
            self._say(" morning")
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def _say(self, text: str) -> None:
        self._send({"choices": [{"index": 0, "delta": {"content": text}}]})

    def _send(self, content: dict) -> None:
        self.wfile.write(f"data: {json.dumps({'id': 'x', **content})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_parts: object) -> None:
        """Say nothing."""


@pytest.fixture
def settings(address: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Speaker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    Speaker.go_on.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("verb", ["chat", "run"])
def test_words_appear_while_they_are_spoken(tmp_path, settings, verb: str):
    make_desk(tmp_path)
    words = [verb, "Desk", *(["hello"] if verb == "run" else []), "--model", "openai:tiny"]
    Speaker.go_on.clear()
    with Terminal(*words, cwd=tmp_path, environment=settings) as terminal:
        if verb == "chat":
            terminal.wait_for("you: ")
            terminal.type("hello")
        terminal.wait_for("Clerk: Good")
        assert "morning" not in terminal.shown
        Speaker.go_on.set()
        terminal.wait_for(" morning\n")
        terminal.wait_for("you: ")
        terminal.press(b"\x04")
        assert terminal.end() == 0
    assert terminal.shown.count("morning") == 1


def test_another_attempt_is_shown_when_it_is_made_and_by_inspect(
    weft, tmp_path, settings, monkeypatch
):
    make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Speaker, "busy", 1)
    Speaker.go_on.set()
    live = weft("run", "Desk", "hello", "--model", "openai:tiny")
    assert live.out == "Clerk: Good morning\n"
    shown = r"^    Clerk: attempt 2 of 4 in \d+\.\d s, after: .*503"
    assert re.search(shown, live.err, re.MULTILINE)
    page = weft("inspect", "last").out
    assert re.search(r"^ +attempt 1 of 4: .*503", page, re.MULTILINE)
    (turn,) = weft("inspect", "last", "--json").data["inspection"]["turns"]
    (attempt,) = turn["calls"][0]["retries"]
    assert attempt.startswith("attempt 1 of 4: ")
    assert f"; {attempt}" in weft("runs", "tail", "last").out
    assert f"    {attempt}\n" in weft("replay", "last").err


def test_resume_all_takes_up_those_whose_processes_are_gone(weft, tmp_path, settings, monkeypatch):
    make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    Speaker.go_on.clear()
    words = ("run", "Desk", "hello", "--model", "openai:tiny")
    for ending in (signal.SIGKILL, signal.SIGINT):  # One dies, one is left.
        with Terminal(*words, cwd=tmp_path) as terminal:
            terminal.wait_for("Clerk: Good")
            terminal.process.send_signal(ending)
            terminal.end()
    let_leases_end(tmp_path)
    stopped = [run["run"] for run in weft("runs", "list", "--json").data["runs"]]
    Speaker.go_on.set()
    result = weft("runs", "resume", "--all")
    assert (result.code, "2 runs to resume\n" in result.err) == (0, True)
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert {(row[0], row[1]) for row in rows} == {(run, "waiting") for run in stopped}
    again = weft("runs", "resume", "--all", "--json")
    assert again.data["runs"] == []


FORM = {
    "models": [
        {
            "name": "Person",
            "type": "model",
            "fields": {"name": {"type": "str"}, "age": {"type": "int"}},
        }
    ],
    "registry": [{"agent": "Clerk", "model": "Person"}],
}


@pytest.mark.parametrize("terminal", [False, True])
def test_a_structured_reply_is_taken_out_of_its_fence_and_read_in_words(
    weft, tmp_path, settings, monkeypatch, terminal: bool
):
    folder = make_desk(tmp_path)
    (folder / "structured_outputs.json").write_text(json.dumps(FORM))
    fenced = '```json\n{"name": "Ada", "age": 36}\n```'
    monkeypatch.setattr(Speaker, "script", ['{"name": "Adam"}', fenced])
    words = ("run", "Desk", "hello", "--model", "openai:tiny")
    if terminal:
        with Terminal(*words, cwd=tmp_path, environment=settings) as screen:
            screen.wait_for("you: ")
            shown = screen.shown
    else:
        monkeypatch.chdir(tmp_path)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        result = weft(*words)
        assert result.out == "Clerk: name: Ada\nage: 36\n"
        shown = result.out + result.err
        seen = weft("runs", "tail", "last", "--as-user").out
        assert ("Adam" in seen, json.dumps("name: Ada\nage: 36") in seen) == (False, True)
    assert "Clerk: name: Ada\nage: 36\n" in shown
    assert "    the reply is rejected: " in shown
    assert "Adam" not in shown
    assert "```" not in shown
