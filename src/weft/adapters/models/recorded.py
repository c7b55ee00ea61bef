"""`replay:RUN`: the answers of a run that was recorded, given again."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic_core import to_json

from weft.adapters.models.usage import FREE
from weft.engine.events import ContextAssembled, Event, ModelFailed, ModelReplied
from weft.errors import ModelError, ReplayMismatch
from weft.ports.model import ChatMessage, ModelReply, ModelRequest


def digest_of(messages: Sequence[ChatMessage]) -> str:
    """Return the hash of what is sent, as a journal keeps it with every assembled context."""
    return hashlib.sha256(to_json(list(messages))).hexdigest()


@dataclass(frozen=True, slots=True)
class _Line:
    """A recorded answer, and what it was the answer to."""

    asked: ContextAssembled
    answer: ModelReplied | ModelFailed


class RecordedModel:
    """Answers each agent with what was recorded for it, in order, if it is asked the same again."""

    def __init__(self, run: str, events: Iterable[Event]) -> None:
        self._run = run
        self._lines = _lines(events)
        self._given: dict[str, int] = {}

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the next recorded answer; raises ReplayMismatch if it is not to this request."""
        agent = request.agent
        number = self._given[agent] = self._given.get(agent, 0) + 1
        lines = self._lines.get(agent)
        if not lines:
            raise ReplayMismatch(
                f"run {self._run} has no recorded answer for {agent}, call {number}: it recorded "
                f"{number - 1}. This run goes another way, or further"
            )
        line = lines.popleft()
        now = digest_of(request.messages)
        if line.asked.digest != now:
            raise ReplayMismatch(
                f"{agent}, call {number}: what is sent differs from what run {self._run} recorded "
                f"in turn {line.asked.turn}, call {line.asked.call}. The messages have the hash "
                f"{now[:12]} and had {line.asked.digest[:12]}: prompt, variables, history or tool "
                "results have changed"
            )
        return _replayed(line.answer, on_text)


def _lines(events: Iterable[Event]) -> dict[str, deque[_Line]]:
    """Pair every answer with the context it was given for: the event that caused it."""
    asked: dict[int, ContextAssembled] = {}
    lines: dict[str, deque[_Line]] = {}
    for event in events:
        if isinstance(event.data, ContextAssembled):
            asked[event.seq] = event.data
        elif isinstance(event.data, ModelReplied | ModelFailed):
            context = asked.get(event.cause)
            if context is None:
                raise ReplayMismatch(f"event {event.seq} answers a request that is not recorded")
            lines.setdefault(context.agent, deque()).append(_Line(context, event.data))
    return lines


def _replayed(
    answer: ModelReplied | ModelFailed, on_text: Callable[[str], None] | None
) -> ModelReply:
    if isinstance(answer, ModelFailed):
        raise ModelError(f"recorded: {answer.error}")
    if on_text is not None and answer.text:
        on_text(answer.text)
    return ModelReply(
        text=answer.text,
        tool_requests=answer.tool_requests,
        usage=FREE,
        model=answer.model,
        answerer="replay",
    )
