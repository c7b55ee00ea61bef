"""What a request to an agent of the Generator holds: the variables it is shown, by name."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Final, cast

from weft.findings import Json
from weft.generator.steps import STEPS
from weft.ports.model import ModelRequest

#: The variables that are objects or lists, as prompts name them.
_NAMES: Final = frozenset(
    {*(step.writes for step in STEPS), "action_plan", "plan_comments", "package_findings"}
)


def read_card() -> str:
    """Return the format card: what a package is, for the agents that write one."""
    return files("weft.generator").joinpath("format_card.md").read_text(encoding="utf-8")


def listed_values(request: ModelRequest) -> dict[str, Json]:
    """Return the objects and lists among the variables that an agent is shown.

    Each is on a line of its own, as JSON: `name: {...}` or `name (what it is): {...}`. Line breaks
    in texts are escaped there, so that no text can look like another variable. What users say is in
    other messages and is not read.
    """
    return dict(_values(request))


def _values(request: ModelRequest) -> Iterator[tuple[str, Json]]:
    for message in request.messages:
        if message["role"] != "system":
            continue
        # Texts inside JSON may contain other characters that end lines.
        for line in (message["content"] or "").split("\n"):
            name = line.partition(" " if "(" in line.partition(":")[0] else ":")[0]
            if name in _NAMES:
                value = _read(line)
                if isinstance(value, dict | list):
                    yield name, cast("Json", value)


def _read(line: str) -> object:
    """Read the value of `name: value` or `name (what it is): value`."""
    found = [at for at in (line.find(": {"), line.find(": [")) if at >= 0]
    try:
        return json.loads(line[min(found) + 2 :]) if found else None
    except ValueError:
        return None


def said_by_user(request: ModelRequest) -> str:
    """Return what the user has said so far, one message after the other."""
    said = [message["content"] or "" for message in request.messages if message["role"] == "user"]
    return "\n\n".join(said)
