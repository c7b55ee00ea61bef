"""Models without a provider: a person, and the replies of a recorded run."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from pydantic_core import from_json, to_json

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
from weft.ids import suggestion
from weft.ports.model import ModelReply, ModelRequest
from weft.runtime.models import JUDGEMENT

Ask = Callable[[ModelRequest], Awaitable[ModelReply]]


class PersonModel:
    """Lets a person reply, by the given function, and validates the reply."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the person's answer; raises ModelError, worth another attempt, if it cannot be."""
        reply = await self._ask(request)
        fault = _fault(request, reply)
        if fault is not None:
            raise ModelError(f"the answer given for {request.agent} {fault}", retryable=True)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return replace(reply, usage=FREE, model="you", answerer="you")


def _fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Return what is wrong with the form of a reply; the run validates its content."""
    known = {tool.name for tool in request.tools}
    ids = [call.id for call in reply.tool_requests]
    if len(set(ids)) < len(ids):
        return "gives two tool calls the same identity"
    for call in reply.tool_requests:
        if call.tool not in known:
            there = suggestion(call.tool, known)
            return f"calls {call.tool}, which is not among its tools; {there}"
        try:
            to_json(call.arguments)
        except ValueError as error:
            return f"calls {call.tool} with arguments that are not JSON: {error}"
    if request.output is not None and not reply.tool_requests:
        try:
            from_json(reply.text)
        except ValueError as error:
            return f"must be JSON that fits {request.output.name}: {error}"
    return None


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A recorded reply, and the context it replied to."""

    asked: ContextAssembled
    answer: ModelReplied | ModelFailed


class RecordedModel:
    """Replies to each call with the recorded reply, if the request is the same."""

    def __init__(self, run: str, events: Iterable[Event]) -> None:
        events = list(events)
        self._run = run
        self._recorded_replies = _recorded_replies(events)
        #: Replies to questions of tools, by turn and question, with the call; judgements
        #: of an agent's rules, by the event after which they were made.
        self._consulted: dict[tuple[int, str], list[tuple[int, ModelConsulted]]] = {}
        self._judged: dict[tuple[int, str], ConditionJudged] = {}
        for event in events:
            if isinstance(event.data, ModelConsulted):
                asked = self._consulted.setdefault((event.turn, event.data.digest), [])
                asked.append((event.cause, event.data))
            elif isinstance(event.data, ConditionJudged):
                self._judged[event.cause, event.actor] = event.data
        #: How often each call has asked the same question.
        self._times_asked: Counter[tuple[str, str]] = Counter()

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the recorded answer; raises ReplayMismatch if it is not to this request."""
        if request.question:
            return self._reply_to_question(request)
        place = f"{request.agent}, turn {request.turn}, call {request.call}"
        line = self._recorded_replies.get((request.turn, request.call))
        if line is None or line.asked.agent != request.agent:
            raise ReplayMismatch(
                f"run {self._run} has no recorded answer for {place}: this run takes another path, "
                "or is longer"
            )
        now = digest_of(request.messages, extras(request.tools, request.output))
        if line.asked.digest != now:
            raise ReplayMismatch(
                f"{place}: the request differs from the one run {self._run} recorded. It has the "
                f"hash {now[:12]} and had {line.asked.digest[:12]}: prompt, variables, history, "
                "tool results, tools or output schema have changed"
            )
        return _replay(line.answer, on_text)

    def _reply_to_question(self, request: ModelRequest) -> ModelReply:
        """Reply to a question of a tool, or judge a condition."""
        seq = int(request.key.rpartition(":")[2])  # the event that let it be asked
        if request.output == JUDGEMENT:
            return self._judgement(request, seq)
        found = self._consulted.get((request.turn, request.question), ())
        answers = [answer for cause, answer in found if cause == seq] or [
            answer for _, answer in found
        ]
        number = self._times_asked[request.key, request.question]
        self._times_asked[request.key, request.question] += 1
        if number >= len(answers):
            raise ReplayMismatch(
                f"a tool of {request.agent} asks in turn {request.turn} what run {self._run} has "
                "no recorded answer for: its question has changed, or this run takes another path"
            )
        return _to_reply(answers[number])

    def _judgement(self, request: ModelRequest, seq: int) -> ModelReply:
        """Return the recorded judgement; whether its input is the same cannot be checked here."""
        judged = self._judged.get((seq, f"agent:{request.agent}"))
        if judged is None:
            raise ReplayMismatch(
                f"run {self._run} has no judgement of a rule of {request.agent} after event {seq}: "
                "this run takes another path, or is longer"
            )
        if judged.error and not judged.text:
            raise ModelError(f"recorded: {judged.error}")
        return _to_reply(judged)


def _recorded_replies(events: Iterable[Event]) -> dict[tuple[int, int], _Recorded]:
    """Pair every answer with the context it was given for: the event that caused it."""
    asked: dict[int, ContextAssembled] = {}
    lines: dict[tuple[int, int], _Recorded] = {}
    for event in events:
        if isinstance(event.data, ContextAssembled):
            asked[event.seq] = event.data
        elif isinstance(event.data, ModelReplied | ModelFailed):
            context = asked.get(event.cause)
            if context is None:
                raise ReplayMismatch(f"event {event.seq} answers a request that is not recorded")
            lines[event.turn, event.data.call] = _Recorded(context, event.data)
    return lines


def _to_reply(answer: ModelConsulted | ConditionJudged) -> ModelReply:
    return ModelReply(answer.text, usage=FREE, model=answer.model, answerer="replay")


def _replay(
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
        finish_reason=answer.finish_reason,
    )
