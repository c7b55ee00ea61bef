"""Merging a package that is generated again: hand edits and unchanged parts stay.

Base is what was generated last, mine what is there now, theirs what would be generated today.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import Final, TypeAlias, cast

from weft.findings import Json
from weft.packages.text.documents import dump


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
            texts = ("".join(part) for part in (old, written, generated))
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
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.last)):
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
    changed = {path: text for path, text in merged.items() if text != mine.get(path)}
    if conflicts:
        return FilesMerged({}, (), conflicts)
    written = {path: text for path, text in changed.items() if text is not None}
    return FilesMerged(written, tuple(path for path in changed if path not in written), {})


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


# What the plan did not change

#: The lists of each package file, and what names an entry of a list; nothing for an object whose
#: keys are the names.
_LISTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "agents": {"agents": ("agent_name",)},
    "handoffs": {"handoff_rules": ("source_agent",)},
    "tools": {"tools": ("agent", "function"), "lifecycle_tools": ("agent", "function")},
    "structured_outputs": {"models": ("name",), "registry": ("agent",)},
    "hooks": {"hooks": ("hook_type", "agent", "function")},
    "context_variables": {"definitions": (), "agents": ()},
    "orchestrator": {},
}
_NESTED: Final = "context_variables"

_Object: TypeAlias = dict[str, Json]
#: The entries of a file by where they are and what names them; those of one name are in a list.
_Entries: TypeAlias = dict[tuple[str, ...], Json]


@dataclass(frozen=True, slots=True)
class Versions:
    """One package in four versions, as texts by path.

    `base` is what was generated last, by whichever model; `theirs` what was generated now. `old`
    and `new` are compiled from the plans of both, so they differ where the plans do.
    """

    base: Mapping[str, str]
    theirs: Mapping[str, str]
    old: Mapping[str, str]
    new: Mapping[str, str]


def keep_unchanged(versions: Versions) -> dict[str, str]:
    """Return `theirs` with everything from `base` that does not depend on what the plans changed.

    Files of code are kept as a whole, other files entry by entry. What only `theirs` has is taken
    if the plan changed it, or if something that is taken names it.
    """
    base, theirs = versions.base, versions.theirs
    kept = {path: _kept_file(path, versions) for path in dict.fromkeys((*base, *theirs))}
    taken = "\n".join(text for path, text in kept.items() if text and text != base.get(path))
    for path in theirs.keys() - {*base, *versions.old, *versions.new}:
        if PurePosixPath(path).name in taken:
            kept[path] = theirs[path]
    return {path: text for path, text in kept.items() if text is not None}


def _kept_file(path: str, versions: Versions) -> str | None:
    base, theirs = versions.base.get(path), versions.theirs.get(path)
    old, new = versions.old.get(path), versions.new.get(path)
    if old == new:
        return base
    file = PurePosixPath(path)
    if base is None or theirs is None or file.stem not in _LISTS or file.suffix != ".json":
        return theirs
    before, other, first, second = (
        _entries(file.stem, json.loads(text or "{}")) for text in (base, theirs, old, new)
    )
    kept = _kept_entries(before, other, first, second)
    return base if kept == before else dump(_joined(file.stem, json.loads(theirs), kept), "json")


def _kept_entries(base: _Entries, theirs: _Entries, old: _Entries, new: _Entries) -> _Entries:
    """Return the entries of `base`, with those of `theirs` in place of what the plan changed."""
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    kept: _Entries = {}
    for name, value in base.items():
        if name not in changed:
            kept[name] = value
        elif name in theirs:
            kept[name] = _patched(value, theirs[name], old.get(name), new.get(name))
    added = {name: value for name, value in theirs.items() if name not in base}
    kept |= {name: value for name, value in added.items() if name in changed}
    # What has a name of the model's own is needed where something that is taken names it.
    taken = json.dumps([value for name, value in kept.items() if value != base.get(name)])
    own = [name for name in added if name not in old and name not in new]
    return kept | {name: added[name] for name in own if json.dumps(name[-1]) in taken}


def _patched(base: Json, theirs: Json, old: Json, new: Json) -> Json:
    """Return `base` with those fields of `theirs` that the plan changed.

    Where the fields of the four are not the same, it is `theirs` as a whole.
    """
    mine, other, before, after = (_fields(value) for value in (base, theirs, old, new))
    if not (mine and other and before and after):
        return theirs
    changed = [key for key in {*before, *after} if before.get(key) != after.get(key)]
    if not all(key in fields for key in changed for fields in (mine, other, before, after)):
        return theirs
    for key in changed:
        mine[key] = _patched(mine[key], other[key], before[key], after[key])
    return mine if isinstance(base, dict) else list(mine.values())


def _fields(value: Json) -> _Object:
    """Return the fields of an object, or the items of a list by their ids; otherwise nothing."""
    if not isinstance(value, list):
        return dict(_object(value))
    items = [_object(item) for item in cast("list[Json]", value)]
    ids = [item.get("id", len(items) == 1) for item in items]
    named: _Object = {str(name): item for name, item in zip(ids, items, strict=True)}
    return named if all(ids) and len(named) == len(items) else {}


def _object(value: Json) -> _Object:
    return cast("_Object", value) if isinstance(value, dict) else {}


def _entries(stem: str, data: Json) -> _Entries:
    whole, lists = _object(data), _LISTS[stem]
    inner = _object(whole.get(_NESTED)) if stem == _NESTED else whole
    found: _Entries = {}
    for key, value in inner.items():
        if key not in lists:
            found[(key,)] = value
        elif not lists[key]:
            found |= {(key, name): entry for name, entry in _object(value).items()}
        else:
            for entry in cast("list[Json]", value):
                names = (str(_object(entry).get(name)) for name in lists[key])
                several = cast("list[Json]", found.setdefault((key, *names), []))
                several.append(entry)
    return found


def _joined(stem: str, theirs: Json, entries: _Entries) -> Json:
    """Return the data of a file with these entries, in the order of its keys."""
    whole = _object(theirs)
    given = _object(whole.get(_NESTED)) if stem == _NESTED else whole
    # A list may be empty.
    inner: _Object = {key: type(given[key])() for key in given if key in _LISTS[stem]}
    for (key, *names), value in entries.items():
        if not names:
            inner[key] = value
        elif _LISTS[stem][key]:
            several = cast("list[Json]", inner.setdefault(key, []))
            several += cast("list[Json]", value)
        else:
            _object(inner.setdefault(key, {}))[names[-1]] = value
    inner = {**{key: inner[key] for key in given if key in inner}, **inner}
    return {**whole, _NESTED: inner} if stem == _NESTED else inner
