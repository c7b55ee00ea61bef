"""Signals: the messages to a run, and the event of each."""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

from weft.engine.events import Event, RequestAnswered, RequestExpired, RequestOpened, StopRequested
from weft.engine.state import State
from weft.errors import ConflictError, UsageError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.runs.decision import CallCheck, NewEvent
from weft.runtime.runs.memory import no_run
from weft.runtime.variables.json_values import MAX_BYTES, plain_json
from weft.runtime.workflow import Workflow

StopMode: TypeAlias = Literal["now", "after_turn"]

#: The maximal length of the id of a message, which is stored with it.
MAX_ID: Final = 200

_EXAMPLES: Final = 'UserMessage("..."), Answer(request.id, ...), Stop("now") or Stop("after_turn")'


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of the user to a run that waits for one.

    A run accepts each `id` once. Every object has its own id unless one is given; two messages with
    the same text are two messages.
    """

    text: str
    #: Random ids come from the clock of a host, but a message is created without a host.
    id: str = field(default_factory=partial(secrets.token_hex, 16), kw_only=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a person to a request."""

    request: str
    value: Json


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A person closes a request without an answer: it expires now."""

    request: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End a run: now, or after the turn under way."""

    mode: StopMode = "now"


Signal: TypeAlias = UserMessage | Answer | CancelRequest | Stop

#: The signals that close a request.
CLOSES: Final = (Answer, CancelRequest)


def interpret(
    signal: Signal, workflow: Workflow, state: State, scope: Scope
) -> tuple[NewEvent, CallCheck]:
    """Return the event of a signal, and the check whether the run accepts it."""
    user = scope.actor
    actor = f"user:{user}"
    match signal:
        case Stop(mode=mode):
            if mode not in get_args(StopMode):
                raise UsageError(f"a run stops {' or '.join(get_args(StopMode))}, not {mode}")
            return NewEvent(actor, StopRequested(mode, user)), not_ended
        case Answer(request=id_, value=value):
            is_open(id_)(state)
            asked = state.requests[id_]
            answer = _fitting(workflow, state, asked.tool, value)
            form = workflow.forms.get(asked.tool or "")
            kept = form.mask_secrets(answer) if form else answer
            role = asked.addressee if asked.addressee in scope.shared_addresses else ""
            new = NewEvent(actor, RequestAnswered(id_, kept, user, role=role), turn=asked.turn)
            return new, is_open(id_)
        case CancelRequest(request=id_):
            is_open(id_)(state)
            if state.requests[id_].kind == "chat":
                raise UsageError(
                    f"run {state.run} waits for a message, which cannot be cancelled",
                    hint="leave it: the run waits; or cancel the run",
                )
            return NewEvent(actor, RequestExpired(id_), turn=state.requests[id_].turn), is_open(id_)
        case UserMessage(text=text, id=name):
            _refuse_unfit(name)
            not_ended(state)
            id_ = _chat(state)
            answer = _fitting(workflow, state, None, text)
            draft = NewEvent(actor, RequestAnswered(id_, answer, user, message_id=name))
            return draft, once(signal, is_open(id_))
        case _:
            raise UsageError(
                f"expected a signal, got {signal!r}",
                hint=f"make one: {_EXAMPLES}",
            )


def require_addressee(state: State, signal: Signal, scope: Scope) -> None:
    """Raise AccessDenied or UsageError if a run, or a request of it, is not the scope's."""
    asked = state.requests.get(signal.request) if isinstance(signal, CLOSES) else None
    if asked is not None and asked.addressee and asked.addressee in scope.addresses:
        return
    if not scope.covers(state.app, state.user):
        raise no_run(state.run)
    if asked is not None and not scope.answers(state.app, state.user, asked.addressee):
        raise UsageError(
            f"question {asked.id} is for {asked.addressee}, not for {scope.user}",
            hint=f"answer it as {asked.addressee}",
        )


def refuse_answered(
    signal: Answer | CancelRequest, events: Iterable[Event], addresses: Collection[str]
) -> None:
    """Refuse an answer to a closed request by an addressee who may not see the run otherwise."""
    opened = (event.data for event in events if isinstance(event.data, RequestOpened))
    if any(each.id == signal.request and each.addressee in addresses for each in opened):
        why = "it is answered already, or it has expired"
        raise ConflictError(f"question {signal.request} is not open any more: {why}")


def expiry_of(state: State, request: str, now: int) -> NewEvent | None:
    """Return the event that expires a request whose time is over, or None."""
    asked = state.requests.get(request)
    if asked is None or asked.expires_at is None or asked.expires_at > now:
        return None
    return NewEvent("clock", RequestExpired(request), turn=asked.turn)


def was_heard(signal: Signal, state: State) -> bool:
    """Return whether a signal is a message that the run has accepted already."""
    if not isinstance(signal, UserMessage):
        return False
    return isinstance(signal.id, str) and signal.id in state.message_ids  # pyright: ignore[reportUnnecessaryIsInstance]


def once(signal: Signal, allowed: CallCheck) -> CallCheck:
    """Accept a message once; delivering it again has no effect and is not an error."""
    return lambda state: not was_heard(signal, state) and allowed(state)


def not_ended(state: State) -> bool:
    """Refuse a signal after the end of a run."""
    if state.status == "ended":
        raise ConflictError(f"run {state.run} has ended already")
    return True


def not_open(request: str, run: str) -> ConflictError:
    """Return the error for an answer to a question that is not open."""
    return ConflictError(
        f"question {request} is not open: it was answered, has expired, or never was",
        hint=f"see what is open: weft runs show {run}, or GET /api/runs/{run}",
    )


def is_open(request: str) -> CallCheck:
    """Refuse an answer to a request that is not open."""

    def check(state: State) -> bool:
        if request not in state.requests:
            raise not_open(request, state.run)
        return True

    return check


def _chat(state: State) -> str:
    for request in state.requests.values():
        if request.kind == "chat":
            return request.id
    asked = ", ".join(state.requests)
    raise ConflictError(
        f"run {state.run} does not wait for a message",
        hint=f"answer its question first: {asked}" if asked else "wait until it does",
    )


def _refuse_unfit(id_: str) -> None:
    """Refuse an id that cannot be stored and found again unchanged."""
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
    """Return the stored form of an answer, or refuse an answer that is not valid."""
    if tool is None:
        if not isinstance(value, str):
            raise UsageError("a message is text", hint="answer with text")
        return require_message(value, "say something, or leave it: the run waits")
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


def require_message(text: str, hint: str) -> str:
    """Return the message of a person; raises UsageError if it is not valid text."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a message is text, not {type(text).__name__}")
    if not text.strip():  # An agent would have to answer it.
        raise UsageError("the message is empty", hint=hint)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError("the message is not valid Unicode text") from error
    if size > MAX_BYTES:
        raise UsageError(f"the message has {size:,} bytes, and {MAX_BYTES:,} are the limit")
    return text
