"""Inspection: what happened in a run and why, from its workflow and its journal alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.engine.events import Event
from weft.engine.reduce import fold
from weft.engine.spent import Spent
from weft.engine.state import Ending, Request, State
from weft.inspect.board import BoardRun, board_run
from weft.inspect.fetched import DocumentRecord, FetchRecord
from weft.inspect.flow import FlowRun
from weft.inspect.handoffs import HandoffRecord, Judgement
from weft.inspect.steps import until_end, waited_seconds
from weft.inspect.tool_uses import ToolUse
from weft.inspect.turn_records import TurnRecord, all_records
from weft.inspect.variables import VariableRecord, variable_records
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Spending:
    """What the models of a run took. A sum is None unless every part of it is known."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    #: How many calls have no known price, and how many have tokens that nobody counted.
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
    """Say what happened in a run."""
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
        parent=state.parent,
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
    """Say what models took; what nobody knows is never taken for nothing."""
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
        return "no tokens billed"  # Nobody was asked who counts: a sample, a script, a person.
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
