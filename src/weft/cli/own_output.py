"""The output stream of a command is its own: what code of a package writes there goes aside."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

#: The stream that results go to while a host is open; nothing where `sys.stdout` is still it.
_KEPT: Final[list[TextIO]] = []


def results() -> TextIO:
    """Return the stream that results of a command are written to."""
    return _KEPT[0] if _KEPT else sys.stdout


@contextmanager
def output_kept() -> Generator[None]:
    """Keep the output stream to ourselves: meanwhile `sys.stdout` writes to the error stream."""
    if _KEPT:
        yield
        return
    real = sys.stdout
    _KEPT.append(real)
    sys.stdout = cast("TextIO", _Aside(real))
    try:
        yield
    finally:
        sys.stdout = real
        _KEPT.clear()


class _Aside:
    """Looks like the output stream, so that `input` edits lines, and writes to the error stream."""

    def __init__(self, real: TextIO) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._real if name in _LOOK else sys.stderr, name)


#: What tells where a stream leads, and how text is written there.
_LOOK: Final = frozenset({"fileno", "isatty", "encoding", "errors"})
