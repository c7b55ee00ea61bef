"""`sample`: made-up, valid and reproducible replies, marked as samples."""

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

#: The probability of a tool that no rule depends on, and of one more in the same turn.
_TOOL: Final = 0.5
_ANOTHER: Final = 0.25

#: The probabilities that an exploring agent goes to the end, or does nothing relevant.
_AT_ONCE: Final = 0.2
_IDLE: Final = 0.4


class SampleModel:
    """Replies from the schemas of a request and the values that its workflow's rules compare.

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
        """Make up a reply."""
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
        """Choose a move that rules depend on, preferably one not made yet."""
        groups = self._groups(request, random.random())
        possible = [[move for move in group if _possible(move, request, used)] for group in groups]
        done = list(_done(request.messages))
        for group in possible:
            fresh = [move for move in group if not _is_among(move, done)]
            if fresh:
                return random.choice(fresh)
        again = [move for group in possible for move in group]
        return random.choice(again) if again else None

    def _groups(self, request: ModelRequest, draw: float) -> tuple[tuple[Move, ...], ...]:
        """Return the moves to choose from: the ways to the end, all, or none."""
        steering, agent = self._steering, request.agent
        if _replies(request.messages) >= steering.wandering or draw < _AT_ONCE:
            return steering.ways.get(agent, ())
        return () if draw < _AT_ONCE + _IDLE else (steering.moves.get(agent, ()),)

    def _calls(
        self, request: ModelRequest, used: set[str], move: Move | None, random: Random
    ) -> tuple[ToolRequest, ...]:
        """Call the tool of a move, and perhaps some that no rule depends on."""
        moves = self._steering.moves.get(request.agent, ())
        matter = {move.what for move in moves if move.kind == "call"}
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
        agent = request.agent.partition("/")[
            0
        ]  # At a step of a flow, the agent is named after the step.
        return said or f"[sample] Here {agent} would answer. This is its turn {turn}."
    value = sample_value(request.output.schema, random)
    fields = as_object(value) or {}
    if said is not None:
        _say_in(fields, said)
    elif move is not None:
        put_at(fields, move.places)
    return json.dumps(value, ensure_ascii=False)


def _possible(move: Move, request: ModelRequest, used: set[str]) -> bool:
    """Whether a move is possible now; one tool call of a move per turn."""
    if move.kind != "call":
        return True
    tool = next((tool for tool in request.tools if tool.name == move.what), None)
    return tool is not None and not used and allowed_at(tool.parameters, move.places)


def _replies(messages: Sequence[ChatMessage]) -> int:
    """Count the replies of the agent."""
    own = (message for message in messages if message["role"] == "assistant")
    return sum(1 for message in own if not message.get("tool_calls"))


def _used_in_turn(messages: Sequence[ChatMessage]) -> set[str]:
    """Return the tools of the calls and results at the end of the conversation."""
    used: set[str] = set()
    for message in reversed(messages):
        calls = message.get("tool_calls", [])
        if message["role"] != "tool" and not calls:
            break
        used.update(call["function"]["name"] for call in calls)
    return used


def _done(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, str]]:
    """Yield the agent's earlier moves: messages without a name, tool calls with the tool's."""
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
    """Insert words into the first free text of a structured reply."""
    for name, part in value.items():
        if is_free_text(part, name):
            value[name] = text
            return
