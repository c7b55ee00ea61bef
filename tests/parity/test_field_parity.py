"""Nothing declared may be inert: every field is proven by a named test or waits for a topic."""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from weft.spec import plan
from weft.spec.packs import Pack
from weft.spec.part import Part
from weft.spec.workflow import WorkflowSpec

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((ROOT / "tests/parity/fields.toml").read_text())
TOPICS = TABLE.pop("topics")
CAPABILITIES = tomllib.loads((ROOT / "tests/parity/capabilities.toml").read_text())

ROOTS = (
    WorkflowSpec,
    Pack,
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
    path = ROOT / file
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def exists(test):
    file, _, name = test.partition("::")
    return name.startswith("test_") and name in functions_of(file)


def test_every_field_is_listed_and_nothing_else():
    assert set(LISTED) == declared_fields()


@pytest.mark.parametrize("field", LISTED)
def test_every_field_is_proven_or_deferred(field):
    said = LISTED[field]
    topic = said.removeprefix("deferred: ")
    assert topic in TOPICS if topic != said else exists(said)


def test_every_topic_is_waited_for():
    assert set(TOPICS) == {said.removeprefix("deferred: ") for said in LISTED.values()} & set(
        TOPICS
    )


@pytest.mark.parametrize("row", [row for row, test in CAPABILITIES.items() if test])
def test_every_capability_names_a_test_that_exists(row):
    assert exists(CAPABILITIES[row])
