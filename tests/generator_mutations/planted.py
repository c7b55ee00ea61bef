"""The good packages of this folder, and the mistakes that are planted in them."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from weft.generator.plans.plan import make_plan
from weft.spec.plan import ActionPlan

FOLDER = Path(__file__).parent
GOOD = (("clinic", None), ("invoice", None), ("invoice", "webhook"), ("invoice", "schedule"))
_DRAWN = {"workflow_name": "-", "mermaid_diagram": "-"}


@cache
def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def mistakes() -> list[dict[str, Any]]:
    return _read("mistakes")


def good(name: str, variant: str | None = None) -> tuple[ActionPlan, dict[str, Any]]:
    """Return a plan, and the outputs of a model that wrote its package well."""
    found = deepcopy(_read(name))
    edit(found, found["variants"][variant] if variant else ())
    read = ActionPlan.model_validate({**found["plan"], "MermaidSequenceDiagram": _DRAWN})
    parts = (read.selection, read.strategy, read.blueprint, read.modules)
    return make_plan(1, *parts), found["outputs"]


def spoilt(mistake: dict[str, Any]) -> tuple[ActionPlan, dict[str, Any]]:
    """Return a plan, and outputs with one mistake."""
    plan, outputs = good(mistake["of"], mistake.get("variant"))
    edit({"outputs": outputs}, mistake["change"])
    return plan, outputs


def edit(found: dict[str, Any], changes: Sequence[dict[str, Any]]) -> None:
    for change in changes:
        if "part" in change:
            whole = found["plan"] if change["part"] == "plan" else found["outputs"][change["part"]]
            _edit_value(whole, change)
        else:
            _edit_file(found["outputs"], change)


def _edit_value(whole: Any, change: dict[str, Any]) -> None:
    *path, last = change["at"]
    for step in path:
        whole = whole[_place(whole, step)]
    place = _place(whole, last)
    if "add" in change:
        whole[place].append(change["add"])
    elif change.get("remove"):
        del whole[place]
    else:
        whole[place] = change["set"]


def _place(whole: Any, step: Any) -> Any:
    """Return a step of a path; a mapping selects the entry of a list with these values."""
    if not isinstance(step, dict):
        return step
    return next(
        number
        for number, entry in enumerate(whole)
        if all(entry.get(key) == value for key, value in step.items())
    )


def _edit_file(outputs: dict[str, Any], change: dict[str, Any]) -> None:
    name = change.get("file") or change["drop"]
    lists = (out.get(key, []) for out in outputs.values() for key in ("tools", "hook_files"))
    listed, file = next(
        (files, file) for files in lists for file in files if file.get("filename") == name
    )
    if "drop" in change:
        listed.remove(file)
        return
    assert change["old"] in file["content"], f"{name} does not contain the text"
    file["content"] = file["content"].replace(change["old"], change["new"])
