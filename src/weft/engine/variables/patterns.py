"""Patterns of triggers: regular expressions that match in linear time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from weft.errors import ExpressionError

#: The longest pattern.
MAX_LENGTH: Final = 1000

_MENDING: Final = "correct the pattern; write a backslash before a sign that is meant literally"

#: The text before the pattern in an error message of the regex engine.
_INDENT: Final = "    "


def pattern(text: str) -> Callable[[str], bool]:
    """Return a function that searches for a pattern in a text.

    The regex engine of pydantic matches in one pass. It refuses patterns that need more, such as
    look-around and back-references; ExpressionError says so.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"it is longer than {MAX_LENGTH} characters",
            offset=MAX_LENGTH,
            hint="look for a shorter text, or use several triggers",
        )
    schema = core_schema.str_schema(pattern=text, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError as error:
        raise _explained(str(error)) from error


def _explained(said: str) -> ExpressionError:
    """Return the reason in an error of the regex engine, which follows the marked pattern."""
    *drawn, reason = said.strip().splitlines()
    marks = drawn[-1].removeprefix(_INDENT) if drawn else ""
    offset = marks.index("^") if marks.strip("^ ") == "" and "^" in marks else 0
    return ExpressionError(reason.removeprefix("error: ").strip(), offset=offset, hint=_MENDING)


# -- examples


#: The candidates for a class of characters; those of the pattern come after them.
_CHARACTERS: Final = "aA1 _-.,:;!?/@#\n\t" + "".join(map(chr, range(33, 256)))

_OPENING: Final = re.compile(r"\((?:\?(?:P?<\w+>|[a-zA-Z]*(?:-[a-zA-Z]+)?:))?")
_NOTHING: Final = re.compile(r"\(\?[a-zA-Z-]+\)|[\^$]|\\[bB](?:\{[^}]*\})?|\\[Az]")
_ATOM: Final = re.compile(
    r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"
    r"|\\(?:[pPxuU]\{[^}]*\}|x..|u.{4}|U.{8}|.)"
    r"|[^|)]",
    re.DOTALL,
)
_TIMES: Final = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<least>\d*),?\d*\})\??")


def example_of(regex: str) -> str | None:
    """Return a text that matches a pattern, or None if none was found."""
    try:
        found = pattern(regex)
        text = _Reading(regex).either()
    except ExpressionError:
        return None  # in another dialect, or with classes in classes, which are not read here
    return text if found(text) else None


@dataclass
class _Reading:
    """Reads a pattern that compiles from left to right and writes what it reads."""

    pattern: str
    at: int = 0

    def either(self) -> str:
        """Read what stands between `|`, up to the end of the group, and keep the first."""
        first = self._row()
        while self.pattern.startswith("|", self.at):
            self.at += 1
            self._row()
        return first

    def _row(self) -> str:
        written: list[str] = []
        while (part := self._part()) is not None:
            written.append(part * self._times())
        return "".join(written)

    def _part(self) -> str | None:
        """Read one part; None at the end of a row."""
        if self._take(_NOTHING):
            return ""
        if self._take(_OPENING):
            inner = self.either()
            self.at += 1
            return inner
        atom = self._take(_ATOM)
        return None if atom is None else self._character(atom[0])

    def _times(self) -> int:
        times = self._take(_TIMES)
        if times is None:
            return 1
        return int(times["least"] or 0) if times["sign"] is None else int(times["sign"] == "+")

    def _character(self, atom: str) -> str:
        fits = pattern(f"(?s)^(?:{atom})$")
        # A class without a candidate gives no example; the final test reports that.
        return next((c for c in _CHARACTERS + self.pattern if fits(c)), "")

    def _take(self, what: re.Pattern[str]) -> re.Match[str] | None:
        found = what.match(self.pattern, self.at)
        if found is not None:
            self.at = found.end()
        return found
