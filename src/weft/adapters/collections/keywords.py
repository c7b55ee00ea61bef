"""Search by keywords.

The relevance of a passage is the share of the query's words in it, where rare words count more than
common ones: 1 means all of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from weft.adapters.collections.filters import FITTING, FITTING_COLUMNS, filter_rows
from weft.adapters.collections.rows import About, SearchQuery
from weft.adapters.collections.texts import words_of
from weft.adapters.sql.statements import Statement, Transaction

#: Further words of a query are ignored.
MOST_TERMS: Final = 32

#: Stop words, which are ignored unless there are no others.
_STOP_WORDS: Final = (
    "a an and are as at be but by can could did do does for from had has have how i if in into is "
    "it its may me my no not of on or our should so than that the their them then there these they "
    "this to us was we were what when where which who why will with would you your"
)

_BEST: Final = Statement(
    """
    SELECT w.rowid FROM words w WHERE {of_collection} AND {matches $3}
    ORDER BY {rank $3} DESC, w.rowid LIMIT $4
    """
)
#: `IS TRUE`: so PostgreSQL looks the filters up once, whatever it knows of their number.
_BEST_FITTING: Final = Statement(
    f"""
    {{x}} SELECT w.rowid FROM words w JOIN passages p ON p.app = $1 AND p.id = w.rowid
    WHERE {{of_collection}} AND {{matches $4}} AND (p.source IN ({FITTING})) IS TRUE
    ORDER BY {{rank $4}} DESC, w.rowid LIMIT $5
    """,  # noqa: S608 - ours
    FITTING_COLUMNS,
    is_whole=True,
)
_COUNT: Final = Statement(
    """
    SELECT count(*) FROM (
        SELECT 1 FROM words w WHERE {of_collection} AND {matches $3} LIMIT $4
    ) counted
    """
)
_WITH_TERM: Final = Statement(
    "SELECT rowid FROM words w WHERE {of_collection} AND {matches $3} AND {keys}", "rowid:number"
)


def terms_of(query: str) -> list[str]:
    """Return the search terms of a query in the syntax of the index.

    >>> terms_of("How do bees dance?")
    ['"bees"', '"dance"']
    """
    words = list(dict.fromkeys(words_of(query)))
    common = _STOP_WORDS.split()
    telling = [word for word in words if word not in common] or words
    return [f'"{word}"' for word in telling[:MOST_TERMS]]


def keyword_search(
    about: About, wanted: SearchQuery, *, most: int | None = None
) -> Transaction[list[tuple[int, float]]]:
    """Return passages with their relevance, the best first.

    Words that are in more than `most` passages are ignored.
    """
    weights: dict[str, float] = {}
    most = about.passages if most is None else most
    for term in terms_of(wanted.query):
        count = yield from count_of(about, term, most)
        if count <= most:
            # A word without any passage weighs as much as the rarest word.
            weights[term] = rarity(max(1, count), about.passages)
    if not weights:
        return []
    words, limit = " OR ".join(weights), wanted.top_k * 4 + 50
    if wanted.filters:
        fitting = filter_rows(wanted.filters)
        rows = yield _BEST_FITTING(fitting, *about.key, len(wanted.filters), words, limit)
    else:
        rows = yield _BEST((), *about.key, words, limit)
    shares = yield from _term_shares(about, weights, [id_ for (id_,) in rows])
    relevant = [scored for scored in shares.items() if scored[1] >= wanted.min_relevance]
    return sorted(relevant, key=lambda scored: -scored[1])[: wanted.top_k]


def _term_shares(
    about: About, weights: Mapping[str, float], ids: Sequence[int]
) -> Transaction[dict[int, float]]:
    """Return the weighted share of the terms in each passage."""
    shares = dict.fromkeys(ids, 0.0)
    whole = sum(weights.values())
    for term, weight in weights.items() if ids else ():
        rows = yield _WITH_TERM([(id_,) for id_ in ids], *about.key, term)
        for (id_,) in rows:
            shares[id_] += weight
    return {id_: min(1.0, share / whole) for id_, share in shares.items()}


def count_of(about: About, term: str, most: int) -> Transaction[int]:
    """Return the number of passages with a term; if it is above `most`, one more than that."""
    [(count,)] = yield _COUNT((), *about.key, term, most + 1)
    return count


def rarity(having: int, total: int) -> float:
    """Return the weight of a term, as BM25 has it but never below zero."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))
