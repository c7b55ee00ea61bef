"""Texts cut into passages that overlap, each with its place in the text."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.errors import RetrievalError
from weft.findings import Json

#: Where a passage ends best: after a paragraph, a line, a sentence, a word.
_BREAKS: Final = ("\n\n", "\n", ". ", " ")

#: About as much as an embedding model takes in at once, and a sentence or two of it.
SIZE: Final = 1000
OVERLAP: Final = 150

_MOST_SIZE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Chunking:
    """How long passages are, and how much of one is in the next as well, in characters."""

    size: int = SIZE
    overlap: int = OVERLAP

    def __post_init__(self) -> None:
        """Refuse what would never come to an end."""
        if not 50 <= self.size <= _MOST_SIZE:
            raise RetrievalError(
                f"a passage cannot have {self.size} characters", hint="take 50 to 20000"
            )
        if not 0 <= self.overlap <= self.size // 2:
            raise RetrievalError(
                f"passages cannot overlap by {self.overlap} characters",
                hint=f"take 0 to {self.size // 2}, half of a passage",
            )


@dataclass(frozen=True, slots=True)
class Text:
    """What was read from a source; `pages` are where its pages begin, if it has pages."""

    content: str
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text, and where it is: `start` and `end`, and its line or page."""

    content: str
    place: dict[str, Json]


def passages(text: Text, chunking: Chunking) -> list[Passage]:
    """Cut a text into passages; there is none where the text is empty.

    >>> [it.content for it in passages(Text("Bees dance. " * 8), Chunking(50, 10))][-1]
    'dance. Bees dance. Bees dance. Bees dance.'
    """
    lines = [0, *(it.end() for it in re.finditer("\n", text.content))]
    found: list[Passage] = []
    for start, end in _spans(text.content, chunking):
        place: dict[str, Json] = {"start": start, "end": end}
        if text.pages:
            place["page"] = bisect_right(text.pages, start)
        else:
            place["line"] = bisect_right(lines, start)
        found.append(Passage(text.content[start:end], place))
    return found


def _spans(text: str, chunking: Chunking) -> Iterator[tuple[int, int]]:
    """Yield where passages begin and end, without the white space around them."""
    last = len(text.rstrip())
    start = _past_space(text, 0)
    while start < last:
        end = _end(text, start, chunking.size)
        yield start, start + len(text[start:end].rstrip())
        if end >= last:
            return
        start = _past_space(text, _next_word(text, max(end - chunking.overlap, start + 1), end))


def _end(text: str, start: int, size: int) -> int:
    """Return where a passage ends: at the best break in its second half."""
    most = start + size
    if most >= len(text):
        return len(text)
    for mark in _BREAKS:
        at = text.rfind(mark, start + size // 2, most)
        if at >= 0:
            return at + len(mark)
    return most


def _next_word(text: str, at: int, end: int) -> int:
    """Return where the first whole word begins from a place on; there may be none before `end`."""
    while at < end and not text[at - 1].isspace():
        at += 1
    return at


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
