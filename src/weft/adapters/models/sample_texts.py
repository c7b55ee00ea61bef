"""Texts made up: for a schema, and for what a trigger waits for."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from weft.engine.variables.patterns import example_of
from weft.findings import Json
from weft.spec.triggers import Contains, Equals, Exact, Match, Regex

#: How often a text is a long one, and what makes it long: tools may look at how much was said.
_LONG: Final = 0.5
_MORE: Final = (
    ": a longer text of the kind that people and models write when there is more to say. "
    "It names nothing in particular, goes on for a second sentence, and then it ends."
)

_FORMATS: Final = {
    "date": "2025-01-15",
    "date-time": "2025-01-15T09:30:00Z",
    "time": "09:30:00Z",
    "duration": "PT15M",
    "email": "sample@example.com",
    "hostname": "sample.example.com",
    "idn-email": "sample@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/sample",
    "url": "https://example.com/sample",
    "uuid": "00000000-0000-4000-8000-000000000001",
}


def sample_text(schema: Mapping[str, Any], name: str, random: Random) -> str:
    """Return a text that fits a schema and says that it is a sample, and of what."""
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        return known
    if "pattern" in schema:
        return _patterned(schema, name)
    long = random.random() < _LONG
    text = _said(name) + (_MORE if long else "")
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def is_free_text(value: Json, name: str) -> bool:
    """Whether a value is a text that was made up and could as well be another one."""
    return value in (_said(name), _said(name) + _MORE)


def _said(name: str) -> str:
    return f"[sample] {name}"


def _patterned(schema: Mapping[str, Any], name: str) -> str:
    """Return a text that a pattern asks for: one the author gives, or one made from it."""
    given = [*schema.get("examples", ()), schema.get("default")]
    text = next((it for it in given if isinstance(it, str)), None)
    if text is None:
        text = matching_text(Regex(regex=schema["pattern"]))
    return _said(name) if text is None else text


def matching_text(match: Match) -> str | None:
    """Return a text that meets a match, or None for a pattern to which no example is found."""
    match match:
        case Equals(equals=text) | Exact(exact=text):
            return text
        case Contains(contains=text):
            # There is room to say what kind of text it is.
            return f"[sample] {text}"
        case _:
            return example_of(match.regex)
