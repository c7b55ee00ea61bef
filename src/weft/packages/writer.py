"""Writing a spec as package files in the current spelling, and the schemas of the files."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from weft.packages.archive.staging import create_folder
from weft.packages.layout import FILE_KINDS, SCENARIO, FileKind
from weft.packages.text.documents import Format, dump
from weft.spec.form import Form
from weft.spec.part import JsonValue, Part
from weft.spec.plan import ActionPlan
from weft.spec.scenario import Scenario
from weft.spec.workflow import Pack, WorkflowSpec, plain

#: From a package in `workflows/` of a workspace to the schemas beside that folder.
_SCHEMAS: Final = "../../schemas"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_MODELS: Final[dict[str, type[Part]]] = {
    **{stem: kind.model for stem, kind in FILE_KINDS.items()},
    "pack": Pack,
    "action_plan": ActionPlan,
    "form": Form,
    SCENARIO: Scenario,
}
SCHEMA_NAMES: Final = tuple(_MODELS)


def file_data(spec: WorkflowSpec) -> dict[str, dict[str, JsonValue]]:
    """Return the data of every file a spec is written to, by stem."""
    data = plain(spec)
    data["exposure"] = {agent: {"variables": list(names)} for agent, names in spec.exposure.items()}
    kinds = [kind for kind in FILE_KINDS.values() if kind.always or data.keys() & kind.holds.keys()]
    return {kind.stem: _content(kind, data) for kind in kinds}


def file_texts(
    spec: WorkflowSpec, *, formats: Mapping[str, Format] | None = None
) -> dict[str, str]:
    """Return the text of every file by name; JSON unless `formats` says otherwise for a stem."""
    chosen = formats or {}
    texts: dict[str, str] = {}
    for stem, data in file_data(spec).items():
        form = chosen.get(stem, "json")
        texts[f"{stem}.{form}"] = file_text(stem, data, form)
    return texts


def file_text(stem: str, data: dict[str, JsonValue], form: Format) -> str:
    """Return the text of one file, pointing editors at its schema."""
    pointer = schema_pointer(stem)
    if form == "json":
        return dump({"$schema": pointer, **data}, "json")
    return f"# yaml-language-server: $schema={pointer}\n{dump(data, 'yaml')}"


def schema_pointer(stem: str) -> str:
    """Return where the schema of a file is, seen from a package in a workspace."""
    return f"{_SCHEMAS}/{stem}.schema.json"


def write_package(folder: Path, spec: WorkflowSpec, code: Mapping[str, bytes]) -> None:
    """Write a new package folder, completely or not at all."""
    texts = {name: text.encode() for name, text in file_texts(spec).items()}
    create_folder(folder, {**texts, **code})


def _content(kind: FileKind, data: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {}
    for field, inner in kind.holds.items():
        if field in kind.seldom and field not in data:
            continue
        if not inner:
            whole = data[field]
            return whole if isinstance(whole, dict) else {}
        here = content
        for step in inner[:-1]:
            deeper = here.setdefault(str(step), {})
            here = deeper if isinstance(deeper, dict) else {}
        empty: JsonValue = {} if field in {"variables", "exposure"} else []
        here[str(inner[-1])] = data.get(field, empty)
    return content


def schema(name: str) -> dict[str, Any]:
    generated = _MODELS[name].model_json_schema(by_alias=True)
    generated["properties"] = {
        "$schema": {"type": "string", "description": "Where editors find this schema."},
        **generated["properties"],
    }
    return {
        "$schema": _DRAFT,
        "$id": f"{name}.schema.json",
        **generated,
        "title": f"{name} of a Weft package",
    }


@cache
def schema_files() -> Mapping[str, str]:
    """Return the texts of the schema files by name, made once: it takes half a second."""
    return {f"{name}.schema.json": dump(schema(name), "json") for name in _MODELS}
