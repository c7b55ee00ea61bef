"""For which combinations of values a condition holds, as the engine's own `decide` answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.engine.conversation.routing import Route, RoutingRule, Test
from weft.engine.variables.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import Condition, names

#: The values of a variable, each with the set of combinations in which it has that value.
Blocks: TypeAlias = tuple[tuple[Json, int], ...]

#: How often one condition is asked before the rest counts as open, and all of them together.
#: Conditions people write need a few dozen questions each, for one false part of an `and` settles
#: it whatever the others are.
MOST_QUESTIONS: Final = 2_000
ALL_QUESTIONS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Truth:
    """The combinations for which a condition holds, does not hold, or is not known to do either."""

    yes: int
    no: int
    open: int


def truth(
    condition: Condition, variables: Mapping[str, Blocks], full: int, most: int = MOST_QUESTIONS
) -> Truth:
    """Ask the condition about every combination, all at once where a part of it decides."""
    found = {True: 0, False: 0, None: 0}
    questions = 0
    free = dict.fromkeys(names(condition), UNKNOWN)
    waiting: list[tuple[int, dict[str, Json]]] = [(full, {})]
    while waiting:
        bits, known = waiting.pop()
        questions += 1
        answer = _ask(condition, {**free, **known})
        undecided = [name for name in free if name not in known]
        if answer is not None or not undecided or questions > most:
            found[answer] |= bits
            continue
        name = undecided[0]
        for value, block in variables[name]:
            if bits & block:
                waiting.append((bits & block, {**known, name: value}))
    return Truth(found[True], found[False], found[None])


def _ask(condition: Condition, values: Mapping[str, Json]) -> bool | None:
    try:
        return decide(condition, values)
    except ExpressionError:
        # Values that cannot be compared: the rules about types speak of that.
        return None


def blocks(answer: Truth) -> Blocks:
    """Return the truth of a condition as the values of a variable that is computed by it."""
    parts = ((True, answer.yes), (False, answer.no), (UNKNOWN, answer.open))
    return tuple((value, bits) for value, bits in parts if bits)


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
