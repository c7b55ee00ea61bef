"""Pages of text: lines with a margin, cut to the width of a terminal and whole when piped."""

from collections.abc import Iterable

from weft.cli.streams import Streams
from weft.cli.text import clean, clean_lines, folded


class Page:
    """Collects lines."""

    def __init__(self, streams: Streams) -> None:
        self._paint = streams.paint
        self._columns = streams.settings.columns if streams.settings.terminal else None
        self._lines: list[str] = []

    def title(self, text: str) -> None:
        """Begin a part of the page."""
        if self._lines:
            self._lines.append("")
        self._lines.append(self._paint(text, "bold"))

    def line(self, text: str, margin: int = 2, style: str = "") -> None:
        """Add a line; one that does not fit the terminal is broken, and a long one cut as well."""
        cleaned = " " * margin + clean(text)
        lines = [cleaned] if self._columns is None else folded(cleaned, self._columns)
        self._lines += [self._paint(line, style) if style else line for line in lines]

    def text(self, text: str, margin: int = 4) -> None:
        """Add text of several lines as it is: nothing of it is cut."""
        self._lines += [f"{' ' * margin}{line}".rstrip() for line in clean_lines(text).split("\n")]

    def lines(self, texts: Iterable[str], margin: int = 2) -> None:
        """Add lines."""
        for text in texts:
            self.line(text, margin)

    def __str__(self) -> str:
        return "\n".join(self._lines)
