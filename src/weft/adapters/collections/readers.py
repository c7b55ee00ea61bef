"""Texts of files: plain text, Markdown and HTML as they are, PDF and DOCX by optional parts."""

from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from logging import NullHandler, getLogger
from typing import Any, Final

from weft.adapters.collections.chunks import Text

# What pypdf warns of would be printed on a terminal otherwise; what fails is told all the same.
getLogger("pypdf").addHandler(NullHandler())


class Unreadable(Exception):
    """A file has no text that can be read; the text says why, and what to do."""


def kind_of(suffix: str) -> str | None:
    """Return what kind of text files with an ending have; None if they are not known."""
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
    lines = (" ".join(it.split()) for it in "".join(page.parts).split("\n"))
    return Text("\n".join(it for it in lines if it))


#: Elements whose text nobody reads, and those that begin a line.
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})
_BLOCKS: Final = (
    "address article aside blockquote body br dd details div dl dt figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table td th title "
    "tr ul"
)


class _Page(HTMLParser):
    """Gathers the text of a page."""

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
            # Lines of the file mean nothing; only elements begin one.
            self.parts.append(data.replace("\n", " "))


def _pdf(raw: bytes) -> Text:
    try:
        import pypdf  # noqa: PLC0415 - an optional part
    except ImportError as error:
        raise Unreadable(_needs("pdf")) from error
    try:
        pages = [it.extract_text() for it in pypdf.PdfReader(BytesIO(raw)).pages]
    except Exception as error:  # whatever is wrong with a file, it is the file
        raise Unreadable(f"it cannot be read as PDF: {error}") from error
    if not any(it.strip() for it in pages):
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
        blocks = [_block(it) for it in document.iter_inner_content()]
    except Exception as error:  # whatever is wrong with a file, it is the file
        raise Unreadable(f"it cannot be read as DOCX: {error}") from error
    return Text("\n\n".join(it for it in blocks if it))


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
