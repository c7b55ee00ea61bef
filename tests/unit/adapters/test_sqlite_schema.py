"""Files that become journals, and files that must be left alone."""

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from support.journal_play import look, play
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.sqlite.board_rows import COLUMNS, names_text, to_names
from weft.adapters.sqlite.pieces import in_pieces, marks
from weft.adapters.sqlite.rows import CHANGING, EVENT_COLUMNS, REQUEST_COLUMNS, RUN_COLUMNS
from weft.adapters.sqlite.schema import (
    APPLICATION_ID,
    FIRST_VERSION,
    MIGRATIONS,
    migrate,
    open_reader,
    open_writer,
    transaction,
)
from weft.engine.rows import ArtifactRow, ConsumedRow, KeptValue, RunRow, TimerRow
from weft.errors import StoreError
from weft.testing.journal.samples import SCOPE, SampleRun

NEWEST = FIRST_VERSION - 1 + len(MIGRATIONS)

OLD = (("CREATE TABLE things (name TEXT)", "INSERT INTO things VALUES ('kept')"),)
NEW = (*OLD, ("ALTER TABLE things ADD COLUMN size INTEGER DEFAULT 7",))
BROKEN = (*NEW, ("CREATE TABLE more (name TEXT)", "CREATE TABLE more (name TEXT)"))


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        play(SqliteJournal.open(path))
    assert not caught.value.retryable
    assert str(path) in str(caught.value)
    return str(caught.value)


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_a_new_file_is_a_journal_for_its_owner_only(tmp_path, durability, level):
    path = tmp_path / "with space, 100% & #?.db"
    with closing(open_writer(path, durability, 1)) as connection:
        assert version(connection) == NEWEST
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        modes = {stat.S_IMODE(it.stat().st_mode) for it in tmp_path.iterdir()}
        assert modes == {0o600}
        with closing(open_reader(path, 1)) as reader:
            assert reader.execute("SELECT count(*) FROM runs").fetchone() == (0,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM runs")


def test_an_empty_file_and_an_own_file_are_taken(tmp_path):
    path = tmp_path / "journal.db"
    path.touch()
    for _ in range(2):
        open_writer(path, "full", 1).close()
    assert look(path, "PRAGMA user_version") == [(NEWEST,)]


def test_an_older_file_is_migrated_and_keeps_its_rows(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        migrate(connection, OLD)
        assert version(connection) == FIRST_VERSION
        migrate(connection, NEW)
        assert version(connection) == FIRST_VERSION + 1
        assert connection.execute("SELECT * FROM things").fetchall() == [("kept", 7)]
        migrate(connection, NEW)
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (1,)


async def test_a_file_of_format_3_has_questions_for_the_users_of_their_runs(tmp_path):
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:1])
        assert version(connection) == 3
        old = ("q1", "r1", "shop", "ann", "ui", "Helper", "form", '{"sum": 3}', 10, None, "[]")
        connection.execute(f"INSERT INTO requests VALUES {marks(1, len(old))}", old)
    journal = await SqliteJournal.open(path)
    run = SampleRun("r2")
    await journal.append(run.batch(sides=(run.kept("plan", "gold"),)))
    kept = await journal.kept(SCOPE, run.workflow)
    found = await journal.requests(SCOPE)
    await journal.close()
    (question,) = found
    assert (question.id, question.payload, question.opened_at) == ("q1", {"sum": 3}, 10)
    assert (question.component, question.mode, question.addressee) == ("", "", "")
    assert kept == {"plan": "gold"}
    assert look(path, "PRAGMA user_version") == [(NEWEST,)]


def test_a_migration_that_fails_changes_nothing(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        migrate(connection, OLD)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, BROKEN)
        assert version(connection) == FIRST_VERSION
        assert connection.execute("SELECT * FROM things").fetchall() == [("kept",)]
        assert not connection.in_transaction


def fail(connection: sqlite3.Connection, statement: str) -> None:
    with transaction(connection):
        connection.execute("DELETE FROM things")
        connection.execute(statement)


@pytest.mark.parametrize("how", ["ABORT", "ROLLBACK"])
def test_a_transaction_is_whole_or_not_at_all(tmp_path, how):
    """With ROLLBACK the database itself takes everything back, as when the disk is full."""
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        migrate(connection, OLD)
        connection.execute("CREATE UNIQUE INDEX one ON things (name)")
        with pytest.raises(sqlite3.IntegrityError):
            fail(connection, f"INSERT OR {how} INTO things VALUES ('a'), ('a')")
        assert connection.execute("SELECT * FROM things").fetchall() == [("kept",)]
        assert not connection.in_transaction


def test_of_two_who_migrate_the_second_finds_it_done(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as quick:
        quick.execute("PRAGMA journal_mode = WAL")
        quick.execute("BEGIN IMMEDIATE")
        slow = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=20)
        at_work = threading.Event()
        slow.set_trace_callback(lambda sql: at_work.set() if sql.startswith("BEGIN") else None)
        thread = threading.Thread(target=migrate, args=(slow, OLD))
        thread.start()
        assert at_work.wait(10)
        quick.execute("CREATE TABLE things (name TEXT)")
        quick.execute(f"PRAGMA user_version = {FIRST_VERSION + 1}")
        quick.execute("COMMIT")
        thread.join(20)
        assert version(slow) == FIRST_VERSION + 1
        assert slow.execute("SELECT * FROM things").fetchall() == []
        slow.close()


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "journal.db"
    open_writer(path, "full", 1).close()
    look(path, f"PRAGMA user_version = {NEWEST + 3}")
    before = path.read_bytes()
    said = refusal(path)
    assert "newer Weft" in said
    assert f"format {NEWEST + 3}" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("format_", range(FIRST_VERSION))
def test_a_file_from_before_the_first_release_is_refused_and_left_alone(tmp_path, format_):
    path = tmp_path / "journal.db"
    look(path, "CREATE TABLE runs (run TEXT PRIMARY KEY, app TEXT)")
    look(path, f"PRAGMA application_id = {APPLICATION_ID}")
    look(path, f"PRAGMA user_version = {format_}")
    before = path.read_bytes()
    said = refusal(path)
    assert f"before Weft's first release (format {format_})" in said
    assert "move it away, or name another file" in said
    assert path.read_bytes() == before
    assert [it.name for it in tmp_path.iterdir()] == ["journal.db"]


def test_the_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "photos.db"
    look(path, "CREATE TABLE photos (name TEXT)")
    before, changed = path.read_bytes(), path.stat().st_mtime_ns
    assert "another program" in refusal(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, changed)
    assert [it.name for it in tmp_path.iterdir()] == ["photos.db"]


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 1000)
    before = path.read_bytes()
    assert "not a database" in refusal(path)
    assert path.read_bytes() == before


def test_places_where_no_file_can_be(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "missing" / "j.db", tmp_path / "file" / "j.db"):
        assert "folder that exists" in refusal(path)


def test_whose_a_run_is_and_what_it_runs_never_changes():
    never = {"run", "app", "user", "workflow", "digest", "started_at", "parent"}
    assert {*CHANGING, "status"} == set(RUN_COLUMNS) - never


def test_a_sign_of_life_is_kept_by_owner_and_not_with_every_run():
    assert (*RUN_COLUMNS, "heartbeat") == RunRow._fields


def test_the_columns_are_those_of_the_tables(tmp_path):
    path = tmp_path / "journal.db"
    open_writer(path, "full", 1).close()
    for table, columns in (
        ("runs", RUN_COLUMNS),
        ("requests", REQUEST_COLUMNS),
        ("timers", TimerRow._fields),
        ("kept", KeptValue._fields),
        ("events", EVENT_COLUMNS),
        # `by` is a word of SQL.
        ("artifacts", ["producer" if it == "by" else it for it in ArtifactRow._fields]),
        ("consumed", ConsumedRow._fields),
    ):
        stored = [row[1] for row in look(path, f"PRAGMA table_info({table})")]
        assert stored == list(columns)


def test_rows_of_boards_have_as_many_values_as_their_tables_have_columns(tmp_path):
    path = tmp_path / "journal.db"
    open_writer(path, "full", 1).close()
    counts = {it: len(look(path, f"PRAGMA table_info({it})")) for it in COLUMNS}
    assert counts == {**COLUMNS, "letters": COLUMNS["letters"] + 1}


@pytest.mark.parametrize("names", [(), ("a",), ("a\x00b", '","', "\\", "ä", "")])
def test_names_come_back(names):
    assert to_names(names_text(names)) == names


@pytest.mark.parametrize("largest", [32, 128])
def test_pieces_are_few_and_leave_nothing_out(largest):
    lengths = set()
    for count in range(600):
        pieces = list(in_pieces(list(range(count)), largest))
        assert [it for piece in pieces for it in piece] == list(range(count))
        lengths.update(map(len, pieces))
    assert lengths == {*range(1, 17), 32, *({64, 128} if largest == 128 else ())}


def test_marks():
    assert marks(2, 3) == "(?,?,?),(?,?,?)"
