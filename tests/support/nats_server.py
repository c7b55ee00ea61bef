"""A NATS server with JetStream for tests, in a process of its own.

`WEFT_TEST_NATS_URL` names another one. The program is in the environment of the test servers.
"""

import os
import re
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv-servers" / "bin" / "nats-server"

#: Seconds for the server to come up or to go.
START_SECONDS = 30.0
END_SECONDS = 10.0


class NatsServer:
    """A server on a free port of this machine; a restart keeps the port and the streams."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        if not PROGRAM.exists():
            raise AssertionError(f"{PROGRAM} is missing: `make test` installs it")
        log = self._folder / "log"
        log.unlink(missing_ok=True)
        options = ["-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", self._folder, "-l", log]
        self._process = subprocess.Popen(
            [PROGRAM, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        too_late = time.monotonic() + START_SECONDS
        said = ""
        while "Server is ready" not in said:
            if time.monotonic() > too_late or self._process.poll() is not None:
                self.stop()
                raise AssertionError(f"the NATS server did not start: {said}")
            time.sleep(0.01)
            said = log.read_text(encoding="utf-8") if log.exists() else ""
        found = re.search(r"client connections on 127\.0\.0\.1:(\d+)", said)
        if found is None:
            self.stop()
            raise AssertionError(f"the NATS server does not say where it listens: {said}")
        self._port = int(found[1])

    def stop(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(END_SECONDS)
            self._process = None


@contextmanager
def nats_server(folder: Path) -> Generator[str]:
    """Yield the address of a server."""
    named = os.environ.get("WEFT_TEST_NATS_URL")
    if named:
        yield named
        return
    server = NatsServer(folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
