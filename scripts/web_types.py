"""Writes the types of the page: web/src/protocol/frames.ts and web/src/protocol/api.ts.

python scripts/web_types.py            write them
python scripts/web_types.py --check    exit 1 if they are not current
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from json import dumps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import TypeAdapter

from weft.engine.events import KINDS
from weft.server.app import openapi_document
from weft.server.live.commands import AnyCommand
from weft.wire.events import USER_FIELDS, VERSION

FOLDER: Final = Path(__file__).parents[1] / "web" / "src" / "protocol"

_HEAD: Final = "// Written by scripts/web_types.py; `make generate` writes it anew. Do not edit.\n"

#: What is no event and no command; `weft.server.live.frames` and `board_changes` make these.
_DELIVERY: Final = """
/** What every event has around its data. */
export interface Envelope {
  v: number;
  seq: number;
  /** Milliseconds since 1970. */
  ts: number;
  run: string;
  /** 0: of the run itself. */
  turn: number;
  actor: string;
  /** The event that made this one happen; 0: it came from outside. */
  cause: number;
}

interface Live {
  v: number;
  run: string;
  turn: number;
}

/** Streamed text, a model call that is repeated, the progress of a tool. None has a number. */
export type Delta =
  | (Live & { kind: "delta"; data: { call: number; offset: number; text: string } })
  | (Live & { kind: "retry"; data: { call: number; text: string } })
  | (Live & {
      kind: "progress";
      data: { call: number; tool: string; share: number; text: string };
    });

export type Ack =
  | { v: number; kind: "ack"; id: string; ok: true; run?: string; seq?: number; workflow?: string }
  | { v: number; kind: "ack"; id: string | null; ok: false; problem: ProblemAnswer };

/** About the delivery itself. */
export type Control =
  | Ack
  | { v: number; kind: "caught_up" | "boundary" | "snapshot_needed"; run: string; seq: number }
  | { v: number; kind: "artifact"; workflow: string; cursor: string; artifact: ArtifactAnswer }
  | { v: number; kind: "gap"; workflow: string; cursor: string }
  | { v: number; kind: "ping" };

export type Frame = WireEvent | Delta | Control;
"""

Schema = Mapping[str, Any]


def api_types() -> str:
    """Return a type for each schema of the OpenAPI document."""
    schemas = openapi_document()["components"]["schemas"]
    return "\n".join([_HEAD, *(_named(name, schemas[name]) for name in sorted(schemas))])


def frame_types() -> str:
    """Return the types of events, of what is sent beside them, and of commands."""
    imports = 'import type { ArtifactAnswer, ProblemAnswer } from "./api";\n'
    parts: dict[str, str] = {}
    kinds = [_event(name, kind, parts) for name, kind in KINDS.items()]
    union = "\n  | ".join(f"{name}Event" for name in KINDS)
    document = TypeAdapter[object](AnyCommand).json_schema()
    commands = [
        _named(name, schema) for name, schema in document["$defs"].items() if "properties" in schema
    ]
    names = " | ".join(_type(each) for each in document["anyOf"])
    return "\n".join(
        [
            _HEAD,
            imports,
            f"export const VERSION = {VERSION};\n",
            *parts.values(),
            *kinds,
            f"export type WireEvent =\n  | {union};\n{_DELIVERY}",
            *commands,
            f"export type Command = {names};\n",
        ]
    )


# -- events, from their classes


def _event(name: str, kind: type, parts: dict[str, str]) -> str:
    """Return the type of an event; what end users are not sent is optional."""
    lines = _fields(kind, USER_FIELDS.get(name), parts)
    body = f'export interface {name}Event extends Envelope {{\n  kind: "{name}";\n  data: {{\n'
    return "".join(
        [_comment(kind.__doc__), body, *(f"    {line}\n" for line in lines), "  };\n}\n"]
    )


def _fields(kind: type, required: frozenset[str] | None, parts: dict[str, str]) -> Iterator[str]:
    for name, hint in get_type_hints(kind).items():
        mark = "" if required is None or name in required else "?"
        yield f"{name}{mark}: {_hint(hint, parts)};"


def _hint(hint: Any, parts: dict[str, str]) -> str:  # noqa: ANN401 - a type hint
    plain = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in plain:
        return plain[hint]
    if origin is Literal:
        return _union(map(dumps, arguments))
    if origin in (Union, UnionType):
        return _union(_hint(each, parts) for each in arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"[{', '.join(_hint(each, parts) for each in arguments)}]"
    if origin in (tuple, list):
        return _list_of(_hint(arguments[0], parts))
    if origin in (dict, Mapping):
        return f"Record<string, {_hint(arguments[1], parts)}>"
    if is_dataclass(hint) or is_typeddict(hint):
        return _part(hint, parts)
    return "unknown"


def _part(kind: type, parts: dict[str, str]) -> str:
    """Add the type of a part of events; return its name."""
    name = kind.__name__
    if name not in parts:
        parts[name] = ""  # Its place: it stands before what it consists of.
        required = None if is_dataclass(kind) else frozenset[str]()
        lines = [f"  {line}\n" for line in _fields(kind, required, parts)]
        parts[name] = "".join(
            [_comment(kind.__doc__), f"export interface {name} {{\n", *lines, "}\n"]
        )
    return name


# -- the API and commands, from JSON Schema


def _named(name: str, schema: Schema) -> str:
    comment = _comment(schema.get("description"))
    if "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)};\n"
    return f"{comment}export interface {name} {_object(schema)}\n"


def _object(schema: Schema) -> str:
    required = schema.get("required", ())
    lines = [
        f"  {name}{'' if name in required else '?'}: {_type(part)};\n"
        for name, part in schema["properties"].items()
    ]
    return "".join(["{\n", *lines, "}"])


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": reference}:
            name = str(reference).rpartition("/")[2]
            return "unknown" if name == "JsonValue" else name
        case {"anyOf": choices} | {"oneOf": choices}:
            return _union(map(_type, choices))
        case {"const": value}:
            return dumps(value)
        case {"enum": values}:
            return _union(map(dumps, values))
        case {"type": "array", "prefixItems": items}:
            return f"[{', '.join(map(_type, items))}]"
        case {"type": "array"}:
            return _list_of(_type(schema.get("items", {})))
        case {"type": "object", "properties": _}:
            return _object(schema)
        case {"type": "object"}:
            more = schema.get("additionalProperties")
            return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "string" | "boolean" | "null" as name}:
            return str(name)
        case _:
            return "unknown"


# -- shared


def _union(types: Iterator[str]) -> str:
    found = list(dict.fromkeys(types))
    return "unknown" if "unknown" in found else " | ".join(found)


def _list_of(item: str) -> str:
    return f"({item})[]" if " " in item and not item.startswith("Record<") else f"{item}[]"


def _comment(text: str | None) -> str:
    if not text:
        return ""
    lines = [line.strip() for line in text.strip().splitlines()]
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "".join(["/**\n", *(f" * {line}".rstrip() + "\n" for line in lines), " */\n"])


def main(arguments: list[str]) -> int:
    """Write the types, or compare them."""
    old = 0
    for name, text in (("api.ts", api_types()), ("frames.ts", frame_types())):
        path = FOLDER / name
        if arguments != ["--check"]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is not current: run make generate", file=sys.stderr)
            old = 1
    return old


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
