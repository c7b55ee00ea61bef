"""The triggers of a workflow, sorted by what they wait for."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pydantic import BaseModel

from weft.engine.events import Event
from weft.engine.state import State
from weft.engine.variables.patterns import pattern
from weft.findings import Json
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    BringsValue,
    Contains,
    CustomTrigger,
    Equals,
    Exact,
    FunctionTrigger,
    HandoffTrigger,
    LifecycleTrigger,
    Match,
    ModelFailedTrigger,
    TimerExpiredTrigger,
    ToolCallTrigger,
    ToolFailedTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
    UserTextTrigger,
)
from weft.spec.variables import DerivedSource, Variable


class Fires(NamedTuple):
    """A trigger fires and sets its variable to a value."""

    value: Json


class TriggerKind(Protocol):
    """One kind: what may be declared for it, and when it fires.

    It must be pure: the same settings, event and state always give the same answer, so that a
    journal is decided the same whenever it is replayed.
    """

    @property
    def settings(self) -> type[BaseModel]:
        """The keys a trigger of this kind has beside its type."""
        ...

    def fires(self, settings: Any, event: Event, state: State) -> Fires | None:  # noqa: ANN401
        """Return the value that an event sets; the state is the one before the event.

        It is not called for values that triggers have set. If it raises, nothing is set, and the
        journal has the error.
        """
        ...


#: By the name after `x:`.
TriggerKinds: TypeAlias = Mapping[str, TriggerKind]
NO_KINDS: Final[TriggerKinds] = {}

Matches: TypeAlias = Callable[[str], bool]

#: The triggers for lifecycle points, failures, timers, plug-ins and functions of the package.
BoundaryTrigger: TypeAlias = (
    LifecycleTrigger
    | ToolFailedTrigger
    | ModelFailedTrigger
    | TimerExpiredTrigger
    | CustomTrigger
    | FunctionTrigger
)


@dataclass(frozen=True, slots=True)
class Setting:
    """The effect of a trigger: it sets a variable to a value, or to the value at a path.

    In a state machine only if the variable has the value in `origin`.
    """

    variable: str
    value: Json
    path: tuple[str, ...] | None = None
    origin: tuple[Json] | None = None


@dataclass(frozen=True, slots=True)
class TextRule:
    """A text that sets a variable."""

    matches: Matches
    setting: Setting


@dataclass(frozen=True, slots=True)
class HandoffRule:
    """A handoff that sets a variable; None stands for any agent."""

    source: str | None
    target: str | None
    setting: Setting


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A failure that sets a variable; None stands for any tool or agent, and any kind."""

    of: str | None
    kind: str | None
    setting: Setting


@dataclass(frozen=True, slots=True)
class TimerRule:
    """A time after the start of a run at which a variable is set."""

    seconds: float
    setting: Setting


@dataclass(frozen=True, slots=True)
class CustomRule:
    """A trigger of a plug-in, with its settings as the plug-in reads them."""

    name: str
    kind: TriggerKind
    settings: BaseModel
    setting: Setting


@dataclass(frozen=True, slots=True)
class TriggerIndex:
    """Every trigger where it is looked up: by agent, by tool, or all of a kind."""

    agent_text: dict[str, list[TextRule]] = field(default_factory=dict[str, list[TextRule]])
    user_text: list[TextRule] = field(default_factory=list[TextRule])
    tool_call: dict[str, list[Setting]] = field(default_factory=dict[str, list[Setting]])
    tool_response: dict[str, list[Setting]] = field(default_factory=dict[str, list[Setting]])
    ui_response: dict[str, list[Setting]] = field(default_factory=dict[str, list[Setting]])
    handoff: list[HandoffRule] = field(default_factory=list[HandoffRule])
    #: By agent and the number of its turn.
    agent_turn_count: dict[tuple[str, int], list[Setting]] = field(
        default_factory=dict[tuple[str, int], list[Setting]]
    )
    #: By the lifecycle point and the agent; None stands for any.
    lifecycle: dict[tuple[str, str | None], list[Setting]] = field(
        default_factory=dict[tuple[str, str | None], list[Setting]]
    )
    tool_failed: list[FailureRule] = field(default_factory=list[FailureRule])
    model_failed: list[FailureRule] = field(default_factory=list[FailureRule])
    #: By the name of the timer.
    timers: dict[str, TimerRule] = field(default_factory=dict[str, TimerRule])
    #: By the variable and the function that returns its value.
    functions: dict[tuple[str, str], list[Setting]] = field(
        default_factory=dict[tuple[str, str], list[Setting]]
    )
    custom: list[CustomRule] = field(default_factory=list[CustomRule])


def index_triggers(
    variables: Mapping[str, Variable], kinds: TriggerKinds = NO_KINDS
) -> TriggerIndex:
    """Sort the triggers of all variables; `kinds` are those that plug-ins add."""
    index = TriggerIndex()
    for name, variable in variables.items():
        source = variable.source
        if isinstance(source, DerivedSource):
            for trigger, setting in _settings(name, source):
                _add(index, trigger, setting, kinds)
    return index


def _settings(name: str, source: DerivedSource) -> Iterator[tuple[Trigger, Setting]]:
    for trigger in source.triggers:
        yield trigger, Setting(name, _value(trigger), _path(trigger))
    for step in source.transitions:
        if step.trigger is not None:
            yield step.trigger, Setting(name, step.to, origin=(step.from_,))


def _value(trigger: Trigger) -> Json:
    """Return the fixed value of a trigger; None if the value comes from the event."""
    if isinstance(trigger, BringsValue):
        return None
    return trigger.value


def _path(trigger: Trigger) -> tuple[str, ...] | None:
    match trigger:
        case ToolCallTrigger(argument=str() as path):
            return tuple(path.split("."))
        case ToolResponseTrigger(argument=str() as path):
            return "arguments", *path.split(".")
        case ToolResponseTrigger(response_key=str() as path):
            return "result", *path.split(".")
        case UiResponseTrigger(response_key=path):
            return tuple(path.split("."))
        case ToolFailedTrigger(response_key=key) | ModelFailedTrigger(response_key=key):
            return (key,) if key else None
        case _:
            return None


def _add(index: TriggerIndex, trigger: Trigger, setting: Setting, kinds: TriggerKinds) -> None:
    match trigger:
        case AgentTextTrigger(agent=agent, match=wanted):
            index.agent_text.setdefault(agent, []).append(TextRule(matcher(wanted), setting))
        case UserTextTrigger(match=wanted):
            index.user_text.append(TextRule(matcher(wanted), setting))
        case ToolCallTrigger(tool=tool):
            index.tool_call.setdefault(tool, []).append(setting)
        case ToolResponseTrigger(tool=tool):
            index.tool_response.setdefault(tool, []).append(setting)
        case UiResponseTrigger(tool=tool):
            index.ui_response.setdefault(tool, []).append(setting)
        case HandoffTrigger(source_agent=source, target_agent=target):
            index.handoff.append(HandoffRule(source, target, setting))
        case AgentTurnCountTrigger(agent=agent, count=count):
            index.agent_turn_count.setdefault((agent, count), []).append(setting)
        case _:
            _add_boundary(index, trigger, setting, kinds)


def _add_boundary(
    index: TriggerIndex, trigger: BoundaryTrigger, setting: Setting, kinds: TriggerKinds
) -> None:
    match trigger:
        case LifecycleTrigger(event=event, agent=agent):
            index.lifecycle.setdefault((event, agent), []).append(setting)
        case ToolFailedTrigger(tool=tool, kind=kind):
            index.tool_failed.append(FailureRule(tool, kind, setting))
        case ModelFailedTrigger(agent=agent):
            index.model_failed.append(FailureRule(agent, None, setting))
        case TimerExpiredTrigger(after_seconds=seconds):
            name = f"trigger:{setting.variable}:{len(index.timers)}"
            index.timers[name] = TimerRule(seconds, setting)
        case CustomTrigger(name=name, settings=settings):
            if name in kinds:  # Without its plug-in a package is not run.
                made = kinds[name].settings.model_validate(settings)
                index.custom.append(CustomRule(name, kinds[name], made, setting))
        case _:
            index.functions.setdefault((setting.variable, trigger.function), []).append(setting)


def matcher(wanted: Match) -> Matches:
    """Return a function that tests whether a text matches."""
    match wanted:
        case Equals(equals=text):
            folded = text.strip().casefold()
            return lambda said: said.strip().casefold() == folded
        case Exact(exact=text):
            return text.__eq__
        case Contains(contains=text):
            part = text.casefold()
            return lambda said: part in said.casefold()
        case _:
            return pattern(wanted.regex)
