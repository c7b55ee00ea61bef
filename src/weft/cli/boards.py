"""Boards as people name them: the package, the artifact, the payload, who may see it."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.failure import not_found, usage
from weft.cli.hosting import MOST_NAMED, find_run
from weft.cli.starting import package_to_run
from weft.cli.streams import Streams
from weft.errors import UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.packages.reader import read_package
from weft.ports.board import StoredArtifact
from weft.runtime.board.code import ArtifactTypes, artifact_types
from weft.runtime.host import Host
from weft.spec.providers import MAX_LIMIT

BoardName: TypeAlias = Annotated[
    str, Parameter(name="NAME", help="The package of the board, by name.")
]
ArtifactName: TypeAlias = Annotated[
    str, Parameter(name="ARTIFACT", help="The id of an artifact; its end is enough.")
]

_EXAMPLE: Final = "write fields, title=News, or one JSON text, or --input FILE"


class BoardPackage(NamedTuple):
    """A package that has a board."""

    name: str
    folder: Path
    types: ArtifactTypes
    agents: tuple[str, ...]


def find_board(streams: Streams, typed: str) -> BoardPackage:
    """Return the package a person means; it must have a board."""
    folder = package_to_run(streams, typed)
    spec, name = read_package(folder).spec, folder.resolve().name
    if spec.board is None:
        raise usage(f"{name} has no board", f"it has runs of its own: weft run {name}")
    agents = tuple(it.agent for it in spec.board.agents)
    return BoardPackage(name, folder, artifact_types(spec, spec.board), agents)


def require_known(what: str, name: str, known: Sequence[str]) -> None:
    """Refuse a name that a board does not have."""
    if name not in known:
        near = nearest(name, known)
        there = f"it has: {', '.join(known) or 'none'}"
        raise not_found(
            f"the board has no {what} {name}", f"did you mean {near}?" if near else there
        )


async def find_artifact(host: Host, board: BoardPackage, typed: str) -> StoredArtifact:
    """Return the artifact a person means: by its id, or by the end of it."""
    with suppress(UsageError):
        return await host.artifact(board.name, typed, scope=LOCAL)
    ids = await _ending(host, board, typed) if typed else []
    if not ids:
        see = f"list them: weft board list {board.name}"
        raise not_found(f"there is no artifact {typed} on the board {board.name}", see)
    if len(ids) > 1:
        named = ", ".join(ids[:MOST_NAMED])
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        raise usage(
            f'"{typed}" could be one of {len(ids)} artifacts', f"write more of it: {named}{more}"
        )
    return await host.artifact(board.name, ids[0], scope=LOCAL)


async def _ending(host: Host, board: BoardPackage, end: str) -> list[str]:
    """Return the ids of a board that have an end, the newest first."""
    ids: dict[str, None] = {}
    for offset in count(step=MAX_LIMIT):
        page, total = await host.artifacts(board.name, scope=LOCAL, offset=offset)
        ids.update((it.id, None) for it in page if it.id.endswith(end))
        if offset + MAX_LIMIT >= total:
            break
    return list(ids)


async def find_board_run(host: Host, board: BoardPackage, typed: str) -> str:
    """Return the run of a board that a person means."""
    row = await find_run(host, typed)
    if row.workflow != board.name:
        raise usage(f"{row.run} is a run of {row.workflow}", f"name one of {board.name}")
    return row.run


def read_payload(board: BoardPackage, type_: str, fields: Sequence[str], file: Path | None) -> Json:
    """Return what is to be published: fields one by one, one JSON text, or a file."""
    require_known("artifacts of the type", type_, sorted(board.types.schemas))
    if file is not None and fields:
        raise usage("the payload is given twice", "leave out the fields, or --input")
    if file is not None:
        return _parsed(_file_text(file), str(file))
    if len(fields) == 1 and fields[0].lstrip().startswith(("{", "[")):
        return _parsed(fields[0], "the payload")
    properties = _properties(board.types.schemas[type_])
    payload: dict[str, Json] = {}
    for pair in fields:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise usage(f'"{pair}" is no field', _EXAMPLE)
        if key in payload:
            raise usage(f"{key} is given twice", "keep one of them")
        payload[key] = _value(text, properties.get(key, {}))
    return payload


def _parsed(text: str, what: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except ValueError as error:
        raise usage(f"{what} is no JSON: {error}", 'write an object: {"title": "News"}') from error


def _file_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise not_found(f"{file} cannot be read: {error.strerror}", "name a JSON file") from error
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not text in UTF-8", "write it as JSON in UTF-8") from error


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a type; that of a model refers to its definition."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = schema.get("$defs", {}).get(name, schema)
    return cast("Mapping[str, Any]", found.get("properties", {}))


def _value(text: str, schema: object) -> Json:
    """Read a value as its type wants it: a text stays one, whatever else it could be."""
    try:
        value = cast("Json", json.loads(text))
    except ValueError:
        return text
    kinds = _kinds(schema)
    return text if "string" in kinds and _kind_of(value) not in kinds else value


def _kinds(schema: object) -> set[str]:
    """Return what a value may be, as JSON Schema calls it."""
    if not isinstance(schema, dict):
        return set()
    told = cast("dict[str, Any]", schema)
    own = told.get("type", [])
    found = {own} if isinstance(own, str) else set(own)
    return found.union(*(_kinds(it) for it in told.get("anyOf", [])))


def _kind_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def read_visibility(text: str | None) -> Mapping[str, Json] | None:
    """Return who may see an artifact; what the words mean is the board's matter."""
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        return {"kind": text.strip()}
    return cast("Mapping[str, Json]", _parsed(text, "the visibility"))
