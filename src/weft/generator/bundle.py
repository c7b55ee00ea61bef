"""The bundle: the files of all packages that a generation offers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.generator.draft import Draft
from weft.generator.judge.guarantee import REQUIREMENTS
from weft.generator.names import pascal_case
from weft.generator.plans.split import pack_of
from weft.generator.traceability import traceability
from weft.packages.text.documents import dump
from weft.packages.writer import file_texts
from weft.spec.plan import ActionPlan

#: Beside what a package declares: its plan, and the lines that each element of the plan led to.
PLAN_FILE: Final = "action_plan.json"
TRACE_FILE: Final = "traceability.json"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Packages by name with their files, and the pack that lists them if there are several."""

    packages: Mapping[str, Mapping[str, str]]
    #: Name and text of the file of the pack.
    pack: tuple[str, str] | None = None


def make_bundle(plan: ActionPlan, drafts: Iterable[Draft]) -> Bundle:
    """Return the files of every workflow as they are written."""
    packages = {draft.name: package_files(plan, draft) for draft in drafts}
    pack = pack_of(plan)
    if pack is None:
        return Bundle(packages)
    name = f"{pascal_case(pack.pack_name, 'Pack')}.json"
    return Bundle(packages, (name, dump(pack.model_dump(mode="json", by_alias=True), "json")))


def package_files(plan: ActionPlan, draft: Draft) -> dict[str, str]:
    """Return all files of one package."""
    files = {**file_texts(draft.spec), **draft.code, **draft.tests}
    if draft.requirements:
        files[REQUIREMENTS] = "".join(f"{name}\n" for name in draft.requirements)
    record = plan.model_dump(mode="json", by_alias=True)
    files[PLAN_FILE] = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    traced = traceability(plan, files)
    return {**files, TRACE_FILE: json.dumps(traced, ensure_ascii=False, indent=2) + "\n"}
