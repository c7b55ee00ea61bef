"""Groups: agents that take their turns side by side, and what becomes of what they say.

Each member hears the conversation as it was at the fork and its own words, and has the variables
for itself. What counts is decided when the group joins, in the order the members began: which of
them was faster makes no difference, unless `merge: first` asks for just that.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.routing import GroupRules
from weft.engine.events import (
    Event,
    Forked,
    HandedOff,
    Joined,
    TimerSet,
    TurnFailed,
    VariableRefused,
)
from weft.engine.state import Activation, Group, Message, OwnValues, State, Timer, without
from weft.engine.turn.run import end_run, stop_after_turn
from weft.engine.variables.computed import follow, mark
from weft.engine.variables.conditions import same
from weft.engine.variables.values import queue_documents
from weft.findings import Json
from weft.spec.variables import DerivedSource, EntitySource, Merge, Variable


def on_forked(
    compiled: CompiledWorkflow, state: State, event: Event, data: Forked
) -> list[Command]:
    """Start the turns of all members, and the time they have."""
    group = Group(event.seq, data.name, data.members, len(state.messages))
    state.groups = {**state.groups, event.seq: group}
    state.handoffs_since_turn = 0
    commands: list[Command] = []
    seconds = compiled.groups[data.name].deadline
    if seconds is not None:
        due = event.at + round(seconds * 1000)
        commands.append(Record(TimerSet(f"deadline:{event.seq}", due, "deadline")))
    return [*commands, *start_members(group)]


def start_members(group: Group) -> list[Command]:
    """Return the turns of members that have not begun."""
    return [Start(member, group.fork) for member in group.members[len(group.turns) :]]


def join_group(state: State, agent: str, turn: int, fork: int) -> None:
    """Let a turn begin as a member of its group: with words and variables for itself."""
    group = state.groups[fork]
    if agent != group.name:
        state.groups = {**state.groups, fork: replace(group, turns=(*group.turns, turn))}
    state.threads = {**state.threads, turn: state.messages}
    state.own = {**state.own, turn: OwnValues(state.variables, {})}


def replies_of(state: State, fork: int) -> dict[str, Json]:
    """Return what the members of a group came to, by name."""
    return {member.agent: member.reply for member in _done(state, state.groups[fork])}


def member_ended(compiled: CompiledWorkflow, state: State, member: Activation) -> list[Command]:
    """Join, or wait for the other members."""
    group = state.groups[member.fork]
    if member.agent == group.name:  # It has merged what the others said.
        return [_joined(group, [*_done(state, group), member], _text(member.reply))]
    return _settle(compiled, state, group)


def member_failed(
    compiled: CompiledWorkflow, state: State, member: Activation, error: str
) -> list[Command]:
    """Fail with a member, or go on without it."""
    group = state.groups[member.fork]
    rules = compiled.groups[group.name]
    state.close_turns(member.number)
    if rules.on_failure == "fail" or member.agent == group.name:
        return [end_run(compiled, "failed", f"{error} (in the group {group.name})")]
    group = replace(group, failed={**group.failed, member.number: error})
    state.groups = {**state.groups, group.fork: group}
    return _settle(compiled, state, group)


def on_joined(
    compiled: CompiledWorkflow, state: State, event: Event, data: Joined
) -> list[Command]:
    """Let count what the turns said and set, and hand off."""
    group = state.groups[data.fork]
    turns = [each_turn for each_turn in data.turns if each_turn in state.own]
    if data.text is None:
        for turn in turns:
            state.messages = state.messages.added(*state.threads[turn].since(group.length))
    commands = join_values(compiled, state, turns)
    if data.text is not None:
        state.add_message(Message("agent", data.name, data.text, event.seq))
    state.close_turns(
        *(active.number for active in state.active.values() if active.fork == group.fork)
    )
    state.groups = without(state.groups, group.fork)
    state.timers = {key: timer for key, timer in state.timers.items() if timer.owner != group.fork}
    last, streak = state.last_speaker
    state.last_speaker = (data.name, streak + 1 if data.name == last else 1)
    if state.stopping:
        return [*commands, stop_after_turn(compiled)]
    return [*commands, Record(HandedOff(data.name, compiled.groups[data.name].next, "joined"))]


def overdue(compiled: CompiledWorkflow, state: State, timer: Timer) -> list[Command]:
    """Let the members of a group fail that are not done in time."""
    group = state.groups[timer.owner]
    seconds = compiled.groups[group.name].deadline
    members = (state.active[turn] for turn in group.turns if turn in state.active)
    late = [member for member in members if member.stage != "done"]
    return [
        Record(
            TurnFailed(
                member.agent, f"{member.agent} was not done within {seconds:g} s", "deadline"
            ),
            member.number,
        )
        for member in late
    ]


def _done(state: State, group: Group) -> list[Activation]:
    members = (state.active[turn] for turn in group.turns if turn in state.active)
    return [member for member in members if member.stage == "done"]


def _settle(compiled: CompiledWorkflow, state: State, group: Group) -> list[Command]:
    """Join when enough members are done."""
    rules = compiled.groups[group.name]
    done = _done(state, group)
    if rules.merge == "first" and done:
        return [_joined(group, done[:1])]
    if len(done) + len(group.failed) < len(group.members):
        return []
    if not done:
        faults = "; ".join(group.failed.values())
        told = f"every member of the group {group.name} failed: {faults}"
        return [end_run(compiled, "failed", told)]
    return [_merged(rules, group, done)]


def _merged(rules: GroupRules, group: Group, done: Sequence[Activation]) -> Command:
    match rules.merge:
        case "majority":
            votes = [json.dumps(member.reply, sort_keys=True) for member in done]
            most = max(votes, key=votes.count)  # Of several, the first.
            return _joined(group, [done[votes.index(most)]])
        case "collect":
            return _joined(group, done, _text({member.agent: member.reply for member in done}))
        case "custom":
            return Start(group.name, group.fork)
        case _:
            return _joined(group, done)


def _joined(group: Group, done: Sequence[Activation], text: str | None = None) -> Command:
    return Record(
        Joined(group.name, group.fork, tuple(member.number for member in done), text), turn=0
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- values that members have set side by side


def join_values(compiled: CompiledWorkflow, state: State, turns: Sequence[int]) -> list[Command]:
    """Let count what the turns of a group have set."""
    base = state.variables
    values, set_by = dict(base), dict(state.set_by)
    refused: list[Command] = []
    writers: dict[str, str] = {}
    for turn in turns:
        own, own_set = state.own[turn]
        agent = state.active[turn].agent
        for name, seq in own_set.items():
            if compiled.variables[name].source.type == "computed":
                continue  # It follows from the others.
            first = writers.get(name) if _is_set(compiled.variables[name]) else None
            fault = _put(compiled, base, values, name, own[name], first=first)
            if fault is not None:
                refused.append(Record(VariableRefused(name, f"agent:{agent}", fault), turn))
                continue
            writers.setdefault(name, agent)
            set_by[name] = seq
    if not writers:
        return refused
    state.variables, state.set_by = values, set_by
    mark(compiled.computed, state, 0, writers)
    followed = [
        Record(write, 0) for name in writers for write in follow(compiled.computed, values, name)
    ]
    return [*refused, *followed, *queue_documents(compiled, state, writers)]


def _is_set(variable: Variable) -> bool:
    """Tell whether members set a variable; what each has read from outside is no conflict."""
    return isinstance(variable.source, DerivedSource | EntitySource)


def _put(
    compiled: CompiledWorkflow,
    base: Mapping[str, Json],
    values: dict[str, Json],
    name: str,
    value: Json,
    *,
    first: str | None,
) -> str | None:
    """Put what a member has set beside what others have; say why it cannot be."""
    if first is None:
        values[name] = value
        return None
    rule = compiled.variables[name].merge
    joined, fault = joined_value(rule, base.get(name), values.get(name), value)
    if fault:
        return f"{first} has set it side by side; {fault}"
    values[name] = joined
    return None


def joined_value(rule: Merge | None, was: Json, held: Json, value: Json) -> tuple[Json, str]:
    """Return what two have made of a value side by side, or say why that cannot be."""
    if rule == "append":
        added = _added(was, value)
        if added is None:
            return None, "this is no longer list than it was before"
        return [*cast("list[Json]", held), *added], ""
    if rule == "merge" and isinstance(held, dict) and isinstance(value, dict):
        before = cast("dict[str, Json]", was) if isinstance(was, dict) else {}
        news = {
            key: part
            for key, part in cast("dict[str, Json]", value).items()
            if key not in before or not same(before[key], part)
        }
        return {**cast("dict[str, Json]", held), **news}, ""
    if not same(cast("Json", held), value):
        return None, "declare merge for it, or let only one set it"
    return value, ""


def _added(was: Json, value: Json) -> list[Json] | None:
    """Return what was added to a list; None if it does not begin as it was."""
    before = cast("list[Json]", was) if isinstance(was, list) else []
    after = cast("list[Json]", value) if isinstance(value, list) else None
    if after is None or not same(after[: len(before)], before):
        return None
    return after[len(before) :]
