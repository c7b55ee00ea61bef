"""Segments: the pieces of a prompt, each with its origin and its size."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from weft.engine.state import State
from weft.findings import Json
from weft.spec.agents import CHARACTERS_PER_TOKEN

#: turn: the messages of the current turn, for an agent whose context has no history.
Kind: TypeAlias = Literal[
    "prompt",
    "variables",
    "literal",
    "board",
    "history",
    "turn",
    "tools",
    "output",
    "state",
    "variable",
    "retrieval",
]

#: Something that was left out: kind, origin, reason, and names or messages.
LeftOut: TypeAlias = Mapping[str, Json]

#: The reason for leaving out what the reader may not see.
HIDDEN: Final = "hidden"


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece: its text, who declared it, and about how many tokens it takes.

    `origin` is the id of a prompt section, `context[N]` for an ingredient the agent declares,
    `standard` for one it has without declaring any, or the event a message comes from.
    """

    kind: Kind
    origin: str
    text: str
    tokens: int
    #: Who speaks: system, user, assistant or tool; empty for schemas, which are not messages.
    role: str = "system"
    #: Names of variables or tools.
    facts: Mapping[str, Json] | None = None

    @property
    def entry(self) -> dict[str, Json]:
        """The entry in the manifest: everything but the text."""
        entry: dict[str, Json] = {"kind": self.kind, "origin": self.origin, "tokens": self.tokens}
        return {**entry, **self.facts} if self.facts else entry


def over_budget(tokens: int) -> str:
    """Return the reason for leaving out what does not fit a budget."""
    return f"over the budget of {tokens} tokens"


class Budget:
    """The remaining tokens of a budget, counted by size without joining texts."""

    def __init__(self, tokens: int | None, *, used: int = 0, copies: int = 1) -> None:
        #: The characters that correspond to these tokens by `estimate`. None: no limit.
        self._left = None
        if tokens is not None:  # A text with several copies counts once per copy.
            self._left = (tokens * CHARACTERS_PER_TOKEN - used) // max(copies, 1)

    def take(self, characters: int) -> bool:
        """Take characters from the budget; return False if too few are left."""
        if self._left is None:
            return True
        fits = characters <= self._left
        if fits:
            self._left -= characters
        return fits


def fitting_lines(heading: str, lines: Iterable[str], tokens: int | None) -> list[str]:
    """Return the first lines that fit a budget together with their heading."""
    budget = Budget(tokens, used=len(heading))
    return list(takewhile(lambda line: budget.take(len(line) + 1), lines))


# -- values in a prompt

#: The variables that every run has, and the fields of its state that hold them.
_BUILT_IN: Final = {
    "app_id": "app",
    "enterprise_id": "app",
    "user_id": "user",
    "chat_id": "run",
    "workflow_name": "workflow",
}


def value_of(state: State, values: Mapping[str, Json], name: str) -> Json:
    """Return the value of a declared or built-in variable; None if it has none."""
    built_in = _BUILT_IN.get(name)
    return values.get(name) if built_in is None else getattr(state, built_in)


def values_of(state: State, turn: int) -> dict[str, Json]:
    """Return the values of all declared and built-in variables in a turn."""
    built_in = {name: getattr(state, field) for name, field in _BUILT_IN.items()}
    return {**state.values_of(turn), **built_in}


def shown(value: Json) -> str:
    """Return a value as text for a prompt."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
