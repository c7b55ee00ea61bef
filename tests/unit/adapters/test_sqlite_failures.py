"""A SQLite journal when the file, the disk, another process or a batch is to blame."""

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.journal_play import look, play
from weft.adapters.sqlite import SqliteJournal, schema, writer
from weft.adapters.sqlite.errors import store_error
from weft.engine.events import MessageShown, ToolReturned
from weft.errors import StoreConflict, StoreError
from weft.testing.journal.samples import SCOPE, SampleRun


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


async def refused(attempt, *, retryable: bool) -> str:
    with pytest.raises(StoreError) as caught:
        await attempt
    assert not isinstance(caught.value, StoreConflict)
    assert caught.value.retryable is retryable
    return str(caught.value)


def test_a_locked_file_is_waited_for_and_then_explained(path):
    async def story():
        journal = await SqliteJournal.open(path, busy_seconds=0.3)
        await journal.append(SampleRun("r1").batch())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            ticks = asyncio.create_task(tick())
            runs = [SampleRun(f"w{number}") for number in range(3)]
            batches = [run.batch() for run in runs]
            for said in await asyncio.gather(
                *(refused(journal.append(it), retryable=True) for it in batches),
                refused(journal.prune(SCOPE, ended_before=9, dry_run=False), retryable=True),
            ):
                assert "another process" in said
                assert str(path) in said
            assert len(await journal.read(SCOPE, "r1")) == 1
            ticks.cancel()
            assert await asyncio.gather(ticks, return_exceptions=True)
            other.execute("ROLLBACK")
        assert counted[0] > 10
        await asyncio.gather(*map(journal.append, batches))
        assert len(await journal.runs(SCOPE)) == 4
        await journal.close()

    counted = [0]

    async def tick():
        while True:
            await asyncio.sleep(0.02)
            counted[0] += 1

    play(story())


async def test_a_lock_that_goes_away_in_time_is_not_noticed(path):
    journal = await SqliteJournal.open(path, busy_seconds=20)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    timer.start()
    first = asyncio.create_task(journal.append(SampleRun("r1").batch()))
    await asyncio.sleep(0.1)
    later = [asyncio.create_task(journal.append(SampleRun(it).batch())) for it in ("r2", "r3")]
    await asyncio.sleep(0)
    assert not first.done()
    await journal.close()
    assert await asyncio.gather(first, *later) == [None] * 3
    timer.join()
    other.close()
    assert look(path, "SELECT count(*) FROM runs") == [(3,)]


async def test_a_file_that_is_locked_when_it_is_opened(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        opening = SqliteJournal.open(path, busy_seconds=0.2)
        assert "another process" in await refused(opening, retryable=True)
        other.execute("ROLLBACK")
    journal = await SqliteJournal.open(path, busy_seconds=0.2)
    await journal.close()


def test_opening_is_tried_again_where_sqlite_does_not_wait(path, monkeypatch):
    opened, attempts = schema._opened, []

    def busy_at_first(*args):
        attempts.append(args)
        if len(attempts) < 3:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
            raise error
        return opened(*args)

    monkeypatch.setattr(schema, "_opened", busy_at_first)
    schema.open_writer(path, "full", 5).close()
    assert len(attempts) == 3


def test_a_full_disk_is_explained_and_forgotten_when_there_is_room(path):
    async def story():
        journal = await SqliteJournal.open(path)
        await journal.append(SampleRun("r0").batch())
        pages = look(path, "PRAGMA page_count")[0][0]
        await limit(journal, pages + 5)
        run = SampleRun("r1")
        batch = run.batch(*[ToolReturned("c", f"{it}" * 30_000) for it in range(9)])
        assert "disk is full" in await refused(journal.append(batch), retryable=True)
        assert await journal.run(SCOPE, "r1") is None
        await journal.append(SampleRun("r2").batch())
        await limit(journal, 1_000_000)
        await journal.append(batch)
        assert len(await journal.read(SCOPE, "r1")) == 9
        await journal.close()

    async def limit(journal, pages):
        await journal._writer.perform(lambda it: it.execute(f"PRAGMA max_page_count = {pages}"))

    play(story())


@pytest.mark.parametrize(
    ("blocks", "told"), [(0, "the disk is full; make room"), (10**6, "check the disk")]
)
def test_what_fails_for_want_of_room_is_told_as_that(path, monkeypatch, blocks: int, told: str):
    disk = SimpleNamespace(f_bavail=blocks, f_frsize=4096)
    monkeypatch.setattr("os.statvfs", lambda _: disk)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert told in str(store_error(error, path))


def test_a_disk_that_nothing_is_known_of_is_not_said_to_be_full(path):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert "check the disk" in str(store_error(error, path.parent / "gone" / "journal.db"))


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
    async with closed(await SqliteJournal.open(path)) as journal:
        await journal.append(SampleRun("r1").batch())
    read_only()
    async with closed(await SqliteJournal.open(path)) as journal:
        assert len(await journal.read(SCOPE, "r1")) == 1
        said = await refused(journal.append(SampleRun("r2").batch()), retryable=False)
        assert "it is on a read-only file system" in said
    assert [it.name for it in path.parent.iterdir()] == [path.name]


async def test_what_was_written_last_is_not_left_out_on_a_read_only_disk(path, read_only):
    async with closed(await SqliteJournal.open(path)) as journal:
        await journal.append(SampleRun("r1").batch())
        read_only()
        async with closed(await SqliteJournal.open(path)) as other:
            assert len(await other.read(SCOPE, "r1")) == 1


@pytest.mark.parametrize("content", [None, b"not a database" * 100])
def test_a_read_only_disk_without_a_journal(path, read_only, content: bytes | None):
    if content:
        path.write_bytes(content)
    read_only()
    said = play(refused(SqliteJournal.open(path), retryable=False))
    assert ("not a database" if content else "Read-only file system") in said


@asynccontextmanager
async def closed(journal):
    try:
        yield journal
    finally:
        await journal.close()


FULL = """
import asyncio, resource, sys
from pathlib import Path
from types import SimpleNamespace
from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import ToolReturned
from weft.errors import StoreError
from weft.testing.journal.samples import SCOPE, SampleRun

async def main():
    journal = await SqliteJournal.open(Path(sys.argv[1]))
    run = SampleRun("r1")
    await journal.append(run.batch())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    batch = run.batch(*[ToolReturned("c", f"{it}" * 30_000) for it in range(40)])
    try:
        await journal.append(batch)
    except StoreError as error:
        print(error.retryable, error)
    print(len(await journal.read(SCOPE, "r1")))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await journal.append(batch)
    print(len(await journal.read(SCOPE, "r1")))
    await journal.close()

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
    assert error.startswith("True journal ")
    assert "disk" in error
    assert (before, after) == ("1", "41")
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_damaged_file_is_explained(path):
    async def write():
        journal = await SqliteJournal.open(path)
        for number in range(50):
            await journal.append(SampleRun(f"r{number}").batch(MessageShown("x" * 2000)))
        await journal.close()

    async def story():
        journal = await SqliteJournal.open(path)
        said = await refused(read_all(journal), retryable=False)
        assert "damaged" in said
        said = await refused(journal.append(SampleRun("new").batch()), retryable=False)
        assert "damaged" in said
        await journal.close()

    async def read_all(journal):
        for number in range(50):
            await journal.read(SCOPE, f"r{number}")

    schema.open_writer(path, "full", 1).close()
    tables = path.stat().st_size
    play(write())
    pages = bytearray(path.read_bytes())
    pages[tables:] = b"\xa5" * (len(pages) - tables)
    path.write_bytes(pages)
    play(story())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda it: it._replace(events=[it.events[0]._replace(data=ToolReturned("c", object()))]),
        lambda it: it._replace(events=[it.events[0]._replace(data=MessageShown("\ud800"))]),
        lambda it: it._replace(events=[it.events[0]._replace(actor="\ud800")]),
        lambda it: it._replace(events=[it.events[0]._replace(at=2**70)]),
        lambda it: it._replace(events=[it.events[0]._replace(actor=["a", "list"])]),
        lambda it: it._replace(events=[it.events[0], it.events[0]]),
        lambda it: it._replace(row=it.row._replace(cost_usd=float("nan"))),
        lambda it: it._replace(sides=(SampleRun("bad").request("q", payload=object()),)),
    ],
    ids=["object", "half a letter", "actor", "number", "list", "twice", "no number", "payload"],
)
async def test_a_batch_that_cannot_be_stored_fails_alone(path, spoil):
    journal = await SqliteJournal.open(path)
    good = [SampleRun(f"r{number}").batch() for number in range(6)]
    bad = spoil(SampleRun("bad").batch())
    stale = SampleRun("stale").batch()._replace(expected=1)
    outcomes = await asyncio.gather(
        *map(journal.append, [*good[:3], bad, stale, *good[3:]]), return_exceptions=True
    )
    assert [type(it) for it in outcomes] == [
        *[type(None)] * 3, StoreError, StoreConflict, *[type(None)] * 3
    ]  # fmt: skip
    assert "events of run bad cannot be stored" in str(outcomes[3])
    assert not outcomes[3].retryable
    assert len(await journal.runs(SCOPE)) == 6
    assert await journal.run(SCOPE, "bad") is None
    await journal.append(SampleRun("bad").batch())
    await journal.close()


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
    journal = await SqliteJournal.open(path)
    await journal.append(SampleRun("r1").batch(MessageShown("x" * 40_000)))
    look(path, damage)
    said = await refused(journal.read(SCOPE, "r1"), retryable=False)
    assert "event 1 of run r1 cannot be read" in said
    await journal.close()


async def test_a_fault_of_our_own_reaches_all_who_wait(path, monkeypatch):
    journal = await SqliteJournal.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "write_group", lambda *_: 1 / 0)
        attempts = (journal.append(SampleRun(f"r{it}").batch()) for it in range(3))
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert [type(it) for it in outcomes] == [ZeroDivisionError] * 3
    await journal.append(SampleRun("r1").batch())
    await journal.close()


async def test_who_is_cancelled_leaves_a_batch_that_is_written(path):
    journal = await SqliteJournal.open(path)
    tasks = [asyncio.create_task(journal.append(SampleRun(n).batch())) for n in ("r1", "r2")]
    await asyncio.sleep(0)
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(it) for it in outcomes] == [asyncio.CancelledError, type(None)]
    assert len(await journal.runs(SCOPE)) == 2
    await journal.close()


def test_closing_goes_on_when_nobody_waits_for_it(path):
    async def story():
        journal = await SqliteJournal.open(path)
        appending = asyncio.create_task(journal.append(SampleRun("r1").batch()))
        await asyncio.sleep(0)
        closing_ = asyncio.create_task(journal.close())
        await asyncio.sleep(0)
        closing_.cancel()
        await asyncio.gather(closing_, return_exceptions=True)
        assert closing_.cancelled()
        await journal.close()
        await appending

    threads = set(threading.enumerate())
    play(story())
    assert set(threading.enumerate()) == threads
    assert [it.name for it in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("ends", ["opened", "refused"])
def test_opening_can_be_given_up(path, monkeypatch, ends):
    go_on = threading.Event()
    opened: list[sqlite3.Connection] = []

    def slowly(*args):
        go_on.wait(10)
        if ends == "refused":
            raise StoreError("no")
        opened.append(schema.open_writer(*args))
        return opened[0]

    monkeypatch.setattr(writer, "open_writer", slowly)

    async def story():
        opening = asyncio.create_task(SqliteJournal.open(path))
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


def test_an_error_without_a_plain_name_is_told_as_it_is():
    error = store_error(sqlite3.ProgrammingError("you did it wrong"), Path("j.db"))
    assert str(error) == "journal j.db: SQLite says: you did it wrong"
    assert not error.retryable
