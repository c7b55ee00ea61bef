"""Forty planted mistakes of a model: what catches each before a promotion, and that good packages
raise no questions."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from generator_mutations import planted
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.generator.judge.offer import Offer, make_offer

#: What must be prevented at least.
LEAST = 34


def offer(plan: Any, outputs: Any, answers: dict[str, str] | None = None) -> Offer:
    return make_offer(plan, outputs, answers or {}, simulate, run_generated_scenarios)


def caught_by(made: Offer) -> set[str]:
    """Return the codes of errors and questions, and "left out"."""
    lines = [*made.findings, *made.questions.values()]
    codes = {line.split(": ", 1)[1].split(" ", 1)[0] for line in lines}
    return codes | ({"left out"} if made.left_out else set())


@pytest.mark.parametrize(("name", "variant"), planted.GOOD)
def test_good_package_raises_no_question(name, variant):
    made = offer(*planted.good(name, variant))
    assert (made.findings, dict(made.questions), made.left_out) == ((), {}, ())
    assert made.promotable


@cache
def effect(number: int) -> tuple[str, frozenset[str]]:
    """Return what becomes of a mistake, and what it is found by."""
    made = offer(*planted.spoilt(planted.mistakes()[number]))
    found = frozenset(caught_by(made))
    return ("prevented" if not made.promotable else "shown" if found else "missed"), found


@pytest.mark.parametrize("number", range(40), ids=[each["id"] for each in planted.mistakes()])
def test_mistake_is_caught(number):
    mistake = planted.mistakes()[number]
    became, found = effect(number)
    assert became == mistake["becomes"]
    assert mistake.get("by") in {*found, None}, found


def test_enough_mistakes_are_prevented():
    listed = [mistake["id"] for mistake in planted.mistakes()]
    assert len(listed) == len(set(listed)) == 40
    became = Counter(effect(number)[0] for number in range(40))
    assert became["prevented"] >= LEAST
    assert became == Counter(mistake["becomes"] for mistake in planted.mistakes())


def test_answered_question_does_not_prevent_promotion():
    plan, outputs = planted.spoilt(planted.mistakes()[0])
    (key,) = offer(plan, outputs).questions
    made = offer(plan, outputs, {key: "one record for each patient"})
    assert made.promotable
    assert made.data()["questions"][0]["answer"] == "one record for each patient"
    assert "Meant so: one record for each patient" in made.summary()["questions"][0]
