"""Telling that a run goes on with its package as it was, where the files have changed since."""

from typing import Final

from weft.cli.package_files import digest_on_disk
from weft.cli.streams import Streams, clean
from weft.engine.rows import RunRow
from weft.packages.workspace import find_packages

#: How much of a digest is told.
_SHORT: Final = 8


def tell_if_changed(streams: Streams, row: RunRow) -> None:
    """Say so if the package of a run is there and is not what the run was started with."""
    folders = {it.resolve().name: it for it in find_packages(streams.settings.workspace)}
    folder = folders.get(row.workflow)
    if folder is None:
        return
    if digest_on_disk(folder) != row.digest:
        kept = row.digest[:_SHORT]
        note = f"the package {row.workflow} has changed since; this run keeps {kept}"
        streams.note(streams.paint_error(clean(note), "yellow"))
