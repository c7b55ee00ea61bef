"""Triggers of derived variables as events: what happens, when, and to what it sets them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weft.check.proof.events import Event, Setting, When, callers
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.sources import DerivedSource
from weft.spec.tools import LifecyclePoint
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    HandoffTrigger,
    LifecycleTrigger,
    TimerExpiredTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
    UserTextTrigger,
)
from weft.spec.variables import Variable


@dataclass(frozen=True, slots=True)
class _Firing:
    """When a trigger fires, what it shares with all others that fire then too, and its value."""

    moments: tuple[When, ...]
    cause: tuple[object, ...]
    value: Json


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Event]:
    """Yield the events by which triggers set one of `variables`."""
    calls: dict[str, tuple[When, ...]] = {}
    for caller in callers(subject):
        calls[caller.function] = (*calls.get(caller.function, ()), caller.when)
    together: dict[tuple[When, object], list[Setting]] = {}
    for name, variable in variables.items():
        if isinstance(variable.source, DerivedSource):
            for firing, setting in _settings(name, variable.source, calls):
                for when in firing.moments:
                    together.setdefault((when, firing.cause), []).append(setting)
    for (when, _), settings in together.items():
        yield Event(when, tuple(settings))


def _settings(
    name: str, source: DerivedSource, calls: Mapping[str, tuple[When, ...]]
) -> Iterator[tuple[_Firing, Setting]]:
    for trigger in source.triggers:
        firing = _firing(trigger, calls)
        yield firing, Setting(name, firing.value)
    for transition in source.transitions:
        if transition.trigger is not None:
            firing = _firing(transition.trigger, calls)
            yield firing, Setting(name, transition.to, transition.from_)


def _firing(trigger: Trigger, calls: Mapping[str, tuple[When, ...]]) -> _Firing:
    match trigger:
        case AgentTextTrigger(agent=agent, match=text, value=value):
            found = _Firing((When("turn", agent),), ("said", text), value)
        case UserTextTrigger(match=text, value=value):
            found = _Firing((When("wait"),), ("said", text), value)
        case UiResponseTrigger(tool=tool):
            found = _Firing(calls.get(tool, ()), ("answered", tool), UNKNOWN)
        case ToolCallTrigger(tool=tool, argument=argument, value=value):
            found = _Firing(calls.get(tool, ()), ("called", tool), UNKNOWN if argument else value)
        case ToolResponseTrigger(tool=tool, response_key=key, value=value):
            found = _Firing(calls.get(tool, ()), ("returned", tool), UNKNOWN if key else value)
        case HandoffTrigger(source_agent=source, target_agent=target, value=value):
            found = _Firing((When("pass", source, target),), (), value)
        case LifecycleTrigger(event=point, agent=agent, value=value):
            found = _Firing(tuple(_at(point, agent)), (), value)
        case AgentTurnCountTrigger(agent=agent, count=count, value=value):
            found = _Firing((When("turn", agent),), ("counted", count), value)
        case TimerExpiredTrigger(after_seconds=seconds, value=value):
            found = _Firing((When("turn"), When("wait")), ("expired", seconds), value)
        case _:
            found = _Firing((When("turn"),), ("asked", trigger.function), UNKNOWN)
    return found


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
