"""How much room text takes on a terminal, where some characters are two columns wide."""

from itertools import accumulate
from typing import Final
from unicodedata import combining, east_asian_width

_CUT: Final = "..."

#: Text is never folded to less than this.
_LEAST: Final = 16


def width(text: str) -> int:
    """Count the columns a text takes on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else not combining(char) for char in text)


def padded(text: str, columns: int) -> str:
    """Fill a text up with spaces."""
    return text + " " * (columns - width(text))


def shortened(text: str, columns: int) -> str:
    """Cut a text so that it takes no more columns; three points tell that it was cut."""
    if width(text) <= columns:
        return text
    room = max(columns - len(_CUT), 1)
    ends = accumulate(width(char) for char in text)
    return text[: sum(end <= room for end in ends)] + _CUT


def folded(text: str, columns: int, *, most: int = 3) -> list[str]:
    """Break a line between words so that it fits; what needs more than `most` lines is cut.

    The lines after the first stand a little further in than the first.
    """
    margin = len(text) - len(text.lstrip(" "))
    indent = " " * (margin + 2)
    lines: list[str] = []
    current = " " * margin
    words = text.split()
    for number, word in enumerate(words):
        longer = current + word if current.isspace() or not current else f"{current} {word}"
        if width(longer) <= max(columns, _LEAST) or current.isspace() or not current:
            current = longer
            continue
        if len(lines) == most - 1:
            return [*lines, shortened(" ".join((current, *words[number:])), max(columns, _LEAST))]
        lines.append(current)
        current = indent + word
    return [shortened(line, max(columns, _LEAST)) for line in (*lines, current)]
