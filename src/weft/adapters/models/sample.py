"""`sample`: a model without a model. It makes up replies that fit, always the same, and says so."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from weft.adapters.models.json_objects import as_object
from weft.adapters.models.sample_values import sample_value
from weft.adapters.models.usage import FREE
from weft.engine.events import ToolRequest
from weft.findings import Json
from weft.ports.model import ChatMessage, ModelReply, ModelRequest, ToolSchema

#: How likely a tool is used: one that leads on, any other, and one more in the same turn.
_LEADING: Final = 0.9
_OTHER: Final = 0.5
_ANOTHER: Final = 0.25

#: How likely an agent says what leads on in its first turn, and how much likelier in every other.
_SPEAKING: Final = 0.5
_RISING: Final = 0.25


@dataclass(frozen=True, slots=True)
class Steering:
    """What makes a run go on: by agent, the words that set a variable and the tools that do."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class SampleModel:
    """Answers from the schemas of a request alone.

    The same seed, agent and number of messages give the same answer. An agent uses each of its
    tools at most once in a turn, then speaks; what it says leads on the more likely the longer the
    conversation has gone on, and words not yet said come first, so that runs end.
    """

    def __init__(self, seed: int = 0, steering: Steering | None = None) -> None:
        self._seed = seed
        self._steering = steering or Steering()

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Make up an answer."""
        random = Random(f"{self._seed}:{request.agent}:{len(request.messages)}")  # noqa: S311
        calls = self._calls(request, random)
        text = "" if calls else self._words(request, random)
        if text and on_text is not None:
            on_text(text)
        return ModelReply(text, calls, FREE, model="sample", answerer="sample")

    def _calls(self, request: ModelRequest, random: Random) -> tuple[ToolRequest, ...]:
        """Choose tools that were not used in this turn."""
        used = _used_in_turn(request.messages)
        leading = self._steering.tools.get(request.agent, ())
        chosen: list[ToolSchema] = []
        for tool in request.tools:
            likely = _ANOTHER if used else _LEADING if tool.name in leading else _OTHER
            if random.random() < likely and tool.name not in used:
                chosen.append(tool)
        return tuple(
            ToolRequest(f"sample-{request.key}-{at}", tool.name, _arguments(tool, random))
            for at, tool in enumerate(chosen)
        )

    def _words(self, request: ModelRequest, random: Random) -> str:
        lead = self._leading_text(request, random)
        if request.output is None:
            turn = 1 + _replies(request.messages)
            return lead or f"[sample] Here {request.agent} would answer. This is its turn {turn}."
        value = sample_value(request.output.schema, random)
        if lead is not None:
            _say_in(as_object(value) or {}, lead)
        return json.dumps(value, ensure_ascii=False)

    def _leading_text(self, request: ModelRequest, random: Random) -> str | None:
        """Choose words that lead on, or None if this is not yet the time."""
        texts = self._steering.texts.get(request.agent, ())
        likely = _SPEAKING + _RISING * _replies(request.messages)
        if not texts or random.random() >= likely:
            return None
        said = {message["content"] for message in request.messages}
        new = [text for text in texts if text not in said]
        return random.choice(new or texts)


def _replies(messages: Sequence[ChatMessage]) -> int:
    """Count what the agent has said itself."""
    own = (it for it in messages if it["role"] == "assistant")
    return sum(1 for message in own if not message.get("tool_calls"))


def _used_in_turn(messages: Sequence[ChatMessage]) -> set[str]:
    """Name the tools whose calls and results the conversation ends with."""
    used: set[str] = set()
    for message in reversed(messages):
        calls = message.get("tool_calls", [])
        if message["role"] != "tool" and not calls:
            break
        used.update(call["function"]["name"] for call in calls)
    return used


def _arguments(tool: ToolSchema, random: Random) -> dict[str, Json]:
    return as_object(sample_value(tool.parameters, random)) or {}


def _say_in(value: dict[str, Json], text: str) -> None:
    """Put words into the first free text of a structured reply."""
    for name, part in value.items():
        if isinstance(part, str) and part == f"[sample] {name}":
            value[name] = text
            return
