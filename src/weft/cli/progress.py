"""Lines that tell a person how far long work is."""

import sys
from time import monotonic
from typing import Final

from weft.cli.streams import Streams

#: Seconds between two lines; work that takes less is told when it is done.
EVERY: Final = 2.0


class Progress:
    """Is told after each piece of work; now and then tells whoever sits at a terminal."""

    def __init__(self, streams: Streams, doing: str) -> None:
        self._streams = streams
        self._doing = doing
        self._last = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Take note of how many pieces of how many are done."""
        now = monotonic()
        if now - self._last < EVERY or not sys.stderr.isatty():
            return
        self._last = now
        self._streams.note(
            self._streams.paint_error(f"{self._doing}: {done:,} of {total:,}", "dim")
        )
