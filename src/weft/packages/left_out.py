"""What lies in a workspace and is not looked at: silence about it would sound like praise."""

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from weft.catalogue import CATALOGUE
from weft.findings import Finding, Place
from weft.packages.archive_names import is_passed_over
from weft.packages.folder_walk import unlisted, unreadable
from weft.packages.layout import SUFFIXES, meant_kind
from weft.packages.workspace import PACKAGES, PACKS, find_packages, is_package


def left_out(path: Path) -> Iterator[Finding]:
    """Report packages and files of packages at a path that a check of that path passes by."""
    inner = path / PACKAGES
    if is_package(path):
        yield from _within_package(inner)
    elif inner.is_dir():
        yield from _beside(path)
        yield from _astray(inner)
        yield from _packs(path / PACKS)
    elif path.absolute().name == PACKAGES:
        yield from _astray(path)


def _within_package(inner: Path) -> Iterator[Finding]:
    if inner.is_dir() and find_packages(inner):
        fact = "holds packages, but the folder around it is a package itself"
        yield _not_checked(inner, fact, f"check them: weft check {quote(str(inner))}")


def _beside(workspace: Path) -> Iterator[Finding]:
    """Look at the folders beside `workflows`."""
    try:
        entries = _entries(workspace)
    except PermissionError as error:
        yield unlisted(workspace, error)
        return
    for entry in entries:
        if entry.name not in {PACKAGES, PACKS} and is_package(entry):
            yield _misplaced(entry, f"lies beside {PACKAGES} and not in it", workspace / PACKAGES)


def _astray(home: Path) -> Iterator[Finding]:
    """Look at what is in `workflows` and is no package."""
    for entry in _entries(home):
        if is_package(entry):
            continue
        if entry.is_dir():
            for nested in (it for it in _entries(entry) if is_package(it)):
                yield _misplaced(nested, "lies too deep", home)
        elif not entry.exists():
            yield unreadable(entry, "is a link that leads nowhere", "mend or remove it")
        elif meant_kind(entry.name):
            fact = "looks like a file of a package, but is in no package folder"
            yield _not_checked(entry, fact, f"move it into a folder of its own: {home / 'NAME'}")


def _packs(folder: Path) -> Iterator[Finding]:
    """Look for files among the packs whose ending is written otherwise."""
    try:
        entries = _entries(folder) if folder.is_dir() else []
    except PermissionError:
        return  # reading the packs reports it
    for entry in entries:
        ending = entry.suffix.lower()
        if ending in SUFFIXES and ending != entry.suffix:
            fact = "is not read as a pack, because of its ending"
            yield _not_checked(entry, fact, f"rename it to {entry.stem}{ending}")


def _entries(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not is_passed_over(entry.name))


def _misplaced(package: Path, fact: str, home: Path) -> Finding:
    path = quote(str(package))
    return _not_checked(
        package,
        f"is a package, but {fact}",
        f"check it: weft check {path}",
        f"or move it: mv {path} {quote(str(home))}",
    )


def _not_checked(path: Path, fact: str, *hint: str) -> Finding:
    severity = CATALOGUE["PACK006"].severity
    message = f"{path.name} was not checked: it {fact}"
    # A folder has no lines.
    place = Place(str(path), 1, 1) if path.is_file() else Place(str(path))
    return Finding("PACK006", severity, message, place, hint=hint)
