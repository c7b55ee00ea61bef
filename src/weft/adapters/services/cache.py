"""Answers kept for a while, as they came."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

#: How many answers are kept, and how many bytes of them; the one used longest ago goes first.
MOST_ANSWERS: Final = 1_000
MOST_BYTES: Final = 50_000_000


class AnswerCache:
    """Keeps bytes, not values: whoever changes a value he was given changes nobody else's."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[int, bytes]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, *, now: int, ttl: float) -> bytes | None:
        """Return an answer that came at most `ttl` seconds ago; the time is in milliseconds."""
        at, raw = self._kept.get(key, (0, None))
        # An answer from the future is one from before the clock was set back.
        if raw is None or not 0 <= now - at < ttl * 1000:
            return None
        self._kept.move_to_end(key)
        return raw

    def put(self, key: Hashable, raw: bytes, *, now: int) -> None:
        self._drop(key)
        self._kept[key] = now, raw
        self._size += len(raw)
        while len(self._kept) > MOST_ANSWERS or self._size > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        _, raw = self._kept.pop(key, (0, b""))
        self._size -= len(raw)
