"""The one file a person names for the output."""

from pathlib import Path

from weft.cli.failure import usage
from weft.packages.staging import replace_files


def write_file(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, making its folder if need be."""
    refuse_folder(path, example="out.txt")
    replace_files(path.parent, {path.name: text.encode()})


def refuse_folder(path: Path, *, example: str) -> None:
    """Refuse the name of a folder where that of a file is wanted."""
    if path.is_dir():
        raise usage(f"{path} is a folder", f"name a file in it, such as {path / example}")
