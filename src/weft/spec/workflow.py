"""The root: everything one workflow declares, its plain JSON form, and packs of workflows.

In the plain form what equals its default is left out, so that a field added in a later version of
Weft changes neither the files of older packages nor their digests.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal, TypeAlias, cast, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

from weft.spec.agents import Agent, Handoff
from weft.spec.board import Board
from weft.spec.flow import Flow
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import JsonValue, Name, Part, Text
from weft.spec.tools import Hook, LifecycleTool, McpServer, Tool
from weft.spec.type_field import OutputBinding, OutputModel
from weft.spec.types import TypeExpr, print_type
from weft.spec.variables import Variable


class WorkflowSpec(Part):
    """One workflow."""

    orchestrator: Orchestrator
    agents: tuple[Agent, ...] = ()
    variables: dict[Name, Variable] = Field(default={}, description="By name.")
    exposure: dict[Name, tuple[Name, ...]] = Field(
        default={}, description="Which variables are in which agent's prompt."
    )
    handoffs: tuple[Handoff, ...] = ()
    tools: tuple[Tool, ...] = ()
    lifecycle_tools: tuple[LifecycleTool, ...] = ()
    mcp_servers: tuple[McpServer, ...] = Field(
        default=(), description="Servers whose tools agents may use."
    )
    hooks: tuple[Hook, ...] = ()
    models: tuple[OutputModel, ...] = ()
    registry: tuple[OutputBinding, ...] = ()
    flow: Flow | None = None
    board: Board | None = None


#: The value of a field: a part, a type, a time, JSON, or containers of these.
_Declared: TypeAlias = (
    Part
    | TypeExpr
    | datetime
    | tuple["_Declared", ...]
    | list["_Declared"]
    | dict[str, "_Declared"]
    | JsonValue
)


def plain(part: Part) -> dict[str, JsonValue]:
    """Return the data an author would write for `part`: file keys, defaults left out."""
    data: dict[str, JsonValue] = {}
    for slot in _slots(type(part)):
        value = cast("_Declared", getattr(part, slot.attribute))
        if slot.always or not _equals_default(value, slot.default):
            data[slot.key] = _plain_value(value)
    return data


def digest(spec: WorkflowSpec, code: Mapping[str, bytes]) -> str:
    """Name a workflow by its content: the spec and the code files, by relative path."""
    content = {
        "spec": plain(spec),
        "code": {path: hashlib.sha256(raw).hexdigest() for path, raw in code.items()},
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _FieldSlot:
    """A field of a part: its key, its default, and whether it is always written."""

    attribute: str
    key: str
    default: object
    always: bool


@cache
def _slots(model: type[Part]) -> tuple[_FieldSlot, ...]:
    return tuple(
        _FieldSlot(
            attribute=name,
            key=field.alias or name,
            default=field.default,
            always=field.is_required() or _is_tag(field),
        )
        for name, field in model.model_fields.items()
    )


def _is_tag(field: FieldInfo) -> bool:
    """Return whether a field has one possible value, which identifies a member of a union."""
    return get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1


def _equals_default(value: object, default: object) -> bool:
    """Return whether a value equals the default; true, 1 and 1.0 differ, as in JSON."""
    return type(value) is type(default) and value == default


def _plain_value(value: _Declared) -> JsonValue:
    match value:
        case Part():
            return cast("JsonValue", plain(value))
        case tuple() | list():
            return [_plain_value(item) for item in value]
        case dict():
            return {key: _plain_value(item) for key, item in value.items()}
        case None | str() | int() | float():
            return value
        case datetime():
            return value.isoformat()
        case _:
            return print_type(value)


PackRole: TypeAlias = Literal["primary", "dependent", "independent"]


class PackMember(Part):
    """One workflow of a pack, and its role."""

    name: Name
    role: PackRole
    description: Text = ""


class Journey(Part):
    """A sequence of steps; the workflows of one step run in parallel."""

    name: Name
    steps: tuple[tuple[Name, ...], ...] = Field(min_length=1)


class Pack(Part):
    """The workflows of a pack, and its journeys."""

    pack_name: Name
    workflows: tuple[PackMember, ...]
    journeys: tuple[Journey, ...] = ()
