"""A store in a SQLite file when the file, the disk, another process or a batch is to blame."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing
from types import SimpleNamespace

import pytest

from support.journal_play import look, play
from weft.adapters import sqlite_file
from weft.adapters.sql import SqliteStore
from weft.adapters.sql import store as sql_store
from weft.adapters.sql.sqlite import FORMAT
from weft.adapters.sql.statements import query
from weft.adapters.sqlite_file import explain, open_file
from weft.engine.events import MessageShown, ToolReturned
from weft.errors import StoreConflict, StoreError
from weft.testing.store.samples import ME, SCOPE, SampleRun


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def refused(attempt, *, retryable: bool) -> str:
    with pytest.raises(StoreError) as caught:
        await attempt
    assert not isinstance(caught.value, StoreConflict)
    assert caught.value.retryable is retryable
    return str(caught.value)


def test_a_locked_file_is_waited_for_and_then_explained(path):
    async def story():
        store = await SqliteStore.open(path, busy_seconds=0.3)
        await store.append(SampleRun("r1").batch(), owner=ME)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            ticks = asyncio.create_task(tick())
            runs = [SampleRun(f"w{number}") for number in range(3)]
            batches = [run.batch() for run in runs]
            for said in await asyncio.gather(
                *(refused(store.append(batch, owner=ME), retryable=True) for batch in batches),
                refused(store.prune(SCOPE, ended_before=9, dry_run=False), retryable=True),
            ):
                assert "another process" in said
                assert str(path) in said
            assert len(await store.read(SCOPE, "r1")) == 1
            ticks.cancel()
            assert await asyncio.gather(ticks, return_exceptions=True)
            other.execute("ROLLBACK")
        assert counted[0] > 10
        await asyncio.gather(*(store.append(batch, owner=ME) for batch in batches))
        assert len(await store.runs(SCOPE)) == 4
        await store.close()

    counted = [0]

    async def tick():
        while True:
            await asyncio.sleep(0.02)
            counted[0] += 1

    play(story())


async def test_a_lock_that_goes_away_in_time_is_not_noticed(path):
    store = await SqliteStore.open(path, busy_seconds=20)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    timer.start()
    first = asyncio.create_task(store.append(SampleRun("r1").batch(), owner=ME))
    await asyncio.sleep(0.1)
    later = [
        asyncio.create_task(store.append(SampleRun(name).batch(), owner=ME))
        for name in ("r2", "r3")
    ]
    await asyncio.sleep(0)
    assert not first.done()
    await store.close()
    assert await asyncio.gather(first, *later) == [False] * 3
    timer.join()
    other.close()
    assert look(path, "SELECT count(*) FROM runs") == [(3,)]


async def test_a_file_that_is_locked_when_it_is_opened(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        opening = SqliteStore.open(path, busy_seconds=0.2)
        assert "another process" in await refused(opening, retryable=True)
        other.execute("ROLLBACK")
    store = await SqliteStore.open(path, busy_seconds=0.2)
    await store.close()


def test_opening_is_tried_again_where_sqlite_does_not_wait(path, monkeypatch):
    opened, attempts = sqlite_file._open_prepared, []

    def busy_at_first(*args):
        attempts.append(args)
        if len(attempts) < 3:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
            raise error
        return opened(*args)

    monkeypatch.setattr(sqlite_file, "_open_prepared", busy_at_first)
    open_file(str(path), FORMAT, busy_seconds=5).close()
    assert len(attempts) == 3


def test_a_full_disk_is_explained_and_forgotten_when_there_is_room(path):
    async def story():
        store = await SqliteStore.open(path)
        await store.append(SampleRun("r0").batch(), owner=ME)
        pages = look(path, "PRAGMA page_count")[0][0]
        await limit(store, pages + 5)
        run = SampleRun("r1")
        batch = run.batch(*[ToolReturned("c", f"{number}" * 30_000) for number in range(9)])
        assert "disk is full" in await refused(store.append(batch, owner=ME), retryable=True)
        assert await store.run(SCOPE, "r1") is None
        await store.append(SampleRun("r2").batch(), owner=ME)
        await limit(store, 1_000_000)
        await store.append(batch, owner=ME)
        assert len(await store.read(SCOPE, "r1")) == 9
        await store.close()

    async def limit(store, pages):
        await store._write(ask(f"PRAGMA max_page_count = {pages}"))

    def ask(sql):
        yield query(sql)

    play(story())


@pytest.mark.parametrize(
    ("blocks", "told"), [(0, "the disk is full"), (10**6, "the disk has an I/O error")]
)
def test_full_disk_is_reported_as_such(path, monkeypatch, blocks: int, told: str):
    disk = SimpleNamespace(f_bavail=blocks, f_frsize=4096)
    monkeypatch.setattr("os.statvfs", lambda _: disk)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert told in str(explain(error, str(path)))


def test_unknown_free_space_is_not_reported_as_full(path):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    found = explain(error, str(path.parent / "gone" / "store.db"))
    assert found.remedy == "check the disk"


@pytest.fixture
def read_only(path, monkeypatch):
    """Makes the disk of the journal one that can only be read."""

    def mount() -> None:
        monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
        monkeypatch.setattr("os.open", refuse)

    def refuse(file, *_):
        raise OSError(errno.EROFS, "Read-only file system", str(file))

    return mount


async def test_a_file_on_a_read_only_disk_can_be_read_and_not_written(path, read_only):
    async with closed(await SqliteStore.open(path)) as store:
        await store.append(SampleRun("r1").batch(), owner=ME)
    read_only()
    async with closed(await SqliteStore.open(path)) as store:
        assert len(await store.read(SCOPE, "r1")) == 1
        said = await refused(store.append(SampleRun("r2").batch(), owner=ME), retryable=False)
        assert "it is on a read-only file system" in said
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_last_write_is_readable_on_a_read_only_disk(path, read_only):
    async with closed(await SqliteStore.open(path)) as store:
        await store.append(SampleRun("r1").batch(), owner=ME)
        read_only()
        async with closed(await SqliteStore.open(path)) as other:
            assert len(await other.read(SCOPE, "r1")) == 1


@pytest.mark.parametrize("content", [None, b"not a database" * 100])
def test_a_read_only_disk_without_a_journal(path, read_only, content: bytes | None):
    if content:
        path.write_bytes(content)
    read_only()
    said = play(refused(SqliteStore.open(path), retryable=False))
    assert ("not a database" if content else "Read-only file system") in said


@asynccontextmanager
async def closed(store):
    try:
        yield store
    finally:
        await store.close()


FULL = """
import asyncio, resource, sys
from pathlib import Path
from types import SimpleNamespace
from weft.adapters.sql import SqliteStore
from weft.engine.events import ToolReturned
from weft.errors import StoreError
from weft.testing.store.samples import ME, SCOPE, SampleRun

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    run = SampleRun("r1")
    await store.append(run.batch(), owner=ME)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    batch = run.batch(*[ToolReturned("c", f"{number}" * 30_000) for number in range(40)])
    try:
        await store.append(batch, owner=ME)
    except StoreError as error:
        print(error.retryable, error)
    print(len(await store.read(SCOPE, "r1")))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.append(batch, owner=ME)
    print(len(await store.read(SCOPE, "r1")))
    await store.close()

asyncio.run(main())
"""


def test_a_write_that_the_system_refuses_leaves_the_journal_whole(path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    error, before, after = done.stdout.splitlines()
    assert error.startswith("True store ")
    assert "disk" in error
    assert (before, after) == ("1", "41")
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_damaged_file_is_explained(path):
    async def write():
        store = await SqliteStore.open(path)
        for number in range(50):
            await store.append(SampleRun(f"r{number}").batch(MessageShown("x" * 2000)), owner=ME)
        await store.close()

    async def story():
        store = await SqliteStore.open(path)
        said = await refused(read_all(store), retryable=False)
        assert "damaged" in said
        said = await refused(store.append(SampleRun("new").batch(), owner=ME), retryable=False)
        assert "damaged" in said
        await store.close()

    async def read_all(store):
        for number in range(50):
            await store.read(SCOPE, f"r{number}")

    open_file(str(path), FORMAT, busy_seconds=1).close()
    tables = path.stat().st_size
    play(write())
    pages = bytearray(path.read_bytes())
    pages[tables:] = b"\xa5" * (len(pages) - tables)
    path.write_bytes(pages)
    play(story())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda item: item._replace(
            events=[item.events[0]._replace(data=ToolReturned("c", object()))]
        ),
        lambda item: item._replace(events=[item.events[0]._replace(data=MessageShown("\ud800"))]),
        lambda item: item._replace(events=[item.events[0]._replace(actor="\ud800")]),
        lambda item: item._replace(events=[item.events[0]._replace(at=2**70)]),
        lambda item: item._replace(events=[item.events[0]._replace(actor=["a", "list"])]),
        lambda item: item._replace(events=[item.events[0], item.events[0]]),
        lambda item: item._replace(row=item.row._replace(cost_usd=float("nan"))),
        lambda item: item._replace(changes=(SampleRun("bad").request("q", payload=object()),)),
    ],
    ids=["object", "half a letter", "actor", "number", "list", "twice", "no number", "payload"],
)
async def test_a_batch_that_cannot_be_stored_fails_alone(path, spoil):
    store = await SqliteStore.open(path)
    good = [SampleRun(f"r{number}").batch() for number in range(6)]
    bad = spoil(SampleRun("bad").batch())
    stale = SampleRun("stale").batch()._replace(expected=1)
    outcomes = await asyncio.gather(
        *(store.append(batch, owner=ME) for batch in [*good[:3], bad, stale, *good[3:]]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [
        *[bool] * 3, StoreError, StoreConflict, *[bool] * 3
    ]  # fmt: skip
    assert "events of run bad cannot be stored" in str(outcomes[3])
    assert not outcomes[3].retryable
    assert len(await store.runs(SCOPE)) == 6
    assert await store.run(SCOPE, "bad") is None
    await store.append(SampleRun("bad").batch(), owner=ME)
    await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE events SET kind = 'Unheard'",
        "UPDATE events SET data = '{\"text\":'",
        'UPDATE events SET data = \'{"words":"a"}\'',
        "DELETE FROM blobs",
    ],
)
async def test_an_event_that_cannot_be_read_is_named(path, damage):
    store = await SqliteStore.open(path)
    await store.append(SampleRun("r1").batch(MessageShown("x" * 40_000)), owner=ME)
    look(path, damage)
    said = await refused(store.read(SCOPE, "r1"), retryable=False)
    lost = "DELETE" in damage
    wanted = "lacks the data of event 1 of run r1" if lost else "event 1 of run r1 cannot be read"
    assert wanted in said
    await store.close()


async def test_a_fault_of_our_own_reaches_all_who_wait(path, monkeypatch):
    def broken(*_, **__):
        yield 1 / 0

    store = await SqliteStore.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(sql_store, "write_group", broken)
        attempts = (store.append(SampleRun(f"r{number}").batch(), owner=ME) for number in range(3))
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
    await store.append(SampleRun("r1").batch(), owner=ME)
    await store.close()


async def test_cancelled_caller_leaves_a_written_batch(path):
    store = await SqliteStore.open(path)
    tasks = [
        asyncio.create_task(store.append(SampleRun(n).batch(), owner=ME)) for n in ("r1", "r2")
    ]
    await asyncio.sleep(0)
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, bool]
    assert len(await store.runs(SCOPE)) == 2
    await store.close()


def test_closing_continues_without_a_waiter(path):
    async def story():
        store = await SqliteStore.open(path)
        appending = asyncio.create_task(store.append(SampleRun("r1").batch(), owner=ME))
        await asyncio.sleep(0)
        closing_ = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing_.cancel()
        await asyncio.gather(closing_, return_exceptions=True)
        assert closing_.cancelled()
        await store.close()
        await appending

    threads = set(threading.enumerate())
    play(story())
    assert set(threading.enumerate()) == threads
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("ends", ["opened", "refused"])
def test_opening_can_be_given_up(path, monkeypatch, ends):
    go_on = threading.Event()
    opened: list[sqlite3.Connection] = []

    def slowly(*args):
        go_on.wait(10)
        if ends == "refused":
            raise StoreError("no")
        opened.append(prepare(*args))
        return opened[0]

    prepare = sqlite_file._open_prepared
    monkeypatch.setattr(sqlite_file, "_open_prepared", slowly)

    async def story():
        opening = asyncio.create_task(SqliteStore.open(path))
        await asyncio.sleep(0.05)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        assert opening.cancelled()
        go_on.set()

    threads = set(threading.enumerate())
    play(story())
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert bool(opened) is (ends == "opened")


def test_error_without_a_plain_name_is_shown_unchanged():
    error = explain(sqlite3.ProgrammingError("you did it wrong"))
    assert str(error) == "SQLite says: you did it wrong"
    assert not error.retryable
