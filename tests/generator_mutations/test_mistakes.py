"""Forty planted mistakes of a model: what catches each before a promotion, and that good packages
raise no questions."""

from typing import Any

import pytest

from generator_mutations import planted
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.generator.offer import Offer, make_offer

#: What must be caught at least, and what catches each mistake: codes, or what is left out.
LEAST = 34
CAUGHT = {
    "key-user-instead-of-case": "GEN012",
    "for-missing": "GEN011",
    "for-wrong-role": "GEN011",
    "outcome-without-rule": "GEN013",
    "rule-to-wrong-agent": "GEN013",
    "tool-never-called": "GEN017",
    "tool-of-plan-missing": "GEN010",
    "agent-missing": "GEN010",
    "unexposed-variable": "EXPO002",
    "hook-without-effect": "GEN019",
    "hook-of-plan-missing": "GEN010",
    "entity-shared": "GEN012",
    "shared-list-of-one-user": "GEN012",
    "wrong-collection": "GEN012",
    "field-missing": "GEN012",
    "teller-not-visible": "GEN014",
    "tool-call-trigger-where-tool-refuses": "GEN019",
    "watch-missing": "GEN016",
    "watched-word-not-matched": "GEN016",
    "watch-leads-elsewhere": "GEN016",
    "wrong-cron": "GEN015",
    "wrong-webhook-path": "GEN015",
    "start-field-missing": "GEN015",
    "answer-without-outcome": "GEN010",
    "outcome-spelled-differently": "GEN010",
    "tool-records-instead-of-searching": "GEN019",
    "tool-returns-a-constant": "GEN019",
    "component-lacks-a-key": "left out",
    "never-not-said": "GEN018",
    "greeting-missing": "GEN014",
    "wrong-threshold": "GEN013",
    "greater-instead-of-at-least": "GEN013",
    "endless-circle": "GEN001",
    "unreachable-agent": "HAND008",
    "loop-never-reset": "GEN001",
    "approver-is-an-agent": "GEN011",
    "service-by-get": "GEN021",
    "on-error-missing": "GEN021",
    "unplanned-service": "GEN020",
}


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


@pytest.mark.parametrize("mistake", planted.mistakes(), ids=lambda item: item["id"])
def test_mistake_is_caught(mistake):
    made = offer(*planted.spoilt(mistake))
    found = caught_by(made)
    expected = CAUGHT.get(mistake["id"])
    assert (expected in found) if expected else not found, found
    assert made.promotable == (found <= {"left out"})


def test_enough_mistakes_are_caught():
    listed = [mistake["id"] for mistake in planted.mistakes()]
    assert len(listed) == len(set(listed)) == 40
    assert len(CAUGHT.keys() & {*listed}) >= LEAST


def test_answered_question_does_not_prevent_promotion():
    plan, outputs = planted.spoilt(planted.mistakes()[0])
    (key,) = offer(plan, outputs).questions
    made = offer(plan, outputs, {key: "one record for each patient"})
    assert made.promotable
    assert made.data()["questions"][0]["answer"] == "one record for each patient"
    assert "Meant so: one record for each patient" in made.summary()["questions"][0]
