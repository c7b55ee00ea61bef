"""Which matches of texts can hold at once: one text may be what several triggers wait for.

Texts are made up from what the matches look for, and every match is asked about each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from weft.engine.pattern_examples import example_of
from weft.engine.trigger_index import matcher
from weft.errors import ExpressionError
from weft.spec.triggers import Contains, Equals, Exact, Match

#: Of more parts than this, only some are put together.
_MOST_PARTS: Final = 6
#: Stands between parts; nobody looks for it.
_BETWEEN: Final = "\ue000"


@dataclass(frozen=True, slots=True)
class Together:
    """The matches, by their indexes, that hold for one text while no other does.

    `complete` means that all texts were thought of: without patterns, and with few parts.
    """

    sets: tuple[tuple[int, ...], ...]
    complete: bool


def together(matches: Sequence[Match]) -> Together:
    """Find out which of the matches can hold for the same text."""
    parts = list(dict.fromkeys(text for match in matches for text in _parts(match)))
    texts = ["", _BETWEEN, *(text for match in matches for text in _alone(match))]
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = (tuple(n for n, match in enumerate(matches) if _holds(match, it)) for it in texts)
    plain = all(isinstance(match, Equals | Exact | Contains) for match in matches)
    return Together(tuple(dict.fromkeys(held)), complete=plain and most == len(parts))


def _holds(match: Match, text: str) -> bool:
    """Tell whether a text is what a match looks for, as a run would; a bad pattern never is."""
    try:
        return matcher(match)(text)
    except ExpressionError:
        return False  # another rule reports it


def _parts(match: Match) -> Iterator[str]:
    """Yield what may stand anywhere in a text."""
    if isinstance(match, Contains):
        yield match.contains
    elif not isinstance(match, Equals | Exact):
        yield example_of(match.regex) or ""


def _alone(match: Match) -> Iterator[str]:
    """Yield texts that consist of what a match looks for."""
    match match:
        case Equals(equals=text) | Exact(exact=text) | Contains(contains=text):
            yield from (text, text.lower(), text.upper(), f" {text} ")
        case _:
            yield example_of(match.regex) or ""
