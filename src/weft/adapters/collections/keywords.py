"""Search by keywords alone, for collections without vectors.

How relevant a passage is says how much of the query it has: the share of the query's words that
stand in it, rare words counting more than common ones. 1 means all of them.
"""

import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from weft.adapters.collections.rows import filter_conditions
from weft.findings import Json

#: More words of a query are not looked at.
MOST_TERMS: Final = 32

#: Words that say nothing about what is looked for, unless there are no others.
_COMMON: Final = (
    "a an and are as at be but by can could did do does for from had has have how i if in into is "
    "it its may me my no not of on or our should so than that the their them then there these they "
    "this to us was we were what when where which who why will with would you your"
)


def terms_of(query: str) -> list[str]:
    """Return the words of a query that are looked for, each as the index is asked for it.

    >>> terms_of("How do bees dance?")
    ['"bees"', '"dance"']
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    common = _COMMON.split()
    telling = [it for it in words if it not in common] or words
    return [f'"{it}"' for it in telling[:MOST_TERMS]]


def keyword_search(
    connection: sqlite3.Connection,
    query: str,
    *,
    top_k: int,
    min_relevance: float,
    filters: Mapping[str, Json],
) -> list[tuple[int, float]]:
    """Return passages and how relevant they are, the best first."""
    terms = terms_of(query)
    if not terms:
        return []
    conditions = filter_conditions(filters)
    fitting = "".join(f" AND passages.source IN ({sql})" for sql, _ in conditions)
    rows = connection.execute(
        "SELECT words.rowid FROM words JOIN passages ON passages.id = words.rowid "  # noqa: S608 - question marks
        f"WHERE words MATCH ?{fitting} ORDER BY words.rank LIMIT ?",
        [" OR ".join(terms), *(it for _, values in conditions for it in values), top_k * 4 + 50],
    )
    found = [id_ for (id_,) in rows]
    shares = _shares(connection, terms, found)
    relevant = [(it, shares[it]) for it in found if shares[it] >= min_relevance]
    return sorted(relevant, key=lambda it: -it[1])[:top_k]


def _shares(
    connection: sqlite3.Connection, terms: Sequence[str], ids: Sequence[int]
) -> dict[int, float]:
    """Return which share of the terms each passage has, by weight."""
    total = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
    marks = ", ".join("?" * len(ids))
    among = f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({marks})"  # noqa: S608 - question marks
    shares = dict.fromkeys(ids, 0.0)
    whole = 0.0
    for term in terms:
        # A word that is nowhere counts as the rarest that is somewhere, and not more.
        weight = rarity(max(1, count_of(connection, term)), total)
        whole += weight
        for (id_,) in connection.execute(among, (term, *ids)):
            shares[id_] += weight
    return {id_: min(1.0, share / whole) for id_, share in shares.items()}


def count_of(connection: sqlite3.Connection, term: str) -> int:
    """Return how many passages have a term."""
    sql = "SELECT count(*) FROM words WHERE words MATCH ?"
    return connection.execute(sql, (term,)).fetchone()[0]


def rarity(having: int, total: int) -> float:
    """Return the weight of a term, as BM25 has it but never below zero."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))
