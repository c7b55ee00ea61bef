"""JSON Schemas of every file, so that editors complete and check what a person writes."""

from typing import Any, Final

from weft.packages.dumping import dump
from weft.packages.layout import FILE_KINDS
from weft.spec.packs import Pack
from weft.spec.part import Part
from weft.spec.plan import ActionPlan

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_MODELS: Final[dict[str, type[Part]]] = {
    **{stem: kind.model for stem, kind in FILE_KINDS.items()},
    "pack": Pack,
    "action_plan": ActionPlan,
}

SCHEMA_NAMES: Final = tuple(_MODELS)


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file."""
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


def schema_files() -> dict[str, str]:
    """Return the text of every schema by file name."""
    return {f"{name}.schema.json": dump(schema(name), "json") for name in _MODELS}
