"""What a provider says went wrong, as a ModelError that says whether trying again may help."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

from pydantic_core import from_json

from weft.adapters.models.json_objects import as_object
from weft.errors import ModelError
from weft.findings import Json

#: Answers after which the same request may succeed.
_PASSING: Final = frozenset({408, 409, 425, 429})

#: Codes that mean an account is empty: waiting does not fill it.
_EXHAUSTED: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

_REMEDIES: Final = {
    401: "Check the key.",
    403: "Check what the key may do.",
    404: "Check the name of the model and the base URL.",
    413: "Send less: shorten the history or the prompt.",
    429: "Ask less often, or have the limit raised.",
}
_REFUSED: Final = "Check that this model takes what is sent: tools, output schema, length."
_THEIR_FAULT: Final = "Try again later, or name a fallback model."
_EMPTY: Final = "The account has nothing left: top it up, or use another key."

QUOTED: Final = 500


def status_fault(status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
    said, code = _said(raw)
    answered = f"the provider answered {status}" + (f": {said.rstrip('.')}" if said else "")
    return ModelError(
        f"{answered}. {_remedy(status, code, headers)}",
        retryable=_passing(status, code),
        after_seconds=retry_after(headers),
    )


def provider_fault(raw: bytes) -> ModelError:
    """Turn an error that came where a completion was expected into an error."""
    said, code = _said(raw)
    status = code if isinstance(code, int) else 500
    text = said or raw[:QUOTED].decode("utf-8", "replace")
    return ModelError(
        f"the provider broke off: {text.rstrip('.')}. {_remedy(status, code, {})}",
        retryable=_passing(status, code),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a provider asks to wait.

    A date counts from the provider's own, so that the clocks of both sides need not agree.
    """
    milliseconds = _seconds(headers.get("Retry-After-Ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("Retry-After", "")
    seconds = _seconds(asked)
    if seconds is not None:
        return seconds
    at, now = _date(asked), _date(headers.get("Date", ""))
    return None if at is None or now is None else max(0.0, (at - now).total_seconds())


def _remedy(status: int, code: object, headers: Mapping[str, str]) -> str:
    if code in _EXHAUSTED:
        return _EMPTY
    if 300 <= status < 400:
        return f"It points to {headers.get('Location', 'nowhere')}: correct the base URL."
    return _REMEDIES.get(status, _THEIR_FAULT if _passing(status, code) else _REFUSED)


def _passing(status: int, code: object) -> bool:
    return (status in _PASSING or status >= 500) and code not in _EXHAUSTED


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if isfinite(seconds) else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None


def _said(raw: bytes) -> tuple[str, object]:
    """Return what an error body says in words, and its code."""
    try:
        body: Json = from_json(raw)
    except ValueError:
        return raw[:QUOTED].decode("utf-8", "replace").strip(), None
    outer = as_object(body)
    error: Json = body if outer is None else outer.get("error", body)
    fields = as_object(error)
    if fields is None:
        return str(error)[:QUOTED], None
    said = fields.get("message") or fields.get("detail") or fields
    return str(said)[:QUOTED], fields.get("code")
