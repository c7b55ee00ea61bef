"""Prompts: which variables an agent's instructions put in, and which words they hold."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.check.subject import Subject, listed_once
from weft.findings import Path
from weft.spec.agents import Agent
from weft.spec.templates import references

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
