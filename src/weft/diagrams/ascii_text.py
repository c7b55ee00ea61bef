"""Plain text for terminals: ASCII characters only, never wider than a terminal."""

import textwrap
import unicodedata
from typing import Final

#: The widest line.
COLUMNS: Final = 100


def plain(text: str) -> str:
    """Write text in ASCII: letters without their accents, what has no such form as an escape."""
    return "".join(char if char.isascii() else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    pieces = unicodedata.normalize("NFKD", char)
    base = "".join(piece for piece in pieces if not unicodedata.combining(piece))
    return base if base and base.isascii() else ascii(char)[1:-1]


def cut(text: str, width: int) -> str:
    """Shorten a text to a width."""
    return text if len(text) <= width else text[: width - 3] + "..."


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters."""
    return textwrap.wrap(text, width, break_on_hyphens=False)
