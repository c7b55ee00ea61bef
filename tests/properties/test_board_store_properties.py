"""Boards at random: a store finds what plain code finds, and hides what a reader may not see.

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
from weft.adapters.sql import SqliteStore, board
from weft.engine.board.visibility import Identity, may_see, stored_audience
from weft.engine.events import ArtifactPublished, MessageShown
from weft.ports.board import ArtifactPage, ArtifactQuery, StoredArtifact, payload_holds
from weft.testing.store.board_samples import BoardRun
from weft.testing.store.samples import ME

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
    owners=st.sampled_from([None, ("",), ("", "user:ann"), ("user:ann",)]),
    types=st.lists(st.sampled_from(TYPES), max_size=2).map(tuple),
    tags=tag_lists,
    without_tags=tag_lists | st.just(()),
    all_tags=tag_lists | st.just(()),
    producers=st.lists(st.sampled_from(AGENTS), max_size=2).map(tuple),
    correlation=st.none() | st.sampled_from(CORRELATIONS),
    partition=st.none() | st.sampled_from(["", "p1"]),
    since=st.none() | few.map(lambda item: item * 1000),
    until=st.none() | few.map(lambda item: item * 1000),
    text=st.none() | st.sampled_from(TEXTS),
    ids=st.none()
    | st.lists(st.sampled_from(["i1", "i2", "i3", "Plan c1.1"]), max_size=3).map(tuple),
    order=st.sampled_from(["-created_at", "created_at"]),
    limit=st.none() | few,
    offset=st.sampled_from([0, 0, 1, 2]),
)
#: Most fields of most queries are left open, or nothing would be found.
open_queries = st.tuples(queries, st.sets(st.sampled_from(ArtifactQuery._fields[5:]))).map(
    lambda item: ArtifactQuery(*item[0][:5], **{name: getattr(item[0], name) for name in item[1]})
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """A loop, a SQLite store that is open in it, and names for tenants."""
    with asyncio.Runner() as runner:
        path = tmp_path_factory.mktemp("board") / "store.db"
        store = runner.run(SqliteStore.open(path, durability="normal"))
        yield runner, store, (f"tenant{item}" for item in count())
        runner.run(store.close())


async def publish(store, app: str, published: list[Published | None]) -> None:
    """Let every board and correlation be a run; what is None is not there, but its number is."""
    runs: dict[tuple[str, str], BoardRun] = {}
    batches = []
    for place, at, data in published:
        board_, correlation = place
        run = runs.setdefault(
            place,
            BoardRun(
                " ".join(place),
                app,
                workflow=board_,
                correlation=correlation,
                owner="user:ann" if correlation == CORRELATIONS[0] else "",
            ),
        )
        batches.append(run.writing(data, at=at))
    await asyncio.gather(*(store.append(batch, owner=ME) for batch in batches))


def of_tenant(query: ArtifactQuery, app: str) -> ArtifactQuery:
    reader = query.reader and query.reader._replace(tenant=query.reader.tenant or app)
    return query._replace(app=app, reader=reader)


async def answers(store, queries: list[ArtifactQuery], app: str):
    """Return the pages, with totals and without."""
    asked = [of_tenant(query, app) for query in queries]
    pages = [await store.artifacts(item, count=True) for item in asked]
    assert [(await store.artifacts(item)).items for item in asked] == [page.items for page in pages]
    return pages


boards = st.lists(artifacts, max_size=12)
asked = st.lists(open_queries, min_size=1, max_size=6)


def matches(item: StoredArtifact, query: ArtifactQuery) -> bool:
    """Tell whether an artifact is one that a query means."""
    artifact, reader = item.artifact, query.reader
    return (
        (reader is None or may_see(item.audience, reader, query.now))
        and (query.owners is None or owner_of(item) in query.owners)
        and (not query.types or artifact.type in query.types)
        and (not query.tags or any(tag in artifact.tags for tag in query.tags))
        and not any(tag in artifact.tags for tag in query.without_tags)
        and all(tag in artifact.tags for tag in query.all_tags)
        and (not query.producers or artifact.by in query.producers)
        and query.correlation in (None, artifact.correlation)
        and query.partition in (None, artifact.partition)
        and (query.since is None or query.since <= artifact.created_at)
        and (query.until is None or artifact.created_at < query.until)
        and (query.text is None or payload_holds(artifact.payload, query.text))
        and (query.ids is None or artifact.id in query.ids)
    )


def owner_of(item: StoredArtifact) -> str:
    return "user:ann" if item.artifact.correlation == CORRELATIONS[0] else ""


def expected(items: list[StoredArtifact], query: ArtifactQuery) -> ArtifactPage:
    """Return the page of a query, found by looking at every artifact of the board."""
    found = [item for item in items if matches(item, query)]
    if query.order != "created_at":
        found.reverse()
    stop = None if query.limit is None else query.offset + query.limit
    return ArtifactPage(found[query.offset : stop], len(found))


@settings(max_examples=30 * TIMES, deadline=None)
@given(published=boards, queries=asked, operator=st.booleans(), streams=st.sampled_from([1, 16]))
def test_a_store_finds_what_plain_code_finds(lasting, published, queries, operator, streams):
    runner, store, tenants = lasting
    app = next(tenants)
    if operator:
        queries = [query._replace(reader=None) for query in queries]
    runner.run(publish(store, app, published))
    everything = {}
    for name in BOARDS:
        asked_for = ArtifactQuery(app, name, None, 0, None, order="created_at")
        everything[name] = runner.run(store.artifacts(asked_for)).items
    assert sum(map(len, everything.values())) == len(published)
    with patch.object(board, "MOST_STREAMS", streams):
        found = runner.run(answers(store, queries, app))
    wanted = [expected(everything[query.board], of_tenant(query, app)) for query in queries]
    assert found == wanted


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
)
def test_hidden_artifacts_change_nothing(lasting, published, reader, now, queries, others):
    runner, store, tenants = lasting
    found = []
    queries = [query._replace(reader=reader, now=now) for query in queries]
    # What takes the place of what is hidden is hidden as well, or it is no artifact at all.
    for changed in (False, True):
        app = next(tenants)
        identity = reader._replace(tenant=reader.tenant or app)
        there = [
            (
                *item[:2],
                _instead(item, other) if changed and hidden(item, identity, now, app) else item[2],
            )
            for item, other in zip(published, others, strict=False)
        ]
        runner.run(publish(store, app, there))
        found.append(repr(runner.run(answers(store, queries, app))).replace(app, "own"))
    assert found[0] == found[1]


def _instead(published: Published, other: Published | None):
    if other is None:
        return MessageShown("nothing")
    return replace(other[2], visibility=published[2].visibility)
