"""The ways a run may go at a decision, asked of the engine's own routing functions.

The routing asks rule after rule whether it applies. Here the answer is given for all combinations
at once; where it is not the same for all, the walk is repeated for each part that answers alike.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from weft.check.proof.truth import Truth
from weft.engine.routing import Route, RoutingRule, Test

#: Routes that are possible under a test: one of the routing functions, for one agent.
Walk: TypeAlias = Callable[[Test], Iterable[Route]]


@dataclass(frozen=True, slots=True)
class Case:
    """Combinations for which every rule that was asked gave the same answer, and what followed."""

    bits: int
    answers: Mapping[int, bool | None]
    routes: tuple[Route, ...]


def cases(walk: Walk, truths: Mapping[int, Truth], full: int) -> Iterator[Case]:
    """Yield the cases that together make up all combinations.

    A rule without an entry in `truths` is judged by a model, which may answer either way.
    """
    waiting: list[Case] = [Case(full, {}, ())]
    while waiting:
        asked = _Asked(waiting.pop(), truths)
        routes = tuple(walk(asked))
        waiting.extend(asked.others)
        yield Case(asked.bits, asked.answers, routes)


class _Asked:
    """A test that narrows the combinations with each new question and notes the other cases."""

    def __init__(self, case: Case, truths: Mapping[int, Truth]) -> None:
        self.bits = case.bits
        self.answers = dict(case.answers)
        self.others: list[Case] = []
        self._truths = truths

    def __call__(self, rule: RoutingRule) -> bool | None:
        if rule.index in self.answers:
            return self.answers[rule.index]
        first, *others = self._parts(rule)
        self.others += [
            Case(bits, {**self.answers, rule.index: answer}, ()) for answer, bits in others
        ]
        self.answers[rule.index], self.bits = first
        return self.answers[rule.index]

    def _parts(self, rule: RoutingRule) -> list[tuple[bool | None, int]]:
        found = self._truths.get(rule.index)
        if found is None:
            return [(None, self.bits)]
        parts = ((True, found.yes), (False, found.no), (None, found.open))
        return [(answer, self.bits & bits) for answer, bits in parts if self.bits & bits]
