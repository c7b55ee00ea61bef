"""Which matches of texts can hold at once: one text may be what several triggers wait for.

Texts are made up from what the matches look for, and every match is asked about each. Whatever
holds for one of these texts can certainly happen.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from weft.spec.triggers import Contains, Equals, Exact, Match

#: Of more parts than this, only some are put together.
_MOST_PARTS: Final = 6
#: Stands between parts; nobody looks for it.
_BETWEEN: Final = "\ue000"
_AROUND: Final = re.compile(r"\\[bB]|^\(\?i\)|^\^|\$$")


@dataclass(frozen=True, slots=True)
class Together:
    """The matches, by their indexes, that can hold for one text.

    `sure` are sets of which each holds for some text while no other match does, `likely` those of
    which that is not known. `complete` means that there are no others.
    """

    sure: tuple[tuple[int, ...], ...]
    likely: tuple[tuple[int, ...], ...]
    complete: bool


def together(matches: Sequence[Match]) -> Together:
    """Find out which of the matches can hold for the same text."""
    parts = list(dict.fromkeys(_parts(matches)))
    texts = [text for match in matches for text in _alone(match)]
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = [tuple(n for n, match in enumerate(matches) if holds(match, text)) for text in texts]
    sure = tuple(dict.fromkeys(found for found in held if found))
    met = {index for found in sure for index in found}
    lone = tuple((index,) for index in range(len(matches)) if index not in met)
    if len(matches) == 1:
        return Together(((0,),), (), complete=True)
    return Together(sure, lone, complete=most == len(parts) and not _is_open(matches))


def holds(match: Match, text: str) -> bool:
    """Tell whether a text is what a match looks for; a pattern that is none never holds."""
    match match:
        case Equals(equals=wanted):
            return text.strip().casefold() == wanted.strip().casefold()
        case Exact(exact=wanted):
            return text == wanted
        case Contains(contains=wanted):
            return wanted.casefold() in text.casefold()
        case _:
            try:
                return re.search(match.regex, text) is not None
            except re.error:
                return False  # another rule reports it


def _is_open(matches: Sequence[Match]) -> bool:
    return any(not isinstance(match, Equals | Exact | Contains) for match in matches)


def _parts(matches: Sequence[Match]) -> Iterator[str]:
    """Yield what may stand anywhere in a text."""
    for match in matches:
        if isinstance(match, Contains):
            yield match.contains
        elif not isinstance(match, Equals | Exact):
            yield _AROUND.sub("", match.regex)


def _alone(match: Match) -> Iterator[str]:
    """Yield texts that consist of what a match looks for."""
    match match:
        case Equals(equals=text) | Exact(exact=text) | Contains(contains=text):
            found = text
        case _:
            found = _AROUND.sub("", match.regex)
    yield from (found, found.lower(), found.upper(), f" {found} ")
