"""One turn in detail: what the agent saw at every call, what it did, and a comparison of two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import Any, Final, Literal, cast

from weft.context.prompt import assemble
from weft.context.segment import LeftOut, Segment, shown
from weft.engine.events import ContextAssembled, Event, TurnStarted, VariableSet
from weft.engine.state import State
from weft.errors import NotFoundError
from weft.inspect.run import is_other_package, turn_records
from weft.inspect.steps import Step, steps, until_end
from weft.inspect.turn_notes import TurnRecord
from weft.inspect.variables import HIDDEN_VALUE, ValueSet, is_secret, value_set
from weft.ports.model import ChatMessage
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one call, assembled again from the journal."""

    call: int
    seq: int
    slices: tuple[Segment, ...]
    tokens: int
    #: What was left out, as in the journal.
    left_out: tuple[LeftOut, ...]
    #: The hashes of the prompt now and of the recorded one.
    digest: str
    recorded: str
    same: bool
    #: Why they differ; empty if they do not.
    note: str
    #: The messages after hooks, and the hooks that changed them.
    messages: tuple[ChatMessage, ...] = ()
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnInspection:
    """A turn with everything its agent saw, as JSON values."""

    run: str
    record: TurnRecord
    prompts: tuple[Prompt, ...]
    #: The values of variables when the turn began, as a prompt shows them.
    values: Mapping[str, str]
    #: What was set during the turn, in order.
    sets: tuple[ValueSet, ...]


def inspect_turn(
    workflow: Workflow, run: str, events: Sequence[Event], turn: int
) -> TurnInspection:
    """Return what an agent saw in a turn and what it did."""
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
                # Edits of a fork belong to the initial values of its first turn.
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
    raise NotFoundError(
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
        tokens=sum(segment.tokens for segment in slices),
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
        return f"this version of the package has no agent {agent}"
    if is_other_package(workflow, state):
        return "this is not what was sent: it is put together with another version of the package"
    return "this is not what was sent: it is put together by another version of Weft"


def _values(workflow: Workflow, state: State, turn: int) -> dict[str, str]:
    return {
        name: HIDDEN_VALUE if is_secret(workflow, name) else shown(value)
        for name, value in state.values_of(turn).items()
    }


#: The kind of the whole prompt where hooks have changed it.
_EDITED: Final = ("sent", "after hooks")


@dataclass(frozen=True, slots=True)
class SliceChange:
    """A part of the prompt that differs, with the lines that do."""

    kind: str
    origin: str
    change: Literal["added", "removed", "changed"]
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A variable that had another value when the turn began; None if there was none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TurnComparison:
    """What changed from one turn to another."""

    before: str
    after: str
    slices: tuple[SliceChange, ...]
    values: tuple[ValueChange, ...]
    #: Left out of the second but not of the first, and vice versa.
    newly_left_out: tuple[LeftOut, ...]
    no_longer_left_out: tuple[LeftOut, ...]


def compare_turns(
    before: TurnInspection, after: TurnInspection, *, call: int = 1
) -> TurnComparison:
    """Return the differences between the prompts of two turns, at the given call of both."""
    old, new = _prompt_of(before, call), _prompt_of(after, call)
    old_left, new_left = _left_out(old), _left_out(new)
    return TurnComparison(
        before=_name(before),
        after=_name(after),
        slices=_slices(_texts(old), _texts(new), _name(before), _name(after)),
        values=_changed_values(before, after),
        newly_left_out=tuple(entry for entry in new_left if entry not in old_left),
        no_longer_left_out=tuple(entry for entry in old_left if entry not in new_left),
    )


def _prompt_of(turn: TurnInspection, call: int) -> Prompt | None:
    return next((prompt for prompt in turn.prompts if prompt.call == call), None)


def _left_out(prompt: Prompt | None) -> tuple[LeftOut, ...]:
    return prompt.left_out if prompt else ()


def _name(turn: TurnInspection) -> str:
    return f"{turn.run}@{turn.record.number}"


def _texts(prompt: Prompt | None) -> dict[tuple[str, str], list[str]]:
    """Return the lines of a prompt by origin; a conversation is one text."""
    texts: dict[tuple[str, str], list[str]] = {}
    for part in prompt.slices if prompt else ():
        if part.kind in ("history", "turn"):
            spoken = (f"{part.role}: {line}" for line in part.text.splitlines())
            texts.setdefault((part.kind, ""), []).extend(spoken)
        else:
            texts.setdefault((part.kind, part.origin), []).extend(part.text.splitlines())
    for message in prompt.messages if prompt and prompt.edited else ():
        lines = (f"{message['role']}: {line}" for line in (message["content"] or "").splitlines())
        texts.setdefault(_EDITED, []).extend(lines)
    return texts


def _slices(
    old: dict[tuple[str, str], list[str]],
    new: dict[tuple[str, str], list[str]],
    before: str,
    after: str,
) -> tuple[SliceChange, ...]:
    found: list[SliceChange] = []
    for place in dict.fromkeys((*old, *new)):
        mine, other = old.get(place), new.get(place)
        if mine == other:
            continue
        change = "added" if mine is None else "removed" if other is None else "changed"
        diff = unified_diff(mine or [], other or [], before, after, lineterm="")
        found.append(SliceChange(*place, change, tuple(diff)))
    return tuple(found)


def _changed_values(before: TurnInspection, after: TurnInspection) -> tuple[ValueChange, ...]:
    names = dict.fromkeys((*before.values, *after.values))
    pairs = ((name, before.values.get(name), after.values.get(name)) for name in names)
    return tuple(ValueChange(name, old, new) for name, old, new in pairs if old != new)
