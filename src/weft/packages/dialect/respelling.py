"""From older spellings to small edits of the author's file.

What the dialects made of a file is compared with what stands in it. Where the two differ there is
an edit: a key gets its present name, a value its present form, an entry is added or taken away.
Everything else stays as the author wrote it, defaults that were written out included.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from weft.findings import AppendItem, Edit, Path, Remove, RenameKey, SetValue
from weft.packages.edit.rewrite import List, Map, Rewrite, is_list, is_map
from weft.packages.package import DeclaredFile
from weft.packages.text.documents import parse_text

#: Where editors find the schema of a file; it is no part of the declaration.
_SCHEMA: Final = ("$schema",)


def respell(read: object, written: object) -> None:
    """Give the values of data as read the spelling they are written in now, such as type names."""
    if is_map(read) and is_map(written):
        for key in read.keys() & written.keys():
            read[key] = _settled(read[key], written[key])
    elif is_list(read) and is_list(written) and len(read) == len(written):
        for index, pair in enumerate(zip(read, written, strict=True)):
            read[index] = _settled(*pair)


def _settled(read: object, written: object) -> object:
    if isinstance(read, str | int):
        return written
    respell(read, written)
    return read


def respelling_edits(declared: DeclaredFile) -> tuple[Edit, ...]:
    """Return the edits that bring the author's file to what was made of it.

    A wrapper the file lacks is left away, and put around it afterwards.
    """
    document, rewrite = declared.document, declared.rewrite
    # Read again: the data of the document is what was rewritten.
    before = parse_text(document.text, document.format).data
    wrapper, data = missing_wrapper(rewrite), rewrite.data
    after = data[wrapper] if wrapper and is_map(data) else data
    return tuple(_Differences(rewrite).between(before, after, (), ()))


def missing_wrapper(rewrite: Rewrite) -> str | None:
    """Return the key under which everything is written now, if the file is without it."""
    entries = list(rewrite.data.items()) if is_map(rewrite.data) else []
    if len(entries) != 1:
        return None
    key, inner = entries[0]
    return key if is_map(inner) and rewrite.origin.get(id(inner)) == () else None


class _Differences:
    """The edits between what stands in a file and what shall stand there."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.rewrite = rewrite

    def between(self, before: object, after: object, at: Path, stood: Path) -> Iterator[Edit]:
        """Compare the value now at `at`, which stood at `stood` in the author's file."""
        if is_map(before) and is_map(after):
            yield from self._maps(before, after, at, stood)
        elif is_list(before) and is_list(after):
            yield from self._lists(before, after, at, stood)
        elif type(before) is not type(after) or before != after:
            yield SetValue(at, after)

    def _maps(self, before: Map, after: Map, at: Path, stood: Path) -> Iterator[Edit]:
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
        """Return the key under which an entry stands in the author's file, or None."""
        if key in before:
            return key
        old = str(self.rewrite.renamed.get((id(after), key), ""))
        return old if old in before and old not in after else None

    def _lists(self, before: List, after: List, at: Path, stood: Path) -> Iterator[Edit]:
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

    def _indexes(self, before: List, after: List, stood: Path) -> list[int | None]:
        """Return where in the author's list each item stood; None for those that did not."""
        if len(before) == len(after):
            return list(range(len(before)))
        places: dict[Path, int] = {(*stood, index): index for index in range(len(before))}
        return [places.get(self.rewrite.origin.get(id(item), ())) for item in after]
