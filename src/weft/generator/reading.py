"""What a request to an agent of the Generator holds: the variables it is shown, by name."""

import json
from typing import Final, cast

from weft.findings import Json
from weft.ports.model import ModelRequest

_HEADING: Final = "[CONTEXT VARIABLES]"


def listed_values(request: ModelRequest) -> dict[str, Json]:
    """Return the objects and lists among the variables that an agent is shown.

    Each stands in a line of its own, as JSON; texts are passed over, since one of several lines
    could look like any other variable. What users say is in other messages and is not looked at.
    """
    values: dict[str, Json] = {}
    for message in request.messages:
        if message["role"] != "system":
            continue
        _, found, listing = (message["content"] or "").rpartition(f"{_HEADING}\n")
        # Texts inside of JSON may have other signs that end lines.
        for line in listing.split("\n") if found else ():
            name, value = _read(line)
            if isinstance(value, dict | list):
                values[name] = cast("Json", value)
    return values


def _read(line: str) -> tuple[str, object]:
    """Read `name: value` or `name (what it is): value`."""
    name, _, _ = line.partition(" " if "(" in line.partition(":")[0] else ":")
    at = min((it for it in (line.find(": {"), line.find(": [")) if it >= 0), default=-1)
    if at < 0:
        return name, None
    try:
        return name, json.loads(line[at + 2 :])
    except ValueError:
        return name, None


def said_by_user(request: ModelRequest) -> str:
    """Return what the user has said so far, one message after the other."""
    said = [it["content"] or "" for it in request.messages if it["role"] == "user"]
    return "\n\n".join(said)
