"""What changes when the files of a package are replaced by others."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weft.packages.manifest import sha256

#: Longer texts are compared by sha256 only, and so is everything once the sum is reached: finding
#: the smallest difference takes time that grows with the square of the length.
_MAX_BYTES: Final = 256 * 1024
_MAX_LINES: Final = 2_000
_MAX_LINES_IN_ALL: Final = 20_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """Names of files by what happens to them, and the difference as text."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    diff: str

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return not (self.added or self.changed or self.removed)


def compare(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Comparison:
    """Compare two sets of files by relative name."""
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    names = sorted([*(old.keys() ^ new.keys()), *changed])
    return Comparison(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(changed),
        removed=tuple(sorted(old.keys() - new.keys())),
        diff="".join(f"{line}\n" for line in _differences(names, old, new)),
    )


def _differences(
    names: list[str], old: Mapping[str, bytes], new: Mapping[str, bytes]
) -> Iterator[str]:
    room = _MAX_LINES_IN_ALL
    for name in names:
        before, after = _lines(old.get(name, b"")), _lines(new.get(name, b""))
        if before is None or after is None or len(before) + len(after) > room:
            yield from _by_hash(name, old.get(name), new.get(name))
            continue
        room -= len(before) + len(after)
        source = f"a/{_visible(name)}" if name in old else "(none)"
        target = f"b/{_visible(name)}" if name in new else "(none)"
        marked = list(difflib.unified_diff(before, after, source, target, lineterm=""))
        # An empty file that appears or goes has no lines to show.
        yield from marked or (f"--- {source}", f"+++ {target}")


def _by_hash(name: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    name = _visible(name)
    yield f"--- a/{name} sha256 {sha256(old)}" if old is not None else "--- (none)"
    yield f"+++ b/{name} sha256 {sha256(new)}" if new is not None else "+++ (none)"


def _lines(raw: bytes) -> list[str] | None:
    """Return the lines of a text as they can be shown, or None if it is no text or too long."""
    if len(raw) > _MAX_BYTES or b"\0" in raw or raw.count(b"\n") >= _MAX_LINES:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if not text:
        return []
    lines = [_visible(line) for line in text.split("\n")]
    if lines[-1]:
        lines[-1] += "    (no line end)"
    else:
        lines.pop()
    return lines


def _visible(line: str) -> str:
    """Write what cannot be seen as an escape: shown as it is, it could take over the terminal."""
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in line
    )
