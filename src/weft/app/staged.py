"""Packages that were generated and not promoted: checked again, as they are in their folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from weft.app.promotion import bundle_packages
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.findings import Finding
from weft.generator.bundle import Bundle
from weft.generator.conformance import question_key
from weft.generator.draft import Draft
from weft.generator.offer import as_text, judge
from weft.generator.split import workflow_plans
from weft.packages.reader import read_package
from weft.spec.plan import ActionPlan


def check_staged(
    plan: ActionPlan, bundle: Mapping[str, Any], folder: Path
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return the errors of the packages in a folder, and the questions that have no answer.

    The code of the packages is read and not executed.
    """
    pack = cast("Mapping[str, str] | None", bundle.get("pack"))
    written = Bundle(bundle_packages(bundle), (pack["file"], pack["text"]) if pack else None)
    drafts = [_draft(folder / workflow.name) for workflow in workflow_plans(plan)]
    judged = judge(plan, drafts, written, simulate, run_generated_scenarios)
    asked = cast("list[Mapping[str, Any]]", bundle.get("questions") or [])
    answered = {question["key"] for question in asked if question["answer"]}
    questions = {question_key(finding): as_text(finding) for finding in judged.questions}
    open_ = {key: text for key, text in questions.items() if key not in answered}
    return judged.verdict.errors, open_


def _draft(folder: Path) -> Draft:
    package = read_package(folder)
    code = {path: raw.decode("utf-8-sig") for path, raw in package.code.items()}
    tests = {path: raw.decode("utf-8-sig") for path, raw in package.tests.items()}
    return Draft(package.spec, code, tests)
