"""Writing the one file a person names."""

from pathlib import Path

from weft.packages.staging import replace_files


def write_file(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, making its folder if need be."""
    replace_files(path.parent, {path.name: text.encode()})
