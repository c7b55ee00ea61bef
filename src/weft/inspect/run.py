"""Inspection of a run: its turns, calls, handoffs and cost, from its workflow and its journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from weft.engine.events import ConditionJudged, Event, HandedOff, RunForked, TurnStarted
from weft.engine.reduce import fold
from weft.engine.state import Ending, Request, Spent, State
from weft.inspect.board import BoardRun, add_board_event, board_run, board_turn
from weft.inspect.calls import DocumentRecord, FetchRecord, ToolUse
from weft.inspect.flow import FlowRun, retry_delay, step_turn
from weft.inspect.handoffs import HandoffRecord, Judgement, handoff_record, judgement_record
from weft.inspect.steps import Step, steps, until_end, waited_seconds
from weft.inspect.turn_notes import Page, TurnRecord
from weft.inspect.variables import VariableRecord, variable_records
from weft.runtime.workflow import Workflow, declared, in_run
from weft.spec.agents import ModelSettings


def turn_records(workflow: Workflow, run: str, events: Sequence[Event]) -> list[TurnRecord]:
    """Return what happened in each turn."""
    return [page.record for page in _read_pages(workflow, run, events)[1:]]


def _read_pages(
    workflow: Workflow, run: str, events: Sequence[Event], flow: FlowRun | None = None
) -> list[Page]:
    """Read the events of a run: the first page is the run itself, then one for each turn."""
    if not events:
        return [Page(workflow, TurnRecord(0, "", 0, 0), BoardRun())]
    pages = {0: Page(workflow, TurnRecord(0, "", 0, events[0].at), BoardRun())}
    for step in steps(workflow.compiled, run, events):
        event = step.event
        if flow is not None:
            flow.add(workflow, step)
        # The decision about the next agent belongs to the turn before it.
        last = pages[event.turn if event.turn in pages and event.turn else next(reversed(pages))]
        match event.data:
            case TurnStarted() as data:
                pages[event.turn] = _begin_turn(workflow, step, data)
            case HandedOff():
                record = handoff_record(workflow, event, event.data, last.record.judged)
                last.record.handoffs.append(record)
            case ConditionJudged():
                last.record.judged.append(judgement_record(workflow, event, event.data))
            case _:
                page = pages.get(event.turn)
                # On a board, code may be called about a turn that has failed.
                if page is not None and (page.record.ended is None or page.board is not None):
                    cause = pages.get(events[event.cause - 1].turn) if event.cause else None
                    _add_event(page, step, cause)
    _add_retries(pages, events)
    forked = max((event.seq for event in events if isinstance(event.data, RunForked)), default=0)
    for page in pages.values():
        page.finish()
        page.record.settings = declared(_settings(workflow, run, page, forked))
    return list(pages.values())


def _begin_turn(workflow: Workflow, step: Step, data: TurnStarted) -> Page:
    event, group = step.event, step.after.groups.get(data.fork)
    record = TurnRecord(event.turn, data.agent, event.seq, event.at)
    record.group = group.name if group else ""
    record.board = board_turn(step.after, event.turn)
    record.step = step_turn(workflow, data) if workflow.compiled.flow is not None else None
    return Page(workflow, record, record.board, app=step.after.app)


def _add_event(page: Page, step: Step, cause: Page | None) -> None:
    page.add(step)
    if page.record.step is not None:
        page.record.step.add(page.workflow, step.event)
    if page.board is not None:
        add_board_event(page.board, step.event, cause.board if cause else None)


def _settings(workflow: Workflow, run: str, page: Page, forked: int) -> ModelSettings | None:
    """Return the model settings of a turn; for a copied turn those of the original run."""
    settings = workflow.settings.get(page.record.agent)
    last = max((call.seq for call in page.record.calls), default=page.record.seq)
    return settings if last < forked else in_run(settings, page.app, workflow.name, run)


def _add_retries(pages: Mapping[int, Page], events: Sequence[Event]) -> None:
    """Add to each attempt of a step the delay before the next one."""
    for turn, delay in filter(None, map(retry_delay, events)):
        step = pages[turn].record.step
        if step is not None:
            step.retry_seconds = delay


@dataclass(frozen=True, slots=True)
class Spending:
    """The usage of models in a run. A sum is None unless every part of it is known."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    #: The number of calls without a known price, and without a token count.
    unpriced_calls: int
    unmetered_calls: int
    #: The tokens and the cost in words.
    tokens: str
    cost: str


@dataclass(frozen=True, slots=True)
class RunInspection:
    """The inspection of a whole run, as JSON values."""

    run: str
    workflow: str
    digest: str
    #: Whether it is inspected with another version of the workflow than it ran with.
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
    #: Values read before the first turn; functions called before it and at the end.
    fetched: tuple[FetchRecord, ...]
    points: tuple[ToolUse, ...]
    #: The judgements before the first turn.
    judged: tuple[Judgement, ...]
    documents: tuple[DocumentRecord, ...]
    #: The outcome of a run that is ending but still has work to do.
    ending: Ending | None
    #: The time it waited for answers of people.
    waited_seconds: float
    #: The events of a board outside its turns.
    board: BoardRun | None = None
    #: The branches, loops and forks of a flow.
    flow: FlowRun | None = None


def inspect_run(workflow: Workflow, run: str, events: Sequence[Event]) -> RunInspection:
    """Return what happened in a run."""
    events = until_end(events)
    state = fold(workflow.compiled, run, events)
    flow = FlowRun() if workflow.compiled.flow is not None else None
    own, *turns = _read_pages(workflow, run, events, flow)
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
        opening=tuple(own.record.handoffs),
        turns=tuple(page.record for page in turns),
        requests=tuple(state.requests.values()),
        fetched=tuple(own.record.fetched),
        points=tuple(own.record.points),
        judged=tuple(own.record.judged),
        documents=tuple(own.documents),
        ending=state.ending,
        waited_seconds=waited_seconds(events, events[-1].at if events else 0),
        board=board_run(state, events, cast("BoardRun", own.board)),
        flow=flow,
    )


def is_other_package(workflow: Workflow, state: State) -> bool:
    """Return whether a run belongs to another version of the package."""
    return state.digest != workflow.digest


def spending(spent: Spent) -> Spending:
    """Return the cost of model calls; an unknown amount is never counted as zero."""
    return Spending(
        calls=spent.calls,
        input_tokens=None if spent.unmetered_calls else spent.input_tokens,
        output_tokens=None if spent.unmetered_calls else spent.output_tokens,
        cost_usd=None if spent.unpriced_calls else spent.cost_usd,
        unpriced_calls=spent.unpriced_calls,
        unmetered_calls=spent.unmetered_calls,
        tokens=_tokens(spent),
        cost=_cost(spent),
    )


def _tokens(spent: Spent) -> str:
    unit = "token" if spent.input_tokens == 1 else "tokens"
    known = f"{spent.input_tokens} {unit} in, {spent.output_tokens} out"
    if spent.unmetered_calls == 0 and not (spent.input_tokens or spent.output_tokens):
        return "no tokens billed"  # The sample, a script or a person answered.
    if spent.unmetered_calls == 0:
        return known
    # One side of a call may be counted while the other is not.
    if spent.unmetered_calls == spent.calls and not (spent.input_tokens or spent.output_tokens):
        return "tokens unknown"
    return f"at least {known} ({spent.unmetered_calls} of {spent.calls} calls not counted)"


def _cost(spent: Spent) -> str:
    known = f"${spent.cost_usd:.4f}"
    if spent.unpriced_calls == 0:
        return known
    if spent.unpriced_calls == spent.calls:
        return "unknown"
    return (
        f"at least {known}: the price of {spent.unpriced_calls} of {spent.calls} calls is unknown"
    )
