"""Fields of forms and plans: a change of each is in the package, or in what people read."""

from copy import deepcopy
from typing import Any

import pytest

from support.cases import read_cases
from support.form_play import form
from support.plan_play import extended, plan_of, put, two_workflows
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.form import form_plan
from weft.generator.plans.plan import plan_lines
from weft.packages.writer import file_texts
from weft.spec.plan import ActionPlan

CASES = read_cases(__file__)
PLANS = {"one": extended(), "two": two_workflows()}


def packages(plan: ActionPlan) -> str:
    """Return all that is made of a plan: paths, contents and notes, with single spaces."""
    texts: list[str] = []
    for made in compile_drafts(plan):
        for path, text in {**file_texts(made.spec), **made.code, **made.tests}.items():
            texts += [path, text]
        texts += made.notes
    return " ".join(" ".join(texts).split())


def changed(base: str, values: dict[str, Any]) -> tuple[ActionPlan, ActionPlan]:
    """Return a plan before and after a change."""
    return plan_of(deepcopy(PLANS[base])), plan_of(put(deepcopy(PLANS[base]), values))


@pytest.mark.parametrize(
    ("fields", "base", "values", "made"), CASES["test_field_of_a_plan_is_in_the_package"]
)
def test_field_of_a_plan_is_in_the_package(fields: str, base: str, values: Any, made: str):
    before, after = map(packages, changed(base, values))
    assert made not in before, fields
    assert made in after, fields


@pytest.mark.parametrize(
    ("fields", "base", "values", "line"), CASES["test_field_of_a_plan_is_shown_for_approval"]
)
def test_field_of_a_plan_is_shown_for_approval(fields: str, base: str, values: Any, line: str):
    before, after = map(plan_lines, changed(base, values))
    assert line not in before, fields
    assert line in after, fields


@pytest.mark.parametrize(
    ("fields", "base", "old", "new", "made"), CASES["test_field_of_a_form_is_in_the_package"]
)
def test_field_of_a_form_is_in_the_package(fields: str, base: str, old: str, new: str, made: str):
    text = CASES["forms"][base]
    assert old in text
    before, after = (packages(form_plan(form(each))) for each in (text, text.replace(old, new)))
    assert made not in before, fields
    assert made in after, fields
