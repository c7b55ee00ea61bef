"""Answers made up for people: to the question of a tool, and to an agent that waits for words."""

from random import Random
from typing import Final

from weft.adapters.models.json_objects import as_object
from weft.adapters.models.sample_moves import Steering
from weft.adapters.models.sample_values import allowed_at, put_at, sample_value
from weft.engine.compiled import CompiledWorkflow
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import UiTool
from weft.spec.type_schema import json_schema

#: How likely an answer is one that leads on.
_LEADING: Final = 0.5

#: What a person says to an agent.
SAMPLE_MESSAGE: Final = "[sample] Here a person would say something."


def sample_answer(
    compiled: CompiledWorkflow, steering: Steering, tool: str, random: Random
) -> Json:
    """Answer the question of a tool as its schema wants it, or as the variables it sets do."""
    schema = _response_schema(compiled, tool)
    value: Json = {} if schema is None else sample_value(schema, random)
    fields = as_object(value)
    if fields is None:
        return value
    if schema is None:
        for setting in compiled.triggers.ui_response.get(tool, ()):
            type_ = json_schema(compiled.variables[setting.variable].type, compiled.models)
            if setting.path is not None:
                put_at(fields, ((setting.path, sample_value(type_, random)),))
    leading = [it for it in steering.answers.get(tool, ()) if allowed_at(schema or {}, it)]
    if leading and random.random() < _LEADING:
        put_at(fields, random.choice(leading))
    return value


def _response_schema(compiled: CompiledWorkflow, tool: str) -> JsonMap | None:
    for part in compiled.agents.values():
        declared = part.tools.get(tool)
        if isinstance(declared, UiTool) and declared.response_schema is not None:
            return declared.response_schema
    return None
