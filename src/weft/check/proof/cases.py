"""The ways a run may go at a decision, asked of the engine's own routing functions.

The routing asks rule after rule whether it applies. Here the answer is given for many combinations
at once: where a rule applies to some of them for certain, the walk is made once for these and once
for the others.
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
    """Combinations, which rules held for them, and the routes that are then possible.

    None means that the rule may apply to some of the combinations and to none for sure.
    """

    bits: int
    held: Mapping[int, bool | None]
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
        yield Case(asked.bits, asked.held, routes)


class _Asked:
    """A test that narrows the combinations with each new question and notes the other cases."""

    def __init__(self, case: Case, truths: Mapping[int, Truth]) -> None:
        self.bits = case.bits
        self.held = dict(case.held)
        self.others: list[Case] = []
        self._truths = truths

    def __call__(self, rule: RoutingRule) -> bool | None:
        if rule.index not in self.held:
            (answer, bits), *others = self._parts(rule)
            for other, rest in others:
                self.others.append(Case(rest, {**self.held, rule.index: other}, ()))
            self.held[rule.index], self.bits = answer, bits
        return self.held[rule.index]

    def _parts(self, rule: RoutingRule) -> list[tuple[bool | None, int]]:
        truth = self._truths.get(rule.index)
        if truth is None:
            return [(None, self.bits)]
        rest = self.bits & ~truth.yes
        parts = ((True, self.bits & truth.yes), (None if rest & truth.open else False, rest))
        return [(answer, bits) for answer, bits in parts if bits]
