"""The stores that come with Weft, against the suite that every store must pass."""

import asyncio
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.broken_stores import NOTICED, open_memory, open_sqlite, timed
from support.postgres_stores import store_place
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.events import KIND_NAMES, KINDS
from weft.errors import StoreError
from weft.ports.scope import Scope
from weft.testing.store.conformance import SHARED_STORE_CHECKS, STORE_CHECKS, run_check
from weft.testing.store.kinds import EVERY_KIND
from weft.testing.store.samples import SampleRun, expect


def play(story):
    asyncio.run(asyncio.wait_for(story, 60))


@pytest.mark.parametrize("name", STORE_CHECKS)
def test_memory(name):
    play(run_check(name, open_memory))


@pytest.mark.parametrize("open_store", [open_memory, open_sqlite])
def test_run_is_claimed_in_the_millisecond_in_which_it_is_due(open_store, monkeypatch, tmp_path):
    opened = timed(lambda _: open_store)(monkeypatch)
    play(run_check("runs_are_claimed_when_due", partial(opened, tmp_path / "store.db")))


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("name", [*STORE_CHECKS, *SHARED_STORE_CHECKS])
def test_sqlite(name, durability, tmp_path):
    play(run_check(name, partial(SqliteStore.open, tmp_path / "store.db", durability=durability)))


@pytest.mark.parametrize("name", [*STORE_CHECKS, *SHARED_STORE_CHECKS])
async def test_postgres(name, postgres_database):
    async with store_place(postgres_database) as place:
        await run_check(name, place.open)


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, mutants in NOTICED.items() for number in range(len(mutants))],
)
def test_the_suite_notices(name, number, monkeypatch, tmp_path):
    opened = NOTICED[name][number](monkeypatch)
    with pytest.raises((AssertionError, StoreError, StopAsyncIteration, TimeoutError)):
        play(run_check(name, partial(opened, tmp_path / "store.db")))


def test_every_check_has_something_to_notice():
    assert set(NOTICED) == {*STORE_CHECKS, *SHARED_STORE_CHECKS}


def test_the_samples_hold_every_kind_of_event():
    assert {KIND_NAMES[type(data)] for data in EVERY_KIND} == set(KINDS)


def test_long_values_are_shortened_in_messages():
    with pytest.raises(AssertionError) as caught:
        expect("x" * 1000, "y", "a text")
    assert len(str(caught.value)) < 600
    assert str(caught.value).startswith("a text: expected 'y', found 'xxx")


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
OWNERS = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6)


@given(owners=OWNERS, asked=st.tuples(NAMES, st.none() | NAMES), pick=st.integers(0, 5))
def test_no_scope_sees_what_is_outside(owners, asked, pick):
    # Half of the time the scope asked for is one that exists.
    app, user = owners[pick] if pick < len(owners) else asked
    scope = Scope.operator(app) if user is None else Scope(app, user)
    play(_sees_exactly(MemoryStore(), owners, scope))
    with TemporaryDirectory() as folder:
        play(_sees_exactly_in_file(Path(folder) / "store.db", owners, scope))


async def _sees_exactly_in_file(path, owners, scope):
    await _sees_exactly(await open_sqlite(path), owners, scope)


async def _sees_exactly(store, owners, scope):
    for number, (app, user) in enumerate(owners):
        run = SampleRun(f"r{number}", app=app, user=user)
        await store.append(run.batch(changes=[run.request("q")]), owner="w1")
    inside = {f"r{number}" for number, owner in enumerate(owners) if scope.covers(*owner)}
    everything = [f"r{number}" for number in range(len(owners))]
    assert {row.run for row in await store.runs(scope)} == inside
    assert {row.run for row in await store.requests(scope)} == inside
    assert {name for name in everything if await store.run(scope, name)} == inside
    assert {name for name in everything if await store.read(scope, name)} == inside
    await store.close()
