"""Declarations as rules and the explorer see them: triggers, prompts, automatic tools."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from weft.check.spelling import agent_meant
from weft.check.subject import Subject, listed_once
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.spec.agents import Agent
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.templates import references
from weft.spec.tools import AgentTool, McpServer, UiTool
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


def serving(subject: Subject, tool: str) -> list[McpServer]:
    """Return the tool servers that may offer a tool of this name."""
    return [
        it
        for it in subject.spec.mcp_servers
        if tool.startswith(f"{it.name}_")
        and (it.allow is None or tool.removeprefix(f"{it.name}_") in it.allow)
    ]


def bound_model(subject: Subject, agent: str) -> str | None:
    """Return the name of the model that an agent's replies must fit, if one is bound."""
    models = (one.model for one in subject.spec.registry if one.agent == agent)
    return next((model for model in models if model is not None), None)


def automatic_tools(subject: Subject, agent: str) -> list[tuple[int, AgentTool | UiTool]]:
    """Return the agent's tools that its structured output calls, with their index."""
    tools = enumerate(subject.spec.tools)
    return [(index, tool) for index, tool in tools if tool.auto_invoke and tool.agent == agent]


def lacks_model(subject: Subject, agent: str) -> bool:
    """Tell whether no model is bound to an agent, not even under a misspelt name."""
    bound = (one.agent for one in subject.spec.registry if one.model is not None)
    return not any(agent_meant(subject, name) == agent for name in bound)


def lacks_automatic_tool(subject: Subject, agent: str) -> bool:
    """Tell whether an agent has no automatic tool, not even under a misspelt name."""
    owners = (tool.agent for tool in subject.spec.tools if tool.auto_invoke)
    return not any(agent_meant(subject, name) == agent for name in owners)


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


_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED_WORD: Final = re.compile(r"""(["'])([A-Za-z_][A-Za-z0-9_]*)\1""")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One paragraph of an agent's instructions, and where it stands."""

    agent: Agent
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Insertion:
    """The first place where an agent's instructions put a variable in."""

    agent: str
    name: str
    path: Path
    offset: int


@listed_once
def prompts(subject: Subject) -> Iterator[Prompt]:
    for index, agent in enumerate(subject.spec.agents):
        for number, section in enumerate(agent.prompt_sections):
            path = ("agents", index, "prompt_sections", number, "content")
            yield Prompt(agent, path, section.content)


@listed_once
def insertions(subject: Subject) -> Iterator[Insertion]:
    """Yield each variable that an agent's instructions put in, once per agent."""
    met: set[tuple[str, str]] = set()
    for prompt in prompts(subject):
        agent = prompt.agent.agent_name
        for reference in references(prompt.text):
            if (agent, reference.name) not in met:
                met.add((agent, reference.name))
                yield Insertion(agent, reference.name, prompt.path, reference.offset)


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def places_of(name: str, text: str) -> Iterator[int]:
    """Yield where a name stands in a text as a word of its own; it may be several words."""
    # Looking for the plain text first is several times faster than a pattern with its borders.
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not _is_word(text[at - 1 : at + 1]) and not _is_word(text[end - 1 : end + 1]):
            yield at
        at = text.find(name, end)


def _is_word(pair: str) -> bool:
    return len(pair) > 1 and pair.replace("_", "x").isalnum()


@lru_cache(maxsize=512)
def quoted_words(code: str) -> frozenset[str]:
    """Return the names that stand in quotes in a code file: those the code may ask for."""
    return frozenset(found[2] for found in _QUOTED_WORD.finditer(code))


@dataclass(frozen=True, slots=True)
class PlacedCondition:
    """A condition and its place: parsed, or why it cannot be.

    `types` are the artifact types whose payloads it tests, on a board.
    """

    path: Path
    text: str
    condition: Condition | ExpressionError
    types: tuple[str, ...] = ()


def parsed(text: str, *, paths: bool = False) -> Condition | ExpressionError:
    """Parse a condition; return the error if it is not valid."""
    try:
        return parse_condition(text, paths=paths)
    except ExpressionError as error:
        return error
