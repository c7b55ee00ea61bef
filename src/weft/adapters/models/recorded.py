"""`replay:RUN`: the answers of a run that was recorded, given again."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from weft.adapters.models.usage import FREE
from weft.context.prompt import digest_of
from weft.context.view import extras
from weft.engine.events import (
    ConditionJudged,
    ContextAssembled,
    Event,
    ModelConsulted,
    ModelFailed,
    ModelReplied,
)
from weft.errors import ModelError, ReplayMismatch
from weft.ports.model import ModelReply, ModelRequest
from weft.runtime.models import JUDGEMENT


@dataclass(frozen=True, slots=True)
class _Line:
    """A recorded answer, and what it was the answer to."""

    asked: ContextAssembled
    answer: ModelReplied | ModelFailed


class RecordedModel:
    """Answers each call with what was recorded for it, if it is asked the same again."""

    def __init__(self, run: str, events: Iterable[Event]) -> None:
        events = list(events)
        self._run = run
        self._lines = _lines(events)
        #: What tools have asked, by turn and question, with the call that asked; what was judged
        #: of an agent's rules, by the event after which it was asked.
        self._consulted: dict[tuple[int, str], list[tuple[int, ModelConsulted]]] = {}
        self._judged: dict[tuple[int, str], ConditionJudged] = {}
        for event in events:
            if isinstance(event.data, ModelConsulted):
                asked = self._consulted.setdefault((event.turn, event.data.digest), [])
                asked.append((event.cause, event.data))
            elif isinstance(event.data, ConditionJudged):
                self._judged[event.cause, event.actor] = event.data
        #: How often which call of which run has asked the same.
        self._asked: Counter[tuple[str, str]] = Counter()

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the recorded answer; raises ReplayMismatch if it is not to this request."""
        if request.question:
            return self._beside(request)
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

    def _beside(self, request: ModelRequest) -> ModelReply:
        """Answer what a tool asks on its own, or whether a condition holds."""
        seq = int(request.key.rpartition(":")[2])  # the event that let it be asked
        if request.output == JUDGEMENT:
            return self._judgement(request, seq)
        found = self._consulted.get((request.turn, request.question), ())
        told = [answer for cause, answer in found if cause == seq] or [
            answer for _, answer in found
        ]
        number = self._asked[request.key, request.question]
        self._asked[request.key, request.question] += 1
        if number >= len(told):
            raise ReplayMismatch(
                f"a tool of {request.agent} asks in turn {request.turn} what run {self._run} has "
                "no recorded answer for: its question has changed, or this run goes another way"
            )
        return _said(told[number])

    def _judgement(self, request: ModelRequest, seq: int) -> ModelReply:
        """Give the judgement of then; that what it judges is the same cannot be told here."""
        judged = self._judged.get((seq, f"agent:{request.agent}"))
        if judged is None:
            raise ReplayMismatch(
                f"run {self._run} has no judgement of a rule of {request.agent} after event {seq}: "
                "this run goes another way, or further"
            )
        if judged.fault and not judged.text:
            raise ModelError(f"recorded: {judged.fault}")
        return _said(judged)


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


def _said(answer: ModelConsulted | ConditionJudged) -> ModelReply:
    return ModelReply(answer.text, usage=FREE, model=answer.model, answerer="replay")


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
