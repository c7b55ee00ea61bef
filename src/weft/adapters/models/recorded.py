"""`replay:RUN`: the answers of a run that was recorded, given again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from weft.adapters.models.usage import FREE
from weft.context.assembly import digest_of
from weft.context.view import extras
from weft.engine.events import ContextAssembled, Event, ModelFailed, ModelReplied
from weft.errors import ModelError, ReplayMismatch
from weft.ports.model import ModelReply, ModelRequest


@dataclass(frozen=True, slots=True)
class _Line:
    """A recorded answer, and what it was the answer to."""

    asked: ContextAssembled
    answer: ModelReplied | ModelFailed


class RecordedModel:
    """Answers each call with what was recorded for it, if it is asked the same again."""

    def __init__(self, run: str, events: Iterable[Event]) -> None:
        self._run = run
        self._lines = _lines(events)

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the recorded answer; raises ReplayMismatch if it is not to this request."""
        place = f"{request.agent}, turn {request.turn}, call {request.call}"
        line = self._lines.get((request.turn, request.call))
        if line is None or line.asked.agent != request.agent:
            raise ReplayMismatch(
                f"run {self._run} has no recorded answer for {place}: this run goes another way, "
                "or further"
            )
        now = digest_of(request.messages, extras(request.tools, request.output))
        if line.asked.digest != now:
            raise ReplayMismatch(
                f"{place}: what is sent differs from what run {self._run} recorded. It has the "
                f"hash {now[:12]} and had {line.asked.digest[:12]}: prompt, variables, history, "
                "tool results, tools or output schema have changed"
            )
        return _replayed(line.answer, on_text)


def _lines(events: Iterable[Event]) -> dict[tuple[int, int], _Line]:
    """Pair every answer with the context it was given for: the event that caused it."""
    asked: dict[int, ContextAssembled] = {}
    lines: dict[tuple[int, int], _Line] = {}
    for event in events:
        if isinstance(event.data, ContextAssembled):
            asked[event.seq] = event.data
        elif isinstance(event.data, ModelReplied | ModelFailed):
            context = asked.get(event.cause)
            if context is None:
                raise ReplayMismatch(f"event {event.seq} answers a request that is not recorded")
            lines[event.turn, event.data.call] = _Line(context, event.data)
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
        finish=answer.finish,
    )
