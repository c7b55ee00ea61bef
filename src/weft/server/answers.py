"""What routes answer, as types: the OpenAPI document is made of them."""

from typing import Any, Literal, NamedTuple, NotRequired

from pydantic import BaseModel, JsonValue, create_model
from typing_extensions import TypedDict


def page_of(item: type, name: str = "") -> type[BaseModel]:
    """Return the type of a page of items; `next` is the cursor of the next page, null at the end.

    Its name is that of the items in the plural.
    """
    name = name or f"{item.__name__.removesuffix('Answer')}sAnswer"
    text = f"A page of {item.__name__}; `next` is null on the last one."
    return create_model(name, __doc__=text, items=list[item], next=str | None)


class FindingAnswer(TypedDict):
    """What a rule found, and where."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    file: str
    #: Null where a whole file or folder is meant.
    line: int | None
    column: int | None
    length: int | None
    cause: list[str]
    hint: list[str]
    fix: dict[str, JsonValue] | None


class ProblemAnswer(TypedDict):
    """Why a request failed; `weft explain` knows the code."""

    code: str
    message: str
    cause: list[str]
    hint: list[str]
    findings: list[FindingAnswer]
    run: NotRequired[str]


class DoneAnswer(TypedDict):
    """Something was done."""

    ok: Literal[True]


class EventAnswer(TypedDict):
    """An event of a run."""

    v: int
    seq: int
    ts: int
    run: str
    turn: int
    kind: str
    actor: str
    cause: int
    data: dict[str, Any]


class EventsAnswer(TypedDict):
    """A page of events; `next` is the `after` of the next page, null for the last one."""

    items: list[EventAnswer]
    next: int | None


class RequestAnswer(TypedDict):
    """An open request: who is asked what, until when, and what is an answer.

    `payload` and `response_schema` are null for an end user whom it is not addressed to.
    """

    run: str
    id: str
    app: str
    user: str
    kind: Literal["chat", "ui"]
    agent: str
    tool: str | None
    payload: JsonValue
    opened_at: int
    expires_at: int | None
    component: str
    mode: str
    addressee: str
    response_schema: dict[str, JsonValue] | None
    #: For developers: the variables that the answer sets.
    sets: NotRequired[list[str]]


class RowAnswer(TypedDict):
    """A run. End users get the fields that are required."""

    run: str
    app: str
    user: str
    workflow: str
    digest: str
    status: Literal["running", "waiting", "ended"]
    seq: int
    started_at: int
    changed_at: int
    preview: str
    outcome: str | None
    #: The run that this one was forked from, and its name on a board; empty for others.
    parent: str
    name: str
    #: When the run is due next, if it is.
    due_at: int | None
    reason: NotRequired[str]
    turns: NotRequired[int]
    calls: NotRequired[int]
    #: Null where a part of the sum is not known; so are the tokens and the cost of a run.
    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    cost_usd: NotRequired[float | None]
    unpriced_calls: NotRequired[int]
    unmetered_calls: NotRequired[int]
    #: The worker that works on it, and its last heartbeat.
    owner: NotRequired[str]
    heartbeat: NotRequired[int]


class RunAnswer(RowAnswer):
    """A run, with its open requests."""

    requests: list[RequestAnswer]


class StartedAnswer(TypedDict):
    """A run that continues on its own, and its last event at this moment."""

    run: str
    seq: int


class Started(NamedTuple):
    """A run that was started now, or by an earlier request that was the same."""

    run: str
    seq: int
    is_new: bool


class ContinuedAnswer(TypedDict):
    """The run that continues: the same, or a new one."""

    run: str
