"""The elements every SVG picture is made of. All text is escaped; nothing refers to the outside."""

import textwrap
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Final

#: Sizes of text.
TITLE: Final = 18.0
NAME: Final = 14.0
SMALL: Final = 11.5

#: Height of a line of small text.
LINE: Final = 15.0
_STYLE: Final = """
.weft { font-family: system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; }
.weft text { fill: #1f2430; }
.weft .title { font-size: 18px; font-weight: 600; }
.weft .name { font-size: 14px; font-weight: 600; }
.weft .small { font-size: 11.5px; font-weight: 400; }
.weft .muted { fill: #5b6472; }
.weft .paper { fill: #ffffff; }
.weft .box { fill: #f5f7fb; stroke: #b9c2d0; stroke-width: 1.2; }
.weft .pill { fill: #e6eaf1; stroke: #8d99ac; stroke-width: 1.2; }
.weft .undeclared { fill: #fff4f2; stroke: #c2524a; stroke-width: 1.2; stroke-dasharray: 5 4; }
.weft .note { fill: #fdf6df; stroke: #d9c68a; stroke-width: 1; }
.weft .frame { fill: none; stroke: #9aa5b6; stroke-width: 1.2; }
.weft .divider { stroke: #9aa5b6; stroke-width: 1; stroke-dasharray: 6 4; }
.weft .tab { fill: #e6eaf1; stroke: #9aa5b6; stroke-width: 1.2; }
.weft .lifeline { stroke: #b9c2d0; stroke-width: 1.2; }
.weft .edge { fill: none; stroke: #5f6b7d; stroke-width: 1.5; }
.weft .tip { fill: #5f6b7d; }
.weft .before { stroke-dasharray: 6 5; }
.weft .unruled { opacity: 0.6; }
.weft .intake { fill: #2a9d74; }
.weft .router { fill: #7c5cd6; }
.weft .worker { fill: #2f7fd0; }
.weft .evaluator { fill: #c98a1b; }
.weft .orchestrator { fill: #b5467f; }
.weft .generator { fill: #c2524a; }
@media (prefers-color-scheme: dark) {
.weft text { fill: #e7eaf0; }
.weft .muted { fill: #a3adbc; }
.weft .paper { fill: #171a21; }
.weft .box { fill: #222733; stroke: #475163; }
.weft .pill { fill: #2c3342; stroke: #66728a; }
.weft .undeclared { fill: #33211f; stroke: #e0796f; }
.weft .note { fill: #332e1c; stroke: #6f6338; }
.weft .frame, .weft .divider { stroke: #66728a; }
.weft .tab { fill: #2c3342; stroke: #66728a; }
.weft .lifeline { stroke: #475163; }
.weft .edge { stroke: #9aa6b8; }
.weft .tip { fill: #9aa6b8; }
}
"""
_TIP: Final = (
    '<marker id="weft-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
    ' orient="auto"><path class="tip" d="M0 0L10 5L0 10z"/></marker>'
)

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


def document(
    title: str, size: tuple[float, float], body: Iterable[str], *, description: str = ""
) -> str:
    """Put elements together to a whole file that any program can show or read out."""
    width, height = number(size[0]), number(size[1])
    room = f'width="{width}" height="{height}"'
    space = 'xmlns="http://www.w3.org/2000/svg"'
    head = (
        f'<svg {space} class="weft" role="img" {room} viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>",
        *([f"<desc>{escape(description)}</desc>"] if description else ()),
        f"<style>{_STYLE}</style>",
        f"<defs>{_TIP}</defs>",
        f'<rect class="paper" {room}/>',
    )
    return "\n".join((*head, *body, "</svg>\n"))


def number(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 100_000 else str(round(value))


def label(
    x: float, y: float, text: str, style: str, *, anchor: str = "start", aside: str = ""
) -> str:
    """Write one line of text and something small beside it; `y` is its base line."""
    at = f'x="{number(x)}" y="{number(y)}"'
    end = "" if anchor == "start" else f' text-anchor="{anchor}"'
    more = f'<tspan class="small muted" dx="10">{escape(aside)}</tspan>' if aside else ""
    return f'<text class="{style}" {at}{end}>{escape(text)}{more}</text>'


def rectangle(
    x: float, y: float, size: tuple[float, float], style: str, *, round_by: float = 0.0
) -> str:
    corner = f' rx="{number(round_by)}"' if round_by else ""
    at = f'x="{number(x)}" y="{number(y)}" width="{number(size[0])}" height="{number(size[1])}"'
    return f'<rect class="{style}" {at}{corner}/>'


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    (x1, y1), (x2, y2) = start, end
    at = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{style}" {at}/>'


def arrow(path: str, style: str = "edge") -> str:
    return f'<path class="{style}" d="{path}" marker-end="url(#weft-tip)"/>'


def points(*values: float) -> str:
    return " ".join(number(value) for value in values)


def text_width(text: str, size: float) -> float:
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
