"""Inspection of a run: its turns, calls, handoffs and cost, from its workflow and its journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.engine.events import ConditionJudged, Event, HandedOff, RunForked, TurnStarted
from weft.engine.reduce import fold
from weft.engine.spent import Spent
from weft.engine.state import Ending, Request, State
from weft.inspect.board import BoardNotes, BoardRun, BoardTurn, board_notes, board_run
from weft.inspect.calls import DocumentRecord, FetchRecord, ToolUse
from weft.inspect.flow import FlowNotes, FlowRun, StepNotes, StepTurn, retry_delay
from weft.inspect.handoffs import HandoffRecord, Judgement, handoff_record, judgement_record
from weft.inspect.steps import steps, until_end, waited_seconds
from weft.inspect.turn_notes import NOTES, ModelCall, Page, seconds
from weft.inspect.variables import VariableRecord, variable_records
from weft.runtime.workflow import Workflow, declared, in_run
from weft.spec.agents import ModelSettings


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What happened for the run itself, before its first turn, between turns and after the last."""

    fetched: tuple[FetchRecord, ...]
    #: The functions that were called at its boundaries.
    points: tuple[ToolUse, ...]
    #: What was judged, and who was next, before the first turn.
    judged: tuple[Judgement, ...]
    handoffs: tuple[HandoffRecord, ...]
    documents: tuple[DocumentRecord, ...]
    #: What happened on a board beside its turns.
    board: BoardNotes = field(default_factory=BoardNotes)
    #: Of a flow: where it went.
    flow: FlowRun | None = None


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn. What was judged, and handed off, is that between its end and the next turn."""

    number: int
    agent: str
    seq: int
    at: int
    #: The event that ended it; None while it is under way, or if the run ended in it.
    ended: int | None
    #: From its beginning to its end, without the time it waited for people to answer.
    seconds: float | None
    calls: tuple[ModelCall, ...]
    tools: tuple[ToolUse, ...]
    #: The variables that were set, in the order of their first values.
    variables: tuple[str, ...]
    handoffs: tuple[HandoffRecord, ...]
    #: Why it came to no end of its own, if it did not, and the group it was a member of.
    error: str | None = None
    group: str = ""
    #: What is sent to its model beside the context: settings by name, the seed as a number.
    #: Turns copied by a fork had the seed of another run: they show the declared seed.
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fetched: tuple[FetchRecord, ...] = ()
    #: The functions that were called at its boundaries: before it, around its replies, after it.
    points: tuple[ToolUse, ...] = ()
    #: What the agent said after its hooks, if it has any that see its replies.
    sent: str | None = None
    judged: tuple[Judgement, ...] = ()
    #: On a board: what woke the agent, what it was shown, and what it published.
    board: BoardTurn | None = None
    #: Of a flow: which step it was, which attempt, and what it was shown.
    step: StepTurn | None = None
    waited_seconds: float = 0.0


def turn_records(workflow: Workflow, run: str, events: Sequence[Event]) -> tuple[TurnRecord, ...]:
    """Return what happened in each turn."""
    return all_records(workflow, run, events)[1]


def all_records(
    workflow: Workflow, run: str, events: Sequence[Event]
) -> tuple[RunRecord, tuple[TurnRecord, ...]]:
    """Return what happened for the run itself, and in each turn."""
    if not events:
        return RunRecord((), (), (), (), ()), ()
    own = Page(workflow, events[0])  # Number 0 is the run itself.
    own.board = BoardNotes()
    pages: dict[int, Page] = {0: own}
    flow = FlowNotes() if workflow.compiled.flow is not None else None
    for step in steps(workflow.compiled, run, events):
        event = step.event
        if flow is not None:
            flow.add(workflow, step)
        # The next agent is decided between turns and belongs to the turn before.
        last = pages[event.turn if event.turn in pages and event.turn else next(reversed(pages))]
        match event.data:
            case TurnStarted(agent=agent, fork=fork):
                page = pages[event.turn] = Page(workflow, event, agent)
                group = step.after.groups.get(fork)
                page.group = group.name if group else ""
                page.app = step.after.app
                page.board = board_notes(step.after, event.turn)
                page.step = StepNotes(workflow, event.data) if flow is not None else None
            case HandedOff():
                record = handoff_record(workflow, step, event.data, last.judged)
                last.handoffs.append(record)
            case ConditionJudged():
                last.judged.append(judgement_record(workflow, event, event.data))
            case _:
                page = pages.get(event.turn)
                note = NOTES.get(type(event.data))
                # On a board, code may be called about a turn that has failed.
                if page is None or (page.ended is not None and page.board is None):
                    continue
                if note is not None:
                    note(page, step, event.data)
                if page.step is not None:
                    page.step.add(event)
                if page.board is not None:
                    cause = pages.get(events[event.cause - 1].turn) if event.cause else None
                    page.board.add(event, cause.board if cause else None)
    del pages[0]
    _note_retries(pages, events)
    forked = max((event.seq for event in events if isinstance(event.data, RunForked)), default=0)
    turns = tuple(_turn(page, _settings(workflow, run, page, forked)) for page in pages.values())
    return _run(own, flow), turns


def _settings(workflow: Workflow, run: str, page: Page, forked: int) -> ModelSettings | None:
    """Return what the model of a turn was asked with; in one that was copied, another run's."""
    settings = workflow.settings.get(page.agent)
    last = max((call.seq for call in page.calls.values()), default=page.event.seq)
    return settings if last < forked else in_run(settings, page.app, workflow.name, run)


def _note_retries(pages: Mapping[int, Page], events: Sequence[Event]) -> None:
    """Put down with each attempt of a step how long it waited for the next."""
    for turn, seconds_ in filter(None, map(retry_delay, events)):
        step = pages[turn].step
        if step is not None:
            step.retry_seconds = seconds_


def _run(page: Page, flow: FlowNotes | None) -> RunRecord:
    return RunRecord(
        fetched=tuple(page.fetched),
        points=tuple(page.points),
        judged=tuple(page.judged),
        handoffs=tuple(page.handoffs),
        documents=tuple(page.documents),
        board=page.board or BoardNotes(),
        flow=flow.run() if flow is not None else None,
    )


def _turn(page: Page, settings: ModelSettings | None) -> TurnRecord:
    waited = page.waited_seconds
    return TurnRecord(
        number=page.event.turn,
        agent=page.agent,
        seq=page.event.seq,
        at=page.event.at,
        ended=page.ended.seq if page.ended else None,
        seconds=seconds(page.event.at, page.ended) - waited if page.ended else None,
        waited_seconds=waited,
        calls=tuple(page.calls.values()),
        tools=tuple(use for use in page.tools.values() if not use.at_boundary),
        variables=tuple(page.variables),
        handoffs=tuple(page.handoffs),
        error=page.error,
        group=page.group,
        settings=declared(settings),
        fetched=tuple(page.fetched),
        points=tuple(page.points),
        sent=page.sent,
        judged=tuple(page.judged),
        board=page.board.turn() if page.board else None,
        step=page.step.turn() if page.step else None,
    )


@dataclass(frozen=True, slots=True)
class Spending:
    """What the models of a run took. A sum is None unless every part of it is known."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    #: How many calls have no known price, and how many have no token count.
    unpriced: int
    uncounted: int
    #: The tokens and the cost in words.
    tokens: str
    cost: str


@dataclass(frozen=True, slots=True)
class RunInspection:
    """A run as a whole. It holds only what JSON can hold."""

    run: str
    workflow: str
    digest: str
    #: Whether the workflow it is looked at with is another version than the one it ran with.
    other_package: bool
    app: str
    user: str
    parent: str
    started_at: int
    changed_at: int
    seq: int
    status: str
    outcome: str | None
    reason: str
    spent: Spending
    variables: tuple[VariableRecord, ...]
    #: The handoffs before the first turn.
    opening: tuple[HandoffRecord, ...]
    turns: tuple[TurnRecord, ...]
    requests: tuple[Request, ...]
    #: What was read from outside before the first turn; what was called then and at the end.
    fetched: tuple[FetchRecord, ...]
    points: tuple[ToolUse, ...]
    #: What was judged before the first turn.
    judged: tuple[Judgement, ...]
    documents: tuple[DocumentRecord, ...]
    #: How it is going to end, while something is still to be done before.
    ending: Ending | None
    #: How long it has waited for people to answer.
    waited_seconds: float
    #: What happened on a board beside its turns.
    board: BoardRun | None = None
    #: Where a flow went beside its steps: branches, loops, paths side by side.
    flow: FlowRun | None = None


def inspect_run(workflow: Workflow, run: str, events: Sequence[Event]) -> RunInspection:
    """Return what happened in a run."""
    events = until_end(events)
    state = fold(workflow.compiled, run, events)
    own, turns = all_records(workflow, run, events)
    return RunInspection(
        run=run,
        workflow=state.workflow,
        digest=state.digest,
        other_package=is_other_package(workflow, state),
        app=state.app,
        user=state.user,
        parent=state.forked_from,
        started_at=state.started_at,
        changed_at=events[-1].at if events else 0,
        seq=state.seq,
        status=state.status,
        outcome=state.outcome,
        reason=state.reason,
        spent=spending(state.spent),
        variables=variable_records(workflow, state, events),
        opening=own.handoffs,
        turns=turns,
        requests=tuple(state.requests.values()),
        fetched=own.fetched,
        points=own.points,
        judged=own.judged,
        documents=own.documents,
        ending=state.ending,
        waited_seconds=waited_seconds(events, events[-1].at if events else 0),
        board=board_run(state, events, own.board),
        flow=own.flow,
    )


def is_other_package(workflow: Workflow, state: State) -> bool:
    """Tell whether a run belongs to another version of the package."""
    return state.digest != workflow.digest


def spending(spent: Spent) -> Spending:
    """Return the cost of model calls; an unknown amount is never counted as zero."""
    return Spending(
        calls=spent.calls,
        input_tokens=None if spent.uncounted else spent.input_tokens,
        output_tokens=None if spent.uncounted else spent.output_tokens,
        cost_usd=None if spent.unpriced else spent.cost_usd,
        unpriced=spent.unpriced,
        uncounted=spent.uncounted,
        tokens=_tokens(spent),
        cost=_cost(spent),
    )


def _tokens(spent: Spent) -> str:
    unit = "token" if spent.input_tokens == 1 else "tokens"
    known = f"{spent.input_tokens} {unit} in, {spent.output_tokens} out"
    if spent.uncounted == 0 and not (spent.input_tokens or spent.output_tokens):
        return "no tokens billed"  # The sample, a script or a person answered.
    if spent.uncounted == 0:
        return known
    # One side of a call may be counted while the other is not.
    if spent.uncounted == spent.calls and not (spent.input_tokens or spent.output_tokens):
        return "tokens unknown"
    return f"at least {known} ({spent.uncounted} of {spent.calls} calls not counted)"


def _cost(spent: Spent) -> str:
    known = f"${spent.cost_usd:.4f}"
    if spent.unpriced == 0:
        return known
    if spent.unpriced == spent.calls:
        return "unknown"
    return f"at least {known}: the price of {spent.unpriced} of {spent.calls} calls is unknown"
