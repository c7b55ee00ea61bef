"""Nothing declared may be inert: every field is proven by a named test or waits for a topic."""

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import yaml

from weft.spec import plan
from weft.spec.form import Form
from weft.spec.part import Part
from weft.spec.scenario import Scenario
from weft.spec.workflow import Pack, WorkflowSpec

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((ROOT / "tests/parity/fields.toml").read_text())
TOPICS = TABLE.pop("topics")
CAPABILITIES = tomllib.loads((ROOT / "tests/parity/capabilities.toml").read_text())

#: Draws every kind of every part. That a field is read and written says nothing about what it does,
#: but the word that tells one kind from another does no more than that.
ROUND_TRIP = "test_reader_of_writer_is_identity_for_every_field"
KINDS = ("type", "kind")

BOARD = "tests/behaviour/test_board"
GENERATOR = "tests/unit/generator/test"

#: Fields a test sets through a builder of its file, under a shorter name.
HELPERS = {
    "tests/unit/engine/test_routing.py::test_other_agents_rules_do_not_apply": ("source_agent",),
    "tests/unit/engine/test_routing.py::test_first_true_rule_wins": ("target_agent", "condition"),
    "tests/findings/rules/handoffs.yaml::NAME001 unknown target": ("agent_name",),
    "tests/unit/diagrams/test_mermaid.py::test_a_graph_is_a_flowchart": ("agent_type",),
    "tests/unit/packages/test_seed_examples.py::test_pattern_legend_is_enforced": ("pattern_name",),
    # Plans of the Generator: helpers write the fields, and cut module names into purposes.
    f"{GENERATOR}_split.py::test_a_single_workflow_is_named_after_the_strategy": (
        "workflow_name",
        "module_name",
    ),
    f"{GENERATOR}_plan_rules.py::test_violation_is_reported_at_its_place": (
        "pattern",
        "module_name",
    ),
    f"{GENERATOR}_plan_rules.py::test_violation_across_workflows_is_reported": (
        "is_multi_workflow",
    ),
    # Boards in code: what is given to the builder becomes the field.
    f"{BOARD}_publishing.py::test_unknown_or_invalid_artifact_is_refused": ("schema", "artifacts"),
    f"{BOARD}_package.py::test_code_and_files_say_the_same": ("description",),
    f"{BOARD}_subscriptions.py::test_join_by_a_function": ("function",),
    f"{BOARD}_subscriptions.py::test_a_join_window_of_time_expires_with_an_event": (
        "within_seconds",
    ),
    f"{BOARD}_subscriptions.py::test_a_join_window_of_a_count_expires_with_an_event": (
        "within_count",
    ),
    f"{BOARD}_subscriptions.py::test_batch_by_timeout": ("timeout_seconds",),
    f"{BOARD}_orchestration.py::test_a_schedule_wakes_by_the_clock": (
        "every_seconds",
        "delay_seconds",
    ),
    f"{BOARD}_orchestration.py::test_hooks_may_change_inputs_results_and_artifacts": ("component",),
    f"{BOARD}_orchestration.py::test_hooks_in_their_order": ("components", "hooks"),
    f"{BOARD}_publishing.py::test_an_engine_of_ones_own": ("options",),
    f"{BOARD}_publishing.py::test_best_of_publishes_the_result_with_the_highest_score": ("score",),
    f"{BOARD}_variables.py::test_messages_and_turn_counts_set_variables": ("board",),
    f"{BOARD}_package.py::test_a_board_from_files_runs_the_same": ("function",),
    f"{BOARD}_context.py::test_default_provider_returns_correlation_newest_first": ("context",),
    f"{BOARD}_subscriptions.py::test_each_artifact_of_a_type_wakes_the_agent_and_others_do_not": (
        "agents",
    ),
    f"{BOARD}_publishing.py::test_types_of_one_name_are_distinguished_by_module": ("name",),
}

ROOTS = (
    WorkflowSpec,
    Pack,
    Scenario,
    Form,
    plan.ActionPlan,
    plan.PatternSelectionOutput,
    plan.WorkflowStrategyOutput,
    plan.TechnicalBlueprintOutput,
    plan.ModuleAgentsOutput,
    plan.MermaidSequenceDiagramOutput,
)


def declared_fields():
    """List every field of every model an author can reach."""
    found: dict[type[Part], None] = {}

    def visit(annotation):
        if isinstance(annotation, type) and issubclass(annotation, Part):
            if annotation not in found:
                found[annotation] = None
                for field in annotation.model_fields.values():
                    visit(field.annotation)
            return
        for inner in get_args(annotation):
            visit(inner)

    for root in ROOTS:
        visit(root)
    return {f"{model.__name__}.{name}" for model in found for name in model.model_fields}


LISTED = {
    f"{model}.{name}": said for model, fields in TABLE.items() for name, said in fields.items()
}


@cache
def functions_of(file):
    """Return the source of every function of a test file, decorators included, by name."""
    path = ROOT / file
    text = path.read_text() if path.is_file() else ""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, functions)]
    lines = text.splitlines()
    starts = {
        part.name: min([part.lineno, *(d.lineno for d in part.decorator_list)]) for part in found
    }
    return {part.name: "\n".join(lines[starts[part.name] - 1 : part.end_lineno]) for part in found}


@cache
def corpus_cases(file):
    """Return the text of every case of a corpus of findings, with that of its base, by name."""
    base, *cases = re.split(r"^- case: ", (ROOT / file).read_text(), flags=re.MULTILINE)
    return {case.partition("\n")[0].strip("'"): f"{base}\n{case}" for case in cases}


@cache
def browser_tests(file):
    """Return the source of every browser test of a file, by name."""
    text = (ROOT / file).read_text()
    _, *tests = re.split(r"^test\(", text, flags=re.MULTILINE)
    return {json.JSONDecoder().raw_decode(test)[0]: test for test in tests}


def source_of(test):
    file, _, name = test.partition("::")
    if file.endswith(".yaml"):
        return corpus_cases(file).get(name, "")
    if file.endswith(".mjs"):
        return browser_tests(file).get(name, "")
    source = functions_of(file).get(name, "") if name.startswith("test_") else ""
    cases = (ROOT / file).parent / "cases" / f"{Path(file).stem}.yaml"
    if "CASES[" in source and cases.is_file():
        # The table of the test, which is in a file of its own.
        source += str(yaml.safe_load(cases.read_text()).get(name, ""))
    return source


def proves(test, field):
    """Whether a test exists and speaks of the field; the round trip proves only kinds."""
    source = source_of(test)
    key = field.partition(".")[2].rstrip("_")
    if ROUND_TRIP in test:
        return bool(source) and key in KINDS
    return key in source or key in HELPERS.get(test, ())


def test_every_field_is_listed_and_nothing_else():
    assert set(LISTED) == declared_fields()


@pytest.mark.parametrize("field", LISTED)
def test_every_field_is_proven_or_deferred(field):
    said = LISTED[field]
    topic = said.removeprefix("deferred: ")
    assert topic in TOPICS if topic != said else proves(said, field)


def test_the_round_trip_proves_no_behaviour():
    test = f"tests/properties/test_package_roundtrip.py::{ROUND_TRIP}"
    assert proves(test, "ChatStart.type")
    assert not proves(test, "Agent.agent_type")
    assert not proves(f"tests/properties/nowhere.py::{ROUND_TRIP}", "ChatStart.type")


def test_every_topic_is_waited_for():
    assert set(TOPICS) == {said.removeprefix("deferred: ") for said in LISTED.values()} & set(
        TOPICS
    )


def test_a_browser_test_is_found_by_its_name():
    file = "web/tests/browser/run.test.mjs"
    assert "panel=graph" in source_of(f"{file}::the graph follows the cursor")
    assert not source_of(f"{file}::the graph follows")


def test_every_helper_is_needed():
    assert set(HELPERS) <= set(LISTED.values())


@pytest.mark.parametrize("row", [row for row, tests in CAPABILITIES.items() if tests])
def test_every_capability_names_tests_that_exist(row):
    named = CAPABILITIES[row]
    tests = [named] if isinstance(named, str) else named
    assert [test for test in tests if not source_of(test)] == []
