"""One turn, looked at closely: what the agent saw at every call, from where, and what it did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from weft.context.assembly import assemble
from weft.context.segment import LeftOut, Segment
from weft.context.values import shown
from weft.engine.events import ContextAssembled, Event, TurnStarted, VariableSet
from weft.engine.state import State
from weft.errors import UsageError
from weft.inspect.run import is_other_package
from weft.inspect.steps import Step, steps, until_end
from weft.inspect.turn_records import TurnRecord, turn_records
from weft.inspect.variables import UNSHOWN, ValueSet, is_secret, value_set
from weft.ports.model import ChatMessage
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent was sent at one call, put together again from the journal."""

    call: int
    seq: int
    slices: tuple[Segment, ...]
    tokens: int
    #: What was left out then, as the journal says.
    left_out: tuple[LeftOut, ...]
    #: Hash of what would be sent now, and of what was sent.
    digest: str
    recorded: str
    same: bool
    #: Why they differ; empty if they do not.
    note: str
    #: What was really sent, and the hooks that have changed it after it was put together.
    messages: tuple[ChatMessage, ...] = ()
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnInspection:
    """A turn with everything its agent saw. It holds only what JSON can hold."""

    run: str
    record: TurnRecord
    prompts: tuple[Prompt, ...]
    #: The variables as they were when the turn began, as they stand in a prompt.
    values: Mapping[str, str]
    #: What was set during the turn, in order.
    sets: tuple[ValueSet, ...]


def inspect_turn(
    workflow: Workflow, run: str, events: Sequence[Event], turn: int
) -> TurnInspection:
    """Say what an agent saw in a turn and what it made of it."""
    record = _record(workflow, run, events, turn)
    last = record.ended or len(events)
    prompts: list[Prompt] = []
    values: dict[str, str] = {}
    sets: list[ValueSet] = []
    for step in islice(steps(workflow.compiled, run, until_end(events)), last):
        event = step.event
        match event.data:
            case TurnStarted() if event.seq == record.seq:
                values = _values(workflow, step.after, turn)
            case VariableSet(writer="edit") if event.seq > record.seq:
                # What a fork edits belongs to what its first turn begins with.
                values = _values(workflow, step.after, turn)
            case ContextAssembled() if event.turn == turn:
                prompts.append(_prompt(workflow, step, event.data))
            case VariableSet() if event.turn == turn:
                sets.append(value_set(workflow, event, event.data))
            case _:
                continue
    return TurnInspection(run, record, tuple(prompts), values, tuple(sets))


def _record(workflow: Workflow, run: str, events: Sequence[Event], turn: int) -> TurnRecord:
    records = turn_records(workflow, run, until_end(events))
    for record in records:
        if record.number == turn:
            return record
    raise UsageError(
        f"run {run} has no turn {turn}",
        hint=f"its turns are 1 to {len(records)}" if records else "no agent has taken a turn in it",
    )


def _prompt(workflow: Workflow, step: Step, data: ContextAssembled) -> Prompt:
    view = workflow.views.get(data.agent)
    assembly = assemble(view, step.before, step.event.turn) if view else None
    digest = assembly.digest if assembly else ""
    slices = tuple(assembly.slices()) if assembly else ()
    left_out = cast("Sequence[Any]", data.manifest.get("left_out", ()))
    return Prompt(
        call=data.call,
        seq=step.event.seq,
        slices=slices,
        tokens=sum(it.tokens for it in slices),
        left_out=tuple(left_out),
        digest=digest,
        recorded=data.digest,
        same=digest == data.digest,
        note="" if digest == data.digest else _note(workflow, step.before, data.agent),
        messages=tuple(assembly.messages) if assembly else (),
        edited=assembly.edited if assembly else (),
    )


def _note(workflow: Workflow, state: State, agent: str) -> str:
    if agent not in workflow.views:
        return f"there is no agent {agent} in this version of the package"
    if is_other_package(workflow, state):
        return "this is not what was sent: it is put together with another version of the package"
    return "this is not what was sent: it is put together by another version of Weft"


def _values(workflow: Workflow, state: State, turn: int) -> dict[str, str]:
    return {
        name: UNSHOWN if is_secret(workflow, name) else shown(value)
        for name, value in state.values_of(turn).items()
    }
