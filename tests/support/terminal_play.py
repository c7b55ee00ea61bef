"""A terminal to run a command in: what a person would see there, and what the person types."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_IMPATIENT = """
import sys
from weft.cli.app import main
from weft.cli.chat import conversation
conversation.PATIENCE = 0.5
sys.exit(main(sys.argv[1:]))
"""
#: A command that waits only briefly for a run that does not move; with `module=False`.
IMPATIENT = ("-c", _IMPATIENT)


class Terminal:
    """A command in a terminal of its own, so many columns wide."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        columns: int = 80,
        module: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        settings = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", **(environment or {})}
        self.process = subprocess.Popen(
            [sys.executable, *(["-m", "weft"] if module else []), *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=cwd,
            env=settings,
            start_new_session=True,
            # Ctrl-C reaches only those whose terminal it is.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(inside)
        self.shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._screen)

    def wait_for(self, text: str, seconds: float = 30) -> str:
        """Return what was shown up to a text that had not been waited for before."""
        deadline = time.monotonic() + seconds
        while (found := self.shown.find(text, self._seen)) < 0:
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not shown; this was:\n{self.shown}")
        before = self.shown[self._seen : found]
        self._seen = found + len(text)
        return before

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._screen, (line + "\n").encode())

    def press(self, key: bytes) -> None:
        """Press a key, such as Ctrl-C; not before a person could."""
        time.sleep(0.3)
        os.write(self._screen, key)

    def end(self, seconds: float = 30) -> int:
        """Return the exit code, when the command has ended."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            continue
        return self.process.wait(max(deadline - time.monotonic(), 1))

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            part = os.read(self._screen, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.shown += part.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(part)
