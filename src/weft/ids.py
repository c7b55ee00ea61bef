"""Names of things and of files: how they look, how they are compared, which are reserved."""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from hashlib import sha256
from typing import Final

AGENT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
SNAKE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
#: `module:function`, as a pattern that JSON Schema can say as well.
FUNCTION_NAME: Final = "[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*"
#: `module:name` with dots in the name as well, or `local:NAME`.
OBJECT_NAME: Final = "[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*"
OBJECT_REF: Final = re.compile(rf"{OBJECT_NAME}\Z")
FUNCTION_REF: Final = re.compile(rf"{FUNCTION_NAME}\Z")

#: Comparing letter by letter is slow: among more candidates only the same word is looked for.
MOST_COMPARED: Final = 500

#: How alike two words are that are taken for one, from 0 to 1, and the shortest part of a word
#: that still tells which word it is.
_ALIKE: Final = 0.75
_SHORTEST_PART: Final = 3

#: Targets a handoff may name besides an agent.
USER: Final = "user"
TERMINATE: Final = "terminate"

#: The name of the question whether a tool of a server, or a service, may be called; what follows
#: says which.
CALL_APPROVAL: Final = "approve_tool_call"

#: Prefixes of the publisher of an artifact that no agent published.
OUTSIDE: Final = ("user:", "schedule:")

#: Variables every run has without declaring them; `enterprise_id` is an older name of `app_id`.
BUILT_IN_VARIABLES: Final = frozenset(
    {"app_id", "enterprise_id", "user_id", "chat_id", "workflow_name"}
)

#: The variables that name the tenant.
TENANT_VARIABLES: Final = ("app_id", "enterprise_id")


def slug(text: str) -> str:
    """Reduce a name to lower-case letters and digits, so that spellings of one name compare equal.

    >>> slug("Context-Aware Routing") == slug("ContextAwareRouting")
    True
    """
    return re.sub(r"[^a-z0-9]", "", text.lower())


def join_names(names: Sequence[str], most: int = 4) -> str:
    """Return names joined by commas; of many, the first ones and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate a person most likely meant by `name`, or None if none is close."""
    known = sorted(set(candidates))
    wanted = slug(name)
    close = [candidate for candidate in known if slug(candidate) == wanted]
    if not close and len(known) <= MOST_COMPARED:
        alike = get_close_matches(name, known, n=3, cutoff=0.6)
        close = [candidate for candidate in alike if _is_close(name, candidate)]
    return close[0] if close else None


def suggestion(name: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the hint for an unknown name: the one probably meant, or else the known names."""
    near = nearest(name, known)
    if near:
        return f"did you mean {near}?"
    return otherwise or f"available: {', '.join(known) or 'none'}"


def _is_close(name: str, other: str) -> bool:
    """Return whether two words are alike enough to be taken for one; a far guess misleads.

    A slip of the finger, letters in another order, or a word cut short: fin for finance.
    """
    short, long = sorted((name.lower(), other.lower()), key=len)
    cut = len(short) >= _SHORTEST_PART and (long.startswith(short) or long.endswith(short))
    same_letters = sorted(short) == sorted(long)
    return cut or same_letters or SequenceMatcher(None, name, other).ratio() >= _ALIKE


#: How deep files nest, and how long a name may be.
MAX_FOLDERS: Final = 8
_MAX_SEGMENT: Final = 200
_MAX_NAME: Final = 500

_FORBIDDEN: Final = frozenset('<>:"|?*\\/')
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}
)
_LEFTOVER_ENDS: Final = ("~", ".swp", ".swo", ".pyc", ".tmp", ".bak", ".orig")
_LEFTOVERS: Final = frozenset({"thumbs.db", "desktop.ini", "__pycache__"})


def is_ignored_file(segment: str) -> bool:
    """Return whether a file or folder is hidden, made by a tool, or left behind by an editor."""
    name = segment.lower()
    hidden = name.startswith(".") or (name.startswith("#") and name.endswith("#"))
    return hidden or name.endswith(_LEFTOVER_ENDS) or name in _LEFTOVERS


def name_error(name: str) -> str | None:
    """Return why a file name is not allowed in a package, or None if it is allowed.

    Refused names could lead out of the folder, or mean another file on another system.
    """
    if name.startswith("/") or name[1:2] == ":":
        return "is an absolute name"
    if "\\" in name:
        return "has a backslash in it"
    segments = name.split("/")
    if ".." in segments:
        return "leads out of the package"
    if len(segments) > MAX_FOLDERS + 1:
        return f"is nested more than {MAX_FOLDERS} folders deep"
    error = next((error for error in map(segment_error, segments) if error), None)
    if error is None and len(name.encode()) > _MAX_NAME:
        return f"is longer than {_MAX_NAME} bytes"
    return error


def segment_error(segment: str) -> str | None:
    """Return why one part of a name, or the name of a package, is refused, or None."""
    if not segment or segment != segment.strip() or segment.endswith("."):
        return "has an empty part, or one that begins or ends with a blank or ends with a dot"
    if not segment.isprintable() or not _FORBIDDEN.isdisjoint(segment):
        return "has characters that file names cannot have on every system"
    if segment.partition(".")[0].lower() in _DEVICES:
        return "is the name of a device on some systems"
    if len(segment.encode()) > _MAX_SEGMENT:
        return f"has a part of more than {_MAX_SEGMENT} bytes"
    if is_ignored_file(segment):
        return "is hidden, made by a tool or left behind by an editor"
    return None


#: Letters and digits that cannot be confused.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"

#: An id has ten characters of time in milliseconds, then sixteen others, of five bits each.
_TIME_CHARACTERS: Final = 10
_OTHER_CHARACTERS: Final = 16
ID_BITS: Final = 5 * _OTHER_CHARACTERS


def sortable_id(at: int, number: int) -> str:
    """Return an id that sorts by time; `number` has ID_BITS bits that make it unique.

    >>> sortable_id(33, 0)
    '00000000110000000000000000'
    """
    bits = number & ((1 << ID_BITS) - 1) | at << ID_BITS
    last = _TIME_CHARACTERS + _OTHER_CHARACTERS - 1
    return "".join([_ALPHABET[bits >> 5 * place & 31] for place in range(last, -1, -1)])


def derived_id(at: int, *parts: object) -> str:
    """Return the id that belongs to a time and some JSON values: the same for the same ones."""
    text = json.dumps(parts, sort_keys=True)
    return sortable_id(at, int.from_bytes(sha256(text.encode()).digest()))
