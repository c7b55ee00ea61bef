"""Conditions and templates: the texts of a spec that test or insert values, with their places."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, cast

from weft.check.parts import P_co, PartT, placed_parts
from weft.check.subject import Hit, Subject
from weft.check.values import texts_in
from weft.errors import ExpressionError
from weft.findings import Fix, Path, Severity
from weft.ids import FUNCTION_REF, OBJECT_REF
from weft.spec.agents import WORD_CONDITIONS, Handoff, PromptSection
from weft.spec.board import Publication, Subscription
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import Condition
from weft.spec.flow import AgentWork, Approval, Branch, Guard, Repeat
from weft.spec.orchestrator import DatabaseStart
from weft.spec.part import Part
from weft.spec.templates import references
from weft.spec.tools import McpServer, UiTool
from weft.spec.variables import ComputedSource, DatabaseSource, ExternalSource

#: The parts of a flow with conditions, which may test parts of variables.
FLOW_TESTS: Final = (Branch, Repeat, Guard)
#: The parts with templates whose names are variables.
TEMPLATES: Final = (PromptSection, UiTool, McpServer, ExternalSource, DatabaseSource)
#: The parts of a flow with templates whose names are fields of the state.
FLOW_TEMPLATES: Final = (AgentWork, Approval)

#: The kind of part, its field, what the text is called, and whose it is.
_Row = tuple[type[Part], str, str, str]

_ROUTE: Final = "{Handoff.source_agent} -> {Handoff.target_agent}"
_CONDITIONS: Final[tuple[_Row, ...]] = (
    (Handoff, "condition", "the condition of", _ROUTE),
    (ComputedSource, "computation", "the computation of", "{key}"),
    (DatabaseStart, "condition", "the start condition", ""),
    (Subscription, "where", '"where"', ""),
    (Subscription, "activation", "the activation of", "{BoardAgent.agent}"),
    (Publication, "where", '"where"', ""),
    (Publication, "validate_", '"validate"', ""),
    (Branch, "on", '"on"', ""),
    (Repeat, "until", '"until"', ""),
    (Guard, "condition", '"condition"', ""),
)
_TEMPLATES: Final[tuple[_Row, ...]] = (
    (Handoff, "condition", "the condition of", _ROUTE),
    (PromptSection, "content", "the prompt of", "{Agent.agent_name}"),
    (UiTool, "for_", "the addressee of", "{UiTool.function}"),
    (McpServer, "for_", "the addressee of", "{McpServer.name}"),
    (DatabaseSource, "query_template", "the query of", "{key}"),
    (ExternalSource, "url", "the url of", "{key}"),
    (ExternalSource, "body", "the body of", "{key}"),
    (ExternalSource, "for_", "the addressee of", "{key}"),
    (AgentWork, "prompt", "prompt", ""),
    (Approval, "text", "text", ""),
)


@dataclass(frozen=True, slots=True)
class PlacedText(Generic[P_co]):
    """A text with its path, the part that holds it, what it is called, and whose it is."""

    path: Path
    text: str
    part: P_co
    noun: str
    owner: str

    @property
    def what(self) -> str:
        """What the text is called in messages."""
        return f"{self.noun} {self.owner}".rstrip()


@dataclass(frozen=True, slots=True)
class PlacedCondition(PlacedText[P_co]):
    """A condition that was parsed, or the error in it."""

    condition: Condition | ExpressionError


@dataclass(frozen=True, slots=True)
class Mention:
    """A name that a text tests or inserts, at its first place there.

    Without an offset the name stands alone at the path.
    """

    name: str
    path: Path
    offset: int | None
    what: str
    owner: str

    def hit(
        self,
        message: str,
        *hint: str,
        cause: tuple[str, ...] = (),
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> Hit:
        """Report something about the name, at its place in the text."""
        length = None if self.offset is None else len(self.name)
        return Hit(self.path, message, cause, hint, fix, severity, None, self.offset, length)


def conditions(subject: Subject, *kinds: type[PartT]) -> Iterator[PlacedCondition[PartT]]:
    """Yield the conditions of some kinds of parts; the name of a function is not a condition."""
    for placed in subject.once(_conditions):
        if isinstance(placed.part, kinds):
            yield cast("PlacedCondition[PartT]", placed)


def parsed_conditions(
    subject: Subject, *kinds: type[PartT]
) -> Iterator[tuple[PlacedCondition[PartT], Condition]]:
    """Yield the conditions without errors, which COND001 reports."""
    for placed in conditions(subject, *kinds):
        if not isinstance(placed.condition, ExpressionError):
            yield placed, placed.condition


def routing_conditions(subject: Subject) -> dict[int, Condition]:
    """Return the conditions of handoffs that parse, by the index of the handoff."""
    return subject.once(_routing_conditions)


def _routing_conditions(subject: Subject) -> dict[int, Condition]:
    return {
        cast("int", placed.path[1]): condition
        for placed, condition in parsed_conditions(subject, Handoff)
    }


def tested(subject: Subject, *kinds: type[Part]) -> Iterator[Mention]:
    """Yield the names that conditions test."""
    for placed, _ in parsed_conditions(subject, *kinds):
        for name, offset in first_mentions(placed).items():
            yield Mention(name, placed.path, offset, placed.what, placed.owner)


def routed_on(subject: Subject) -> Iterator[Mention]:
    """Yield the variables that handoffs test; in conditions in words they are in braces."""
    yield from tested(subject, Handoff)
    yield from inserted(subject, Handoff)


def first_mentions(placed: PlacedCondition[Part]) -> dict[str, int]:
    """Return the names in a valid condition, each with the offset of its first mention."""
    found: dict[str, int] = {}
    for name, offset in mentions(placed.text, paths=isinstance(placed.part, FLOW_TESTS)):
        found.setdefault(name, offset)
    return found


def templates(subject: Subject, *kinds: type[Part]) -> Iterator[PlacedText[Part]]:
    """Yield the templates of some kinds of parts."""
    return (text for text in subject.once(_templates) if isinstance(text.part, kinds))


def inserted(subject: Subject, *kinds: type[Part]) -> Iterator[Mention]:
    """Yield the names that templates insert, once for each owner of several templates."""
    met: set[tuple[str, str]] = set()
    for text in templates(subject, *kinds):
        for reference in references(text.text):
            key = (text.what if text.owner else str(text.path), reference.name)
            if key not in met:
                met.add(key)
                yield Mention(reference.name, text.path, reference.offset, text.what, text.owner)


def _conditions(subject: Subject) -> tuple[PlacedCondition[Part], ...]:
    return tuple(
        PlacedCondition(text.path, text.text, text.part, text.noun, text.owner, _parse(text))
        for text in _texts(subject, _CONDITIONS)
        if not _names_function(text) and not _is_in_words(text.part)
    )


def _parse(text: PlacedText[Part]) -> Condition | ExpressionError:
    try:
        return parse_condition(text.text, paths=isinstance(text.part, FLOW_TESTS))
    except ExpressionError as error:
        return error


def _names_function(text: PlacedText[Part]) -> bool:
    """Return whether the text names a function that decides in place of a condition."""
    match text.part:
        case ComputedSource():
            return FUNCTION_REF.match(text.text) is not None
        case Subscription() | Publication():
            return text.path[-1] != "activation" and OBJECT_REF.match(text.text) is not None
        case _:
            return False


def _templates(subject: Subject) -> tuple[PlacedText[Part], ...]:
    return tuple(
        text
        for text in _texts(subject, _TEMPLATES)
        if not isinstance(text.part, Handoff) or _is_in_words(text.part)
    )


def _is_in_words(part: Part) -> bool:
    return isinstance(part, Handoff) and part.condition_type in WORD_CONDITIONS


def _texts(subject: Subject, rows: tuple[_Row, ...]) -> Iterator[PlacedText[Part]]:
    """Yield the texts in the fields that rows name, those inside JSON as well."""
    for kind, field, noun, owner in rows:
        for placed in placed_parts(subject, kind):
            named = placed.describe(owner)
            for path, text in texts_in(getattr(placed.part, field), placed.at(field)):
                yield PlacedText(path, text, placed.part, noun, named)


# -- names in plain text

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED_WORD: Final = re.compile(r"""(["'])([A-Za-z_][A-Za-z0-9_]*)\1""")


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def places_of(name: str, text: str) -> Iterator[int]:
    """Yield the offsets at which a name, of one or more words, occurs as whole words."""
    # Searching the plain text first is several times faster than a pattern with word boundaries.
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
    """Return the quoted names in a code file: the code may read variables of these names."""
    return frozenset(found[2] for found in _QUOTED_WORD.finditer(code))
