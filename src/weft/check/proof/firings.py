"""Triggers of derived variables: when each of them fires, and to what it sets its variable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from weft.check.bindings import bound_model
from weft.check.code_facts import asked_of, path_in
from weft.check.proof.answers import Answer, answer, output
from weft.check.proof.arguments import answer_taken, argument_taken
from weft.check.proof.code_doubts import ways_of_call, without_result
from weft.check.proof.happenings import (
    ANSWERED,
    CALLED,
    RETURNED,
    Caller,
    Doubt,
    Setting,
    Taken,
    When,
    callers,
)
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
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
from weft.spec.variables import DerivedSource, Variable

#: Turns beyond this one are not counted one by one.
MOST_TURNS: Final = 16
#: Time is counted for the whole run, turns for each agent.
CLOCK: Final = "clock"


@dataclass(frozen=True, slots=True)
class Firing:
    """When a trigger fires, what it shares with all others that fire then too, and its values.

    `keeps` means that it may bring no value, and `doubt` says why a value may never come; `unsure`
    why the trigger itself may not fire. `call` names the tool to whose call it belongs, `part`
    where in that the value stands, and `taken` with which values the call goes on.
    """

    moments: tuple[When, ...]
    values: tuple[Json, ...]
    cause: str = ""
    keeps: bool = False
    doubt: Doubt | None = None
    unsure: Doubt | None = None
    tick: tuple[str, int] | None = None
    stage: int = 0
    text: Match | None = None
    call: str = ""
    part: str | None = None
    taken: Taken = "any"


class Reader:
    """Reads triggers; knows the calls of each tool, the answers to it, and all timers."""

    def __init__(self, subject: Subject, variables: Mapping[str, Variable]) -> None:
        self._calls: dict[str, tuple[When, ...]] = {}
        self._chosen: set[str] = set()
        self._callers: dict[str, Caller] = {}
        for caller in callers(subject):
            self._callers[caller.function] = caller
            self._calls[caller.function] = (*self._calls.get(caller.function, ()), caller.when)
            self._chosen |= {caller.call}
        self._schemas = {
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
        self._timers = sorted(timers)
        self._subject = subject

    def settings(
        self, name: str, source: DerivedSource, type_: TypeExpr
    ) -> Iterator[tuple[Firing, Setting]]:
        """Yield what the triggers of a variable set, and when; null is nothing to set."""
        for rank, trigger in enumerate(source.triggers):
            for firing in self._firings(trigger, name, type_):
                fired = replace(firing, doubt=firing.doubt or firing.unsure)
                keeps, given = firing.keeps, firing.part is not None
                for value in firing.values:
                    if value is not None:
                        taken = firing.taken
                        found = Setting(name, value, keeps=keeps, given=given, taken=taken)
                        yield fired, replace(found, rank=rank)
        for rank, step in enumerate(source.transitions, start=len(source.triggers)):
            if step.trigger is not None and step.to is not None:
                for firing in self._firings(step.trigger, name, type_):
                    keeps = firing.unsure is not None
                    fired = replace(firing, doubt=firing.unsure, part=None)
                    yield fired, Setting(name, step.to, step.from_, keeps=keeps, rank=rank)

    def _firings(self, trigger: Trigger, name: str, type_: TypeExpr) -> Iterator[Firing]:
        """Say when a trigger fires."""
        match trigger:
            case AgentTextTrigger(agent=agent, match=text, value=value):
                yield Firing((When("say", agent),), (value,), text=text)
            case UserTextTrigger(match=text, value=value):
                yield Firing((When("hear"),), (value,), text=text)
            case UiResponseTrigger():
                yield from self._answered(trigger, name, type_)
            case ToolCallTrigger():
                yield self._called(trigger, name, type_)
            case ToolResponseTrigger():
                yield self._returned(trigger, name)
            case HandoffTrigger(source_agent=source, target_agent=target, value=value):
                yield Firing((When("pass", source, target),), (value,))
            case LifecycleTrigger(event=point, agent=agent, value=value):
                yield Firing(tuple(_at(point, agent)), (value,))
            case AgentTurnCountTrigger():
                yield _counted(trigger, name)
            case TimerExpiredTrigger(after_seconds=seconds, value=value):
                tick = (CLOCK, self._timers.index(seconds) + 1)
                yield Firing((When("turn"), When("wait")), (value,), tick=tick)
            case _:
                cause, doubt = f"asked {trigger.function}", _result(name, trigger.function)
                yield Firing((When("turn"),), (UNKNOWN,), cause, keeps=True, doubt=doubt)

    def _called(self, trigger: ToolCallTrigger, name: str, type_: TypeExpr) -> Firing:
        """Say when a call sets a variable: to a value, or to what stands at an argument."""
        tool, argument = trigger.tool, trigger.argument
        plain = self._during(tool, "called", CALLED, argument)
        if argument is None:
            return replace(plain, values=(trigger.value,))
        found = Answer((UNKNOWN,))
        for when in plain.moments:
            if when.moment == "auto":
                found = self._output(when.agent or "", argument, type_)
        doubt = None if found.sure else _untold(name, tool)
        taken: Taken = "any"
        if plain.call:
            taken = argument_taken(self._subject, self._callers[tool], argument, type_)
        plain = replace(plain, values=found.values, taken=taken)
        return replace(plain, keeps=found.keeps, doubt=doubt)

    def _output(self, agent: str, field: str, type_: TypeExpr) -> Answer:
        fields = self._subject.models.get(bound_model(self._subject, agent) or "", {})
        return output(fields, field, type_, self._subject.models)

    @cached_property
    def _asking(self) -> tuple[tuple[Caller, frozenset[str | None]], ...]:
        """All that is called in a run, with the tools it shows to a person."""
        subject, found = self._subject, callers(self._subject)
        paths = ((it, path_in(it.folder, it.file, subject.code) or "") for it in found)
        return tuple((it, asked_of(subject, path, it.function)) for it, path in paths)

    def _answered(self, trigger: UiResponseTrigger, name: str, type_: TypeExpr) -> Iterator[Firing]:
        """Say when a person's answer sets a variable: wherever code may show them the tool."""
        tool, key = trigger.tool, trigger.response_key
        found = answer(self._schemas.get(tool), key, type_)
        doubt = None if found.sure else _unasked(name, tool)
        for caller, asked in self._asking:
            if caller.function == tool or not asked.isdisjoint((tool, None)):
                yield Firing(
                    (caller.when,),
                    found.values,
                    f"answered {caller.function}",
                    keeps=True,
                    doubt=doubt,
                    unsure=self._unshown(caller, asked, tool, name),
                    stage=ANSWERED,
                    call=caller.call,
                    part=key,
                    taken=answer_taken(self._schemas.get(tool), key),
                )

    def _unshown(
        self, caller: Caller, asked: frozenset[str | None], tool: str, name: str
    ) -> Doubt | None:
        """Say why a call may not show a tool to a person; None if that is what it does."""
        if tool not in asked:
            why = f"the code of {caller.function} does not show whether a person is asked {tool}"
            return Doubt(why, f'write use_ui_tool("{tool}") with the name as a text', name)
        ways = ways_of_call(self._subject, caller)
        if caller.function == tool and len(asked) == 1 and ways.sure and ways.shows(tool):
            return None
        why = f"{caller.function} may do without the answer to {tool}"
        possible = ways.shows(tool) or (ways.asks and caller.function == tool)
        return Doubt(why, f"let {tool} ask by itself", name, mild=ways.free and possible)

    def _returned(self, trigger: ToolResponseTrigger, name: str) -> Firing:
        tool, key = trigger.tool, trigger.response_key
        plain = self._during(tool, "returned", RETURNED, key)
        caller = self._callers.get(tool)
        if caller is None or not ways_of_call(self._subject, caller).returns:
            return replace(plain, moments=())
        plain = replace(plain, unsure=without_result(self._subject, caller, name))
        if key is None:
            return replace(plain, values=(trigger.value,))
        return replace(plain, values=(UNKNOWN,), keeps=True, doubt=_result(name, tool))

    def _during(self, tool: str, cause: str, stage: int, part: str | None) -> Firing:
        """Return what is common to all that belongs to the call of a tool."""
        moments = self._calls.get(tool, ())
        call = tool if tool in self._chosen else ""
        return Firing(moments, (), f"{cause} {tool}", stage=stage, call=call, part=part)


def _triggers(source: DerivedSource) -> Iterator[Trigger]:
    yield from source.triggers
    yield from (step.trigger for step in source.transitions if step.trigger)


def _counted(trigger: AgentTurnCountTrigger, name: str) -> Firing:
    agent, count, value = trigger.agent, trigger.count, trigger.value
    if count <= MOST_TURNS:
        return Firing((When("count", agent),), (value,), tick=(turns_of(agent), count))
    why = f"turn {count} of {agent}, which sets {name}, is too far away to be followed"
    doubt = Doubt(why, f"count to {MOST_TURNS} turns at most", name)
    return Firing((When("turn", agent),), (value,), f"counted {count}", doubt=doubt)


def turns_of(agent: str) -> str:
    """Return the name of the count of an agent's turns."""
    return f"turns of {agent}"


def _result(name: str, function: str) -> Doubt:
    why = f"what {name} is set to depends on what {function} returns"
    return Doubt(why, f"set {name} by what an agent says or calls, or by a person's answer", name)


def _unasked(name: str, tool: str) -> Doubt:
    why = f"the response_schema of {tool} does not tell which values {name} can get"
    return Doubt(why, "list the values there under enum", name)


def _untold(name: str, tool: str) -> Doubt:
    why = f"the output that {tool} is called with does not tell which values {name} can get"
    return Doubt(why, f"give the field of the output the type of {name}", name)


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
