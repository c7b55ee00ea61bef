"""Weighs the built page: compressed JavaScript that is loaded first, and of each part loaded later.

python scripts/web_size.py    exit 1 if the page is larger than its limits
"""

import json
import sys
from collections.abc import Mapping
from gzip import compress
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parents[1] / "src" / "weft" / "page"

#: In kilobytes (1000 bytes): what is loaded first, and any other part.
FIRST: Final = 160
LATER: Final = 120

Manifest = Mapping[str, Mapping[str, Any]]


def size_of(path: Path) -> float:
    """Return the compressed size of a file, in kilobytes."""
    return len(compress(path.read_bytes())) / 1000


def with_imports(manifest: Manifest, name: str) -> set[str]:
    """Return the script of a part, and the scripts it imports before it runs."""
    found: set[str] = set()
    left = [name]
    while left:
        part = manifest[left.pop()]
        if part["file"] not in found:
            found.add(part["file"])
            left += part.get("imports", ())
    return {file for file in found if file.endswith(".js")}


def parts_of(page: Path) -> dict[str, float]:
    """Return the size of each part of a page; that which is loaded first is named `first`."""
    manifest: Manifest = json.loads((page / ".vite" / "manifest.json").read_text("utf-8"))
    (entry,) = (name for name, part in manifest.items() if part.get("isEntry"))
    first = with_imports(manifest, entry)
    parts = {"first": first}
    parts |= {
        name: with_imports(manifest, name) - first
        for name, part in manifest.items()
        if part.get("isDynamicEntry")
    }
    # Workers and the frame are in no manifest.
    known = set().union(*parts.values())
    others = [*(page / "assets").glob("*.js"), *(page / "frame").glob("*.*")]
    named = {str(file.relative_to(page)) for file in others}
    parts |= {name: {name} for name in named - known}
    return {name: sum(size_of(page / file) for file in files) for name, files in parts.items()}


def main() -> None:
    """Print the parts that have some weight, and fail if one is too large."""
    sizes = parts_of(PAGE)
    limits = {name: FIRST if name == "first" else LATER for name in sizes}
    for name, size in sorted(sizes.items(), key=lambda part: -part[1]):
        if size >= LATER / 10 or name == "first":
            print(f"{size:7.1f} KB of {limits[name]}  {name}")
    too_large = [name for name, size in sizes.items() if size > limits[name]]
    if too_large:
        sys.exit(f"Too large: {', '.join(too_large)}. Load less at once, or do without a library.")


if __name__ == "__main__":
    main()
