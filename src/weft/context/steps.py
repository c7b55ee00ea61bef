"""What an agent is told at a step of a flow: its prompts, its context, and what was said before."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from weft.context.history import Window, window
from weft.context.segment import Kind, LeftOut, Segment
from weft.context.values import shown, value_of
from weft.context.view import StepMessages
from weft.engine.flow.lanes import lane_of
from weft.engine.state import Activation, State
from weft.findings import Json
from weft.ports.model import ChatMessage
from weft.spec.agents import estimate

#: What stands before a context where it is a message of its own.
_CONTEXT: Final = "Context:\n"


class StepTexts(NamedTuple):
    """What is sent for a step, where it is from, and what is left out."""

    messages: list[ChatMessage]
    pieces: list[Segment | Window]
    left_out: list[LeftOut]


def step_messages(
    piece: StepMessages, state: State, turn: int, values: Mapping[str, Json]
) -> StepTexts:
    """Put together what an agent is told at a step. What came from outside was recorded before."""
    active = state.active[turn]
    found = cast("Mapping[str, Any]", active.fetched or {})
    context = cast("Mapping[str, Any]", found.get("context") or {})
    if piece.coded:
        told = cast("list[ChatMessage]", found["messages"])
    else:
        text = "".join(
            it if isinstance(it, str) else shown(value_of(state, values, it.name))
            for it in piece.prompt
        )
        told = [_message("user", text)]
        if context.get("text"):
            told.insert(0, _message("user", f"{_CONTEXT}{context['text']}"))
    first = next((at for at, it in enumerate(told) if it["role"] != "system"), len(told))
    past = _past(piece, state, active)
    pieces: list[Segment | Window] = [*_prompts(told, context)]
    left_out: list[LeftOut] = list(context.get("left_out") or [])
    if past is not None and past.messages:
        pieces.append(past)
        left_out += [past.left_out] if past.cut else []
    earlier = past.messages if past is not None else []
    return StepTexts([*told[:first], *earlier, *told[first:]], pieces, left_out)


def _message(role: str, text: str) -> ChatMessage:
    return cast("ChatMessage", {"role": role, "content": text})


def _past(piece: StepMessages, state: State, active: Activation) -> Window | None:
    """Return what the agent was told and has said in earlier steps of its line."""
    if piece.history is None or active.flow is None:
        return None
    thread = lane_of(state, active.flow.lane).threads.get(active.agent)
    return None if thread is None else window(thread, active.agent, piece.history)


def _prompts(told: Sequence[ChatMessage], context: Mapping[str, Any]) -> list[Segment]:
    """Return the messages as segments; the pieces of the context one by one."""
    found: list[Segment] = []
    text = context.get("text")
    for at, message in enumerate(told):
        content = message["content"] or ""
        if text and content == f"{_CONTEXT}{text}":
            found += map(_piece, context["segments"])
        else:
            origin = f"{message['role']}[{at}]"
            found.append(Segment("prompt", origin, content, estimate(content), message["role"]))
    return found


def _piece(segment: Mapping[str, Any]) -> Segment:
    kind = cast("Kind", segment["kind"])
    hits = cast("list[Mapping[str, Any]]", segment.get("hits") or [])
    items = [{"id": it.get("source_id"), "score": it.get("score")} for it in hits]
    text = str(segment["text"])
    facts = cast("Mapping[str, Json] | None", {"items": items} if items else None)
    name = str(segment.get("name") or segment["kind"])
    return Segment(kind, name, text, estimate(text), "user", facts)
