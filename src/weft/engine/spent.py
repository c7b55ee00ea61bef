"""What the models of a run took, added up."""

from typing import NamedTuple

from weft.engine.events import Usage


class Spent(NamedTuple):
    """What the models of a run took so far; what nobody knows makes the sums incomplete."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    #: How many calls have no known price, and how many have tokens that nobody counted.
    unpriced: int = 0
    uncounted: int = 0

    def plus(self, usage: Usage) -> "Spent":
        """Add one call."""
        calls, taken, given, cost, unpriced, uncounted = self
        return Spent(
            calls + 1,
            taken + (usage.input_tokens or 0),
            given + (usage.output_tokens or 0),
            cost + (usage.cost_usd or 0.0),
            unpriced + (usage.cost_usd is None),
            uncounted + (None in (usage.input_tokens, usage.output_tokens)),
        )
