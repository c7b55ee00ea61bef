"""From a spec to the files of a package, always in the same spelling and order."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.packages.documents import Format
from weft.packages.dumping import dump
from weft.packages.layout import FILE_KINDS, FileKind
from weft.packages.staging import create_folder
from weft.spec.canonical import plain
from weft.spec.part import JsonValue
from weft.spec.workflow import WorkflowSpec

#: From a package in `workflows/` of a workspace to the schemas beside that folder.
_SCHEMAS: Final = "../../schemas"


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
    schema = schema_pointer(stem)
    if form == "json":
        return dump({"$schema": schema, **data}, "json")
    return f"# yaml-language-server: $schema={schema}\n{dump(data, 'yaml')}"


def schema_pointer(stem: str) -> str:
    """Return where the schema of a file is, seen from a package in a workspace."""
    return f"{_SCHEMAS}/{stem}.schema.json"


def write_package(folder: Path, spec: WorkflowSpec, code: Mapping[str, bytes]) -> None:
    """Write a new package folder, whole or not at all."""
    texts = {name: text.encode() for name, text in file_texts(spec).items()}
    create_folder(folder, {**texts, **code})


def _content(kind: FileKind, data: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {}
    for field, inner in kind.holds.items():
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
