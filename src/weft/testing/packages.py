"""A package for a test: read as a host reads it, or refused as a host refuses it."""

from pathlib import Path

from weft.errors import UsageError
from weft.packages import reader
from weft.packages.package import Package
from weft.packages.review import refuse_errors


def read_package(folder: str | Path) -> Package:
    """Read a package that can run.

    Raises UsageError if there is no such folder, CheckFailed with all findings if it has errors.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="name the folder of a package")
    package = reader.read_package(path)
    refuse_errors(package)
    return package
