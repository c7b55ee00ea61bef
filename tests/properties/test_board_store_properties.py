"""Boards at random: every store gives the same answers, and nobody learns of what they may not see.

A board is made of a few words that meet often, so that most queries find something. Each example is
a tenant of its own in one file: opening one takes longer than everything else.
"""

import asyncio
from dataclasses import replace
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal, board
from weft.engine.board.visibility import Identity, may_see, stored_audience
from weft.engine.events import ArtifactPublished, MessageShown
from weft.ports.board import ArtifactQuery
from weft.testing.journal.board_samples import BoardRun

BOARDS = ("Plan", "plan")
TYPES = ("Idea", "Plan", "idea")
TAGS = ("a", "b", "%", "a\x00b")
AGENTS = ("Ann", "Ben", '","', "Ann\x00")
LABELS = ("red", "blue", "red\x00")
CORRELATIONS = ("c1", "c2")
TEXTS = ("", "x", "X", "%", "_", "ß", "SS", "ä", "Ä", '"', "\\", "null", '{"', "xx", "\x00")
#: Stands for the tenant of an example.
OWN = ""

plain = st.one_of(
    st.just({"kind": "public"}),
    st.fixed_dictionaries(
        {"kind": st.just("private"), "agents": st.lists(st.sampled_from(AGENTS), max_size=3)}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("labelled"), "labels": st.lists(st.sampled_from(LABELS), max_size=3)}
    ),
    st.fixed_dictionaries({"kind": st.just("tenant"), "tenant": st.sampled_from([None, "other"])}),
    st.sampled_from(
        [{}, {"kind": "secret"}, {"kind": "private"}, {"kind": "labelled", "labels": 3}]
    ),
)
policies = st.recursive(
    plain,
    lambda then: st.fixed_dictionaries(
        {"kind": st.just("after"), "seconds": st.sampled_from([0, 0.5, 1, 3, -1]), "then": then}
    ),
    max_leaves=3,
)
payloads = st.one_of(
    st.none(),
    st.sampled_from(TEXTS),
    st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS) | st.integers(), max_size=2),
    st.just("x" * 40_000),
)
tag_lists = st.lists(st.sampled_from(TAGS), max_size=3).map(tuple)


#: Where an artifact is published, when, and what it is.
Published = tuple[tuple[str, str], int, ArtifactPublished]

artifacts = st.tuples(
    st.tuples(st.sampled_from(BOARDS), st.sampled_from(CORRELATIONS)),
    st.sampled_from([0, 1000, 2000, 3000]),
    st.builds(
        ArtifactPublished,
        type=st.sampled_from(TYPES),
        payload=payloads,
        by=st.sampled_from(AGENTS),
        tags=tag_lists,
        partition=st.sampled_from(["", "p1", "p2"]),
        visibility=policies,
        id=st.sampled_from(["", "", "i1", "i2"]),
        version=st.sampled_from([1, 2]),
    ),
)
readers = st.builds(
    Identity,
    agent=st.sampled_from(AGENTS),
    labels=st.frozensets(st.sampled_from(LABELS)),
    tenant=st.sampled_from([OWN, "other"]),
)
few = st.integers(0, 5)
queries = st.builds(
    ArtifactQuery,
    app=st.just(OWN),
    board=st.sampled_from(BOARDS),
    reader=readers,
    now=st.sampled_from([0, 3000, 9000]),
    types=st.lists(st.sampled_from(TYPES), max_size=2).map(tuple),
    tags=tag_lists,
    without_tags=tag_lists | st.just(()),
    all_tags=tag_lists | st.just(()),
    producers=st.lists(st.sampled_from(AGENTS), max_size=2).map(tuple),
    correlation=st.none() | st.sampled_from(CORRELATIONS),
    partition=st.none() | st.sampled_from(["", "p1"]),
    since=st.none() | few.map(lambda it: it * 1000),
    until=st.none() | few.map(lambda it: it * 1000),
    text=st.none() | st.sampled_from(TEXTS),
    ids=st.none()
    | st.lists(st.sampled_from(["i1", "i2", "i3", "Plan c1.1"]), max_size=3).map(tuple),
    order=st.sampled_from(["-created_at", "created_at"]),
    limit=st.none() | few,
    offset=st.sampled_from([0, 0, 1, 2]),
)
#: Most fields of most queries are left open, or nothing would be found.
open_queries = st.tuples(queries, st.sets(st.sampled_from(ArtifactQuery._fields[4:]))).map(
    lambda it: ArtifactQuery(*it[0][:4], **{name: getattr(it[0], name) for name in it[1]})
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """A loop, a SQLite journal that is open in it, and names for tenants."""
    with asyncio.Runner() as runner:
        path = tmp_path_factory.mktemp("board") / "journal.db"
        journal = runner.run(SqliteJournal.open(path, durability="normal"))
        yield runner, journal, (f"tenant{it}" for it in count())
        runner.run(journal.close())


async def publish(journal, app: str, published: list[Published | None]) -> None:
    """Let every board and correlation be a run; what is None is not there, but its number is."""
    runs: dict[tuple[str, str], BoardRun] = {}
    batches = []
    for place, at, data in published:
        board_, correlation = place
        run = runs.setdefault(
            place, BoardRun(" ".join(place), app, workflow=board_, correlation=correlation)
        )
        batches.append(run.writing(data, at=at))
    await asyncio.gather(*(journal.append(it) for it in batches))


def of_tenant(query: ArtifactQuery, app: str) -> ArtifactQuery:
    reader = query.reader and query.reader._replace(tenant=query.reader.tenant or app)
    return query._replace(app=app, reader=reader)


async def answers(journal, queries: list[ArtifactQuery], app: str):
    """Return the pages, with totals and without."""
    asked = [of_tenant(it, app) for it in queries]
    pages = [await journal.artifacts(it, count=True) for it in asked]
    assert [(await journal.artifacts(it)).items for it in asked] == [it.items for it in pages]
    return pages


boards = st.lists(artifacts, max_size=12)
asked = st.lists(open_queries, min_size=1, max_size=6)


@settings(max_examples=30 * TIMES, deadline=None)
@given(published=boards, queries=asked, operator=st.booleans(), streams=st.sampled_from([1, 16]))
def test_every_store_gives_the_same_answers(lasting, published, queries, operator, streams):
    runner, sqlite, tenants = lasting
    app, memory = next(tenants), MemoryJournal()
    if operator:
        queries = [it._replace(reader=None) for it in queries]
    for journal in (memory, sqlite):
        runner.run(publish(journal, app, published))
    with patch.object(board, "MOST_STREAMS", streams):
        found = runner.run(answers(sqlite, queries, app))
    assert found == runner.run(answers(memory, queries, app))


def hidden(published: Published, reader: Identity, now: int, app: str) -> bool:
    _, at, data = published
    seen = stored_audience(data.visibility, created_at=at, tenant=app)
    return not may_see(seen, reader, now)


@settings(max_examples=30 * TIMES, deadline=None)
@given(
    published=boards,
    reader=readers,
    now=st.sampled_from([0, 3000, 9000]),
    queries=asked,
    others=st.lists(st.none() | artifacts, min_size=12, max_size=12),
    kind=st.sampled_from(["memory", "sqlite"]),
)
def test_what_is_hidden_changes_nothing(lasting, published, reader, now, queries, others, kind):
    runner, sqlite, tenants = lasting
    found = []
    queries = [it._replace(reader=reader, now=now) for it in queries]
    # What takes the place of what is hidden is hidden as well, or it is no artifact at all.
    for changed in (False, True):
        app = next(tenants)
        journal = sqlite if kind == "sqlite" else MemoryJournal()
        identity = reader._replace(tenant=reader.tenant or app)
        there = [
            (*it[:2], _instead(it, other) if changed and hidden(it, identity, now, app) else it[2])
            for it, other in zip(published, others, strict=False)
        ]
        runner.run(publish(journal, app, there))
        found.append(repr(runner.run(answers(journal, queries, app))).replace(app, "own"))
    assert found[0] == found[1]


def _instead(published: Published, other: Published | None):
    if other is None:
        return MessageShown("nothing")
    return replace(other[2], visibility=published[2].visibility)
