"""Segments: the pieces of what an agent is sent, each with where it is from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.findings import Json

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
    #: Who speaks: system, user, assistant or tool; empty for schemas, which are no message.
    role: str = "system"
    #: What else is to be known: names of variables or tools.
    facts: Mapping[str, Json] | None = None

    @property
    def entry(self) -> dict[str, Json]:
        """What a manifest says about it: everything but the text."""
        entry: dict[str, Json] = {"kind": self.kind, "origin": self.origin, "tokens": self.tokens}
        return {**entry, **self.facts} if self.facts else entry


def over_budget(tokens: int) -> str:
    """Why something is left out that does not fit a budget."""
    return f"over the budget of {tokens} tokens"
