"""Forms for tests: compiled to packages in a folder, checked, and their scenarios run."""

import asyncio
from pathlib import Path

from weft.app.scenarios import run_generated_scenarios, run_scenario
from weft.app.simulation import simulate
from weft.generator.compile.compiler import compile_drafts
from weft.generator.draft import Draft
from weft.generator.forms.form import Form, form_plan, read_form
from weft.generator.judge.offer import Offer, make_offer
from weft.generator.outputs import joined_output
from weft.generator.steps import MAKERS
from weft.packages.reader import Package, read_package
from weft.packages.review import review
from weft.packages.scenarios import read_scenarios
from weft.packages.writer import file_texts
from weft.spec.plan import ActionPlan

FORMS = sorted(Path(__file__).parents[2].joinpath("examples/forms").glob("*.yaml"))
CLINIC = next(file for file in FORMS if "clinic" in file.name).read_text(encoding="utf-8")


def form(text: str) -> Form:
    return read_form("form.yaml", text)


def draft(text: str) -> Draft:
    """Return what a form with one workflow is compiled to."""
    [only] = compile_drafts(form_plan(form(text)))
    return only


def offered(plan: ActionPlan) -> Offer:
    """Return the offer for a plan that is compiled."""
    drafts = compile_drafts(plan)
    outputs = {agent: joined_output(agent, drafts) for agent in MAKERS}
    return make_offer(plan, outputs, {}, simulate, run_generated_scenarios)


def package_of(plan: ActionPlan, root: Path) -> Package:
    """Write the first workflow of a plan below `root`, and read it."""
    made = compile_drafts(plan)[0]
    folder = root / "workflows" / made.name
    for path, text in {**file_texts(made.spec), **made.code, **made.tests}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return read_package(folder)


def faults(root: Path) -> list[str]:
    """Return the findings of the packages below `root`, as `weft check` has them."""
    return [f"{each.code} {each.message}" for each in review(root).findings]


def played(package: Package) -> dict[str, list[str]]:
    """Run the scenarios of a package; return what was otherwise, by their names."""
    return {
        file.name: [
            f"{path}: {each.message} {each.cause}"
            for path, each in asyncio.run(run_scenario(package, file)).findings.items()
        ]
        for file in read_scenarios(package)
    }
