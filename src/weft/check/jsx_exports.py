"""Default exports of a JavaScript file, found without reading it as a whole."""

import re
from collections.abc import Iterator
from typing import Final

#: What opens a text in which words mean nothing, and the two ways to write a default export.
_START: Final = re.compile(
    r"""
      // | /\* | ["'`]
    | (?P<pattern> (?: [(,=:\[!&|?;{] | \breturn\b ) \s* /(?![/*>]) )
    | (?P<export> (?<![\w$.]) export (?: \s+default\b | \s*\{ (?P<names>[^{}]*) \} ) )
    """,
    re.VERBOSE,
)
_REST: Final = {
    "//": re.compile(r"[^\n]*"),
    "/*": re.compile(r".*?\*/", re.DOTALL),
    '"': re.compile(r'(?:\\.|[^"\\\n])*+"', re.DOTALL),
    "'": re.compile(r"(?:\\.|[^'\\\n])*+'", re.DOTALL),
    "`": re.compile(r"(?:\\.|[^`\\])*+`", re.DOTALL),
    "pattern": re.compile(r"(?:\\.|\[(?:\\.|[^\]\\\n])*+\]|[^/\\\n\[])++/"),
}
_SPANS_LINES: Final = frozenset({"/*", "`"})
_AS_DEFAULT: Final = re.compile(r"\bas\s+default\b")


def default_exports(text: str) -> Iterator[int]:
    """Yield the offset of every default export outside of comments, strings and patterns.

    A mark that opens nothing is passed over, since the text between JSX tags may hold any of them;
    up to where that is known, it is not tried again, which keeps the time linear.
    """
    position = 0
    nothing_before: dict[str, int] = {}
    while found := _START.search(text, position):
        position = found.end()
        if found["export"]:
            if found["names"] is None or _AS_DEFAULT.search(found["names"]):
                yield found.start()
            continue
        kind = "pattern" if found["pattern"] else found[0]
        if position <= nothing_before.get(kind, -1):
            continue
        closed = _REST[kind].match(text, position)
        if closed:
            position = closed.end()
        else:
            line_end = -1 if kind in _SPANS_LINES else text.find("\n", position)
            nothing_before[kind] = len(text) if line_end < 0 else line_end
