"""Doing something again whenever a file changes."""

from collections.abc import Callable
from pathlib import Path

from weft.cli.failure import setup


def watch_folders(folders: list[Path], again: Callable[[], None]) -> None:
    """Call `again` after every change in the folders, until Ctrl-C ends it."""
    try:
        # Deferred: an optional part, and one that is only needed here.
        from watchfiles import watch  # noqa: PLC0415
    except ImportError as error:
        raise setup(
            "watching files needs a part of Weft that is not installed",
            "install it: pip install 'weft[watch]'",
            cause=(f"the package {error.name} is missing",),
        ) from error
    for _ in watch(*folders):
        again()
