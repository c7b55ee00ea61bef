"""Three-way merge: what a person changed by hand stays when a package is generated anew.

Base is what was generated last, mine what stands there now, theirs what would be generated today.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that a person and the Generator changed in different ways.

    `line` counts from 1 in the file as it stands. None: the file is not there.
    """

    line: int
    base: str | None
    mine: str | None
    theirs: str | None


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged text; where there is a conflict, it has what the person wrote."""

    text: str
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class FilesMerged:
    """What to write and what to remove; nothing at all where there is a conflict."""

    written: Mapping[str, str]
    removed: tuple[str, ...]
    conflicts: Mapping[str, tuple[Conflict, ...]]


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines of the base, and what one side has in their place."""

    first: int
    last: int
    lines: tuple[str, ...]


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merge line by line; changes that touch each other and differ are a conflict."""
    lines = _lines(base)
    ours, others = _edits(lines, _lines(mine)), _edits(lines, _lines(theirs))
    merged: list[str] = []
    conflicts: list[Conflict] = []
    done, line = 0, 1
    for first, last in _regions([*ours, *others]):
        before = lines[done:first]
        written = _applied(lines, ours, first, last)
        generated = _applied(lines, others, first, last)
        old = lines[first:last]
        line += len(before)
        if written not in (old, generated) and generated != old:
            texts = ("".join(it) for it in (old, written, generated))
            conflicts.append(Conflict(line, *texts))
        merged += [*before, *(generated if written == old else written)]
        done, line = last, line + len(written)
    return Merged("".join([*merged, *lines[done:]]), tuple(conflicts))


def _lines(text: str) -> list[str]:
    """Split at line ends only: other signs that end lines may stand inside texts."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _edits(base: list[str], changed: list[str]) -> list[_Edit]:
    codes = SequenceMatcher(None, base, changed, autojunk=False).get_opcodes()
    return [
        _Edit(first, last, tuple(changed[start:end]))
        for kind, first, last, start, end in codes
        if kind != "equal"
    ]


def _regions(edits: list[_Edit]) -> Iterator[tuple[int, int]]:
    """Join edits with no line between them, of whichever side."""
    region: tuple[int, int] | None = None
    for edit in sorted(edits, key=lambda it: (it.first, it.last)):
        if region and edit.first <= region[1]:
            region = (region[0], max(region[1], edit.last))
        else:
            if region:
                yield region
            region = (edit.first, edit.last)
    if region:
        yield region


def _applied(base: list[str], edits: list[_Edit], first: int, last: int) -> list[str]:
    """Return the lines of the base from first to last as one side has them."""
    found: list[str] = []
    place = first
    for edit in edits:
        if first <= edit.first and edit.last <= last:
            found += [*base[place : edit.first], *edit.lines]
            place = edit.last
    return found + base[place:last]


def merge_files(
    base: Mapping[str, str], mine: Mapping[str, str], theirs: Mapping[str, str]
) -> FilesMerged:
    """Merge folders, given as texts by path; the base of a file may be unknown."""
    merged: dict[str, str | None] = {}
    conflicts: dict[str, tuple[Conflict, ...]] = {}
    for path in sorted({*mine, *theirs}):
        texts = base.get(path), mine.get(path), theirs.get(path)
        merged[path], found = _merged_file(*texts)
        if found:
            conflicts[path] = found
    changed = {path: it for path, it in merged.items() if it != mine.get(path)}
    if conflicts:
        return FilesMerged({}, (), conflicts)
    written = {path: text for path, text in changed.items() if text is not None}
    return FilesMerged(written, tuple(it for it in changed if it not in written), {})


def _merged_file(
    base: str | None, mine: str | None, theirs: str | None
) -> tuple[str | None, tuple[Conflict, ...]]:
    """Merge one file; None is one that is not there, which is a way to change it, too."""
    if theirs in (mine, base):
        return mine, ()
    if base == mine:
        return theirs, ()
    if base is None or mine is None or theirs is None:
        return mine, (Conflict(1, base, mine, theirs),)
    merged = merge(base, mine, theirs)
    return merged.text, merged.conflicts
