"""Signals: the only way back into a run, and what each means for its state."""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

from weft.engine.events import Event, RequestAnswered, RequestExpired, RequestOpened, StopAsked
from weft.engine.state import State
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.runs.decision import CallCheck, NewEvent
from weft.runtime.variables.json_values import plain_json
from weft.runtime.variables.values import fitting_text, refuse_empty
from weft.runtime.workflow import Workflow

StopMode: TypeAlias = Literal["now", "after_turn"]

#: How long the name of a message may be, in characters: it is kept with every message.
MAX_ID: Final = 200

_EXAMPLES: Final = 'UserMessage("..."), Answer(request.id, ...), Stop("now") or Stop("after_turn")'


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The user says something, in answer to the run's waiting for it.

    A run hears each `id` once. Every object has its own, unless its maker gives the one by which
    the message is known elsewhere: two that say the same are two messages.
    """

    text: str
    #: Chance has its place in the clock of a host, but a message is made outside of any.
    id: str = field(default_factory=partial(secrets.token_hex, 16), kw_only=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """A person answers a question."""

    request: str
    value: Json


@dataclass(frozen=True, slots=True)
class Stop:
    """The run is to end: now, or after the turn under way."""

    mode: StopMode = "now"


Signal: TypeAlias = UserMessage | Answer | Stop


def interpret(
    signal: Signal, workflow: Workflow, state: State, scope: Scope
) -> tuple[NewEvent, CallCheck]:
    """Say what a signal means for a run, and what must hold for it to be let in."""
    user = scope.user or scope.app
    actor = f"user:{user}"
    match signal:
        case Stop(mode=mode):
            if mode not in get_args(StopMode):
                raise UsageError(f"a run stops {' or '.join(get_args(StopMode))}, not {mode}")
            return NewEvent(actor, StopAsked(mode, user)), not_ended
        case Answer(request=id_, value=value):
            is_open(id_)(state)
            asked = state.requests[id_]
            answer = _fitting(workflow, state, asked.tool, value)
            form = workflow.forms.get(asked.tool or "")
            kept = form.concealed(answer) if form else answer
            role = asked.addressee if asked.addressee in scope.shared_addresses else ""
            new = NewEvent(actor, RequestAnswered(id_, kept, user, role=role), turn=asked.turn)
            return new, is_open(id_)
        case UserMessage(text=text, id=name):
            _refuse_unfit(name)
            not_ended(state)
            id_ = _chat(state)
            answer = _fitting(workflow, state, None, text)
            draft = NewEvent(actor, RequestAnswered(id_, answer, user, message_id=name))
            return draft, once(signal, is_open(id_))
        case _:
            raise UsageError(
                f"what is delivered to a run is a signal, not {signal!r}",
                hint=f"make one: {_EXAMPLES}",
            )


def refuse_answered(signal: Answer, events: Iterable[Event], addresses: Collection[str]) -> None:
    """Refuse an answer of somebody who was asked before and may see nothing else of the run."""
    opened = (event.data for event in events if isinstance(event.data, RequestOpened))
    if any(it.id == signal.request and it.addressee in addresses for it in opened):
        told = "it was answered already, or its time is over"
        raise UsageError(f"question {signal.request} is not open any more: {told}")


def expiry_of(state: State, request: str, now: int) -> NewEvent | None:
    """Return what lets a question expire whose time is over; None if it is not, or not open."""
    asked = state.requests.get(request)
    if asked is None or asked.expires_at is None or asked.expires_at > now:
        return None
    return NewEvent("clock", RequestExpired(request), turn=asked.turn)


def was_heard(signal: Signal, state: State) -> bool:
    """Tell whether a signal is a message that a run has heard: nothing is to be done for it."""
    if not isinstance(signal, UserMessage):
        return False
    return isinstance(signal.id, str) and signal.id in state.message_ids  # pyright: ignore[reportUnnecessaryIsInstance]


def once(signal: Signal, allowed: CallCheck) -> CallCheck:
    """Let a message in once; it is no fault that it was delivered before or meanwhile."""
    return lambda state: not was_heard(signal, state) and allowed(state)


def not_ended(state: State) -> bool:
    """Refuse what comes after the end of a run."""
    if state.status == "ended":
        raise UsageError(f"run {state.run} has ended already")
    return True


def is_open(request: str) -> CallCheck:
    """Refuse what answers a question that is not open."""

    def check(state: State) -> bool:
        if request not in state.requests:
            raise UsageError(
                f"question {request} is not open: it was answered, has expired, or never was",
                hint=f"see what is open: weft runs show {state.run}",
            )
        return True

    return check


def _chat(state: State) -> str:
    for request in state.requests.values():
        if request.kind == "chat":
            return request.id
    asked = ", ".join(state.requests)
    raise UsageError(
        f"run {state.run} does not wait for a message",
        hint=f"answer its question first: {asked}" if asked else "wait until it does",
    )


def _refuse_unfit(id_: str) -> None:
    """Refuse what cannot name a message: it must be kept, and found again, as it was given."""
    hint = "leave the id out to get a new one"
    if not isinstance(id_, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"the id of a message is text, not {type(id_).__name__}", hint=hint)
    if not 0 < len(id_) <= MAX_ID:
        said = f"the id of a message has 1 to {MAX_ID} characters, not {len(id_):,}"
        raise UsageError(said, hint=hint)
    try:
        id_.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the id of a message is not valid Unicode text", hint=hint) from error


def _fitting(workflow: Workflow, state: State, tool: str | None, value: Json) -> Json:
    """Return an answer as it is written down, or refuse it with what does not fit."""
    if tool is None:
        if not isinstance(value, str):
            raise UsageError("a message is text", hint="answer with text")
        refuse_empty(value, "say something, or leave it: the run waits")
        fitting_text(value)
    try:
        answer = plain_json(value)
    except ValueError as error:
        raise UsageError(f"the answer is {error}") from error
    form = workflow.forms.get(tool or "")
    fault = form.answer_error(answer) if form else None
    if form and fault:
        see = f"see the response_schema of the tool: weft runs show {state.run}"
        raise UsageError(
            f"the answer does not fit what {tool} asks for: {fault}", hint=form.answer_hint or see
        )
    return answer
