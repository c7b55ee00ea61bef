"""Texts of files, and how they are split into passages."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from io import BytesIO
from logging import NullHandler, getLogger
from typing import Any, Final

from weft.errors import RetrievalError
from weft.findings import Json

#: The preferred ends of passages: a paragraph, a line, a sentence, a word.
_BREAKS: Final = ("\n\n", "\n", ". ", " ")

#: About the input length of an embedding model, and one or two sentences of overlap.
SIZE: Final = 1000
OVERLAP: Final = 150

_MOST_SIZE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Chunking:
    """The length of passages and their overlap, in characters."""

    size: int = SIZE
    overlap: int = OVERLAP

    def __post_init__(self) -> None:
        """Refuse sizes that are too small, too large, or would never end."""
        if not 50 <= self.size <= _MOST_SIZE:
            raise RetrievalError(
                f"a passage cannot have {self.size} characters", hint="use 50 to 20000"
            )
        if not 0 <= self.overlap <= self.size // 2:
            raise RetrievalError(
                f"passages cannot overlap by {self.overlap} characters",
                hint=f"use 0 to {self.size // 2}, half of a passage",
            )


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a source; `pages` are the offsets of its pages, if it has pages."""

    content: str
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text with its place: `start` and `end`, and its line or page."""

    content: str
    place: dict[str, Json]


def passages(text: Text, chunking: Chunking) -> list[Passage]:
    """Split a text into passages; an empty text has none.

    >>> [passage.content for passage in passages(Text("Bees dance. " * 8), Chunking(50, 10))][-1]
    'dance. Bees dance. Bees dance. Bees dance.'
    """
    lines = [0, *(line_end.end() for line_end in re.finditer("\n", text.content))]
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
    """Yield the start and end of each passage, without surrounding white space."""
    last = len(text.rstrip())
    start = _past_space(text, 0)
    while start < last:
        end = _end(text, start, chunking.size)
        yield start, start + len(text[start:end].rstrip())
        if end >= last:
            return
        start = _past_space(text, _next_word(text, max(end - chunking.overlap, start + 1), end))


def _end(text: str, start: int, size: int) -> int:
    """Return the end of a passage: the best break in its second half."""
    most = start + size
    if most >= len(text):
        return len(text)
    for mark in _BREAKS:
        at = text.rfind(mark, start + size // 2, most)
        if at >= 0:
            return at + len(mark)
    return most


def _next_word(text: str, at: int, end: int) -> int:
    """Return the start of the first whole word from an offset on, at most `end`."""
    while at < end and not text[at - 1].isspace():
        at += 1
    return at


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


# Warnings of pypdf would be printed to the terminal; failures are reported anyway.
getLogger("pypdf").addHandler(NullHandler())


class Unreadable(Exception):
    """A file without readable text; the message has the reason and the remedy."""


def kind_of(suffix: str) -> str | None:
    """Return the kind of text of a file suffix; None if it is unsupported."""
    return _KINDS.get(suffix.lower())


def read_text(raw: bytes, kind: str) -> Text:
    """Return the text of a file; raises Unreadable."""
    return _READERS.get(kind, _plain)(raw)


def _plain(raw: bytes) -> Text:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        convert = "; convert it: iconv -f LATIN1 -t UTF-8 FILE" if b"\0" not in raw else ""
        raise Unreadable(f"it is not text in UTF-8{convert}") from error
    if "\0" in text:
        raise Unreadable("it is not text")
    return Text(text.replace("\r\n", "\n"))


def _html(raw: bytes) -> Text:
    page = _Page()
    page.feed(_plain(raw).content)
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.parts).split("\n"))
    return Text("\n".join(line for line in lines if line))


#: Elements without visible text, and elements that start a line.
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})
_BLOCKS: Final = (
    "address article aside blockquote body br dd details div dl dt figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table td th title "
    "tr ul"
)


class _Page(HTMLParser):
    """Collects the text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - as the base has it
        self._unseen += tag in _UNSEEN
        if tag in _BLOCKS.split():
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        if tag in _BLOCKS.split():
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            # Line breaks of the file mean nothing; only elements start lines.
            self.parts.append(data.replace("\n", " "))


def _pdf(raw: bytes) -> Text:
    try:
        import pypdf  # noqa: PLC0415 - an optional part
    except ImportError as error:
        raise Unreadable(_needs("pdf")) from error
    try:
        pages = [page.extract_text() for page in pypdf.PdfReader(BytesIO(raw)).pages]
    except Exception as error:  # any error means that the file is invalid
        raise Unreadable(f"it cannot be read as PDF: {error}") from error
    if not any(page.strip() for page in pages):
        raise Unreadable("it has no text; scanned pages must go through text recognition first")
    starts, at = [0], 0
    for page in pages[:-1]:
        at += len(page) + 2
        starts.append(at)
    return Text("\n\n".join(pages), tuple(starts))


def _docx(raw: bytes) -> Text:
    try:
        import docx  # noqa: PLC0415 - an optional part
    except ImportError as error:
        raise Unreadable(_needs("docx")) from error
    try:
        document: Any = docx.Document(BytesIO(raw))
        blocks = [_block(block) for block in document.iter_inner_content()]
    except Exception as error:  # any error means that the file is invalid
        raise Unreadable(f"it cannot be read as DOCX: {error}") from error
    return Text("\n\n".join(block for block in blocks if block))


def _block(block: Any) -> str:  # noqa: ANN401 - a paragraph or a table
    if not hasattr(block, "rows"):
        return block.text.strip()
    return "\n".join(" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows)


def _needs(extra: str) -> str:
    return f'a library is missing: pip install "weft-agents[{extra}]"'


_READERS: Final[dict[str, Callable[[bytes], Text]]] = {"html": _html, "pdf": _pdf, "docx": _docx}

_KINDS: Final = {
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents.

    >>> words_of("Café T-17")
    ['cafe', 't', '17']
    """
    plain = text.lower()
    if not plain.isascii():
        letters = unicodedata.normalize("NFD", plain)
        plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
        plain = unicodedata.normalize("NFC", plain)
    return re.findall(r"\w+", plain)
