"""Joining: which of the values count that members of a group have set side by side.

What only one member has set counts. What several have set counts as the variable declares: what
each has added to a list, or the keys each has set; without such a rule the first counts, in the
order the members began, and what the others have set is refused and recorded.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import VariableRefused
from weft.engine.state import State
from weft.engine.variables import documents
from weft.engine.variables.computed import follow, mark
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.spec.variables import DerivedSource, EntitySource, Merge, Variable


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
    followed = [Record(it, 0) for name in writers for it in follow(compiled.computed, values, name)]
    return [*refused, *followed, *documents.changed(compiled, state, writers)]


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
            key: it
            for key, it in cast("dict[str, Json]", value).items()
            if key not in before or not same(before[key], it)
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
