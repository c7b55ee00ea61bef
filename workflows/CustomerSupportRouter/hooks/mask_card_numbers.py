"""Keeps card numbers out of the conversation."""

import re
from typing import Final, TypeAlias

_CARD_NUMBER: Final = re.compile(r"\b(?:\d[ -]?){12,18}\d\b")

Content: TypeAlias = str | list[dict[str, object]]


def mask_card_numbers(content: Content) -> Content:
    """Return what was received, with all but the last four digits of card numbers masked."""
    if isinstance(content, str):
        return _CARD_NUMBER.sub(_masked, content)
    return [{key: _masked_value(value) for key, value in part.items()} for part in content]


def _masked_value(value: object) -> object:
    return _CARD_NUMBER.sub(_masked, value) if isinstance(value, str) else value


def _masked(match: re.Match[str]) -> str:
    return f"[card ending in {match[0][-4:]}]"
