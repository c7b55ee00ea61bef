"""The time of the machine, and identities made from it."""

import asyncio
import secrets
import time
from typing import Final

#: Letters and digits that nobody mistakes for one another.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"

#: Ten characters of time, in milliseconds, then sixteen that nobody can guess.
_TIME_CHARACTERS: Final = 10
_RANDOM_CHARACTERS: Final = 16

#: A wait longer than this is made in parts: the machine may have slept, or its time been set.
_MAX_SLEEP: Final = 60.0


class SystemClock:
    """The clock port over the machine's own clock."""

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """Return an identity that sorts by time and cannot be guessed."""
        return _encode(self.now(), _TIME_CHARACTERS) + _encode(
            secrets.randbits(5 * _RANDOM_CHARACTERS), _RANDOM_CHARACTERS
        )

    async def sleep_until(self, at: int) -> None:
        """Return when the time has come."""
        while (left := (at - self.now()) / 1000) > 0:  # noqa: ASYNC110 - time tells nobody
            await asyncio.sleep(min(left, _MAX_SLEEP))


def _encode(number: int, length: int) -> str:
    """Write a number with a fixed count of characters; larger numbers sort later.

    >>> _encode(33, 4)
    '0011'
    """
    return "".join([_ALPHABET[number >> 5 * place & 31] for place in range(length - 1, -1, -1)])
