"""Files of package code by the paths a person can open.

The code of a package is imported from the journal or from memory, in a namespace of its own. What
goes wrong in it names files as they are called there; here they get the names they have on disk.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.cli.streams import Streams, clean_lines
from weft.findings import Finding
from weft.packages.reader import read_package
from weft.packages.workspace import find_packages
from weft.spec.canonical import digest

#: How a file of package code begins in a traceback: with a part of the digest of its package.
_IN_MEMORY: Final = re.compile(r'(?<=File ")d([0-9a-f]{16})(?:_\d+)?/')


def digest_on_disk(folder: Path) -> str:
    """Return the digest of a package as it is now, with errors or without."""
    package = read_package(folder)
    return digest(package.spec, package.code)


def placed(findings: Iterable[Finding], folder: Path) -> tuple[Finding, ...]:
    """Return findings about code with the files of a package named from the current folder on."""
    return tuple(_placed(it, folder) for it in findings)


def _placed(finding: Finding, folder: Path) -> Finding:
    file = folder / finding.place.file
    if not file.is_file():
        return finding
    return replace(finding, place=replace(finding.place, file=str(file)))


class DetailLog(logging.Handler):
    """Prints what the layers below log, for whoever asked for details."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, with the files of packages by their paths on disk."""
        text = self.format(record)
        if _IN_MEMORY.search(text):
            folders = find_packages(self._streams.settings.workspace)
            known = {digest_on_disk(it)[:16]: f"{it}/" for it in folders}
            text = _IN_MEMORY.sub(lambda found: known.get(found[1], found[0]), text)
        self._streams.detail(clean_lines(text))
