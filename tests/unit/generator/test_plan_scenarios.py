# ruff: noqa: E501 - forms have one line for each step
"""Scenarios of a plan become files: from what is taken follow replies, answers and expectations."""

from typing import Any

import pytest

from support.form_play import CLINIC, draft
from weft.packages.text import documents

FORM = """
workflow: W
description: D.
steps:
  - {name: Ask, by: agent, task: T., asks_back: true, writes: [x], outcomes: {known: Boss, other: end}}
  - {name: Boss, by: person, who: "role:boss", outcomes: {granted: end, again: Ask}}
scenarios:
"""


def scenarios(text: str) -> tuple[list[Any], tuple[str, ...]]:
    made = draft(text)
    return [documents.read_text(name, text).data for name, text in made.tests.items()], made.notes


def test_messages_answers_and_the_route_follow_from_the_outcomes():
    [made], notes = scenarios(
        f"{FORM}  - {{says: [Hi, It is x.], takes: {{Boss: [again, granted]}}}}"
    )
    assert made["message"] == "Hi"
    assert [reply["outcome"] for reply in made["replies"]["Ask"]] == ["ask_user", "known", "other"]
    assert made["steps"][0] == {"say": "It is x."}
    refused, answered = made["steps"][1:3]
    assert refused == {"answer": "ask_boss", "value": {"decision": "again"}, "refused": True}
    assert answered == {"answer": "ask_boss", "value": {"decision": "again"}, "as": "role:boss"}
    assert made["expect"] == {
        "route": ["Ask", "Boss", "Ask"],
        "requests": {"ask_boss": "role:boss"},
        "outcome": "completed",
    }
    assert "scenario_1: Ask is assumed to come to other" in notes


def test_what_the_plan_writes_out_counts():
    [made], _ = scenarios(
        f"{FORM}  - {{says: [Hi, {{user: eve, replies: {{Ask: [{{x: loom}}]}}}}, "
        "{answer: Boss, value: granted, as: role:ceo}], takes: {Ask: known}, "
        "expect: {route: [Ask, ...], shown: [yes]}}"
    )
    assert made["user"] == "eve"
    assert made["replies"]["Ask"][0]["x"] == "loom"
    assert made["steps"][1] == {
        "answer": "ask_boss",
        "value": {"decision": "granted"},
        "as": "role:ceo",
    }
    assert made["expect"]["route"] == ["Ask", "..."]


@pytest.mark.parametrize(
    ("scenario", "note"),
    [
        ("{says: Hi, expect: The boss is asked.}", 'nothing checks "The boss is asked."'),
        ("{says: Hi, takes: {Boss: [again, again, again]}}", "is assumed to come to other"),
    ],
)
def test_what_cannot_be_checked_is_noted(scenario, note):
    _, notes = scenarios(f"{FORM}  - {scenario}")
    assert any(note in said for said in notes), notes


def test_a_watched_word_leads_to_the_step_that_takes_over():
    [_, made, _], _ = scenarios(CLINIC)
    assert made["expect"]["route"] == ["Intake", "RedFlags", "DoctorAlert"]
    assert "Summary" not in made["replies"]
