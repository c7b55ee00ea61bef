"""Servers as processes of their own, which a test kills."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from weft.app.folders import server_file


class ServerProcess:
    """`weft serve` as a process of its own."""

    def __init__(
        self,
        workspace: Path,
        store: str = "",
        port: str = "0",
        *,
        descriptors: int = 0,
        errors: IO[str] | None = None,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "weft", "--json", "serve", "--no-open", *options]
        command += ["--workspace", str(workspace), "--port", port]
        if descriptors:
            command = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *command]
        settings = {"WEFT_MODEL": "sample", **({"WEFT_STORE": store} if store else {})}
        self.popen = subprocess.Popen(
            command,
            env={**os.environ, **settings, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert self.popen.stdout is not None
        self.url: str = json.loads(self.popen.stdout.readline())["ready"]["url"]
        self._file = server_file(workspace, self.url)

    @property
    def key(self) -> str:
        """The key of this user."""
        return json.loads(self._file.read_text(encoding="utf-8"))["key"]

    def stop(self) -> None:
        """Let the process end by itself, as Ctrl-C does."""
        self.popen.send_signal(signal.SIGTERM)
        self.popen.wait(timeout=30)
        assert self.popen.stdout is not None
        self.popen.stdout.close()

    def kill(self) -> None:
        """Kill the process, as a machine that fails would."""
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()
        assert self.popen.stdout is not None
        self.popen.stdout.close()


@contextmanager
def processes(workspace: Path, store: str, count: int) -> Iterator[list[ServerProcess]]:
    """Start servers of one workspace; those that are left are killed at the end."""
    found = [ServerProcess(workspace, store) for _ in range(count)]
    try:
        yield found
    finally:
        for process in found:
            if process.popen.poll() is None:
                process.kill()
