"""Groups: agents that take their turns in parallel, and how their replies and values are merged.

Each member has the conversation as it was at the fork plus its own messages, and its own copy of
the variables. They are merged in the order the members began, so the result does not depend on
which was faster, except with `merge: first`.
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
from weft.engine.message import Message
from weft.engine.state import Activation, Group, OwnValues, State, without
from weft.engine.timers import Timer
from weft.engine.turn.run import end_run, stop_after_turn
from weft.engine.variables.computed import mark, recompute
from weft.engine.variables.conditions import same
from weft.engine.variables.values import added_part, queue_documents, with_part
from weft.findings import Json
from weft.spec.variables import DerivedSource, EntitySource, Merge, Variable


def on_forked(
    compiled: CompiledWorkflow, state: State, event: Event, data: Forked
) -> list[Command]:
    """Start the turns of all members, and the timer of their deadline."""
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
    """Add a turn to its group, with its own messages and variables."""
    group = state.groups[fork]
    if agent != group.name:
        state.groups = {**state.groups, fork: replace(group, turns=(*group.turns, turn))}
    state.threads = {**state.threads, turn: state.messages}
    state.own = {**state.own, turn: OwnValues(state.variables, {})}


def replies_of(state: State, fork: int) -> dict[str, Json]:
    """Return the replies of the members of a group, by name."""
    return {member.agent: member.reply for member in _done(state, state.groups[fork])}


def member_ended(compiled: CompiledWorkflow, state: State, member: Activation) -> list[Command]:
    """Join, or wait for the other members."""
    group = state.groups[member.fork]
    if member.agent == group.name:  # The function that merges the replies has ended.
        return [_join_event(group, [*_done(state, group), member], _text(member.reply))]
    return _join_when_done(compiled, state, group)


def member_failed(
    compiled: CompiledWorkflow, state: State, member: Activation, error: str
) -> list[Command]:
    """Fail with a member, or continue without it."""
    group = state.groups[member.fork]
    rules = compiled.groups[group.name]
    state.close_turns(member.number)
    if rules.on_failure == "fail" or member.agent == group.name:
        return [end_run(compiled, "failed", f"{error} (in the group {group.name})")]
    group = replace(group, failed={**group.failed, member.number: error})
    state.groups = {**state.groups, group.fork: group}
    return _join_when_done(compiled, state, group)


def on_joined(
    compiled: CompiledWorkflow, state: State, event: Event, data: Joined
) -> list[Command]:
    """Merge the messages and values of the turns, and hand off."""
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
    for timer in state.timers.values():
        if timer.owner == group.fork:
            state.timers = state.timers.removed(timer.id)
    last, streak = state.last_speaker
    state.last_speaker = (data.name, streak + 1 if data.name == last else 1)
    if state.stopping:
        return [*commands, stop_after_turn(compiled)]
    return [*commands, Record(HandedOff(data.name, compiled.groups[data.name].next, "joined"))]


def fail_late_members(compiled: CompiledWorkflow, state: State, timer: Timer) -> list[Command]:
    """Fail the members of a group that have missed its deadline."""
    group = state.groups[timer.owner]
    seconds = compiled.groups[group.name].deadline
    members = (state.active[turn] for turn in group.turns if turn in state.active)
    late = [member for member in members if member.stage != "done"]
    return [
        Record(
            TurnFailed(
                member.agent, f"{member.agent} did not finish within {seconds:g} s", "deadline"
            ),
            member.number,
        )
        for member in late
    ]


def _done(state: State, group: Group) -> list[Activation]:
    members = (state.active[turn] for turn in group.turns if turn in state.active)
    return [member for member in members if member.stage == "done"]


def _join_when_done(compiled: CompiledWorkflow, state: State, group: Group) -> list[Command]:
    """Join when enough members are done."""
    rules = compiled.groups[group.name]
    done = _done(state, group)
    if rules.merge == "first" and done:
        return [_join_event(group, done[:1])]
    if len(done) + len(group.failed) < len(group.members):
        return []
    if not done:
        faults = "; ".join(group.failed.values())
        told = f"every member of the group {group.name} failed: {faults}"
        return [end_run(compiled, "failed", told)]
    return [_merge_replies(rules, group, done)]


def _merge_replies(rules: GroupRules, group: Group, done: Sequence[Activation]) -> Command:
    match rules.merge:
        case "majority":
            votes = [json.dumps(member.reply, sort_keys=True) for member in done]
            most = max(votes, key=votes.count)  # Of several, the first.
            return _join_event(group, [done[votes.index(most)]])
        case "collect":
            return _join_event(group, done, _text({member.agent: member.reply for member in done}))
        case "custom":
            return Start(group.name, group.fork)
        case _:
            return _join_event(group, done)


def _join_event(group: Group, done: Sequence[Activation], text: str | None = None) -> Command:
    return Record(
        Joined(group.name, group.fork, tuple(member.number for member in done), text), turn=0
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- values that members have set in parallel


def join_values(compiled: CompiledWorkflow, state: State, turns: Sequence[int]) -> list[Command]:
    """Merge the values that the turns of a group have set."""
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
            fault = _merge_into(compiled, base, values, name, own[name], first=first)
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
        Record(write, 0) for name in writers for write in recompute(compiled.computed, values, name)
    ]
    return [*refused, *followed, *queue_documents(compiled, state, writers)]


def _is_set(variable: Variable) -> bool:
    """Return whether members can set a variable; values read from outside do not conflict."""
    return isinstance(variable.source, DerivedSource | EntitySource)


def _merge_into(
    compiled: CompiledWorkflow,
    base: Mapping[str, Json],
    values: dict[str, Json],
    name: str,
    value: Json,
    *,
    first: str | None,
) -> str | None:
    """Merge the value of a member with those of others; return why it cannot be merged."""
    if first is None:
        values[name] = value
        return None
    rule = compiled.variables[name].merge
    joined, fault = merge_values(rule, base.get(name), values.get(name), value)
    if fault:
        return f"{first} has set it in parallel; {fault}"
    values[name] = joined
    return None


def merge_values(rule: Merge | None, was: Json, held: Json, value: Json) -> tuple[Json, str]:
    """Return the merged value of two parallel writers, or the reason why there is none."""
    if rule is None or not isinstance(value, list | dict):
        return value, "" if same(held, value) else "declare merge for it, or let only one set it"
    part, fault = added_part(rule, was, cast("Json", value))
    return with_part(rule, held, part), fault
