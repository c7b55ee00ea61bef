"""Assembly: everything an agent is sent in one call, with a manifest that says where it is from."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from weft.context.history import Window, estimate, window
from weft.context.view import View, render, shown, values_of
from weft.engine.state import State
from weft.ports.model import ChatMessage

#: How many tokens of the conversation are sent, unless a workflow says otherwise.
HISTORY_TOKENS: Final = 16_000

_VARIABLES_HEADING: Final = "[CONTEXT VARIABLES]"


@dataclass(frozen=True, slots=True)
class Assembly:
    """What is sent, and what is to be known about it."""

    messages: list[ChatMessage]
    manifest: dict[str, Any]
    digest: str


def assemble(view: View, state: State, *, history_tokens: int = HISTORY_TOKENS) -> Assembly:
    """Put together what an agent sees now. The same view and state always give the same bytes."""
    values = values_of(state)
    segments: list[dict[str, Any]] = []
    texts: list[str] = []
    for section in view.sections:
        text = render(section, values)
        texts.append(text)
        segments.append({"kind": "prompt", "id": section.id, "tokens": estimate(text)})
    if view.exposed:
        listed = "\n".join(f"{name}: {shown(values.get(name))}" for name in view.exposed)
        text = f"{_VARIABLES_HEADING}\n{listed}"
        texts.append(text)
        names = list(view.exposed)
        segments.append({"kind": "variables", "names": names, "tokens": estimate(text)})
    past = window(state.messages, view.agent, history_tokens)
    messages: list[ChatMessage] = [*past.messages]
    if texts:
        messages.insert(0, {"role": "system", "content": "\n\n".join(texts)})
    segments += _rest(view, past)
    return Assembly(
        messages=messages,
        manifest={
            "tokens": sum(segment["tokens"] for segment in segments),
            "counted": "estimated",
            "segments": segments,
            "left_out": _left_out(past, history_tokens),
        },
        digest=hashlib.sha256(to_json(messages)).hexdigest(),
    )


def _rest(view: View, past: Window) -> list[dict[str, Any]]:
    """Describe what is sent besides the instructions."""
    segments: list[dict[str, Any]] = []
    if past.messages:
        segments.append(
            {
                "kind": "history",
                "messages": len(past.messages),
                "first": past.first,
                "last": past.last,
                "tokens": past.tokens,
            }
        )
    if view.tools:
        names = [tool.name for tool in view.tools]
        segments.append({"kind": "tools", "names": names, "tokens": view.tool_tokens})
    if view.output:
        model = view.output.name
        segments.append({"kind": "output", "model": model, "tokens": view.output_tokens})
    return segments


def _left_out(past: Window, budget: int) -> list[dict[str, Any]]:
    if not past.cut:
        return []
    reason = f"over the budget of {budget} tokens"
    return [{"kind": "history", "before": past.first, "reason": reason}]
