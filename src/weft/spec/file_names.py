"""Names of files in a package: which are safe on every system, and which are never read."""

from typing import Final

#: How deep files nest, and how long a name may be.
MAX_DEPTH: Final = 8
_MAX_SEGMENT: Final = 200
_MAX_NAME: Final = 500

_FORBIDDEN: Final = frozenset('<>:"|?*\\/')
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}
)
_LEFTOVER_ENDS: Final = ("~", ".swp", ".swo", ".pyc", ".tmp", ".bak", ".orig")
_LEFTOVERS: Final = frozenset({"thumbs.db", "desktop.ini", "__pycache__"})


def is_passed_over(segment: str) -> bool:
    """Tell whether a file or folder is hidden, made by a tool, or left behind by an editor."""
    name = segment.lower()
    hidden = name.startswith(".") or (name.startswith("#") and name.endswith("#"))
    return hidden or name.endswith(_LEFTOVER_ENDS) or name in _LEFTOVERS


def name_error(name: str) -> str | None:
    """Say why a name cannot stand in a package, or None if it can.

    What is refused here could lead out of the folder, or mean another file on another system.
    """
    if name.startswith("/") or name[1:2] == ":":
        return "is an absolute name"
    if "\\" in name:
        return "has a backslash in it"
    segments = name.split("/")
    if ".." in segments:
        return "leads out of the package"
    if len(segments) > MAX_DEPTH + 1:
        return f"is nested more than {MAX_DEPTH} folders deep"
    fault = next((fault for fault in map(segment_error, segments) if fault), None)
    if fault is None and len(name.encode()) > _MAX_NAME:
        return f"is longer than {_MAX_NAME} bytes"
    return fault


def segment_error(segment: str) -> str | None:
    """Say why one part of a name, or the name of a package, is refused; None if it is not."""
    if not segment or segment != segment.strip() or segment.endswith("."):
        return "has an empty part, or one that begins or ends with a blank or ends with a dot"
    if not segment.isprintable() or not _FORBIDDEN.isdisjoint(segment):
        return "has characters that file names cannot have on every system"
    if segment.partition(".")[0].lower() in _DEVICES:
        return "is the name of a device on some systems"
    if len(segment.encode()) > _MAX_SEGMENT:
        return f"has a part of more than {_MAX_SEGMENT} bytes"
    if is_passed_over(segment):
        return "is hidden, made by a tool or left behind by an editor"
    return None
