"""What an archive may hold, and which of its names are one on some system."""

import unicodedata
from collections.abc import Iterable
from typing import Final

#: Most files of an archive, and their size in all.
MAX_FILES: Final = 2_000
MAX_TOTAL: Final = 64 * 1024 * 1024

#: The name under which an archive says what is in it.
MANIFEST: Final = "manifest.json"


def clash(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that would be the same file on some system, or of which one is in the other.

    Some systems do not tell upper from lower case, or one spelling of an accent from another.
    """
    seen: dict[str, str] = {}
    for name in names:
        folded = _folded(name)
        if folded in seen:
            return seen[folded], name
        seen[folded] = name
    for folded, name in seen.items():
        parent = folded.rpartition("/")[0]
        while parent:
            if parent in seen:
                return seen[parent], name
            parent = parent.rpartition("/")[0]
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
