"""Rewriting a package to the one written spelling."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.errors import PackageError
from weft.findings import Path as SpecPath
from weft.findings import Remove, is_error
from weft.packages import edits
from weft.packages.documents import Document, parse_text
from weft.packages.outer_form import point_at_schema, put_around
from weft.packages.package import DeclaredFile
from weft.packages.reader import read_package
from weft.packages.respelling import missing_wrapper, respell, respelling_edits
from weft.packages.rewrite import child, is_list, is_map
from weft.packages.staging import replace_all
from weft.packages.writer import file_data, schema_pointer

#: How a line begins that holds nothing but a comment.
_COMMENT: Final = ("#", "//", "/*")


@dataclass(frozen=True, slots=True)
class Migration:
    """What a rewrite would change: new texts by file name, and every change in words."""

    folder: Path
    texts: dict[str, str]
    changes: dict[str, tuple[str, ...]]


def plan_migration(folder: Path) -> Migration:
    """Work out how a package is rewritten; nothing is touched.

    A package that cannot be read is refused: what is not understood cannot be rewritten.
    """
    package = read_package(folder)
    errors = tuple(finding for finding in package.findings if is_error(finding))
    if errors:
        raise PackageError(f"{folder} cannot be rewritten before it can be read", errors)
    texts: dict[str, str] = {}
    changes: dict[str, tuple[str, ...]] = {}
    written = file_data(package.spec)
    for stem, declared in package.files.items():
        # A file that declares nothing may be one that would not be written at all.
        now = written.get(stem, {})
        said = tuple(_changes(declared, now))
        if said:
            respell(declared.rewrite.data, now)
            edited = _edited(stem, declared)
            texts[declared.name] = edited.text
            named = _named_schema(stem, declared.document, edited)
            changes[declared.name] = (*said, *named, *_losses(declared.document, edited))
    return Migration(folder, texts, changes)


def _edited(stem: str, declared: DeclaredFile) -> edits.Edited:
    """Respell a file, put the wrapper around it that it may lack, and let editors find its schema.

    What points at the schema already stays, outside of the wrapper.
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
        around = put_around(edited.text, document.format, wrapper)
        edited = edits.Edited(around.text, edited.anew or around.anew)
    return edits.Edited(point_at_schema(edited.text, document.format, pointer), edited.anew)


def carry_out(migrations: Iterable[Migration]) -> None:
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


def _losses(document: Document, edited: edits.Edited) -> Iterator[str]:
    """Say what of the author's file is not kept."""
    if edited.anew:
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
    for path, before, after in _respelt(declared.rewrite.data, written, ()):
        origin = declared.rewrite.came_from(path)
        yield f'line {declared.document.place(origin).line}: "{before}" is now "{after}"'


def _respelt(
    read: object, written: object, path: SpecPath
) -> Iterator[tuple[SpecPath, object, object]]:
    """Find the values that mean the same and are written otherwise now, such as type names."""
    if is_map(written):
        for key, value in written.items():
            yield from _respelt(child(read, key), value, (*path, key))
    elif is_list(written):
        for index, value in enumerate(written):
            yield from _respelt(child(read, index), value, (*path, index))
    elif isinstance(read, str) and read != written:
        yield path, read, written
