"""The values that stand in a prompt, and how they look there."""

import json
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


def value_of(state: State, name: str) -> Json:
    """Return the value of a variable, declared or built in; None if it has none."""
    built_in = _BUILT_IN.get(name)
    return state.variables.get(name) if built_in is None else getattr(state, built_in)


def values_of(state: State) -> dict[str, Json]:
    """Return every value there is: of the declared variables and the built-in ones."""
    return {**state.variables, **{name: getattr(state, it) for name, it in _BUILT_IN.items()}}


def shown(value: Json) -> str:
    """Return a value as it stands in a prompt."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
