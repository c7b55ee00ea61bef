"""Asking a model beside the conversation: a tool's own question, or whether a condition holds."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_core import to_json

from weft.context.history import conversation
from weft.context.segment import shown, value_of
from weft.context.view import WITHHELD, is_visible
from weft.engine.commands import Judge
from weft.engine.events import ConditionJudged
from weft.engine.events.codec import read_json, unfenced
from weft.engine.state import State
from weft.ports.model import ChatMessage, OutputSchema
from weft.runtime.workflow import Workflow
from weft.spec.templates import parse_template

#: The shape of a judgement.
JUDGEMENT: Final = OutputSchema(
    "Judgement",
    {
        "type": "object",
        "properties": {
            "holds": {"type": "boolean", "description": "Whether the condition holds."},
            "reason": {"type": "string", "description": "Why, in a sentence."},
        },
        "required": ["holds", "reason"],
        "additionalProperties": False,
    },
)

#: How much of the conversation is told to whoever judges it, in messages from the end.
HEARD: Final = 40

_JUDGE: Final = (
    "You judge whether a condition holds in a conversation between agents and a user. Go by what "
    'was said and by the values below, and by nothing else. Reply with JSON: {"holds": true or '
    'false, "reason": "one sentence"}.'
)
_TOOL: Final = "You answer a question of a program. Reply with the answer and nothing else."


def question_of(messages: list[ChatMessage], output: OutputSchema | None) -> str:
    """Return the hash by which a question is known when it is asked again."""
    return hashlib.sha256(to_json((messages, output))).hexdigest()


def tool_messages(instruction: str) -> list[ChatMessage]:
    """Return what is sent for a question of a tool."""
    return [{"role": "system", "content": _TOOL}, {"role": "user", "content": instruction}]


def judge_messages(workflow: Workflow, state: State, command: Judge) -> list[ChatMessage]:
    """Return what is sent to have a condition judged."""
    handoff = workflow.spec.handoffs[command.rule]
    exposed = workflow.spec.exposure.get(command.agent, ())
    values = {
        name: value_of(state, state.variables, name)
        for name in exposed
        if is_visible(workflow.spec, command.agent, name)
    }
    said = [
        f"{it.get('name', 'user')}: {it['content']}" for it in conversation(state.messages)[-HEARD:]
    ]
    parts = [
        f"Workflow: {workflow.name}. {workflow.spec.orchestrator.description}".strip(),
        "Conversation:\n" + "\n".join(said or ["(nothing was said yet)"]),
        f"Values: {to_json(values).decode()}" if values else "",
        f"Condition for handing over to {handoff.target_agent}: "
        + worded(workflow, state, command.agent, handoff.condition or ""),
    ]
    return [
        {"role": "system", "content": _JUDGE},
        {"role": "user", "content": "\n\n".join(filter(None, parts))},
    ]


def worded(workflow: Workflow, state: State, agent: str, condition: str) -> str:
    """Return the words of a condition with the values of the variables that stand in braces."""
    parts: list[str] = []
    for part in parse_template(condition.replace("${", "{")):
        if isinstance(part, str):
            parts.append(part)
        elif is_visible(workflow.spec, agent, part.name):
            parts.append(shown(value_of(state, state.variables, part.name)))
        else:
            parts.append(WITHHELD)
    return "".join(parts)


def judged(command: Judge, text: str, facts: Mapping[str, Any]) -> ConditionJudged:
    """Read a judgement; one that is none is a fault, never a guess."""
    try:
        found = read_json(unfenced(text).encode())
    except ValueError as error:
        fault = f"the judgement is not JSON: {error}"
        return ConditionJudged(command.rule, holds=False, text=text, fault=fault, **facts)
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    holds = fields.get("holds")
    if not isinstance(holds, bool):
        fault = 'the judgement has no "holds" that is true or false'
        return ConditionJudged(command.rule, holds=False, text=text, fault=fault, **facts)
    return ConditionJudged(command.rule, holds=holds, text=text, **facts)
