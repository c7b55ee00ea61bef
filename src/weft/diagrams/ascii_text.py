"""Plain text for terminals: ASCII characters only, never wider than a terminal."""

import textwrap
import unicodedata
from typing import Final

#: The widest line.
COLUMNS: Final = 100


def plain(text: str) -> str:
    """Write text in ASCII: letters without their accents, what has no such form as an escape."""
    parts: list[str] = []
    for char in text:
        base = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
        parts.append(base if base.isprintable() and base else _escape(char))
    return "".join(parts)


def _escape(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode()


def cut(text: str, width: int) -> str:
    """Shorten a text to a width."""
    return text if len(text) <= width else text[: width - 3] + "..."


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` characters."""
    return textwrap.wrap(text, width, break_on_hyphens=False)
