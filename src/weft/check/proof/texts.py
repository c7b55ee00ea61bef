"""Which matches of texts can hold at once: one text may be what several triggers wait for.

Texts are made up from what the matches look for, and every match is asked about each. Whatever
holds for one of these texts can certainly happen.
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
    """The matches, by their indexes, that can hold for one text.

    `sure` are sets of which each holds for some text while no other match does, `likely` those of
    which that is not known. `complete` means that there are no others, and `silence` that there
    is a text for which none holds.
    """

    sure: tuple[tuple[int, ...], ...]
    likely: tuple[tuple[int, ...], ...]
    complete: bool
    silence: bool


def together(matches: Sequence[Match]) -> Together:
    """Find out which of the matches can hold for the same text."""
    parts = list(dict.fromkeys(_parts(matches)))
    texts = ["", _BETWEEN, *(text for match in matches for text in _alone(match))]
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = [tuple(n for n, match in enumerate(matches) if holds(match, text)) for text in texts]
    sure = tuple(dict.fromkeys(found for found in held if found))
    met = {index for found in sure for index in found}
    lone = tuple((index,) for index in range(len(matches)) if index not in met)
    told = most == len(parts) and not _is_open(matches, sure)
    return Together(sure, lone, complete=told or len(matches) == 1, silence=() in held)


def holds(match: Match, text: str) -> bool:
    """Tell whether a text is what a match looks for, as a run would; a bad pattern never is."""
    try:
        return matcher(match)(text)
    except ExpressionError:
        return False  # another rule reports it


def _is_open(matches: Sequence[Match], sure: Sequence[tuple[int, ...]]) -> bool:
    """Tell whether other matches may hold at once than those of the texts that were tried."""
    if any(not isinstance(match, Equals | Exact | Contains) for match in matches):
        return True
    exact = {index for index, match in enumerate(matches) if isinstance(match, Exact)}
    loose = [index for index, match in enumerate(matches) if isinstance(match, Equals)]
    blank = any(
        isinstance(match, Contains) and match.contains != match.contains.strip()
        for match in matches
    )
    # Blanks around a text and its case are not what `equals` looks at, but others do.
    free = [found for found in sure if exact.isdisjoint(found)]
    return bool(loose) and (blank or any(all(it not in found for found in free) for it in loose))


def _parts(matches: Sequence[Match]) -> Iterator[str]:
    """Yield what may stand anywhere in a text."""
    for match in matches:
        if isinstance(match, Contains):
            yield match.contains
        elif not isinstance(match, Equals | Exact):
            yield from _example(match.regex)


def _alone(match: Match) -> Iterator[str]:
    """Yield texts that consist of what a match looks for."""
    match match:
        case Equals(equals=text) | Exact(exact=text) | Contains(contains=text):
            yield from (text, text.lower(), text.upper(), f" {text} ")
        case _:
            yield from _example(match.regex)


def _example(pattern: str) -> Iterator[str]:
    found = example_of(pattern)
    if found is not None:
        yield found
