"""Moves: the actions of agents that rules depend on, and those that lead to an end."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Final, Literal, TypeAlias

from weft.adapters.models.sample_values import Places, matching_text
from weft.check.explore.domains import Questions, questions_in, samples
from weft.check.explore.happenings import Setting
from weft.check.explore.ways import Ways, ways_to_end
from weft.check.run import is_explorable
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.engine.compiled import ActivationRules, CompiledWorkflow
from weft.engine.variables.conditions import UNKNOWN
from weft.engine.variables.trigger_index import Setting as TriggerSetting
from weft.findings import Json
from weft.spec.conditions import names
from weft.spec.triggers import (
    AgentTextTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
)
from weft.spec.type_meaning import validation_error
from weft.spec.types import Ref, TypeExpr
from weft.spec.variables import DerivedSource

#: The most combinations of arguments that are tried.
_MOST_MOVES: Final = 64

#: The number of turns in which an agent explores before it goes to the end, if time allows.
_LOOK_AROUND: Final = 2


@dataclass(frozen=True, slots=True)
class Move:
    """A message, a tool call, or a structured reply for an automatic tool."""

    kind: Literal["say", "call", "reply"]
    #: The text, or the name of the tool.
    what: str
    places: Places = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A move, the variables it sets on success, and the answers of a person that it needs."""

    move: Move
    settings: tuple[Setting, ...]
    answer: Places = ()


@dataclass(frozen=True, slots=True)
class _Slot:
    """A variable that a tool call sets: when, from which place, and its possible values."""

    when: Literal["call", "answer", "response"]
    path: tuple[str, ...] | None
    variable: str
    values: tuple[Json, ...]
    before: Json = UNKNOWN


@dataclass(frozen=True, slots=True)
class Steering:
    """The moves of an agent that rules depend on, and those that lead to the end.

    `ways` come in groups, those needed first in front; one of a group will do. `answers` says, by
    tool, what people may answer that leads on. An agent makes for the end once it has spoken
    `wandering` times.
    """

    moves: Mapping[str, tuple[Move, ...]] = field(default_factory=dict[str, tuple[Move, ...]])
    ways: Mapping[str, tuple[tuple[Move, ...], ...]] = field(
        default_factory=dict[str, tuple[tuple[Move, ...], ...]]
    )
    answers: Mapping[str, tuple[Places, ...]] = field(default_factory=dict[str, tuple[Places, ...]])
    wandering: int = _LOOK_AROUND


def steering_of(subject: Subject) -> Steering:
    """Return the steering that ends the runs of a workflow within their turns."""
    found = ways_to_end(subject) if is_explorable(subject) else None
    return steering_along(compile_workflow(subject.spec), found)


def steering_along(compiled: CompiledWorkflow, found: Ways | None) -> Steering:
    """Return the steering of runs along ways: to an end, or to a handoff."""
    steps = steps_of(compiled, found)
    turns = found.turns if found else None
    groups = {agent: (kept,) for agent, kept in steps.items()}
    if found and turns is not None:
        groups = {agent: _nearer(found, agent, kept) for agent, kept in steps.items()}
    answers: dict[str, list[Places]] = {}
    for step in (step for ways in groups.values() for kept in ways for step in kept):
        known = answers.setdefault(step.move.what, []) if step.answer else []
        known += [step.answer] if step.answer not in known else []
    # Every agent may explore, and each detour may take as long as the whole way.
    spare = compiled.orchestrator.max_turns - 2 * (turns or 0)
    return Steering(
        moves={agent: _moves(kept) for agent, kept in steps.items() if kept},
        ways={agent: tuple(map(_moves, ways)) for agent, ways in groups.items() if any(ways)},
        answers={tool: tuple(known) for tool, known in answers.items()},
        wandering=max(0, min(_LOOK_AROUND, spare // (2 * max(1, len(compiled.agents))))),
    )


def _nearer(found: Ways, agent: str, steps: Iterable[Step]) -> tuple[tuple[Step, ...], ...]:
    """Return the steps that bring a run nearer to its end, the furthest first."""
    groups: dict[int, list[Step]] = {}
    for step in steps:
        for distance in found.nearer(agent, step.settings, reply=step.move.kind != "call"):
            groups.setdefault(distance, []).append(step)
    return tuple(tuple(groups[far]) for far in sorted(groups, reverse=True))


def _moves(steps: Sequence[Step]) -> tuple[Move, ...]:
    """Return each move once: several steps may have the same move."""
    moves: list[Move] = []
    for step in steps:
        if step.move not in moves:
            moves.append(step.move)
    return tuple(moves)


def steps_of(compiled: CompiledWorkflow, found: Ways | None) -> dict[str, tuple[Step, ...]]:
    """Return, by agent, every move that sets a variable of a rule."""
    rules = (*compiled.routing.pre.values(), *compiled.routing.post.values())
    conditions = [rule.condition for group in rules for rule in group if rule.condition is not None]
    asked = {} if found else questions_in(conditions)
    routed = {name: None for condition in conditions for name in names(condition)}
    triggers = [
        trigger
        for name in routed
        if name in compiled.variables
        for trigger in _triggers(compiled, name)
    ]
    slots: dict[str, list[_Slot]] = {}
    for name, trigger, effect in triggers:
        values = found.values(name) if found else _distinguished_values(compiled, name, asked)
        for tool, slot in _slot(name, trigger, effect, values):
            slots.setdefault(tool, []).append(slot)
    return {
        agent: (
            *_messages(compiled, agent, part, triggers),
            *(step for tool in part.tools for step in _tool_steps(tool, slots.get(tool, []))),
            *_replied(compiled, part, slots.get(part.auto_tool or "", [])),
        )
        for agent, part in compiled.agents.items()
    }


def _distinguished_values(
    compiled: CompiledWorkflow, name: str, asked: Mapping[str, Questions]
) -> tuple[Json, ...]:
    """Return the values of a variable that conditions distinguish, without exploration."""
    values = samples(compiled.variables[name].type, asked.get(name, Questions()))
    return tuple(value for value in values or () if value is not None)


_Told: TypeAlias = tuple[str, Trigger, Setting | None]


def _triggers(compiled: CompiledWorkflow, name: str) -> Iterator[_Told]:
    """Yield the triggers of a variable, with the effect of state changes."""
    source = compiled.variables[name].source
    if isinstance(source, DerivedSource):
        for trigger in source.triggers:
            yield name, trigger, None
        for change in source.transitions:
            if change.trigger is not None:
                yield name, change.trigger, Setting(name, change.to, change.from_)


def _slot(
    name: str, trigger: Trigger, effect: Setting | None, values: tuple[Json, ...]
) -> Iterator[tuple[str, _Slot]]:
    match trigger:
        case (
            ToolCallTrigger(tool=tool, argument=path, value=value)
            | ToolResponseTrigger(tool=tool, argument=str() as path, value=value)
        ):
            when = "call"
        case ToolResponseTrigger(tool=tool, response_key=path, value=value):
            when = "response"
        case UiResponseTrigger(tool=tool, response_key=path):
            when, value = "answer", None
        case _:
            return
    if effect is not None:
        yield tool, _Slot(when, None, name, (effect.value,), effect.origin)
    elif path is None:
        yield tool, _Slot(when, None, name, (value,))
    elif values:
        yield tool, _Slot(when, tuple(path.split(".")), name, values)


def _combined(slots: list[_Slot]) -> Iterator[tuple[Places, tuple[Setting, ...], Places]]:
    """Yield the arguments of a call, the variables it then sets, and the needed answers.

    Variables set by the call come first, then by the answer, then by the result.
    """
    order = ("call", "answer", "response")
    slots = sorted(slots, key=lambda slot: order.index(slot.when))
    for chosen in islice(product(*(slot.values for slot in slots)), _MOST_MOVES):
        pairs = list(zip(slots, chosen, strict=True))
        yield (
            tuple((slot.path, value) for slot, value in pairs if slot.path and slot.when == "call"),
            tuple(Setting(slot.variable, value, slot.before) for slot, value in pairs),
            tuple(
                (slot.path, value) for slot, value in pairs if slot.path and slot.when == "answer"
            ),
        )


def _tool_steps(tool: str, slots: list[_Slot]) -> Iterator[Step]:
    for places, effects, answer in _combined(slots) if slots else ():
        yield Step(Move("call", tool, places), effects, answer)


def _replied(
    compiled: CompiledWorkflow, part: ActivationRules, slots: list[_Slot]
) -> Iterator[Step]:
    """Yield the valid structured replies with which an automatic tool is called."""
    if part.auto_tool is None or not isinstance(part.output, Ref) or not slots:
        return
    types = compiled.models[part.output.name]
    for places, effects, answer in _combined(slots):
        if all(_takes(compiled, types, path, value) for path, value in places):
            yield Step(Move("reply", part.auto_tool, places), effects, answer)


def _takes(
    compiled: CompiledWorkflow, types: Mapping[str, TypeExpr], path: tuple[str, ...], value: Json
) -> bool:
    """Whether a value is valid at a place of a reply; the run validates deeper places."""
    field, *deeper = path
    if field not in types:
        return False
    return bool(deeper) or validation_error(types[field], value, compiled.models) is None


def _messages(
    compiled: CompiledWorkflow, agent: str, part: ActivationRules, triggers: list[_Told]
) -> Iterator[Step]:
    """Yield messages that set variables, with these variables."""
    for _, trigger, _ in triggers:
        if not isinstance(trigger, AgentTextTrigger) or trigger.agent != agent:
            continue
        text = matching_text(trigger.match)
        if text is None:
            continue
        # Inside a structured reply, the message is a part of the text, never all of it.
        heard = text if part.output is None else json.dumps([text], ensure_ascii=False)
        rules = compiled.triggers.agent_text.get(agent, ())
        effects = [_setting(rule.setting) for rule in rules if rule.matches(heard)]
        if effects:
            yield Step(Move("say", text), tuple(effects))


def _setting(found: TriggerSetting) -> Setting:
    origin = UNKNOWN if found.origin is None else found.origin[0]
    return Setting(found.variable, found.value, origin)
