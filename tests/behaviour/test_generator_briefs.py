"""The thirty briefs: six by replies written by hand, five by a form, the others as skeletons.

`python tests/behaviour/test_generator_briefs.py` writes the plans beside the briefs again.
"""

import asyncio
import json
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from support.contracts import CONTRACTS, tools_are_registered
from weft.app.replies import read_replies
from weft.app.scenarios import run_scenario
from weft.generator.bundle import make_bundle
from weft.generator.compile.compiler import compile_drafts
from weft.generator.designer import DesignerModel
from weft.generator.forms.form import form_plan, read_form
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.plan import plan_hash
from weft.generator.plans.rules import plan_faults
from weft.packages.reader import read_package
from weft.packages.review import review
from weft.packages.scenarios import cases_of, read_scenarios
from weft.packages.workspace import shipped_folder
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.spec.patterns import PATTERNS
from weft.spec.plan import ActionPlan
from weft.spec.scenario import ScenarioCase
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel

FOLDER = Path(__file__).parents[2] / "examples/briefs"
BRIEFS = {file.stem: file for file in sorted(FOLDER.glob("*.txt"))}
REPLIES = {file.name.partition(".")[0]: file for file in sorted(FOLDER.glob("*.replies.yaml"))}
FORMS = {file.name.partition(".")[0]: file for file in sorted(FOLDER.glob("*.form.yaml"))}
SKELETONS = sorted(BRIEFS.keys() - REPLIES.keys() - FORMS.keys())
ME = Scope("app", "ada")
#: The most CPU seconds of one brief; counting lines takes longer.
MOST_SECONDS = 3.0 if Coverage.current() else 1.0
#: What a person answers in a generation.
ANSWERS: dict[str, dict[str, Any]] = {
    "interview": {},
    "mermaid_sequence_diagram": {"plan_acceptance": "accepted"},
    "download": {"promotion": "approved"},
}


def label_of(name: str) -> str:
    """Return how the packages of a brief are made, as the README says it."""
    if name in REPLIES:
        return "model replies written by hand"
    return "form" if name in FORMS else "skeleton"


@cache
def generated(name: str) -> tuple[dict[str, Any], float]:
    """Return the variables at the end of a generation from free text, and the CPU it took."""
    generator = read_package(shipped_folder() / "Generator")
    model: Model = DesignerModel()
    if name in REPLIES:
        model = ScriptedModel(read_replies(REPLIES[name]))

    async def played() -> dict[str, Any]:
        async with host_for(generator.spec, model, code=generator.code) as host:
            text = BRIEFS[name].read_text("utf-8")
            run = await host.start("Generator", scope=ME, message=text)
            while (await host.settled(run, scope=ME)).status == "waiting":
                for request in await host.requests(scope=ME, run=run):
                    shown = request.payload or {}
                    answer = ANSWERS[str(request.tool)]
                    if "plan_acceptance" in answer:
                        answer = {**answer, "plan_hash": shown["plan_hash"]}
                    await host.deliver(run, Answer(request.id, answer), scope=ME)
            state = await host.state(run, scope=ME)
            assert state.outcome == "completed", state.reason
            return dict(state.variables)

    begun = time.process_time()
    values = asyncio.run(asyncio.wait_for(played(), 60))
    assert not isinstance(model, ScriptedModel) or model.left == 0, "replies that nobody asked for"
    return values, time.process_time() - begun


def formed(name: str) -> tuple[ActionPlan, dict[str, dict[str, str]]]:
    """Return the plan of a form, and its packages."""
    file = FORMS[name]
    plan = form_plan(read_form(file.name, file.read_text("utf-8")))
    bundle = make_bundle(plan, compile_drafts(plan))
    return plan, {package: dict(files) for package, files in bundle.packages.items()}


def assert_clean(
    packages: dict[str, dict[str, str]], folder: Path, *, has_components: bool = True
) -> None:
    """Write packages into a workspace; they have no findings and fulfil the contracts.

    The compiler writes no components: people see the form of the response schema.
    """
    for name, files in packages.items():
        for path, text in files.items():
            file = folder / "workflows" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    found = review(folder)
    assert [package.name for package in found.packages] == sorted(packages)
    assert found.findings == ()
    for name in packages:
        for contract in CONTRACTS:
            if has_components or contract is not tools_are_registered:
                contract(folder / "workflows" / name)


def assert_scenarios_pass(folder: Path) -> list[ScenarioCase]:
    """Run the scenarios of all packages, with their code; return the cases."""
    cases: list[ScenarioCase] = []
    for home in sorted((folder / "workflows").iterdir()):
        package = read_package(home)
        for file in read_scenarios(package):
            result = asyncio.run(run_scenario(package, file))
            assert not result.findings, [*result.findings.values()]
            assert file.scenario is not None
            cases += [case for _, case in cases_of(file.scenario)]
    return cases


def recorded(name: str) -> Path:
    return FOLDER / f"{name}.plan.json"


def plan_text(plan: ActionPlan) -> str:
    data = plan.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def plan_of(name: str) -> ActionPlan:
    if name in FORMS:
        return formed(name)[0]
    return ActionPlan.model_validate(generated(name)[0]["action_plan"])


def assert_plan_is_recorded(name: str, plan: ActionPlan) -> None:
    assert plan_faults(plan) == ()
    assert recorded(name).read_text("utf-8") == plan_text(plan), "the plan beside the brief differs"


def test_readme_says_how_each_of_the_thirty_briefs_was_made():
    rows = re.findall(r"^\| \[(\S+)\]\(\S+\.txt\) \| ([^|]+?) \|", readme(), re.MULTILINE)
    assert len(BRIEFS) == 30
    assert dict(rows) == {name: label_of(name) for name in BRIEFS}


def readme() -> str:
    return (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", REPLIES)
def test_brief_with_good_replies_gives_the_package_that_was_asked_for(name, tmp_path):
    values, seconds = generated(name)
    bundle, plan = values["bundle"], plan_of(name)
    assert seconds < MOST_SECONDS
    assert bundle["promotable"]
    assert (bundle["errors"], bundle["questions"], bundle["left_out"]) == ([], [], [])
    assert values["compiled_because"] == ""
    assert open_places(plan) == ()
    assert values["repair_round"] == len(read_replies(REPLIES[name]).get("RepairAgent", ())) <= 2
    assert_clean(bundle["packages"], tmp_path)
    assert_plan_is_recorded(name, plan)
    assert values["action_plan_hash"] == plan_hash(plan)
    cases = assert_scenarios_pass(tmp_path)
    assert len(cases) > len(plan.strategy.scenarios) > 1, "and another case of the same user"
    assert_people_are_asked(plan, cases)
    assert_runs_end_early(cases)
    assert_nothing_refused_is_shown(bundle["packages"], cases)


def assert_people_are_asked(plan: ActionPlan, cases: list[ScenarioCase]) -> None:
    """Every approver of the plan is asked in a scenario, and another person is refused there."""
    approvers = {component.tool: component.approver for component in plan.blueprint.ui_components}
    asked = {tool: who for case in cases for tool, who in (case.expect.requests or {}).items()}
    refused = {step.answer for case in cases for step in case.steps if step.refused}
    assert asked == approvers
    assert refused == approvers.keys()


def assert_runs_end_early(cases: list[ScenarioCase]) -> None:
    """A run that is completed early has fewer turns than another one."""
    ended = [case for case in cases if case.expect.outcome == "completed"]
    turns = [len(case.expect.route or case.replies) for case in ended]
    assert min(turns) < max(turns)


def assert_nothing_refused_is_shown(
    packages: dict[str, dict[str, str]], cases: list[ScenarioCase]
) -> None:
    """A reply that a tool refused is not shown; or the workflow has no agent that anybody hears."""
    silent = all(
        json.loads(files["orchestrator.json"]).get("visual_agents") == []
        for files in packages.values()
    )
    assert silent or any(case.expect.never_shown for case in cases)


def test_two_briefs_show_a_mistake_that_a_repair_puts_right():
    rounds = [len(read_replies(file).get("RepairAgent", ())) for file in REPLIES.values()]
    assert sorted(rounds) == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize("name", FORMS)
def test_form_gives_a_package_whose_scenarios_pass(name, tmp_path):
    begun = time.process_time()
    plan, packages = formed(name)
    assert time.process_time() - begun < MOST_SECONDS
    assert open_places(plan) == ()
    assert_clean(packages, tmp_path, has_components=False)
    assert_plan_is_recorded(name, plan)
    assert assert_scenarios_pass(tmp_path)


@pytest.mark.parametrize("name", SKELETONS)
def test_free_text_without_a_model_gives_a_labelled_skeleton(name, tmp_path):
    values, seconds = generated(name)
    plan = plan_of(name)
    assert seconds < MOST_SECONDS
    assert open_places(plan), "what is open is said"
    assert values["bundle"]["summary"]["skeleton"] == [*open_places(plan)]
    assert_clean(values["bundle"]["packages"], tmp_path)
    assert_plan_is_recorded(name, plan)
    assert not any(tool.approver for tool in plan.blueprint.ui_components), "nobody is guessed"


def test_briefs_with_replies_and_forms_have_several_patterns_and_all_five_starts():
    plans = [
        ActionPlan.model_validate_json(recorded(name).read_text("utf-8"))
        for name in (*REPLIES, *FORMS)
    ]
    patterns = {workflow.pattern_id for plan in plans for workflow in plan.selection.workflows}
    assert len(patterns & {pattern.id for pattern in PATTERNS}) >= 5
    starts = {plan.strategy.trigger for plan in plans}
    assert starts == {"chat", "form_submit", "schedule", "database_condition", "webhook"}


if __name__ == "__main__":
    for brief in BRIEFS:
        recorded(brief).write_text(plan_text(plan_of(brief)), "utf-8")
