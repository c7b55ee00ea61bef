"""Applying safe fixes until none is left."""

from pathlib import Path
from typing import Final

from weft.check.subject import Profile
from weft.cli.report import Mended
from weft.cli.selection import Selection
from weft.findings import Finding, Fix
from weft.packages.edit.fixes import apply_fixes as mend
from weft.packages.package import Package
from weft.packages.reader import read_package
from weft.packages.review import review_package

#: A round applies one fix to a file at most; no package has use for more rounds than this.
MOST_ROUNDS: Final = 500


def mend_package(folder: Path, selection: Selection, *, profile: Profile) -> tuple[Mended, ...]:
    """Apply the safe fixes of a package's wanted findings, reading it anew after each round.

    Two fixes that undo each other would go on for ever: a text that was there before ends it.
    """
    mended: list[Mended] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(MOST_ROUNDS):
        package = read_package(folder)
        texts = tuple(declared.document.text for declared in package.files.values())
        if texts in seen:
            break
        seen.add(texts)
        wanted = _wanted(package, selection, profile=profile)
        applied = mend(package, wanted)
        if not applied:
            break
        mended += [Mended(_file(package, fix), fix.title) for fix in applied]
    return tuple(mended)


def _wanted(package: Package, selection: Selection, *, profile: Profile) -> list[Finding]:
    found = review_package(package, profile=profile)
    return [finding for finding in found if finding.fix and selection.keeps(finding)]


def _file(package: Package, fix: Fix) -> str:
    """Return the file a fix changes; it may be another one than the finding stands in."""
    if fix.file is not None:
        return str(package.folder / fix.file)
    return package.locate(fix.edits[0].path).file
