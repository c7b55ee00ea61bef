"""Rewriting a package to the current spelling."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, cast

from weft.errors import PackageError
from weft.findings import AppendItem, Edit, Remove, RenameKey, SetValue, is_error
from weft.findings import Path as SpecPath
from weft.packages.archive.staging import replace_all
from weft.packages.edit import edits
from weft.packages.edit.edits import Edited, apply_or_rewrite
from weft.packages.edit.rewrite import List, Map, Rewrite, child, is_list, is_map
from weft.packages.reader import DeclaredFile, read_package
from weft.packages.text.documents import Document, Format, parse_text
from weft.packages.text.index import Data, Node
from weft.packages.writer import file_data, schema_pointer

#: How a line begins that holds nothing but a comment.
_COMMENT: Final = ("#", "//", "/*")
_HEAD: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*+")
_LINE_START: Final = re.compile(r"^(?=[^\r\n])", re.MULTILINE)
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_NEXT_LINE: Final = re.compile(r"[ \t\r]*\n([ \t]*)(?=\S)")
_POINTER: Final = "# yaml-language-server: $schema="


@dataclass(frozen=True, slots=True)
class Migration:
    """What a rewrite would change: new texts by file name, and every change in words."""

    folder: Path
    texts: dict[str, str]
    changes: dict[str, tuple[str, ...]]


def plan_migration(folder: Path) -> Migration:
    """Return how a package would be rewritten; nothing is written.

    A package that cannot be read is refused.
    """
    package = read_package(folder)
    errors = tuple(finding for finding in package.findings if is_error(finding))
    if errors:
        raise PackageError(f"{folder} cannot be rewritten before it can be read", errors)
    texts: dict[str, str] = {}
    changes: dict[str, tuple[str, ...]] = {}
    written = file_data(package.spec)
    for stem, declared in package.files.items():
        # An empty file may be one that is not written at all.
        now = written.get(stem, {})
        said = tuple(_changes(declared, now))
        if said:
            respell(declared.rewrite.data, now)
            edited = _edit_file(stem, declared)
            texts[declared.name] = edited.text
            named = _named_schema(stem, declared.document, edited)
            changes[declared.name] = (*said, *named, *_lost_parts(declared.document, edited))
    return Migration(folder, texts, changes)


def _edit_file(stem: str, declared: DeclaredFile) -> edits.Edited:
    """Respell a file, add a missing wrapper, and add the pointer to its schema for editors.

    An existing pointer stays, outside the wrapper.
    """
    document, pointer = declared.document, schema_pointer(stem)
    wrapper = missing_wrapper(declared.rewrite)
    changes = respelling_edits(declared)
    if wrapper:
        given = child(parse_text(document.text, document.format).data, "$schema")
        pointer = given if isinstance(given, str) else pointer
        changes = changes if given is None else (*changes, Remove(("$schema",)))
    edited = edits.apply(document, changes)
    if wrapper:
        around = wrap_under_key(edited.text, document.format, wrapper)
        edited = edits.Edited(around.text, edited.rewritten or around.rewritten)
    return edits.Edited(add_schema_pointer(edited.text, document.format, pointer), edited.rewritten)


def write_migrations(migrations: Iterable[Migration]) -> None:
    """Write what was planned for several packages; if anything fails, all stay as they were."""
    replace_all(
        {
            plan.folder / name: text.encode()
            for plan in migrations
            for name, text in plan.texts.items()
        }
    )


def _named_schema(stem: str, document: Document, edited: edits.Edited) -> Iterator[str]:
    pointer = schema_pointer(stem)
    if pointer in edited.text and pointer not in document.text:
        yield "it now names its schema, for editors"


def _lost_parts(document: Document, edited: edits.Edited) -> Iterator[str]:
    """Yield what is lost of the author's file."""
    if edited.rewritten:
        yield "rewritten whole: comments and layout are not kept"
    elif not _comments(document.text) <= _comments(edited.text):
        yield "comments inside the rewritten parts are not kept"


def _comments(text: str) -> set[str]:
    lines = (line.strip() for line in text.splitlines())
    return {line for line in lines if line.startswith(_COMMENT)}


def _changes(declared: DeclaredFile, written: object) -> Iterator[str]:
    for change in declared.rewrite.changes:
        place = declared.document.place(change.path, key=True)
        yield f"line {place.line}: {change.message}"
    for path, before, after in _respelled_values(declared.rewrite.data, written, ()):
        origin = declared.rewrite.origin_path(path)
        yield f'line {declared.document.place(origin).line}: "{before}" is now "{after}"'


def _respelled_values(
    read: object, written: object, path: SpecPath
) -> Iterator[tuple[SpecPath, object, object]]:
    """Yield the values with a new spelling of the same meaning, such as type names."""
    if is_map(written):
        for key, value in written.items():
            yield from _respelled_values(child(read, key), value, (*path, key))
    elif is_list(written):
        for index, value in enumerate(written):
            yield from _respelled_values(child(read, index), value, (*path, index))
    elif isinstance(read, str | int) and read != written:
        yield path, read, written


def wrap_under_key(text: str, form: Format, key: str) -> Edited:
    """Put the whole content of a file under a key."""
    wanted: Data = {key: parse_text(text, form).data}
    around = _json_around if form == "json" else _yaml_around
    return apply_or_rewrite(text, around(text, key, _newline(text)), form, wanted)


def _json_around(text: str, key: str, newline: str) -> str:
    content = text.strip()
    if "\n" not in content:
        return f'{{"{key}": {content}}}{newline}'
    unit = _INDENT.search(content)
    indent = unit[1] if unit else "  "
    moved = _LINE_START.sub(indent, content).removeprefix(indent)
    return f'{{{newline}{indent}"{key}": {moved}{newline}}}{newline}'


def _yaml_around(text: str, key: str, newline: str) -> str:
    head = _HEAD.match(text)
    end = head.end() if head else 0
    return f"{text[:end]}{key}:{newline}{_LINE_START.sub('  ', text[end:])}"


def add_schema_pointer(text: str, form: Format, pointer: str) -> str:
    """Add the pointer to the schema for editors, unless the file has one."""
    parsed, newline = parse_text(text, form), _newline(text)
    held = cast("dict[str, Data]", parsed.data)
    if "$schema" in held or (form == "yaml" and _POINTER in text):
        return text
    if form == "yaml":
        return f"{_POINTER}{pointer}{newline}{text}"
    at = (parsed.root or Node(0, 0)).start + 1
    below = _NEXT_LINE.match(text, at)
    gap = newline + below[1] if below else ""
    apart = ("," if below else ", ") if held else ""
    return f'{text[:at]}{gap}"$schema": "{pointer}"{apart}{text[at:]}'


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


#: The key by which editors find the schema of a file; not part of the declaration.
_SCHEMA: Final = ("$schema",)


def respell(read: object, written: object) -> None:
    """Return the data with the current spelling of its values, such as type names."""
    if is_map(read) and is_map(written):
        for key in read.keys() & written.keys():
            read[key] = _respell_value(read[key], written[key])
    elif is_list(read) and is_list(written) and len(read) == len(written):
        for index, pair in enumerate(zip(read, written, strict=True)):
            read[index] = _respell_value(*pair)


def _respell_value(read: object, written: object) -> object:
    if isinstance(read, str | int):
        return written
    respell(read, written)
    return read


def respelling_edits(declared: DeclaredFile) -> tuple[Edit, ...]:
    """Return the edits that turn the author's file into the rewritten data.

    A missing wrapper is omitted here and added afterwards.
    """
    document, rewrite = declared.document, declared.rewrite
    # Parsed again, because the document's data has been rewritten.
    before = parse_text(document.text, document.format).data
    wrapper, data = missing_wrapper(rewrite), rewrite.data
    after = data[wrapper] if wrapper and is_map(data) else data
    return tuple(_Differences(rewrite).between(before, after, (), ()))


def missing_wrapper(rewrite: Rewrite) -> str | None:
    """Return the wrapper key of the file, if the file lacks it."""
    entries = list(rewrite.data.items()) if is_map(rewrite.data) else []
    if len(entries) != 1:
        return None
    key, inner = entries[0]
    return key if is_map(inner) and rewrite.origin.get(id(inner)) == () else None


class _Differences:
    """The edits that turn the content of a file into the wanted content."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.rewrite = rewrite

    def between(
        self, before: object, after: object, at: SpecPath, stood: SpecPath
    ) -> Iterator[Edit]:
        """Compare the value at `at`, whose path in the author's file is `stood`."""
        if is_map(before) and is_map(after):
            yield from self._maps(before, after, at, stood)
        elif is_list(before) and is_list(after):
            yield from self._lists(before, after, at, stood)
        elif type(before) is not type(after) or before != after:
            yield SetValue(at, after)

    def _maps(self, before: Map, after: Map, at: SpecPath, stood: SpecPath) -> Iterator[Edit]:
        former = {key: self._former(before, after, key) for key in after}
        for key, old in former.items():
            if old is not None and old != key:
                yield RenameKey((*at, old), key)
        for key, old in former.items():
            if old is None:
                yield SetValue((*at, key), after[key])
            else:
                yield from self.between(before[old], after[key], (*at, key), (*stood, old))
        for key in before:
            if key not in former.values() and (*at, key) != _SCHEMA:
                yield Remove((*at, key))

    def _former(self, before: Map, after: Map, key: str) -> str | None:
        """Return the key of an entry in the author's file, or None."""
        if key in before:
            return key
        old = str(self.rewrite.renamed.get((id(after), key), ""))
        return old if old in before and old not in after else None

    def _lists(self, before: List, after: List, at: SpecPath, stood: SpecPath) -> Iterator[Edit]:
        indexes = self._indexes(before, after, stood)
        kept = [index for index in indexes if index is not None]
        in_order = all(first < second for first, second in pairwise(kept))
        if not in_order or None in indexes[: len(kept)]:
            yield SetValue(at, after)
            return
        for item, index in zip(after, kept, strict=False):
            yield from self.between(before[index], item, (*at, index), (*stood, index))
        for item in after[len(kept) :]:
            yield AppendItem(at, item)
        for index in reversed(range(len(before))):
            if index not in kept:
                yield Remove((*at, index))

    def _indexes(self, before: List, after: List, stood: SpecPath) -> list[int | None]:
        """Return the index of each item in the author's list; None for new items."""
        if len(before) == len(after):
            return list(range(len(before)))
        places: dict[SpecPath, int] = {(*stood, index): index for index in range(len(before))}
        return [places.get(self.rewrite.origin.get(id(item), ())) for item in after]
