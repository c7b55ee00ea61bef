"""What an unquoted word of YAML 1.2 stands for: nothing, true, false, a number, or text."""

import math
import re
from typing import Final

from weft.packages.text_index import INTEGERS, Data

_WORDS: Final[dict[str, Data]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]++|0o[0-7]++|0x[0-9a-fA-F]++")
_REAL: Final = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def plain(text: str) -> Data:
    """Return what an unquoted scalar means; numbers out of range raise ValueError."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    value: Data = text
    if _INTEGER.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        value = int(text, base) if len(text) < 100 else INTEGERS.stop
        if value not in INTEGERS:
            raise ValueError
    elif _REAL.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError
    elif _INFINITE.fullmatch(text):
        raise ValueError
    return value
