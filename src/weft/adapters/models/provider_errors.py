"""Errors of model providers as ModelError, with whether a retry may help."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final, cast

from pydantic_core import from_json

from weft.errors import ModelError
from weft.findings import Json


def as_object(value: Json) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_items(value: Json) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


#: Statuses after which the same request may succeed.
_TRANSIENT: Final = frozenset({408, 409, 425, 429})

#: Codes of an account without credit: waiting does not help.
_EXHAUSTED: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

_REMEDIES: Final = {
    401: "Check the key.",
    403: "Check the rights of the key.",
    404: "Check the name of the model and the base URL.",
    413: "Send less: shorten the history or the prompt.",
    429: "Send fewer requests, or raise the limit.",
}
_UNSUPPORTED: Final = "Check that this model supports the request: tools, output schema, length."
_SERVER_ERROR: Final = "Try again later, or name a fallback model."
_NO_CREDIT: Final = "The account has no credit left: top it up, or use another key."

QUOTED: Final = 500


def status_error(status: int, headers: Mapping[str, str], raw: bytes) -> ModelError:
    said, code = _error_text(raw)
    answered = f"the provider answered {status}" + (f": {said.rstrip('.')}" if said else "")
    return ModelError(
        f"{answered}. {_remedy(status, code, headers)}",
        retryable=_is_transient(status, code),
        after_seconds=retry_after(headers),
    )


def provider_error(raw: bytes) -> ModelError:
    """Return the error that a provider sent in place of a completion."""
    said, code = _error_text(raw)
    status = code if isinstance(code, int) else 500
    text = said or raw[:QUOTED].decode("utf-8", "replace")
    return ModelError(
        f"the provider broke off: {text.rstrip('.')}. {_remedy(status, code, {})}",
        retryable=_is_transient(status, code),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After.

    A date counts from the provider's own date, so that the two clocks need not agree.
    """
    milliseconds = _parse_seconds(headers.get("Retry-After-Ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("Retry-After", "")
    seconds = _parse_seconds(asked)
    if seconds is not None:
        return seconds
    at, now = _parse_date(asked), _parse_date(headers.get("Date", ""))
    return None if at is None or now is None else max(0.0, (at - now).total_seconds())


def _remedy(status: int, code: object, headers: Mapping[str, str]) -> str:
    if code in _EXHAUSTED:
        return _NO_CREDIT
    if 300 <= status < 400:
        return f"It redirects to {headers.get('Location', 'nowhere')}: correct the base URL."
    return _REMEDIES.get(status, _SERVER_ERROR if _is_transient(status, code) else _UNSUPPORTED)


def _is_transient(status: int, code: object) -> bool:
    return (status in _TRANSIENT or status >= 500) and code not in _EXHAUSTED


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if isfinite(seconds) else None


def _parse_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None


def _error_text(raw: bytes) -> tuple[str, object]:
    """Return the message and the code of an error body."""
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
