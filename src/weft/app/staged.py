"""Packages that were generated and not promoted: checked again, as they are in their folder."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from weft.app.promotion import bundle_packages, staged_bundle
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.catalogue import CATALOGUE
from weft.errors import UsageError
from weft.findings import Finding, Place
from weft.generator.assemble import texts_in
from weft.generator.bundle import Bundle
from weft.generator.code_check.files import code_faults
from weft.generator.code_check.python_code import invisible_sign
from weft.generator.draft import Draft, LeftOut
from weft.generator.judge.conformance import question_key
from weft.generator.judge.guarantee import REQUIREMENTS
from weft.generator.judge.offer import Offer, as_text, judge
from weft.generator.output_models import FORMS
from weft.generator.plans.split import workflow_plans
from weft.packages.reader import Package, read_package
from weft.spec.plan import ActionPlan


def staged_offer(
    plan: ActionPlan,
    bundle: Mapping[str, Any],
    folder: Path,
    answers: Mapping[str, str] | None = None,
) -> Offer:
    """Return the packages in a folder as an offer; `answers` are those to further questions.

    `bundle` is what was generated. The code of the packages is read and not executed.
    """
    staged = bundle_packages(staged_bundle(bundle, folder))
    pack = cast("Mapping[str, str] | None", bundle.get("pack"))
    written = Bundle(staged, (pack["file"], pack["text"]) if pack else None)
    packages = [_read(folder / workflow.name) for workflow in workflow_plans(plan)]
    judged = judge(plan, list(map(_draft, packages)), written, simulate, run_generated_scenarios)
    changed = _changed(bundle_packages(bundle), staged)
    refused = [
        finding
        for package in packages
        for finding in _refused(package, staged[package.name].get(REQUIREMENTS, ""))
    ]
    together = (*judged.verdict.together, *refused, *_unchanged_errors(bundle, changed))
    verdict = replace(judged.verdict, together=together)
    asked = cast("list[Mapping[str, Any]]", bundle.get("questions") or [])
    answered = {each["key"]: each["answer"] for each in asked if each["answer"]}
    pieces = [LeftOut(**piece) for piece in bundle.get("left_out") or ()]
    return Offer(
        written,
        verdict,
        findings=tuple(map(as_text, verdict.errors)),
        questions={question_key(finding): as_text(finding) for finding in judged.questions},
        answers={**answered, **(answers or {})},
        left_out=tuple(
            piece for piece in pieces if not any(piece.file in paths for paths in changed.values())
        ),
        notes=tuple(bundle.get("notes") or ()),
        scenarios=judged.scenarios,
    )


def _changed(
    generated: Mapping[str, Mapping[str, str]], staged: Mapping[str, Mapping[str, str]]
) -> dict[str, set[str]]:
    """Return the files of each package that people have changed, added or removed."""
    return {
        name: {
            path for path in {*files, *staged[name]} if files.get(path) != staged[name].get(path)
        }
        for name, files in generated.items()
    }


def _refused(package: Package, libraries: str) -> Iterator[Finding]:
    """Yield what is refused in generated packages only: invisible characters and unsafe code."""
    for declared in package.files.values():
        if fault := next(filter(None, map(invisible_sign, texts_in(declared.document.data))), None):
            yield _refusal(package, declared.name, fault)
    for path, raw in package.code.items():
        text = raw.decode("utf-8-sig")
        for fault in code_faults(package.spec, path, text, tuple(libraries.split())):
            yield _refusal(package, path, fault)


def _refusal(package: Package, path: str, fault: str) -> Finding:
    rule = CATALOGUE["GEN006"]
    place = Place(f"{package.name}/{path}")
    return Finding(rule.code, rule.severity, f"{path} is refused: {fault}", place, hint=(rule.fix,))


def _unchanged_errors(
    bundle: Mapping[str, Any], changed: Mapping[str, set[str]]
) -> Iterator[Finding]:
    """Yield the errors of the assembly whose files have not changed: the folder does not show them.

    If the assembly has errors, nothing else was checked, and the verdict names no package.
    """
    verdict = cast("Mapping[str, Any]", bundle["verdict"])
    if verdict.get("packages"):
        return
    for error in cast("list[str]", bundle.get("errors") or []):
        place, _, said = error.partition(": ")
        name, _, file = place.partition("/")
        if not any(_concerns(file, path) for path in changed.get(name, ())):
            code, _, message = said.partition(" ")
            yield Finding(code, "error", message, Place(place))


def _concerns(file: str, path: str) -> bool:
    """Return whether a path is a file that a finding names, or that an agent it names writes."""
    form = FORMS.get(file)
    if form is None:
        return path == file
    names = (f"{form.stem}.",) if form.stem else ()
    folders = (f"{form.stem or form.files}/",) if form.files else ()
    return path.startswith((*names, *folders))


def _read(folder: Path) -> Package:
    if not folder.is_dir():
        raise UsageError(
            f"the package {folder.name} is missing in {folder.parent}",
            hint="put it back, or delete the folder: it is written again as it was generated",
        )
    return read_package(folder)


def _draft(package: Package) -> Draft:
    code = {path: raw.decode("utf-8-sig") for path, raw in package.code.items()}
    tests = {path: raw.decode("utf-8-sig") for path, raw in package.tests.items()}
    return Draft(package.spec, code, tests)
