"""Packages that were generated and not promoted: checked again, as they are in their folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from weft.app.promotion import bundle_packages
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.errors import UsageError
from weft.findings import Finding
from weft.generator.bundle import Bundle
from weft.generator.conformance import question_key
from weft.generator.draft import Draft
from weft.generator.offer import Offer, as_text, judge
from weft.generator.split import workflow_plans
from weft.packages.reader import read_package
from weft.spec.plan import ActionPlan


def check_staged(
    plan: ActionPlan, bundle: Mapping[str, Any], folder: Path
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return the errors of the packages in a folder, and the questions that have no answer."""
    offer = staged_offer(plan, bundle, folder)
    return offer.verdict.errors, offer.unanswered


def staged_offer(
    plan: ActionPlan,
    bundle: Mapping[str, Any],
    folder: Path,
    answers: Mapping[str, str] | None = None,
) -> Offer:
    """Return the packages in a folder as an offer; `answers` are those to further questions.

    The code of the packages is read and not executed.
    """
    pack = cast("Mapping[str, str] | None", bundle.get("pack"))
    written = Bundle(bundle_packages(bundle), (pack["file"], pack["text"]) if pack else None)
    drafts = [_draft(folder / workflow.name) for workflow in workflow_plans(plan)]
    judged = judge(plan, drafts, written, simulate, run_generated_scenarios)
    asked = cast("list[Mapping[str, Any]]", bundle.get("questions") or [])
    answered = {each["key"]: each["answer"] for each in asked if each["answer"]}
    return Offer(
        written,
        judged.verdict,
        findings=tuple(map(as_text, judged.verdict.errors)),
        questions={question_key(finding): as_text(finding) for finding in judged.questions},
        answers={**answered, **(answers or {})},
        scenarios=judged.scenarios,
    )


def _draft(folder: Path) -> Draft:
    if not folder.is_dir():
        raise UsageError(
            f"the package {folder.name} is missing in {folder.parent}",
            hint="put it back, or delete the folder: it is written again as it was generated",
        )
    package = read_package(folder)
    code = {path: raw.decode("utf-8-sig") for path, raw in package.code.items()}
    tests = {path: raw.decode("utf-8-sig") for path, raw in package.tests.items()}
    return Draft(package.spec, code, tests)
