"""`sample`: a model without a model. It makes up replies that fit, always the same, and says so."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from pydantic_core import from_json

from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample_moves import Move, Steering
from weft.adapters.models.sample_values import (
    allowed_at,
    found_at,
    is_free_text,
    put_at,
    sample_value,
)
from weft.adapters.models.usage import FREE
from weft.engine.events import ToolRequest
from weft.findings import Json
from weft.ports.model import ChatMessage, ModelReply, ModelRequest, ToolSchema

#: How likely a tool is used that no rule looks at, and one more in the same turn.
_TOOL: Final = 0.5
_ANOTHER: Final = 0.25

#: How likely an agent that may look around makes for the end, or does nothing that matters.
_AT_ONCE: Final = 0.2
_IDLE: Final = 0.4


class SampleModel:
    """Answers from the schemas of a request, and from what the rules of its workflow look at.

    The same seed, agent and conversation give the same answer. An agent looks around for a few
    turns, in which it does what it has not done yet; then it makes for the end. It uses each of
    its tools at most once in a turn, and then speaks.
    """

    def __init__(self, seed: int = 0, steering: Steering | None = None) -> None:
        self._seed = seed
        self._steering = steering or Steering()

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Make up an answer."""
        spot = f"{request.agent}:{request.turn}:{request.call}:{len(request.messages)}"
        random = Random(f"{self._seed}:{spot}")  # noqa: S311
        used = _used_in_turn(request.messages)
        move = self._move(request, used, random)
        calls = self._calls(request, used, move, random)
        text = "" if calls else _words(request, move, random)
        if text and on_text is not None:
            on_text(text)
        return ModelReply(text, calls, FREE, model="sample", answerer="sample")

    def _move(self, request: ModelRequest, used: set[str], random: Random) -> Move | None:
        """Choose something that matters to the rules: not done yet, if there is such a thing."""
        groups = self._groups(request, random.random())
        possible = [[it for it in group if _possible(it, request, used)] for group in groups]
        done = list(_done(request.messages))
        for group in possible:
            fresh = [move for move in group if not _is_among(move, done)]
            if fresh:
                return random.choice(fresh)
        again = [move for group in possible for move in group]
        return random.choice(again) if again else None

    def _groups(self, request: ModelRequest, draw: float) -> tuple[tuple[Move, ...], ...]:
        """Say what to choose from: the ways to the end, everything, or nothing."""
        steering, agent = self._steering, request.agent
        if _replies(request.messages) >= steering.wandering or draw < _AT_ONCE:
            return steering.ways.get(agent, ())
        return () if draw < _AT_ONCE + _IDLE else (steering.moves.get(agent, ()),)

    def _calls(
        self, request: ModelRequest, used: set[str], move: Move | None, random: Random
    ) -> tuple[ToolRequest, ...]:
        """Call the tool of a move, and perhaps some that no rule looks at."""
        moves = self._steering.moves.get(request.agent, ())
        matter = {it.what for it in moves if it.kind == "call"}
        chosen: list[tuple[ToolSchema, dict[str, Json]]] = []
        for tool in request.tools:
            likely = random.random() < (_ANOTHER if used else _TOOL)
            if move is not None and (move.kind, move.what) == ("call", tool.name):
                chosen.append((tool, _arguments(tool, move, random)))
            elif likely and tool.name not in used | matter:
                chosen.append((tool, _arguments(tool, None, random)))
        return tuple(
            ToolRequest(f"sample-{request.key}-{at}", tool.name, arguments)
            for at, (tool, arguments) in enumerate(chosen)
        )


def _words(request: ModelRequest, move: Move | None, random: Random) -> str:
    said = move.what if move is not None and move.kind == "say" else None
    if request.output is None:
        turn = 1 + _replies(request.messages)
        agent = request.agent.partition("/")[0]  # At a step of a flow, that is named after it.
        return said or f"[sample] Here {agent} would answer. This is its turn {turn}."
    value = sample_value(request.output.schema, random)
    fields = as_object(value) or {}
    if said is not None:
        _say_in(fields, said)
    elif move is not None:
        put_at(fields, move.places)
    return json.dumps(value, ensure_ascii=False)


def _possible(move: Move, request: ModelRequest, used: set[str]) -> bool:
    """Whether a move can be made now; only one that calls a tool in each turn."""
    if move.kind != "call":
        return True
    tool = next((it for it in request.tools if it.name == move.what), None)
    return tool is not None and not used and allowed_at(tool.parameters, move.places)


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


def _done(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, str]]:
    """Yield what the agent has done: words under no name, tool calls under that of the tool."""
    for message in messages:
        if message["role"] == "assistant":
            yield "", message["content"] or ""
            for call in message.get("tool_calls", []):
                yield call["function"]["name"], call["function"]["arguments"]


def _is_among(move: Move, done: list[tuple[str, str]]) -> bool:
    if move.kind == "say":
        return any(move.what in text for name, text in done if not name)
    name = move.what if move.kind == "call" else ""
    return any(name == other and found_at(_read(text), move.places) for other, text in done)


def _read(text: str) -> Json:
    try:
        return from_json(text)
    except ValueError:
        return None


def _arguments(tool: ToolSchema, move: Move | None, random: Random) -> dict[str, Json]:
    arguments = as_object(sample_value(tool.parameters, random)) or {}
    if move is not None:
        put_at(arguments, move.places)
    return arguments


def _say_in(value: dict[str, Json], text: str) -> None:
    """Put words into the first free text of a structured reply."""
    for name, part in value.items():
        if is_free_text(part, name):
            value[name] = text
            return
