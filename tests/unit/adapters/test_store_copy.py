"""Copies of stores are complete, and damage is found."""

import sqlite3
from contextlib import asynccontextmanager, closing

import pytest

from support.postgres_stores import store_place
from weft.adapters.sql import SqliteStore
from weft.adapters.sql.check import check_store
from weft.adapters.sql.copy import copy_store, find_rows, read_tables
from weft.adapters.sql.queries import read_events
from weft.adapters.sql.statements import query
from weft.adapters.sql.tables import TABLES
from weft.engine.events import MessageShown, RunStarted
from weft.engine.rows import Snapshot
from weft.engine.timers import NEVER
from weft.errors import StoreError
from weft.testing.store.samples import APP, ME, OPERATOR, USER, SampleRun, mail

STARTED = RunStarted("Support", "digest-1", APP, USER, {})
LARGE = "ü" * 20_000


@asynccontextmanager
async def filled(folder):
    """Open a store with open and ended runs, mail, requests, and values of all types."""
    store = await SqliteStore.open(folder / "store.db")
    for number in range(3):
        run = SampleRun(f"run-{number}", name=f"name-{number}")
        changes = (run.request("ask", payload={"a": 1}), run.request("chat"), run.carried("a", 1.5))
        await store.append(run.batch(STARTED, package=b"\x00x", changes=changes), owner=ME)
        await store.append(run.batch(MessageShown(LARGE), held=number == 2), owner=ME)
    await store.append(run.batch(status="ended"), owner=ME)
    await store.beat(ME)
    for number in range(20):
        await store.put(mail("run-1", f"letter-{number}"))
    await store.put(mail("new-name", "first", named=True))
    await store.save_snapshot(APP, "run-0", Snapshot(2, "1", "digest-1", b"\xff\x00"))
    yield store
    await store.close()


@asynccontextmanager
async def filled_and_empty(folder):
    """Open a store with rows, and one without."""
    async with filled(folder) as store:
        target = await SqliteStore.open(folder / "copy.db")
        yield store, target
        await target.close()


async def change(store: SqliteStore, sql: str) -> None:
    def transaction():
        yield [query(sql)]

    await SqliteStore.load(store, transaction())


def test_every_table_is_copied():
    created = [sql.split()[2] for sql in TABLES if sql.split()[:2] == ["CREATE", "TABLE"]]
    assert sorted(table.name for table in read_tables()) == sorted(created)
    assert all(table.key for table in read_tables())
    assert [table.name for table in read_tables()][-2:] == ["runs", "work"]


async def test_copy_has_everything(tmp_path):
    async with filled_and_empty(tmp_path) as (store, target):
        assert await find_rows(target) == ""
        counts = await copy_store(store, target)
        assert counts["events"] == 7
        assert counts["mail"] == 21
        assert counts["blobs"] == 1
        assert await find_rows(target)
        for run in ("run-0", "run-1", "run-2"):
            events = await target.read(OPERATOR, run)
            assert events[1].data == MessageShown(LARGE)
        letters = [letter.id for letter in await target.pending(APP, "run-1")]
        assert letters == [f"letter-{number}" for number in range(20)]
        assert (await target.snapshot(APP, "run-0")).content == b"\xff\x00"
        assert len(await target.requests(OPERATOR)) == 6
        assert (await check_store(target)).problems == []


async def test_copy_shows_one_moment(tmp_path, monkeypatch):
    """What is written while the copy is made is not in it."""
    async with filled_and_empty(tmp_path) as (store, target):
        load, late = target.load, SampleRun("late")

        async def write_meanwhile(transaction):
            await store.append(late.batch(), owner=ME)
            await load(transaction)

        monkeypatch.setattr(target, "load", write_meanwhile)
        counts = await copy_store(store, target)
        assert counts["events"] == 7
        assert await target.run(OPERATOR, "late") is None
        assert (await store.run(OPERATOR, "late")).seq > 1


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM events WHERE run = 'run-1' AND seq = 1",
        "UPDATE requests SET answered = 1 WHERE run = 'run-0' AND id = 'ask'",
    ],
)
async def test_incomplete_copy_is_found(tmp_path, monkeypatch, sql):
    async with filled_and_empty(tmp_path) as (store, target):
        load = target.load

        async def lose_rows(transaction):
            await load(transaction)
            await change(target, sql)

        monkeypatch.setattr(target, "load", lose_rows)
        with pytest.raises(StoreError, match=r"is not a copy: table (events|requests)"):
            await copy_store(store, target)


async def test_sound_store_has_no_problems(tmp_path):
    async with filled(tmp_path) as store:
        checked = await check_store(store)
        assert (checked.runs, checked.events, checked.problems) == (4, 7, [])


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        (
            "DELETE FROM events WHERE run = 'run-1' AND seq = 1",
            "shop: the store lacks event 1 of run run-1, which has had 2: it was removed or lost",
        ),
        (
            "DELETE FROM blobs",
            "shop: the store lacks the data of event 2 of run run-0: it was lost",
        ),
        (
            "DELETE FROM work WHERE run = 'run-1'",
            "shop: run run-1 is open and has no work row: no worker will find it",
        ),
        (
            f"INSERT INTO work (app, run, owner, due_at) VALUES ('shop', 'run-2', '', {NEVER})",
            "shop: run run-2 has ended and still has a work row",
        ),
        (
            "INSERT INTO work (app, run, owner, due_at) VALUES ('shop', 'gone', '', 0)",
            "shop: there is work for run gone, which does not exist",
        ),
        ("DELETE FROM packages", "shop: package digest-1 of run run-0 is missing"),
        ("UPDATE runs SET seq = 1 WHERE run = 'run-0'", "shop: run run-0 has events after"),
        ("DELETE FROM runs WHERE run = 'run-2'", "3 events belong to no run"),
        (
            "UPDATE events SET data = '{' WHERE run = 'run-1' AND seq = 1",
            "shop: event 1 of run run-1 cannot be read (RunStarted:",
        ),
    ],
)
async def test_damage_is_found(tmp_path, sql, problem):
    async with filled(tmp_path) as store:
        await change(store, sql)
        problems = (await check_store(store)).problems
        assert problems[0].startswith(problem)


async def test_two_open_runs_of_one_name_are_found(tmp_path):
    async with filled(tmp_path) as store:
        await change(store, "DROP INDEX runs_open_by_name")
        await change(store, "UPDATE runs SET name = 'name-0' WHERE run = 'run-1'")
        assert (await check_store(store)).problems == ["shop: 2 open runs have the name name-0"]


@pytest.mark.parametrize(
    ("table", "start", "length", "problem"),
    [
        (
            "received_mail",
            0,
            4096,
            "the file is damaged (SQLite says: database disk image is malformed)",
        ),
        ("sqlite_schema", 36, 4, "the file is damaged (SQLite says: "),
    ],
)
async def test_damaged_file_is_found(tmp_path, table, start, length, problem):
    async with filled(tmp_path):
        pass
    path = tmp_path / "store.db"
    where = "SELECT rootpage FROM sqlite_master WHERE name = ? UNION ALL SELECT 1"
    with closing(sqlite3.connect(path)) as connection:
        page, *_ = connection.execute(where, [table]).fetchone()
    content = bytearray(path.read_bytes())
    place = (page - 1) * 4096 + start
    content[place : place + length] = b"\0\0\0\7" * (length // 4)
    path.write_bytes(content)
    store = await SqliteStore.open(path)
    assert problem in (await check_store(store)).problems[0]
    await store.close()


async def test_copy_to_postgres_and_back(tmp_path, postgres_database):
    async with filled(tmp_path) as store, store_place(postgres_database) as place:
        server = await place.open()
        assert await find_rows(server) == ""
        counts = await copy_store(store, server)
        assert await find_rows(server)
        checked = await check_store(server)
        assert (checked.runs, checked.events, checked.problems) == (4, 7, [])
        letters = [letter.id for letter in await server.pending(APP, "run-1")]
        assert letters == [f"letter-{number}" for number in range(20)]
        back = await SqliteStore.open(tmp_path / "back.db")
        assert await copy_store(server, back) == counts
        assert await back.read(OPERATOR, "run-0") == await store.read(OPERATOR, "run-0")
        await back.close()


async def test_copy_to_postgres_has_its_form_of_first_words(tmp_path, postgres_database):
    async with filled(tmp_path) as store, store_place(postgres_database) as place:
        run = SampleRun("odd")
        batch = run.batch()
        row = batch.row._replace(preview="a\x00b\x1fc")
        await store.append(batch._replace(row=row), owner=ME)
        server = await place.open()
        await copy_store(store, server)
        assert (await server.run(OPERATOR, "odd")).preview == "a\ufffdb\ufffdc"


async def test_row_that_the_target_cannot_hold_is_explained(tmp_path, postgres_database):
    async with filled(tmp_path) as store, store_place(postgres_database) as place:
        await store.append(SampleRun("odd", name="a\x00b").batch(), owner=ME)
        server = await place.open()
        with pytest.raises(StoreError, match="cannot hold a row of table runs"):
            await copy_store(store, server)
        assert await server.runs(OPERATOR) == []


async def test_copy_of_postgres_shows_one_moment(tmp_path, postgres_database):
    async with store_place(postgres_database) as place:
        server = await place.open()
        await server.append(SampleRun("run-0").batch(), owner=ME)
        async with server.frozen() as read:
            assert len(await read(read_events(OPERATOR, "run-0", 0, None))) == 1
            await server.append(SampleRun("run-0", seq=1).batch(), owner=ME)
            assert len(await read(read_events(OPERATOR, "run-0", 0, None))) == 1


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("DELETE FROM events WHERE run = 'run-1' AND seq = 1", "the store lacks event 1"),
        ("DELETE FROM blobs", "the store lacks the data of event 2"),
        ("DELETE FROM work WHERE run = 'run-1'", "is open and has no work row"),
        ("DELETE FROM runs WHERE run = 'run-2'", "3 events belong to no run"),
    ],
)
async def test_damage_is_found_in_postgres(tmp_path, postgres_database, sql, problem):
    async with filled(tmp_path) as store, store_place(postgres_database) as place:
        server = await place.open()
        await copy_store(store, server)
        await place.sql(sql)
        assert problem in (await check_store(server)).problems[0]
