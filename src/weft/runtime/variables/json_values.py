"""Values as JSON: plain, finite and bounded, and without secrets."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast
from urllib.parse import quote, quote_plus

from pydantic_core import from_json, to_json, to_jsonable_python

from weft.engine.events.codec import read_json
from weft.engine.variables.conditions import same
from weft.findings import Json

#: The largest value; larger data belongs in a file or a store.
MAX_BYTES: Final = 4 * 1024 * 1024

#: The limits of values that are accepted without encoding them.
_FEW: Final = 256
_SHORT: Final = 1024
_SAFE: Final = 2**53

#: Messages of Python in plain words.
_WORDS: Final = (
    ("Out of range float", "it holds a number that is not finite"),
    ("Circular reference", "it contains itself"),
)


def plain_json(value: object) -> Json:
    """Return a value as JSON that shares nothing with it, or raise ValueError saying what is wrong.

    >>> plain_json({"sizes": (1, 2)})
    {'sizes': [1, 2]}
    """
    if _is_flat(value):
        return cast("dict[str, Json]", value).copy()
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_convert)
        raw = text.encode()
    except UnicodeEncodeError:
        raise _refusal(value, "it holds text that is not valid Unicode") from None
    except RecursionError:
        raise _refusal(value, "it is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise _refusal(value, _in_plain_words(str(error))) from error
    if len(raw) > MAX_BYTES:
        size = f"it has {len(raw):,} bytes, and {MAX_BYTES:,} are the limit"
        raise ValueError(f"a value of type {type(value).__name__} that is too large: {size}")
    try:
        return read_json(raw)
    except ValueError:
        raise _refusal(value, "it is nested too deeply") from None


def _is_flat(value: object) -> bool:
    """Return whether a value is a small dict of immutable JSON values."""
    if type(value) is not dict:
        return False
    fields = cast("dict[object, object]", value)
    return len(fields) < _FEW and all(map(_is_simple, fields, fields.values()))


def _is_simple(key: object, value: object) -> bool:
    if type(key) is not str or not key.isascii():
        return False
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return text.isascii() and len(text) < _SHORT
    if kind is int:
        return -_SAFE < cast("int", value) < _SAFE
    return value is None or kind is bool


def own_copy(value: Json) -> Json:
    """Return a deep copy of JSON."""
    return from_json(to_json(value)) if isinstance(value, dict | list) else value


def _convert(value: object) -> Json:
    """Convert types that JSON lacks: models, dataclasses, dates, sets."""
    name = type(value).__name__
    if isinstance(value, Iterator):
        # An iterator may be endless.
        raise TypeError(f"it holds a value of type {name}, which may have no end")
    try:
        return to_jsonable_python(value)
    except ValueError as error:
        raise TypeError(f"it holds a value of type {name}") from error


def _in_plain_words(message: str) -> str:
    return next((words for start, words in _WORDS if message.startswith(start)), message)


def _refusal(value: object, reason: str) -> ValueError:
    return ValueError(f"a value of type {type(value).__name__} that is not JSON: {reason}")


#: Replaces a secret.
MASK: Final = "(secret)"

#: Shorter secrets would mask harmless text; they are masked only as whole values.
_SHORTEST: Final = 6


def has_mask(value: Json) -> bool:
    """Return whether a value contains a masked secret."""
    if isinstance(value, dict):
        return any(has_mask(part) for part in cast("dict[str, Json]", value).values())
    if isinstance(value, list):
        return any(has_mask(part) for part in cast("list[Json]", value))
    return value == MASK


def masked(value: Json, secrets: Mapping[str, Json]) -> Json:
    """Return a value with secrets and parts of secrets masked."""
    hidden = [secret for secret in secrets.values() if secret and not isinstance(secret, bool)]
    return _masked(value, hidden, _texts(hidden)) if hidden else value


def _masked(value: Json, hidden: list[Json], texts: list[str]) -> Json:
    if any(same(value, secret) for secret in hidden):
        return MASK
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {
            cast("str", _masked(key, hidden, texts)): _masked(part, hidden, texts)
            for key, part in fields.items()
        }
    if isinstance(value, list):
        return [_masked(part, hidden, texts) for part in cast("list[Json]", value)]
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, MASK)
        return value
    return MASK if str(value) in texts else value


def _texts(secrets: Iterable[Json]) -> list[str]:
    """Return the texts that reveal secrets: whole or in parts, in every encoding."""
    found: set[str] = set()
    waiting = list(secrets)
    while waiting:
        secret = waiting.pop()
        if isinstance(secret, dict):
            waiting += cast("dict[str, Json]", secret).values()
        elif isinstance(secret, list):
            waiting += cast("list[Json]", secret)
        elif secret is not None and not isinstance(secret, bool):
            found |= _spellings(str(secret))
    # The longest first: one may contain another.
    return sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True)


def _spellings(secret: str) -> set[str]:
    """Return a secret, and its encodings in JSON, Python, URLs and logins."""
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret))
    return {
        secret,
        *(text[1:-1] for text in escaped),
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        b64encode(raw).decode(),
    }
