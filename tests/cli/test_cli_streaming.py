"""Words of a real model, over HTTP, in a terminal: seen while they are spoken."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from desk_play import make_desk
from terminal_play import Terminal


class Speaker(BaseHTTPRequestHandler):
    """Says two words, the second one when it is allowed to."""

    go_on = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
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
def test_words_appear_while_they_are_spoken(tmp_path, address: str, verb: str):
    make_desk(tmp_path)
    settings = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}
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
