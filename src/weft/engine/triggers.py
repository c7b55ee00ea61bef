"""Triggers: which variables an event sets. Each is a pure function of the event and the state."""

from collections.abc import Iterator
from typing import cast

from weft.engine.book import Rulebook
from weft.engine.events import ToolCalled, VariableRefused, VariableSet
from weft.engine.state import State
from weft.engine.writes import refusal
from weft.findings import Json


def said(
    book: Rulebook, state: State, agent: str, text: str
) -> Iterator[VariableSet | VariableRefused]:
    """Yield what an agent sets by what it says."""
    for rule in book.text_rules.get(agent, ()):
        if rule.matches(text):
            yield from _write(book, state, rule.variable, rule.value)


def called(
    book: Rulebook, state: State, data: ToolCalled
) -> Iterator[VariableSet | VariableRefused]:
    """Yield what a tool call sets."""
    for rule in book.call_rules.get(data.tool, ()):
        value = rule.value if rule.argument is None else dig(data.arguments, rule.argument)
        if value is not None:
            yield from _write(book, state, rule.variable, value)


def answered(
    book: Rulebook, state: State, tool: str, value: Json
) -> Iterator[VariableSet | VariableRefused]:
    """Yield what a person's answer to a tool sets."""
    for rule in book.answer_rules.get(tool, ()):
        found = dig(value, rule.key)
        if found is not None:
            yield from _write(book, state, rule.variable, found)


def dig(value: Json, path: tuple[str, ...]) -> Json:
    """Return what stands at a dotted path, or None."""
    for key in path:
        value = cast("dict[str, Json]", value).get(key) if isinstance(value, dict) else None
    return value


def _write(
    book: Rulebook, state: State, name: str, value: Json
) -> Iterator[VariableSet | VariableRefused]:
    """A repeated value is no news: a trigger that fires again sets nothing."""
    held = state.variables.get(name)
    if type(held) is type(value) and held == value:
        return
    fault = refusal(book, state.variables, name, value, writer="trigger")
    if fault is None:
        yield VariableSet(name, value, "trigger")
    else:
        yield VariableRefused(name, "trigger", fault)
