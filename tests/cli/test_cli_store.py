"""weft store: create, check, back up and copy the store of all runs."""

import asyncio
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from support.postgres_server import empty_postgres_database, execute
from weft.adapters.sql.sqlite import FORMAT
from weft.adapters.sql.tables import VERSION
from weft.app.stores import shown_store

JOURNAL = Path(".weft/journal.db")


@pytest.fixture
def postgres(postgres_url):
    """The address of a new PostgreSQL database."""
    with empty_postgres_database(postgres_url) as url:
        yield url


@pytest.fixture
def run(weft, desk, typed, monkeypatch, prepared):
    """A run that waits for its user."""
    monkeypatch.delenv("WEFT_STORE", raising=False)

    def wait():
        typed("What else?")
        weft("run", "Desk", "hi", "--model", "you", "--quiet")
        typed()
        return weft("runs", "list", "--json").data["runs"][0]

    return prepared("one run", wait)


def change(file, *statements):
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def listed(weft, *options):
    return weft("runs", "list", "--json", *options).data["runs"]


def test_migrate_creates_a_file_and_reports_its_version(weft, desk):
    created = weft("store", "migrate")
    assert (created.code, created.out) == (0, f"created {JOURNAL} (tables of version {VERSION})\n")
    assert (desk / ".weft/.gitignore").is_file()
    again = weft("store", "migrate", "--json").data
    assert (again["created"], again["version"]) == (False, VERSION)


def test_migrate_names_the_version_that_was_there(weft, run, monkeypatch):
    steps = (*FORMAT.migrations, ("CREATE TABLE more (name TEXT)",))
    newer = replace(FORMAT, version=VERSION + 1, migrations=steps)
    for module in ("weft.app.store_admin", "weft.adapters.sql.sqlite"):
        monkeypatch.setattr(f"{module}.FORMAT", newer)
    monkeypatch.setattr("weft.cli.commands.store.VERSION", VERSION + 1)
    migrated = f"migrated {JOURNAL} from version {VERSION} (tables of version {VERSION + 1})\n"
    assert weft("store", "migrate").out == migrated
    assert weft("store", "migrate").out.startswith("nothing to do: ")


def test_migrate_creates_the_tables_and_the_reader_in_postgres(weft, desk, postgres, monkeypatch):
    monkeypatch.setenv("WEFT_STORE", postgres)
    missing = weft("runs", "list")
    assert missing.code == 3
    assert "has no tables yet; run `weft store migrate`" in missing.err
    line = next(line for line in weft("doctor").out.splitlines() if "\tjournal\t" in line)
    assert line.split("\t")[3] == "weft store migrate"
    assert weft("store", "migrate").out.startswith("created postgresql://")
    assert weft("store", "migrate").out.startswith("nothing to do: postgresql://")
    assert weft("runs", "list").err.startswith("no runs; ")
    assert weft("store", "check", "--json").data["problems"] == []
    assert not JOURNAL.exists()


def test_commands_work_on_postgres_alone(weft, desk, postgres, typed):
    options = ("--journal", postgres)
    weft("store", "migrate", *options)
    typed("What else?")
    waiting = weft("run", "Desk", "hi", "--model", "you", *options)
    assert waiting.code == 4
    assert f"--journal '{shown_store(postgres)}'" in waiting.err
    typed("BYE")
    assert weft("runs", "answer", "last", "thanks", *options).code == 0
    [row] = [line.split("\t") for line in weft("runs", "list", *options).out.splitlines()]
    assert row[1] == "completed"
    assert weft("inspect", "last", *options).code == 0
    assert weft("runs", "delete", "--older-than", "1d", "--dry-run", *options).code == 0
    line = next(line for line in weft("doctor", *options).out.splitlines() if "\tjournal\t" in line)
    assert line.split("\t")[::2] == ["ok", f"{shown_store(postgres)} can be reached"]
    assert not JOURNAL.exists()


def test_check_counts_everything(weft, run):
    result = weft("store", "check")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"{JOURNAL}: 1 run, {run['seq']} events, no problems\n"


def test_check_names_problems_and_exits_with_1(weft, run):
    change(JOURNAL, "DELETE FROM work", "DELETE FROM packages")
    result = weft("store", "check")
    assert result.code == 1
    assert f"run {run['run']} is open and has no work row: no worker will find it\n" in result.out
    assert f"of run {run['run']} is missing\n" in result.out
    assert result.err.endswith(", 2 problems\n")
    assert len(weft("store", "check", "--json").data["problems"]) == 2


@pytest.mark.parametrize("command", [["check"], ["backup", "b.db"]])
def test_missing_store_is_not_found(weft, desk, command):
    result = weft("store", *command)
    assert (result.code, JOURNAL.exists()) == (6, False)
    assert f"{JOURNAL} does not exist" in result.err


@pytest.mark.parametrize(
    "command", [["migrate"], ["check"], ["backup", "b.db"], ["copy", str(JOURNAL), "b.db"]]
)
@pytest.mark.parametrize(
    ("change_", "message"),
    [
        ("PRAGMA user_version = 99", "was written by a newer Weft (format 99"),
        ("PRAGMA application_id = 7", "is a database of another program"),
    ],
)
def test_file_of_another_version_or_program_is_refused(weft, run, command, change_, message):
    change(JOURNAL, change_)
    result = weft("store", *command)
    assert result.code == 3
    assert message in result.err
    assert [file.name for file in Path().glob("b.db*")] == []


def test_tables_of_another_version_are_refused_in_postgres(weft, desk, postgres):
    weft("store", "migrate", "--journal", postgres)
    asyncio.run(execute(postgres, "UPDATE weft.schema_version SET version = 99"))
    for command in ("migrate", "check"):
        result = weft("store", command, "--journal", postgres)
        assert result.code == 3
        assert "has tables of version 99" in result.err
        assert "use the Weft that wrote it" in result.err


def test_copy_to_postgres_and_back_has_equal_rows(weft, run, postgres, typed):
    there = weft("store", "copy", JOURNAL, postgres, "--json").data
    assert there["rows"]["events"] == run["seq"]
    assert there["left_out"] == ["documents", "collections"]
    back = weft("store", "copy", postgres, "back.db")
    assert back.code == 0
    assert f"events\t{run['seq']}\n" in back.out
    assert "copied" in back.err
    assert "the hashes of all tables are equal" in back.err
    assert "documents and collections are not copied" in back.err
    assert listed(weft, "--journal", "back.db") == listed(weft)
    typed("BYE")
    assert weft("runs", "answer", "last", "thanks", "--journal", postgres).code == 0
    assert listed(weft)[0]["status"] == "waiting"


def test_copy_refuses_a_target_with_rows(weft, run, postgres):
    for target in ("copy.db", postgres):
        assert weft("store", "copy", JOURNAL, target).code == 0
        refused = weft("store", "copy", JOURNAL, target)
        assert (refused.code, refused.out) == (7, "")
        assert "already has rows in table " in refused.err
    assert weft("store", "copy", JOURNAL, JOURNAL).code == 2
    assert weft("store", "copy", "nothing.db", "other.db").code == 6
    assert not Path("other.db").exists()


def test_copy_into_an_empty_file_of_weft(weft, run):
    weft("store", "migrate", "--journal", "empty.db")
    assert weft("store", "copy", JOURNAL, "empty.db").code == 0
    assert listed(weft, "--journal", "empty.db") == listed(weft)


def test_backup_of_postgres_is_a_file_that_commands_read(weft, run, postgres):
    weft("store", "copy", JOURNAL, postgres)
    saved = weft("store", "backup", "saved.db", "--journal", postgres, "--json").data
    assert saved["bytes"] == Path("saved.db").stat().st_size
    assert saved["left_out"] == ["documents", "collections"]
    assert Path("saved.db").stat().st_mode & 0o077 == 0
    assert listed(weft, "--journal", "saved.db") == listed(weft)
    assert [file.name for file in Path().glob("saved.db*")] == ["saved.db"]


def test_backup_refuses_an_existing_file_and_a_missing_folder(weft, run):
    Path("there.db").touch()
    assert weft("store", "backup", "there.db").code == 7
    assert weft("store", "backup", "no/such/folder.db").code == 6


@pytest.mark.parametrize("command", [["backup", "b.db"], ["copy", str(JOURNAL), "b.db"]])
def test_full_disk_leaves_no_partial_file(desk, run, command):
    change(JOURNAL, "INSERT INTO blobs VALUES ('shop', 'big', zeroblob(2000000))")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    done = subprocess.run(
        [sys.executable, "-m", "weft", "store", *command],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr
    assert [file.name for file in Path().glob("b.db*")] == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["check", "--journal", "mysql://db/weft"], 2, "not mysql"),
        (["copy", "mongodb://db/x", "b.db"], 2, "not mongodb"),
        (["copy", "journal.db"], 2, "TARGET"),
        (["check", "--journal", "postgresql://me:secret@localhost:1/x"], 3, "cannot be reached"),
        (["migrate", "--journal", "postgresql://me:secret@localhost:1/x"], 3, "cannot be reached"),
        (["backup", "b.db", "--journal", "postgresql://me:secret@localhost:1/x"], 3, "reached"),
    ],
)
def test_wrong_address_is_explained_without_its_password(weft, desk, words, code, message):
    result = weft("store", *words)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert "secret" not in result.err


def test_wrong_setting_is_named(weft, desk, monkeypatch):
    monkeypatch.setenv("WEFT_STORE", "mysql://db/weft")
    assert "WEFT_STORE must be a file or an address of PostgreSQL" in weft("runs", "list").err
    lines = [line for line in weft("doctor").out.splitlines() if "\tjournal\t" in line]
    assert lines[0].startswith("fail\tjournal\tWEFT_STORE must be a file")


def test_file_of_the_setting_is_used(weft, run, monkeypatch):
    JOURNAL.rename("moved.db")
    monkeypatch.setenv("WEFT_STORE", "moved.db")
    assert listed(weft)[0]["run"] == run["run"]
    assert weft("store", "check").code == 0


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("runs.db", "runs.db"),
        ("postgresql:///weft", "postgresql:///weft"),
        ("postgresql://me:p@ss@db:5432/weft", "postgresql://me@db:5432/weft"),
        ("postgres://db/x?password=a&host=/tmp", "postgres://db/x?host=/tmp"),
        ("postgres://db/x?host=/tmp&password=a", "postgres://db/x?host=/tmp"),
    ],
)
def test_address_is_shown_without_its_password(address, shown):
    assert shown_store(address) == shown
