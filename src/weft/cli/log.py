"""What the layers below log while a command is carried out."""

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from weft.cli.streams import Streams
from weft.cli.text import clean_lines

#: How a file of package code begins in a traceback: with a part of the digest of its package. The
#: code is imported from the journal or from memory, in a namespace of its own.
_IN_MEMORY: Final = re.compile(r'(?<=File ")d([0-9a-f]{16})(?:_\d+)?/')


@contextmanager
def logged(streams: Streams) -> Generator[None]:
    """Print the log with --verbose and drop it otherwise: commands report failures themselves."""
    logger, tools = logging.getLogger("weft"), logging.getLogger("weft.tools")
    verbose, level, tools_level = streams.settings.verbose, logger.level, tools.level
    handler = DetailLog(streams) if verbose else logging.NullHandler()
    logger.addHandler(handler)
    if verbose:
        logger.setLevel(logging.INFO)
        tools.setLevel(logging.DEBUG)  # With the places that an error in code came through.
    try:
        yield
    finally:
        logger.setLevel(level)
        tools.setLevel(tools_level)
        logger.removeHandler(handler)


class DetailLog(logging.Handler):
    """Prints log records as details."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, with the files of packages by paths that can be opened."""
        text = self.format(record)
        if _IN_MEMORY.search(text):
            known = {digest[:16]: f"{folder}/" for digest, folder in self._packages()}
            text = _IN_MEMORY.sub(lambda found: known.get(found[1], found[0]), text)
        self._streams.detail(clean_lines(text))

    def _packages(self) -> list[tuple[str, str]]:
        # Deferred: most commands log nothing, and reading packages takes a while to load.
        from weft.cli.starting import digest_on_disk  # noqa: PLC0415
        from weft.packages.workspace import find_packages  # noqa: PLC0415

        folders = find_packages(self._streams.settings.workspace)
        return [(digest_on_disk(it), str(it)) for it in folders]
