"""Moves: what the agents of a workflow can do that its rules look at."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product
from typing import Final, Literal, TypeAlias

from weft.adapters.models.sample_texts import matching_text
from weft.check.rules.overlap import domain
from weft.engine.compiled import ActivationRules, CompiledWorkflow
from weft.engine.conditions import UNKNOWN
from weft.engine.trigger_index import Setting
from weft.findings import Json
from weft.spec.conditions import And, Condition, names
from weft.spec.sources import DerivedSource
from weft.spec.triggers import (
    AgentTextTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
)
from weft.spec.type_meaning import mismatch
from weft.spec.types import Ref, TypeExpr

#: Of more combinations of arguments than this, only some are tried.
_MOST_MOVES: Final = 64

#: What stands at which place of arguments, of a reply, of an answer.
Places: TypeAlias = tuple[tuple[tuple[str, ...], Json], ...]


class Anything(Enum):
    """The type of `ANYTHING`."""

    ANYTHING = "anything"


#: A variable may have had any value before.
ANYTHING: Final = Anything.ANYTHING


@dataclass(frozen=True, slots=True)
class Move:
    """What an agent says, which tool it calls, or what it replies to a tool called with replies."""

    kind: Literal["say", "call", "reply"]
    #: The words, or the tool.
    what: str
    places: Places = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """A variable that is set, perhaps only if it had a certain value before."""

    variable: str
    value: Json
    before: Json | Anything = ANYTHING


@dataclass(frozen=True, slots=True)
class Step:
    """A move, what it sets if all goes well, and what a person must answer for that."""

    move: Move
    effects: tuple[Effect, ...]
    answer: Places = ()


@dataclass(frozen=True, slots=True)
class _Slot:
    """A variable that a tool call sets: when, from which place, to one of which values."""

    when: Literal["call", "answer", "response"]
    path: tuple[str, ...] | None
    variable: str
    values: tuple[Json, ...]
    before: Json | Anything = ANYTHING


def conditions_of(compiled: CompiledWorkflow) -> list[Condition]:
    """Return every condition that decides who speaks next."""
    groups = (*compiled.routing.pre.values(), *compiled.routing.post.values())
    return [rule.condition for rules in groups for rule in rules if rule.condition is not None]


def steps_of(compiled: CompiledWorkflow) -> dict[str, tuple[Step, ...]]:
    """Return, by agent, every move that sets a variable which some rule looks at."""
    conditions = conditions_of(compiled)
    if not conditions:
        return {}
    routed = {name: None for condition in conditions for name in names(condition)}
    triggers = [
        it for name in routed if name in compiled.variables for it in _triggers(compiled, name)
    ]
    values = _values(compiled, conditions)
    slots: dict[str, list[_Slot]] = {}
    for name, trigger, effect in triggers:
        for tool, slot in _slot(name, trigger, effect, values[name]):
            slots.setdefault(tool, []).append(slot)
    return {
        agent: (
            *_spoken(compiled, agent, part, triggers),
            *(it for tool in part.tools for it in _called(tool, slots.get(tool, []))),
            *_replied(compiled, part, slots.get(part.auto_tool or "", [])),
        )
        for agent, part in compiled.agents.items()
    }


def _values(compiled: CompiledWorkflow, conditions: list[Condition]) -> dict[str, tuple[Json, ...]]:
    """Choose, for each variable, the values that make a difference to some rule."""
    whole = And((conditions[0], *conditions))
    tried = domain(whole, whole, compiled.variables, compiled.models)
    return {
        name: tuple(it for it in values if it is not None and it is not UNKNOWN)
        for name, values in tried.items()
    }


_Told: TypeAlias = tuple[str, Trigger, Effect | None]


def _triggers(compiled: CompiledWorkflow, name: str) -> Iterator[_Told]:
    """Yield what sets a variable; with the effect where a change of state says it."""
    source = compiled.variables[name].source
    if isinstance(source, DerivedSource):
        for trigger in source.triggers:
            yield name, trigger, None
        for change in source.transitions:
            if change.trigger is not None:
                yield name, change.trigger, Effect(name, change.to, change.from_)


def _slot(
    name: str, trigger: Trigger, effect: Effect | None, values: tuple[Json, ...]
) -> Iterator[tuple[str, _Slot]]:
    match trigger:
        case ToolCallTrigger(tool=tool, argument=path, value=value):
            when = "call"
        case ToolResponseTrigger(tool=tool, response_key=path, value=value):
            when = "response"
        case UiResponseTrigger(tool=tool, response_key=path):
            when, value = "answer", None
        case _:
            return
    if effect is not None:
        yield tool, _Slot(when, None, name, (effect.value,), effect.before)
    elif path is None:
        yield tool, _Slot(when, None, name, (value,))
    elif values:
        yield tool, _Slot(when, tuple(path.split(".")), name, values)


def _combined(slots: list[_Slot]) -> Iterator[tuple[Places, tuple[Effect, ...], Places]]:
    """Yield what a call may be called with, what it then sets, and what is to be answered.

    What a call sets comes first, then what an answer does, then what its result does.
    """
    order = ("call", "answer", "response")
    slots = sorted(slots, key=lambda slot: order.index(slot.when))
    for chosen in islice(product(*(slot.values for slot in slots)), _MOST_MOVES):
        pairs = list(zip(slots, chosen, strict=True))
        yield (
            tuple((it.path, value) for it, value in pairs if it.path and it.when == "call"),
            tuple(Effect(it.variable, value, it.before) for it, value in pairs),
            tuple((it.path, value) for it, value in pairs if it.path and it.when == "answer"),
        )


def _called(tool: str, slots: list[_Slot]) -> Iterator[Step]:
    for places, effects, answer in _combined(slots) if slots else ():
        yield Step(Move("call", tool, places), effects, answer)


def _replied(
    compiled: CompiledWorkflow, part: ActivationRules, slots: list[_Slot]
) -> Iterator[Step]:
    """Yield the replies whose fields a tool is called with, as far as they may be so."""
    if part.auto_tool is None or not isinstance(part.output, Ref) or not slots:
        return
    types = compiled.models[part.output.name]
    for places, effects, answer in _combined(slots):
        if all(_takes(compiled, types, path, value) for path, value in places):
            yield Step(Move("reply", part.auto_tool, places), effects, answer)


def _effect(setting: Setting) -> Effect:
    before = ANYTHING if setting.origin is None else setting.origin[0]
    return Effect(setting.variable, setting.value, before)


def _takes(
    compiled: CompiledWorkflow, types: Mapping[str, TypeExpr], path: tuple[str, ...], value: Json
) -> bool:
    """Whether a value may stand at a place of a reply; what lies deeper is for the run to judge."""
    field, *deeper = path
    if field not in types:
        return False
    return bool(deeper) or mismatch(types[field], value, compiled.models) is None


def _spoken(
    compiled: CompiledWorkflow, agent: str, part: ActivationRules, triggers: list[_Told]
) -> Iterator[Step]:
    """Yield the words that set something, with all that they set."""
    for _, trigger, _ in triggers:
        if not isinstance(trigger, AgentTextTrigger) or trigger.agent != agent:
            continue
        text = matching_text(trigger.match)
        if text is None:
            continue
        # Inside a structured reply the words are a part of the text, never all of it.
        heard = text if part.output is None else json.dumps([text], ensure_ascii=False)
        rules = compiled.triggers.agent_text.get(agent, ())
        effects = [_effect(it.setting) for it in rules if it.matches(heard)]
        if effects:
            yield Step(Move("say", text), tuple(effects))
