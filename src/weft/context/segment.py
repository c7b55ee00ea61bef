"""Segments: the pieces of what an agent is sent, each with its origin and its size."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from weft.engine.state import State
from weft.findings import Json
from weft.spec.agents import CHARACTERS_PER_TOKEN

#: turn: what an agent did in the turn under way, where its context has no history.
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

#: What was not sent, and why: kind, origin, reason, and which names or messages it is.
LeftOut: TypeAlias = Mapping[str, Json]

#: Why something is left out that its reader may not see.
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
    #: What else is to be known: names of variables or tools.
    facts: Mapping[str, Json] | None = None

    @property
    def entry(self) -> dict[str, Json]:
        """What a manifest says about it: everything but the text."""
        entry: dict[str, Json] = {"kind": self.kind, "origin": self.origin, "tokens": self.tokens}
        return {**entry, **self.facts} if self.facts else entry


def over_budget(tokens: int) -> str:
    """Return the reason for leaving out what does not fit a budget."""
    return f"over the budget of {tokens} tokens"


class Budget:
    """What is left of a number of tokens. Sizes are counted, so that no text is joined twice."""

    def __init__(self, tokens: int | None, *, used: int = 0, copies: int = 1) -> None:
        #: Characters: as many as `estimate` takes for these tokens. None: there is no limit.
        self._left = None
        if tokens is not None:  # A text that occurs several times counts as often.
            self._left = (tokens * CHARACTERS_PER_TOKEN - used) // max(copies, 1)

    def take(self, characters: int) -> bool:
        """Take characters if there are so many left, and tell whether there were."""
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


# -- the values that stand in a prompt

#: The variables that every run has, and the fields of its state that hold them.
_BUILT_IN: Final = {
    "app_id": "app",
    "enterprise_id": "app",
    "user_id": "user",
    "chat_id": "run",
    "workflow_name": "workflow",
}


def value_of(state: State, values: Mapping[str, Json], name: str) -> Json:
    """Return the value of a variable, or of a built-in one; None if it has none."""
    built_in = _BUILT_IN.get(name)
    return values.get(name) if built_in is None else getattr(state, built_in)


def values_of(state: State, turn: int) -> dict[str, Json]:
    """Return every value that a turn sees: of the declared variables and the built-in ones."""
    built_in = {name: getattr(state, field) for name, field in _BUILT_IN.items()}
    return {**state.values_of(turn), **built_in}


def shown(value: Json) -> str:
    """Return a value as it stands in a prompt."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
