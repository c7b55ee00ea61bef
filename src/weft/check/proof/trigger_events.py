"""Triggers of derived variables as events: what happens, when, and to what it sets them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.check.proof.answers import answer
from weft.check.proof.events import Doubt, Event, Setting, When, callers
from weft.check.proof.text_events import together
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.sources import DerivedSource
from weft.spec.tools import LifecyclePoint, UiTool
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    HandoffTrigger,
    LifecycleTrigger,
    Match,
    TimerExpiredTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
    UserTextTrigger,
)
from weft.spec.types import TypeExpr
from weft.spec.variables import Variable

#: Turns beyond this one are not counted one by one.
MOST_TURNS: Final = 16
#: Time is counted for the whole run, turns for each agent.
CLOCK: Final = "clock"


@dataclass(frozen=True, slots=True)
class _Firing:
    """When a trigger fires, what it shares with all others that fire then too, and its values.

    `keeps` means that it may bring no value, `doubt` why a value may never come.
    """

    moments: tuple[When, ...]
    cause: tuple[object, ...]
    values: tuple[Json, ...]
    keeps: bool = False
    doubt: Doubt | None = None
    tick: tuple[str, int] | None = None
    stage: int = 0
    text: Match | None = None


@dataclass
class _Moment:
    """What all triggers set that fire together: for sure, and perhaps."""

    sure: list[Setting] = field(default_factory=list[Setting])
    unsure: list[Setting] = field(default_factory=list[Setting])
    doubts: list[Doubt] = field(default_factory=list[Doubt])


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Event]:
    """Yield the events by which triggers set one of `variables`."""
    reader = _Reader(subject, variables)
    moments: dict[tuple[When, object, tuple[str, int] | None, int], _Moment] = {}
    texts: dict[When, dict[Match, list[Setting]]] = {}
    for name, variable in variables.items():
        if isinstance(variable.source, DerivedSource):
            for firing, setting in reader.settings(name, variable.source, variable.type):
                for when in firing.moments:
                    if firing.text is not None:
                        texts.setdefault(when, {}).setdefault(firing.text, []).append(setting)
                        continue
                    key = (when, firing.cause, firing.tick, firing.stage)
                    moment = moments.setdefault(key, _Moment())
                    (moment.unsure if firing.doubt else moment.sure).append(setting)
                    moment.doubts += [firing.doubt] if firing.doubt else []
    for (when, _, tick, stage), moment in moments.items():
        for event in _events(when, moment):
            yield replace(event, tick=tick, stage=stage)
    for when, found in texts.items():
        yield from _said(when, found)


def _events(when: When, moment: _Moment) -> Iterator[Event]:
    """Yield what happens for sure, and beside it what may happen, which also may not."""
    if not moment.doubts:
        yield Event(when, tuple(moment.sure))
        return
    doubt = moment.doubts[0]
    if moment.sure:
        yield Event(when, tuple(moment.sure), replace(doubt, mild=True))
    yield Event(when, (*moment.sure, *moment.unsure), doubt)


def _said(when: When, found: Mapping[Match, Sequence[Setting]]) -> Iterator[Event]:
    """Yield the texts that somebody may say: each sets all that waits for such a text."""
    settings = list(found.values())
    texts = together(list(found))
    name = settings[0][0].variable
    why = f"one text may be what {name} waits for and others too, or not"
    doubt = Doubt(why, "match with contains or equals instead of regex", name)
    for indexes in texts.sure:
        yield Event(when, tuple(one for index in indexes for one in settings[index]))
    for indexes in texts.likely:
        chosen = tuple(one for index in indexes for one in settings[index])
        yield Event(when, chosen, replace(doubt, mild=True))
    if not texts.complete:
        every = (replace(one, keeps=True) for found in settings for one in found)
        yield Event(when, tuple(every), doubt)


class _Reader:
    """Reads triggers; knows the calls of each tool, the answers to it, and all timers."""

    def __init__(self, subject: Subject, variables: Mapping[str, Variable]) -> None:
        self.calls: dict[str, tuple[When, ...]] = {}
        for caller in callers(subject):
            self.calls[caller.function] = (*self.calls.get(caller.function, ()), caller.when)
        self.schemas = {
            tool.function: tool.response_schema
            for tool in subject.spec.tools
            if isinstance(tool, UiTool)
        }
        timers = {
            trigger.after_seconds
            for variable in variables.values()
            if isinstance(variable.source, DerivedSource)
            for trigger in _triggers(variable.source)
            if isinstance(trigger, TimerExpiredTrigger)
        }
        self.timers = sorted(timers)

    def settings(
        self, name: str, source: DerivedSource, type_: TypeExpr
    ) -> Iterator[tuple[_Firing, Setting]]:
        """Yield what the triggers of a variable set, and when."""
        for trigger in source.triggers:
            firing = self.firing(trigger, name, type_)
            for value in firing.values:
                yield firing, Setting(name, value, keeps=firing.keeps)
        for step in source.transitions:
            if step.trigger is not None:
                firing = replace(self.firing(step.trigger, name, type_), doubt=None)
                yield firing, Setting(name, step.to, step.from_)

    def firing(self, trigger: Trigger, name: str, type_: TypeExpr) -> _Firing:
        """Say when a trigger fires."""
        match trigger:
            case AgentTextTrigger(agent=agent, match=text, value=value):
                return _Firing((When("say", agent),), (), (value,), text=text)
            case UserTextTrigger(match=text, value=value):
                return _Firing((When("hear"),), (), (value,), text=text)
            case UiResponseTrigger() | ToolCallTrigger() | ToolResponseTrigger():
                return self.called(trigger, name, type_)
            case HandoffTrigger(source_agent=source, target_agent=target, value=value):
                return _Firing((When("pass", source, target),), (), (value,))
            case LifecycleTrigger(event=point, agent=agent, value=value):
                return _Firing(tuple(_at(point, agent)), (), (value,))
            case AgentTurnCountTrigger():
                return _counted(trigger, name)
            case TimerExpiredTrigger(after_seconds=seconds, value=value):
                tick = (CLOCK, self.timers.index(seconds) + 1)
                return _Firing((When("turn"), When("wait")), (), (value,), tick=tick)
            case _:
                doubt = _result(name, trigger.function)
                return _Firing(
                    (When("turn"),),
                    ("asked", trigger.function),
                    (UNKNOWN,),
                    keeps=True,
                    doubt=doubt,
                )

    def called(
        self,
        trigger: UiResponseTrigger | ToolCallTrigger | ToolResponseTrigger,
        name: str,
        type_: TypeExpr,
    ) -> _Firing:
        """Say when a trigger fires that belongs to the call of a tool."""
        tool = trigger.tool
        moments = self.calls.get(tool, ())
        match trigger:
            case UiResponseTrigger(response_key=key):
                found = answer(self.schemas.get(tool), key, type_)
                doubt = None if found.sure else _unasked(name, tool)
                return _Firing(
                    moments, ("answered", tool), found.values, keeps=True, doubt=doubt, stage=1
                )
            case ToolCallTrigger(argument=None, value=value):
                return _Firing(moments, ("called", tool), (value,))
            case ToolCallTrigger():
                return _Firing(moments, ("called", tool), (UNKNOWN,), keeps=True)
            case ToolResponseTrigger(response_key=None, value=value):
                return _Firing(moments, ("returned", tool), (value,), stage=3)
            case _:
                doubt = _result(name, tool)
                return _Firing(
                    moments, ("returned", tool), (UNKNOWN,), keeps=True, doubt=doubt, stage=3
                )


def _triggers(source: DerivedSource) -> Iterator[Trigger]:
    yield from source.triggers
    yield from (step.trigger for step in source.transitions if step.trigger)


def _counted(trigger: AgentTurnCountTrigger, name: str) -> _Firing:
    agent, count, value = trigger.agent, trigger.count, trigger.value
    if count <= MOST_TURNS:
        tick = (turns_of(agent), count)
        return _Firing((When("count", agent),), (), (value,), tick=tick)
    why = f"turn {count} of {agent}, which sets {name}, is too far away to be followed"
    doubt = Doubt(why, f"count to {MOST_TURNS} turns at most", name)
    return _Firing((When("turn", agent),), ("counted", count), (value,), doubt=doubt)


def turns_of(agent: str) -> str:
    """Return the name of the count of an agent's turns."""
    return f"turns of {agent}"


def _result(name: str, function: str) -> Doubt:
    why = f"what {name} is set to depends on what {function} returns"
    return Doubt(why, f"set {name} by what an agent says or calls, or by a person's answer", name)


def _unasked(name: str, tool: str) -> Doubt:
    why = f"the response_schema of {tool} does not tell which values {name} can get"
    return Doubt(why, "list the values there under enum", name)


def _at(point: LifecyclePoint, agent: str | None) -> Iterator[When]:
    """Place a lifecycle trigger; what fires after the run can no longer change its way."""
    match point:
        case "before_chat":
            yield When("begin")
        case "before_agent":
            yield When("open", agent)
        case "after_agent":
            yield When("close", agent)
        case _:
            return
