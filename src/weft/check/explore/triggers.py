"""What triggers set, as happenings: all that fires at once sets its variables together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from weft.check.bindings import bound_model
from weft.check.code.facts import asked_of, path_in
from weft.check.explore.answers import Answer, answer, output
from weft.check.explore.happenings import (
    ANSWERED,
    CALLED,
    RETURNED,
    Caller,
    Happening,
    Setting,
    When,
    callers,
)
from weft.check.explore.texts import together
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.sources import DerivedSource
from weft.spec.tools import UiTool
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

#: Where a lifecycle trigger fires; what fires after the run can no longer change its way.
_POINTS: Final = {"before_chat": "begin", "before_agent": "open", "after_agent": "close"}


@dataclass(frozen=True, slots=True)
class Firing:
    """A trigger fires: what it shares with all others that do so then, and its values.

    `keeps` means that it may bring no value. `why` says why it may not fire at all, `open_value`
    why a value may not come.
    """

    at: Happening
    values: tuple[Json, ...]
    cause: str = ""
    keeps: bool = False
    why: str = ""
    open_value: str = ""
    text: Match | None = None
    part: str | None = None


@dataclass
class _Sum:
    """What all triggers set that fire together, and why that is not certain."""

    settings: list[Setting] = field(default_factory=list[Setting])
    whys: list[str] = field(default_factory=list[str])


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    """Yield the happenings by which triggers set one of `variables`."""
    reader = _Reader(subject, variables)
    texts: dict[When, dict[Match, list[Setting]]] = {}
    sums: dict[tuple[Happening, str], _Sum] = {}
    for name, variable in variables.items():
        if not isinstance(variable.source, DerivedSource):
            continue
        for firing, setting in reader.settings(name, variable.source, variable.type):
            if firing.text is not None:
                found = texts.setdefault(firing.at.when, {})
                found.setdefault(firing.text, []).append(setting)
                continue
            sum_ = sums.setdefault((firing.at, firing.cause), _Sum())
            sum_.settings.append(setting)
            sum_.whys += [firing.why] if firing.why else []
    for (bare, _), sum_ in sums.items():
        shared = _shared(sum_.settings)
        why = next(iter(sum_.whys), shared)
        settings = (replace(it, keeps=it.keeps or bool(why)) for it in sum_.settings)
        yield replace(bare, settings=tuple(settings), why=why)
    for when, found in texts.items():
        yield from _said(subject, when, found)


def _shared(settings: Iterable[Setting]) -> str:
    """Say that two variables take their values from one place: they never get different ones."""
    takers: dict[str, str] = {}
    for it in settings:
        place = (it.part or "").partition(".")[0]
        if place and takers.setdefault(place, it.variable) != it.variable:
            return f"{takers[place]} and {it.variable} take their values from one place, {place}"
    return ""


def _said(
    subject: Subject, when: When, found: Mapping[Match, Sequence[Setting]]
) -> Iterator[Happening]:
    """Yield the texts that somebody may say: each sets all that waits for such a text."""
    settings = list(found.values())
    name = settings[0][0].variable
    why = f"one text may be what {name} waits for and others too, or not"
    bound = bound_model(subject, when.agent or "")
    if bound:
        # Of replies that must be JSON it is not known which texts are in them.
        why = f"{name} waits for a text, but the replies of {when.agent} are JSON, as {bound} says"
    texts = together(list(found))
    for indexes in () if bound else texts.sets:
        yield Happening(when, tuple(one for index in indexes for one in settings[index]))
    if bound or not texts.complete:
        every = (replace(one, keeps=True) for group in settings for one in group)
        yield Happening(when, tuple(every), why)


class _Reader:
    """Reads triggers; knows the calls of each tool, the answers to it, and all timers."""

    def __init__(self, subject: Subject, variables: Mapping[str, Variable]) -> None:
        self._subject = subject
        self._callers = list(callers(subject))
        sources = (variable.source for variable in variables.values())
        timers = {
            trigger.after_seconds
            for source in sources
            if isinstance(source, DerivedSource)
            for trigger in (*source.triggers, *(step.trigger for step in source.transitions))
            if isinstance(trigger, TimerExpiredTrigger)
        }
        self._timers = sorted(timers)

    def settings(
        self, name: str, source: DerivedSource, type_: TypeExpr
    ) -> Iterator[tuple[Firing, Setting]]:
        """Yield what the triggers of a variable set, and when; null is nothing to set."""
        for rank, trigger in enumerate(source.triggers):
            for firing in self._firings(trigger, name, type_):
                fired = replace(firing, why=firing.why or firing.open_value)
                for value in firing.values:
                    if value is not None:
                        keeps, part = firing.keeps, firing.part
                        yield fired, Setting(name, value, keeps=keeps, part=part, rank=rank)
        for rank, step in enumerate(source.transitions, start=len(source.triggers)):
            if step.trigger is not None and step.to is not None:
                for firing in self._firings(step.trigger, name, type_):
                    yield firing, Setting(name, step.to, step.from_, rank=rank)

    def _firings(self, trigger: Trigger, name: str, type_: TypeExpr) -> Iterator[Firing]:
        """Say when a trigger fires."""
        match trigger:
            case AgentTextTrigger(agent=agent, match=text, value=value):
                yield _plain(When("say", agent), value, text=text)
            case UserTextTrigger(match=text, value=value):
                yield _plain(When("hear"), value, text=text)
            case UiResponseTrigger():
                yield from self._answered(trigger, type_)
            case ToolCallTrigger(tool=tool):
                for caller in self._calls(tool):
                    yield self._called(trigger, caller, name, type_)
            case ToolResponseTrigger(tool=tool, response_key=key, value=value):
                for caller in self._calls(tool):
                    one = Firing(_in_call(caller, RETURNED), (value,), f"returned {tool}")
                    yield one if key is None else _returned(one, name, tool)
            case HandoffTrigger(source_agent=source, target_agent=target, value=value):
                yield _plain(When("pass", source, target), value)
            case LifecycleTrigger(event=point, agent=agent, value=value):
                if point in _POINTS:
                    yield _plain(When(_POINTS[point], agent), value)
            case AgentTurnCountTrigger():
                yield _counted(trigger, name)
            case TimerExpiredTrigger(after_seconds=seconds, value=value):
                tick = (CLOCK, self._timers.index(seconds) + 1)
                for when in (When("turn"), When("wait")):
                    yield Firing(Happening(when, (), tick=tick), (value,))
            case _:
                one = _plain(When("turn"), UNKNOWN, cause=f"asked {trigger.function}")
                yield _returned(one, name, trigger.function)

    def _calls(self, tool: str) -> Iterator[Caller]:
        return (it for it in self._callers if it.function == tool)

    def _called(
        self, trigger: ToolCallTrigger, caller: Caller, name: str, type_: TypeExpr
    ) -> Firing:
        """Say when a call sets a variable: to a value, or to what stands at an argument."""
        tool, argument = trigger.tool, trigger.argument
        plain = Firing(_in_call(caller, CALLED), (trigger.value,), f"called {tool}", part=argument)
        if argument is None:
            return plain
        found = Answer((UNKNOWN,), keeps=False)
        if caller.when.moment == "auto":
            model = bound_model(self._subject, caller.agent or "")
            models = self._subject.models
            found = output(models.get(model or "", {}), argument, type_, models)
        why = f"the output that {tool} is called with does not tell which values {name} can get"
        open_value = "" if found.sure else why
        return replace(plain, values=found.values, keeps=found.keeps, open_value=open_value)

    @cached_property
    def _asking(self) -> tuple[tuple[Caller, frozenset[str | None]], ...]:
        """All that is called in a run, with the tools it shows to a person."""
        subject = self._subject
        paths = ((it, path_in(it.folder, it.file, subject.code) or "") for it in self._callers)
        return tuple((it, asked_of(subject, path, it.function)) for it, path in paths)

    def _answered(self, trigger: UiResponseTrigger, type_: TypeExpr) -> Iterator[Firing]:
        """Say when a person's answer sets a variable: wherever code may show them the tool."""
        tool, key = trigger.tool, trigger.response_key
        declared = self._subject.tools.get(tool)
        schema = declared.response_schema if isinstance(declared, UiTool) else None
        found = answer(schema, key, type_)
        for caller, asked in self._asking:
            own = caller.function == tool
            if own or not asked.isdisjoint((tool, None)):
                yield Firing(
                    _in_call(caller, ANSWERED),
                    found.values,
                    f"answered {caller.function}",
                    keeps=True,
                    why="" if own else f"the code of {caller.function} may ask {tool}, or not",
                    open_value="" if found.sure else f"the schema of {tool} leaves its values open",
                    part=key,
                )


def _plain(when: When, value: Json, cause: str = "", text: Match | None = None) -> Firing:
    return Firing(Happening(when, ()), (value,), cause, text=text)


def _in_call(caller: Caller, stage: int) -> Happening:
    return Happening(caller.when, (), stage=stage, call=caller.call)


def _returned(firing: Firing, name: str, function: str) -> Firing:
    why = f"what {name} is set to depends on what {function} returns"
    return replace(firing, values=(UNKNOWN,), keeps=True, open_value=why)


def _counted(trigger: AgentTurnCountTrigger, name: str) -> Firing:
    agent, count, value = trigger.agent, trigger.count, trigger.value
    if count <= MOST_TURNS:
        tick = (turns_of(agent), count)
        return Firing(Happening(When("count", agent), (), tick=tick), (value,))
    why = f"turn {count} of {agent}, which sets {name}, is too far away to be followed"
    return replace(_plain(When("turn", agent), value, cause=f"counted {count}"), why=why)


def turns_of(agent: str) -> str:
    """Return the name of the count of an agent's turns."""
    return f"turns of {agent}"
