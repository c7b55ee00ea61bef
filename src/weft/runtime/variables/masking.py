"""Masking: keeping secrets out of everything that is written, sent or shown."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Final, cast
from urllib.parse import quote, quote_plus

from weft.engine.variables.conditions import same
from weft.findings import Json

#: What stands where a secret would.
MASK: Final = "(secret)"

#: Shorter ones would blot out harmless text; they are hidden where they stand alone.
_SHORTEST: Final = 6


def has_mask(value: Json) -> bool:
    """Tell whether a secret was left out somewhere in a value."""
    if isinstance(value, dict):
        return any(has_mask(it) for it in cast("dict[str, Json]", value).values())
    if isinstance(value, list):
        return any(has_mask(it) for it in cast("list[Json]", value))
    return value == MASK


def masked(value: Json, secrets: Mapping[str, Json]) -> Json:
    """Return a value without the secrets, should any be in it, or a part of one."""
    hidden = [it for it in secrets.values() if it and not isinstance(it, bool)]
    return _masked(value, hidden, _texts(hidden)) if hidden else value


def _masked(value: Json, hidden: list[Json], texts: list[str]) -> Json:
    if any(same(value, secret) for secret in hidden):
        return MASK
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {
            cast("str", _masked(key, hidden, texts)): _masked(it, hidden, texts)
            for key, it in fields.items()
        }
    if isinstance(value, list):
        return [_masked(it, hidden, texts) for it in cast("list[Json]", value)]
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, MASK)
        return value
    return MASK if str(value) in texts else value


def _texts(secrets: Iterable[Json]) -> list[str]:
    """Return the texts that give secrets away: whole or in parts, in every spelling."""
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
    # The longest first: one may stand in another.
    return sorted((it for it in found if len(it) >= _SHORTEST), key=len, reverse=True)


def _spellings(secret: str) -> set[str]:
    """Return a secret as it is, and as it stands in JSON, Python, addresses and logins."""
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret))
    return {
        secret,
        *(it[1:-1] for it in escaped),
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        b64encode(raw).decode(),
    }
