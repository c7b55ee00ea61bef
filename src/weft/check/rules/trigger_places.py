"""Where triggers stand: under a variable, or under one of its transitions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from weft.check.subject import Subject, listed_once
from weft.findings import Json, Path
from weft.spec.triggers import (
    BringsValue,
    CustomTrigger,
    TakesFromEvent,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
)
from weft.spec.variables import DerivedSource, Transition

#: The triggers that wait for a tool, always the same one.
WaitsForTool: TypeAlias = UiResponseTrigger | ToolCallTrigger | ToolResponseTrigger


@dataclass(frozen=True, slots=True)
class PlacedTrigger:
    """A trigger, the variable it sets, and the transition it belongs to, if any."""

    variable: str
    path: Path
    trigger: Trigger
    transition: Transition | None = None


@listed_once
def placed_triggers(subject: Subject) -> Iterator[PlacedTrigger]:
    for name, source in subject.sources(DerivedSource):
        root = ("variables", name, "source")
        for index, trigger in enumerate(source.triggers):
            yield PlacedTrigger(name, (*root, "triggers", index), trigger)
        for index, transition in enumerate(source.transitions):
            if transition.trigger:
                path = (*root, "transitions", index, "trigger")
                yield PlacedTrigger(name, path, transition.trigger, transition)


def of_plugins(subject: Subject) -> Iterator[tuple[PlacedTrigger, CustomTrigger]]:
    """Yield the triggers of kinds that plug-ins here add."""
    for placed in placed_triggers(subject):
        if isinstance(placed.trigger, CustomTrigger) and placed.trigger.name in subject.kinds:
            yield placed, placed.trigger


@dataclass(frozen=True, slots=True)
class Assigned:
    """The fixed value that a trigger sets, and where it is written."""

    value: Json
    path: Path


def assigned(placed: PlacedTrigger) -> Assigned | None:
    """Return the fixed value a trigger sets; None if the event brings it or a transition has it."""
    trigger = placed.trigger
    if placed.transition or isinstance(trigger, BringsValue):
        return None
    if isinstance(trigger, ToolCallTrigger) and trigger.argument:
        return None
    if isinstance(trigger, TakesFromEvent) and trigger.response_key:
        return None
    # A value left to its default stands nowhere in the file: the trigger itself is the place.
    written = "value" in trigger.model_fields_set
    return Assigned(trigger.value, (*placed.path, "value") if written else placed.path)
