"""Applying safe fixes to the files they concern."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.findings import (
    AppendItem,
    Edit,
    Finding,
    Fix,
    Remove,
    RenameKey,
    SetValue,
)
from weft.packages.archive.staging import replace_files
from weft.packages.edit import edits
from weft.packages.layout import file_path
from weft.packages.reader import Package, read_package
from weft.packages.text.documents import Document, read_text
from weft.packages.writer import file_text

#: Every round applies at most one fix per file; no package needs more rounds than this.
MAX_ROUNDS: Final = 500


def fix_package(
    folder: Path,
    review: Callable[[Package], Iterable[Finding]],
    keeps: Callable[[Finding], bool],
) -> tuple[tuple[str, Fix], ...]:
    """Apply the safe fixes of a package; return them, each with the file that it changed.

    `keeps` says of which findings. The package is read again after each round. Two fixes that undo
    each other would never end: a text that was seen before ends it.
    """
    fixed: list[tuple[str, Fix]] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(MAX_ROUNDS):
        package = read_package(folder)
        texts = tuple(declared.document.text for declared in package.files.values())
        if texts in seen:
            break
        seen.add(texts)
        wanted = [finding for finding in review(package) if finding.fix and keeps(finding)]
        applied = apply_fixes(package, wanted)
        if not applied:
            break
        fixed += [(_fixed_file(package, fix), fix) for fix in applied]
    return tuple(fixed)


def _fixed_file(package: Package, fix: Fix) -> str:
    """Return the file that a fix changes; the finding may be in another one."""
    if fix.file is not None:
        return str(package.folder / fix.file)
    return package.locate(fix.edits[0].path).file


def apply_fixes(package: Package, findings: Iterable[Finding]) -> tuple[Fix, ...]:
    """Apply the fixes of a package's findings, at most one to a file, and return those applied.

    One at a time: a fix is worked out on the text as it was read, so the next one waits until the
    package has been read again.
    """
    applied: list[Fix] = []
    texts: dict[str, bytes] = {}
    for fix in (finding.fix for finding in findings if finding.fix):
        changed = fixed_texts(package, fix)
        if changed and texts.keys().isdisjoint(changed):
            texts.update((name, text.encode()) for name, text in changed.items())
            applied.append(fix)
    replace_files(package.folder, texts)
    return tuple(applied)


def fixed_texts(package: Package, fix: Fix) -> dict[str, str]:
    """Return the new text of every file of a package that a fix would change, and write nothing."""
    grouped: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        name, placed = _file_edit(package, fix, edit)
        grouped.setdefault(name, []).append(placed)
    documents = {declared.name: declared.document for declared in package.files.values()}
    for name, found in grouped.items():
        if name not in documents and _can_create(package, name, found):
            documents[name] = _empty_document(name)
    return {
        name: edits.apply(documents[name], found).text
        for name, found in grouped.items()
        if name in documents
    }


def _can_create(package: Package, name: str, found: list[Edit]) -> bool:
    """Return whether a file can be begun with these edits: it is not there, and they only add."""
    adding = all(isinstance(edit, SetValue | AppendItem) for edit in found)
    named = all(isinstance(step, str) for edit in found for step in edit.path)
    return adding and named and not (package.folder / name).exists()


def _empty_document(name: str) -> Document:
    """Return a declared file with nothing in it yet; edits put the objects around what they add."""
    return read_text(name, file_text(name.partition(".")[0], {}, "json"))


def _file_edit(package: Package, fix: Fix, edit: Edit) -> tuple[str, Edit]:
    """Turn an edit of the spec into an edit of the file that contains the value."""
    if fix.file is not None:
        return fix.file, edit
    kind, inner = file_path(edit.path, entry=isinstance(edit, RenameKey | Remove))
    declared = package.files.get(kind.stem)
    if declared is None:
        return f"{kind.stem}.json", replace(edit, path=inner)
    return declared.name, replace(edit, path=declared.rewrite.origin_path(inner))
