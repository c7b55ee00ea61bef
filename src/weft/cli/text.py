"""Text for terminals: how wide it is, how it is cut, and what of it may be shown."""

import json
import re
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final
from unicodedata import combining, east_asian_width

from weft.findings import Json

#: Characters that would move the cursor, change colours or turn the direction of writing.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

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


def clean(text: str) -> str:
    """Write control characters out, so that a file cannot play with the terminal it is shown on."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def clean_lines(text: str) -> str:
    """Do the same for text of several lines, which stay lines."""
    return "\n".join(clean(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def at_time(milliseconds: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time as the clock on the wall shows it."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime(form)


def value_text(value: Json) -> str:
    """Return a value as it stands in a line."""
    return json.dumps(value, ensure_ascii=False)
