"""Answers made up for people: to the question of a tool, and to an agent that waits for words."""

from collections.abc import Sequence
from random import Random
from typing import Final

from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample_moves import Steering
from weft.adapters.models.sample_values import allowed_at, put_at, sample_value
from weft.engine.compiled import CompiledWorkflow
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import AgentTool, UiTool
from weft.spec.type_meaning import json_schema

#: How likely an answer is one that leads on.
_LEADING: Final = 0.5

#: What a person says to an agent.
SAMPLE_MESSAGE: Final = "[sample] Here a person would say something."


def sample_answer(
    compiled: CompiledWorkflow,
    steering: Steering,
    tool: str,
    random: Random,
    tools: Sequence[AgentTool | UiTool] = (),
) -> Json:
    """Answer the question of a tool as its schema wants it, or as the variables it sets do.

    Agents do not choose the tools that are called with their replies: those are found in `tools`.
    """
    schema = _response_schema(compiled, tool, tools)
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


def _response_schema(
    compiled: CompiledWorkflow, tool: str, tools: Sequence[AgentTool | UiTool]
) -> JsonMap | None:
    chosen = (it for part in compiled.agents.values() for it in part.tools.values())
    for declared in (*chosen, *tools):
        if isinstance(declared, UiTool) and declared.function == tool and declared.response_schema:
            return declared.response_schema
    return None
