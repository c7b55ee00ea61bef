"""Files that become stores, and files that must be left alone."""

import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from support.journal_play import look, play
from weft.adapters.sql import SqliteStore
from weft.adapters.sql.rows import column_names, names_text, to_names
from weft.adapters.sql.sqlite import FORMAT
from weft.adapters.sql.tables import (
    ARTIFACT_COLUMNS,
    EVENT_COLUMNS,
    REQUEST_COLUMNS,
    RUN_COLUMNS,
)
from weft.adapters.sqlite_file import (
    FileFormat,
    UnusableFile,
    open_file,
    open_reader,
    transaction,
)
from weft.engine.rows import ArtifactRow, RequestRow, RunRow
from weft.errors import StoreError

THINGS = FileFormat(1, 1, ("CREATE TABLE things (name TEXT)", "INSERT INTO things VALUES ('kept')"))
BROKEN = FileFormat(1, 1, ("CREATE TABLE more (name TEXT)", "CREATE TABLE more (name TEXT)"))


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        play(SqliteStore.open(path))
    assert not caught.value.retryable
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_a_new_file_is_a_store_for_its_owner_only(tmp_path, durability, level):
    path = str(tmp_path / "with space, 100% & #?.db")
    opened = open_file(path, FORMAT, busy_seconds=1, durability=durability)
    with closing(opened) as connection:
        for pragma, value in (
            ("user_version", FORMAT.version),
            ("application_id", FORMAT.application_id),
            ("journal_mode", "wal"),
            ("synchronous", level),
        ):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {0o600}
        with closing(open_reader(path, FORMAT, 1)) as reader:
            assert reader.execute("SELECT count(*) FROM runs").fetchone() == (0,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM runs")


def test_an_empty_file_and_an_own_file_are_taken(tmp_path):
    path = tmp_path / "store.db"
    path.touch()
    for _ in range(2):
        open_file(str(path), FORMAT, busy_seconds=1).close()
    assert look(path, "PRAGMA user_version") == [(FORMAT.version,)]


def test_tables_that_cannot_be_made_leave_nothing(tmp_path):
    path = str(tmp_path / "a.db")
    with pytest.raises(Exception, match="already exists"):
        open_file(path, BROKEN, busy_seconds=1)
    with closing(open_file(path, THINGS, busy_seconds=1)) as connection:
        assert connection.execute("SELECT * FROM things").fetchall() == [("kept",)]


def fail(connection: sqlite3.Connection, statement: str) -> None:
    with transaction(connection):
        connection.execute("DELETE FROM things")
        connection.execute(statement)


@pytest.mark.parametrize("how", ["ABORT", "ROLLBACK"])
def test_a_transaction_is_whole_or_not_at_all(tmp_path, how):
    """With ROLLBACK the database itself takes everything back, as when the disk is full."""
    with closing(open_file(str(tmp_path / "a.db"), THINGS, busy_seconds=1)) as connection:
        connection.execute("CREATE UNIQUE INDEX one ON things (name)")
        with pytest.raises(sqlite3.IntegrityError):
            fail(connection, f"INSERT OR {how} INTO things VALUES ('a'), ('a')")
        assert connection.execute("SELECT * FROM things").fetchall() == [("kept",)]
        assert not connection.in_transaction


def test_of_two_that_make_the_tables_the_second_finds_them(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as quick:
        quick.execute("PRAGMA journal_mode = WAL")
        quick.execute("BEGIN IMMEDIATE")
        opened = []
        slow = threading.Thread(
            target=lambda: opened.append(open_file(str(path), THINGS, busy_seconds=20))
        )
        slow.start()
        slow.join(0.2)
        quick.execute("CREATE TABLE things (name TEXT)")
        quick.execute(f"PRAGMA application_id = {THINGS.application_id}")
        quick.execute(f"PRAGMA user_version = {THINGS.version}")
        quick.execute("COMMIT")
        slow.join(20)
        assert opened[0].execute("SELECT * FROM things").fetchall() == []
        opened[0].close()


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "store.db"
    open_file(str(path), FORMAT, busy_seconds=1).close()
    look(path, f"PRAGMA user_version = {FORMAT.version + 3}")
    before = path.read_bytes()
    message = refusal(path)
    assert f"a newer Weft (format {FORMAT.version + 3}, this one knows up to" in message
    assert path.read_bytes() == before


def test_an_older_file_is_migrated_in_one_transaction(tmp_path):
    path = str(tmp_path / "things.db")
    open_file(path, THINGS, busy_seconds=1).close()
    steps = (
        ("ALTER TABLE things ADD size INTEGER",),
        ("UPDATE things SET size = length(name)", "CREATE TABLE more (name TEXT)"),
    )
    broken = replace(THINGS, version=3, migrations=(steps[0], (*steps[1], "DROP TABLE missing")))
    with pytest.raises(UnusableFile, match="no such table: missing"):
        open_file(path, broken, busy_seconds=0)
    assert look(path, "PRAGMA user_version") == [(1,)]
    assert look(path, "SELECT * FROM things") == [("kept",)]
    newest = replace(THINGS, version=3, migrations=steps)
    for _ in range(2):
        open_file(path, newest, busy_seconds=1).close()
    assert look(path, "PRAGMA user_version") == [(3,)]
    assert look(path, "SELECT * FROM things") == [("kept", 4)]
    with pytest.raises(UnusableFile, match="newer Weft"):
        open_file(path, THINGS, busy_seconds=1)


def test_an_older_file_on_a_read_only_disk_is_refused(tmp_path, monkeypatch):
    path = str(tmp_path / "things.db")
    open_file(path, THINGS, busy_seconds=1).close()
    monkeypatch.setattr("weft.adapters.sqlite_file.is_on_read_only_disk", lambda _: True)
    open_file(path, THINGS, busy_seconds=1).close()
    newest = replace(THINGS, version=2, migrations=(("CREATE TABLE more (name TEXT)",),))
    message = r"an older Weft \(format 1, this one needs 2\), and is on a read-only file system"
    with pytest.raises(UnusableFile, match=message) as caught:
        open_file(path, newest, busy_seconds=1)
    assert "weft store migrate" in caught.value.remedy


def test_the_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "photos.db"
    look(path, "CREATE TABLE photos (name TEXT)")
    before, changed = path.read_bytes(), path.stat().st_mtime_ns
    assert "another program" in refusal(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, changed)
    assert [file.name for file in tmp_path.iterdir()] == ["photos.db"]


def test_file_that_is_not_a_database_is_left_alone(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 1000)
    before = path.read_bytes()
    assert "not a database" in refusal(path)
    assert path.read_bytes() == before


def test_places_where_no_file_can_be(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "j.db", tmp_path / "file" / "j.db"):
        assert "folder that exists" in refusal(path)
    assert "cannot be opened" in refusal(tmp_path)


def test_the_columns_are_those_of_the_tables(tmp_path):
    path = tmp_path / "store.db"
    open_file(str(path), FORMAT, busy_seconds=1).close()
    for table, columns in (
        ("runs", RUN_COLUMNS),
        ("requests", (*REQUEST_COLUMNS, "answered")),
        ("events", EVENT_COLUMNS),
        ("artifacts", ARTIFACT_COLUMNS),
    ):
        stored = [row[1] for row in look(path, f"PRAGMA table_info({table})")]
        assert stored == column_names(columns)


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({*RunRow._fields} - {"owner", "heartbeat", "due_at"}, RUN_COLUMNS),
        (RequestRow._fields, REQUEST_COLUMNS),
        (ArtifactRow._fields, ARTIFACT_COLUMNS),
    ],
)
def test_every_field_of_a_row_is_stored(fields, columns):
    # `user` and `by` are words of SQL.
    words = {"user": "user_id", "by": "producer"}
    assert sorted(words.get(field, field) for field in fields) == sorted(column_names(columns))


@pytest.mark.parametrize("names", [(), ("a",), ("a\x00b", '","', "\\", "ä", "\n", "")])
def test_names_come_back(names):
    assert to_names(names_text(names)) == names
