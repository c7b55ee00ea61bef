"""The one file a person names for the output."""

from pathlib import Path
from shlex import quote

from weft.cli.failure import not_found, usage
from weft.packages.archive.staging import replace_files


def write_file(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    refuse_no_file(path, example="out.txt")
    replace_files(path.parent, {path.name: text.encode()})


def refuse_no_file(path: Path, *, example: str) -> None:
    """Refuse the name of a folder where that of a file is wanted, and one in no folder."""
    if path.is_dir():
        raise usage(f"{path} is a folder", f"name a file in it, such as {path / example}")
    if path.parent.exists() and not path.parent.is_dir():
        raise usage(f"{path.parent} is a file, so nothing can be in it", "name another place")
    if not path.parent.exists():
        # Not made unasked: it is more often misspelt than missing.
        hint = f"make it: mkdir -p {quote(str(path.parent))}"
        raise not_found(f"there is no folder {path.parent}", hint)
