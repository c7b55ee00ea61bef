"""The bundle: everything a generation offers, worked out from the plan and what models added."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast

from weft.findings import Json
from weft.generator.code.computed import computed_files
from weft.generator.code.hooks import hook_files
from weft.generator.code.requirements import requirements_text
from weft.generator.code.tools import tool_files
from weft.generator.code.ui import ui_files
from weft.generator.compile.compiler import compile_spec
from weft.generator.compile.wiring import wire
from weft.generator.draft import Draft, Replaced
from weft.generator.enrich.comparing import LEFT_OUT, MORE, UNKNOWN
from weft.generator.enrich.overlay import overlay
from weft.generator.names import pascal_case
from weft.generator.outputs import output_of
from weft.generator.split import pack_of, workflow_plans
from weft.generator.steps import STEPS
from weft.generator.traceability import traceability
from weft.generator.workflow_plan import WorkflowPlan
from weft.packages.text.documents import dump
from weft.packages.writer import file_texts
from weft.spec.plan import ActionPlan

#: The agents of the second half whose parts are made, in their order.
MAKERS: Final = tuple(step.agent for step in STEPS[6:-1])

#: Beside what a package declares: the plan it was made from, and what became of each part of it.
PLAN_FILE: Final = "action_plan.json"
TRACE_FILE: Final = "traceability.json"


@lru_cache(maxsize=8)
def _plain(plan_json: str) -> tuple[Draft, ...]:
    return tuple(_draft(it) for it in workflow_plans(ActionPlan.model_validate_json(plan_json)))


def plain_drafts(plan: ActionPlan) -> tuple[Draft, ...]:
    """Return every workflow of a plan as it is without a model."""
    return _plain(plan.model_dump_json(by_alias=True))


def _draft(workflow: WorkflowPlan) -> Draft:
    spec, shapes = compile_spec(workflow)
    code = {
        **tool_files(shapes, spec),
        **computed_files(spec),
        **ui_files(shapes, spec),
        **hook_files(spec),
    }
    return Draft(spec, shapes, code, notes=wire(workflow).notes)


def plain_part(agent: str, drafts: Sequence[Draft]) -> dict[str, Json]:
    """Return what one agent of the second half makes of all workflows, in one output."""
    whole: dict[str, Json] = {}
    for draft in _spoken_of(agent, drafts):
        _join(whole, output_of(agent, draft))
    return whole


def _spoken_of(agent: str, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Return the workflows an output speaks of: settings can be said once, so of the first."""
    return drafts[:1] if agent == "OrchestratorAgent" else drafts


def _join(whole: dict[str, Json], part: Mapping[str, Json]) -> None:
    for key, value in part.items():
        known = whole.get(key)
        if isinstance(known, list) and isinstance(value, list):
            entries = cast("list[Json]", known)
            new = (it for it in cast("list[Json]", value) if it not in entries)
            whole[key] = [*entries, *new]
        elif isinstance(known, dict) and isinstance(value, dict):
            inner = dict(cast("dict[str, Json]", known))
            _join(inner, cast("dict[str, Json]", value))
            whole[key] = inner
        elif key not in whole:
            whole[key] = value


def enriched(
    drafts: Sequence[Draft], outputs: Mapping[str, Mapping[str, Json]]
) -> tuple[tuple[Draft, ...], tuple[Replaced, ...]]:
    """Put what models added into the drafts, as far as it stands; say what does not.

    An output speaks of all workflows at once, so what one of them does not know may be another's.
    """
    made = tuple(drafts)
    replaced: list[Replaced] = []
    for agent in MAKERS:
        output = outputs.get(agent)
        if output is None or output == plain_part(agent, drafts):
            continue
        spoken_of = _spoken_of(agent, made)
        pairs = [overlay(draft, agent, output) for draft in spoken_of]
        made = (*(draft for draft, _ in pairs), *made[len(spoken_of) :])
        replaced += _common([said for _, said in pairs])
    return _own_files(made, drafts), tuple(replaced)


def _own_files(made: Sequence[Draft], plain: Sequence[Draft]) -> tuple[Draft, ...]:
    """Return drafts in which files that several workflows have are each workflow's own again.

    An output names files without their workflow, so whose such a file is meant to be is not known.
    """
    paths = Counter(path for draft in plain for path in draft.code)
    shared = {path for path, number in paths.items() if number > 1}
    return tuple(
        replace(
            draft,
            code={
                path: before.code[path] if path in shared else text
                for path, text in draft.code.items()
            },
        )
        for draft, before in zip(made, plain, strict=True)
    )


def _common(told: Sequence[Sequence[Replaced]]) -> Iterator[Replaced]:
    """Yield what was said of an output, once: what no workflow has taken, or known."""
    found = [it for said in told for it in said if all(_agrees(other, it) for other in told)]
    # Why something did not stay says more than that another workflow has no such thing.
    found.sort(key=lambda it: it.why not in UNKNOWN)
    yield from {it.what: it for it in found}.values()


def _agrees(said: Sequence[Replaced], one: Replaced) -> bool:
    """Tell whether a workflow did not take something either: it said so, or does not know it."""
    if one.why == LEFT_OUT:
        return True
    unknown = [it.what for it in said if it.why in UNKNOWN]
    inside = any(one.what.startswith((f"{it}.", f"{it}:")) for it in unknown)
    return inside or any(it.what in (one.what, MORE) for it in said)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Packages by name, each with its files, and the pack that holds them if there are several."""

    packages: Mapping[str, Mapping[str, str]]
    #: Name and text of the file that lists several packages.
    pack: tuple[str, str] | None = None


def make_bundle(plan: ActionPlan, drafts: Iterable[Draft]) -> Bundle:
    """Return the files of every workflow as they are written."""
    made = {draft.name: package_files(plan, draft) for draft in drafts}
    pack = pack_of(plan)
    if pack is None:
        return Bundle(made)
    name = f"{pascal_case(pack.pack_name, 'Pack')}.json"
    return Bundle(made, (name, dump(pack.model_dump(mode="json", by_alias=True), "json")))


def package_files(plan: ActionPlan, draft: Draft) -> dict[str, str]:
    """Return the whole set of files of one package."""
    files = {**file_texts(draft.spec), **draft.code}
    if draft.requirements:
        files["requirements.txt"] = requirements_text(draft.requirements)
    record = plan.model_dump(mode="json", by_alias=True)
    files[PLAN_FILE] = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    traced = traceability(plan, files)
    return {**files, TRACE_FILE: json.dumps(traced, ensure_ascii=False, indent=2) + "\n"}
