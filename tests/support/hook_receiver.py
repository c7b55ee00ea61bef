"""A receiver of webhooks: keeps what is sent to a free port of this machine, if it is signed."""

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from weft.server.signatures import verify


@dataclass
class Receiver:
    """What was received: the id of each delivery and its body."""

    url: str
    secret: str = ""
    #: The status of answers.
    status: int = 204
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The host and the port."""
        return self.url.split("/")[2]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events."""
        return [body["event"]["kind"] for _, body in self.received]


@contextmanager
def receiving() -> Generator[Receiver]:
    """Receive in threads."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.secret:
                verify(self.headers["Weft-Signature"], body, [receiver.secret], int(time.time()))
            receiver.received.append((self.headers["Weft-Delivery"], json.loads(body)))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None: ...  # noqa: A002 - its name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/events")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
