"""Spans of time as people write them: 30d, 12h, 2w."""

import re
from typing import Final

from weft.cli.failure import usage

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")


def milliseconds(text: str) -> int:
    """Read a span of time."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise usage(f'"{text}" is no span of time', "write a number and s, m, h, d or w: 30d")
    return round(float(found[1]) * _SECONDS[found[2]] * 1000)
