"""The values that stand in a prompt, and how they look there."""

import json
from collections.abc import Mapping
from typing import Final

from weft.engine.state import State
from weft.findings import Json

#: Where a run knows the variables that nobody declares.
_BUILT_IN: Final = {
    "app_id": "app",
    "enterprise_id": "app",
    "user_id": "user",
    "chat_id": "run",
    "workflow_name": "workflow",
}


def value_of(state: State, values: Mapping[str, Json], name: str) -> Json:
    """Return one of the values of variables, or that of a built-in one; None if it has none."""
    built_in = _BUILT_IN.get(name)
    return values.get(name) if built_in is None else getattr(state, built_in)


def values_of(state: State, turn: int) -> dict[str, Json]:
    """Return every value that a turn sees: of the declared variables and the built-in ones."""
    return {**state.values_of(turn), **{name: getattr(state, it) for name, it in _BUILT_IN.items()}}


def shown(value: Json) -> str:
    """Return a value as it stands in a prompt."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
