"""How wide a text will be, estimated: whoever draws the picture has no fonts at hand."""

import textwrap
import unicodedata
from typing import Final

#: Widths in parts of the text size, a little on the wide side for common sans-serif fonts.
_CLASSES: Final = {
    "ijl.,:;'|! ": 0.33,
    'frtI()[]{}"`-/\\': 0.42,
    "mwMW@%": 0.95,
    "ABCDEFGHJKLNOPQRSTUVXYZ&": 0.74,
}
_WIDTHS: Final = {char: width for chars, width in _CLASSES.items() for char in chars}
_USUAL: Final = 0.6
_FULL: Final = 1.05


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text, in the units of `size`."""
    return size * sum(_WIDTHS.get(char) or _other(char) for char in text)


def _other(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if char.isascii():
        return _USUAL
    return _FULL if unicodedata.east_asian_width(char) in "FW" else 0.8


def lines(text: str, width: float, size: float, *, most: int = 4) -> list[str]:
    """Break a text into at most `most` lines that are about `width` wide or less."""
    mean = text_width(text, size) / max(len(text), 1)
    columns = max(8, int(width / max(mean, 1.0)))
    return textwrap.wrap(text, columns, max_lines=most, placeholder=" ...", break_on_hyphens=False)
