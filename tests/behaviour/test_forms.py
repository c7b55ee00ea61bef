# ruff: noqa: E501 - forms have one line for each step
"""Forms become packages without findings, and what a form says happens in a run."""

import asyncio
import time
from pathlib import Path

import pytest
from coverage import Coverage

from support.form_play import CLINIC, FORMS, faults, form, offered, package_of, played
from support.generator_plans import skeleton_plan
from weft.generator.forms.form import example_form, form_plan, read_form
from weft.generator.forms.skeleton import open_places
from weft.packages.reader import Package
from weft.ports.scope import Scope
from weft.spec.patterns import PATTERNS
from weft.testing import ScriptedModel, host_for

BRIEFS = Path(__file__).parents[2] / "examples/briefs"
ME = Scope("shop", "ada")
#: CPU in seconds; counting lines makes it slower.
MOST_SECONDS = 4.0 if Coverage.current() else 1.0


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_gives_a_package_without_findings_whose_scenarios_pass(file, tmp_path):
    begun = time.process_time()
    package = package_of(form_plan(read_form(str(file), file.read_text("utf-8"))), tmp_path)
    found, results = faults(tmp_path), played(package)
    assert time.process_time() - begun < MOST_SECONDS
    assert found == []
    assert results
    assert not any(results.values()), results


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_is_promotable_without_findings_and_questions(file):
    given = read_form(str(file), file.read_text("utf-8"))
    made = offered(form_plan(given))
    assert (made.findings, dict(made.questions), made.promotable) == ((), {}, True)
    [runs] = made.scenarios.values()
    assert len(runs) == len(given.scenarios)
    assert [run for run in runs if run.differences or run.rests_on] == []


NO_CHAT = """
workflow: Orders
description: Takes orders.
start: {path: x/y, fields: [b]}
record: Orders
data: {src: {from: database, collection: Src, shared: true, fields: [d, b]}}
steps:
  - {name: Read, by: agent, task: T., writes: [d], tell: It is read., outcomes: {done: Sort, other: Read}}
  - {name: Sort, by: agent, task: T., reads: [src, b], outcomes: {done: end}}
"""


def test_a_form_without_a_chat_tells_and_reads_what_the_start_brings():
    made = offered(form_plan(form(NO_CHAT)))
    assert (made.findings, dict(made.questions), made.promotable) == ((), {}, True)


def test_the_examples_follow_all_nine_patterns():
    plans = [form_plan(form(file.read_text("utf-8"))) for file in FORMS]
    followed = [plan.selection.workflows[0].pattern_name for plan in plans]
    assert followed[:9] == [pattern.title for pattern in PATTERNS]


def test_the_form_with_explanations_is_an_example_that_works(tmp_path):
    package = package_of(form_plan(form(example_form("Returns"))), tmp_path)
    assert package.name == "Returns"
    assert faults(tmp_path) == []
    assert not any(played(package).values())


ELEVEN_LINES = {
    "hiring": """
workflow: Hiring
description: Three rounds of interviews, each of which can be the last one.
record: Candidates
steps:
  - {name: Cv, by: agent, task: Read the CV., writes: [cv_summary], outcomes: {go_on: Interview, stop: end}}
  - {name: Interview, by: person, who: "role:interviewer", shows: [cv_summary], writes: [notes], outcomes: {go_on: Hr, stop: end}}
  - {name: Hr, by: person, who: "role:hr", shows: [notes], outcomes: {offer: end, refuse: end}}
scenarios:
  - {says: My CV., takes: {Cv: stop}, expect: {route: [Cv], requests: {}}}
  - {says: My CV., takes: {Cv: go_on, Interview: stop}, expect: {route: [Cv, Interview]}}
  - {says: My CV., takes: {Cv: go_on, Interview: go_on, Hr: offer}}
""",
    "refunds": """
workflow: Refunds
description: Refunds of customers, above 200 by a manager.
record: Refunds
steps:
  - {name: Desk, by: agent, task: Find out the amount., asks_back: true, writes: [order, amount: float], outcomes: {complete: Limit}}
  - {name: Limit, by: agent, task: Repeat the order., reads: [order], outcomes: {"amount > 200": Manager, checked: Payout}}
  - {name: Manager, by: person, who: "role:manager", shows: [order, amount], tell: "Refund {decision}.", outcomes: {granted: Payout, refused: end}}
  - {name: Payout, by: agent, task: Say that the money is on its way., reads: [amount], outcomes: {told: end}}
scenarios:
  - {says: [Broken., {replies: {Desk: [{amount: 900.0}]}}], takes: {Desk: complete, Manager: refused}, expect: {shown: Refund refused.}}
  - {says: [Broken., {replies: {Desk: [{amount: 9.0}]}}], takes: {Desk: complete}, expect: {route: [Desk, Limit, Payout]}}
""",
    "clinic": CLINIC,
}


@pytest.mark.parametrize("text", ELEVEN_LINES.values(), ids=ELEVEN_LINES)
def test_forms_of_eleven_lines_work(text, tmp_path):
    package = package_of(form_plan(form(text)), tmp_path)
    assert faults(tmp_path) == []
    assert not any(results := played(package).values()), results


async def records_of(package: Package, replies: list[object]) -> list[object]:
    """Return the record after the first message of two runs of one user."""
    found: list[object] = []
    model = ScriptedModel({"Intake": replies})
    async with host_for(package.spec, model, code=package.code) as host:
        for _ in range(2):
            run = await host.start(package.name, scope=ME, message="Hello")
            await host.settled(run, scope=ME)
            found.append((await host.state(run, scope=ME)).variables["record"])
    return found


def test_a_second_case_of_the_same_user_starts_with_an_empty_record(tmp_path):
    package = package_of(form_plan(form(CLINIC)), tmp_path)
    ask = {"outcome": "ask_user", "agent_message": "Which?", "medication": None}
    replies = [{**ask, "symptoms": "cough"}, {**ask, "symptoms": None}]
    assert asyncio.run(records_of(package, replies)) == [{"symptoms": "cough"}, {}]


@pytest.mark.parametrize("brief", ["24-vague", "26-hostile", "30-toiawase-nihongo"])
def test_a_brief_alone_gives_a_labelled_skeleton_without_findings(brief, tmp_path):
    plan = skeleton_plan((BRIEFS / f"{brief}.txt").read_text("utf-8"), {})
    assert open_places(plan)
    package_of(plan, tmp_path)
    assert faults(tmp_path) == []
