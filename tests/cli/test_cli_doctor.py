"""weft doctor: each check in each of its states."""

import errno
import io
import os
import shutil
import sqlite3
import sys
from collections import namedtuple
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from support.cases import read_cases
from support.desk_play import make_desk
from weft.app import diagnosis
from weft.app.diagnosis import Diagnosis
from weft.cli.commands import doctor as checks
from weft.cli.hosting import JournalLocation
from weft.errors import StoreError

CASES = read_cases(__file__)


def test_a_healthy_setup(weft, workspace):
    weft("schema", "--write", "schemas")
    result = weft("doctor")
    assert result.code == 0
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[1] for row in rows] == [
        "python",
        "pydantic",
        "pyyaml",
        "sqlite",
        "watch",
        "encoding",
        "templates",
        "page",
        "models",
        "embeddings",
        "folder",
        "disk",
        "workspace",
        "schemas",
        "journal",
        "documents",
    ]
    assert {row[0] for row in rows} == {"ok"}
    assert "1 package, 0 errors, 0 warnings" in result.out


@pytest.fixture(autouse=True)
def page(tmp_path, monkeypatch):
    """Where the built page is; there is one."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr(diagnosis, "PAGE", folder)
    return folder


def test_page_that_is_not_built(weft, workspace, page):
    (page / "index.html").unlink()
    fact = "not built: weft serve answers without it"
    assert f"warn\tpage\t{fact}\tmake web\n" in weft("doctor").out


def test_quiet_shows_only_what_is_not_well(weft, workspace):
    (row,) = weft("doctor", "-q").out.splitlines()
    assert row.split("\t") == [
        "warn",
        "schemas",
        "schemas is missing: editors cannot help",
        "weft schema --write schemas",
    ]


@pytest.fixture
def set_only(monkeypatch):
    """Let the environment hold these settings and no others that models need."""

    def set_(**settings: str) -> None:
        for name in list(os.environ):
            if name.startswith("WEFT_") or name.endswith(("_API_KEY", "_BASE_URL")):
                monkeypatch.delenv(name)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)

    return set_


@pytest.mark.parametrize(("settings", "fact"), CASES["test_models_that_can_be_asked"])
def test_models_that_can_be_asked(weft, workspace, set_only, settings: dict[str, str], fact: str):
    set_only(**settings)
    assert f"ok\tmodels\t{fact}\t\n" in weft("doctor").out


@pytest.mark.parametrize(
    ("settings", "fact", "remedy"),
    CASES["test_models_that_cannot_be_asked_are_named_with_the_remedy"],
)
def test_models_that_cannot_be_asked_are_named_with_the_remedy(
    weft, workspace, set_only, settings: dict[str, str], fact: str, remedy: str
):
    set_only(**settings)
    result = weft("doctor")
    (row,) = [line.split("\t") for line in result.out.splitlines() if "\tmodels\t" in line]
    assert result.code == 3
    assert (row[0], row[2][: len(fact)], row[3][: len(remedy)]) == ("fail", fact, remedy)


def test_doctor_as_json(weft, workspace):
    data = weft("doctor", "--json").data
    assert data["ok"] is True
    assert data["checks"][0] == {
        "state": "ok",
        "subject": "python",
        "fact": sys.version.split()[0],
        "remedy": "",
    }


def test_a_failure_exits_3(weft, workspace, monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "shipped_folder", lambda: tmp_path / "nowhere")
    result = weft("doctor")
    assert result.code == 3
    assert "fail\ttemplates\tmissing: HelloWorld" in result.out
    assert "pip install --force-reinstall weft" in result.out
    assert weft("doctor", "--json").data["ok"] is False


def test_yaml_without_its_fast_reader(monkeypatch):
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert checks.check_yaml().state == "warn"


def test_python_without_sqlite(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    assert checks.check_sqlite().fact == "this Python has no sqlite3 module"


def test_sqlite_without_full_text_search(monkeypatch):
    class Poor(sqlite3.Connection):
        def execute(self, statement, *rest):
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(statement, *rest)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name: real(name, factory=Poor))
    found = checks.check_sqlite()
    assert found.state == "warn"
    assert found.fact.endswith(" without FTS5")


def test_no_watching(monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    assert checks.check_watching().remedy == "pip install watchfiles"


@pytest.mark.parametrize(("name", "state"), [("UTF-8", "ok"), ("utf8", "ok"), ("ascii", "warn")])
def test_encoding(monkeypatch, name: str, state: str):
    class Stream:
        encoding = name

    monkeypatch.setattr(sys, "stdout", Stream())
    assert checks.check_encoding().state == state


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda *_: False)
    found = checks.check_folder(tmp_path)
    assert found.state == "fail"
    assert found.remedy == f"chmod u+wx {tmp_path}"


def test_a_folder_on_a_read_only_file_system(monkeypatch, tmp_path):
    mounted = namedtuple("mounted", "f_flag")  # noqa: PYI024
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("os.statvfs", lambda _: mounted(os.ST_RDONLY | os.ST_NOSUID))
    found = checks.check_folder(tmp_path)
    assert (found.state, found.fact) == ("fail", f"{tmp_path} is on a read-only file system")
    assert "chmod" not in found.remedy


def test_little_room(monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1024 * 1024))
    assert checks.check_disk_of(JournalLocation(tmp_path, None)) == Diagnosis(
        "warn", "disk", "1 MiB free", "free some space on the disk of the workspace"
    )


def test_little_room_where_runs_are_kept(weft, workspace, monkeypatch, tmp_path_factory):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024
    small = tmp_path_factory.mktemp("small")
    full = usage(1, 1, 0)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda item: full if item == small else usage(2**40, 1, 2**40 - 1)
    )
    assert "ok\tdisk\t" in weft("doctor").out
    line = f"warn\tdisk\t0 MiB free\tfree some space on the disk of {small / 'runs.db'}\n"
    assert line in weft("doctor", "--journal", small / "runs.db").out
    assert "ok\tdisk\t" in weft("doctor", "--journal", small / "no" / "runs.db").out


def test_no_workspace(tmp_path):
    found = checks.check_packages(tmp_path)
    assert (found.state, found.remedy) == ("warn", "weft init my-workspace")


def test_a_workspace_without_packages(tmp_path):
    (tmp_path / "workflows").mkdir()
    found = checks.check_packages(tmp_path)
    assert (found.state, found.remedy) == ("warn", "weft new Example --pattern 1")


def test_a_workspace_with_errors(support, workspace):
    (support / "agents.json").unlink()
    found = checks.check_packages(workspace)
    assert (found.state, found.remedy) == ("warn", "weft check")


def test_a_workspace_that_cannot_be_read(workspace, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", "workflows/Support")

    monkeypatch.setattr(checks, "review", refuse)
    found = checks.check_packages(workspace)
    assert (found.state, found.fact) == (
        "fail",
        "cannot use workflows/Support: permission denied",
    )
    assert found.remedy == f"chmod -R u+rX {workspace}"


def test_one_check_that_fails_does_not_end_the_others(weft, workspace, monkeypatch):
    def refuse(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("shutil.disk_usage", refuse)
    result = weft("doctor")
    assert result.code == 3
    fact = "fail\tdisk\tcannot use .: no space left on device\tfree some disk space\n"
    assert fact in result.out
    assert "\nok\tworkspace\t" in result.out
    assert "weft doctor" not in result.out + result.err


def test_schemas_of_another_version(weft, workspace):
    weft("schema", "--write", "schemas")
    (workspace / "schemas" / "agents.schema.json").write_text("{}")
    (workspace / "schemas" / "tools.schema.json").unlink()
    found = checks.check_schemas(workspace)
    assert found.state == "warn"
    assert found.fact == "not of this version: agents.schema.json, tools.schema.json"


JOURNAL = Path(".weft") / "journal.db"


@pytest.fixture
def kept(weft, tmp_path, monkeypatch):
    """A workspace in which a run was kept, and the name of the run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    make_desk(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("BYE\n"))
    weft("run", "Desk", "hi", "--model", "you")
    return weft("runs", "show", "last", "--json").data["run"]["run"]


def change(statement: str, *values: object) -> None:
    with closing(sqlite3.connect(JOURNAL, isolation_level=None)) as database:
        database.execute(statement, values)


def journal_line(weft, *words: object) -> tuple[int, list[str]]:
    result = weft("doctor", *words)
    (line,) = [line for line in result.out.splitlines() if line.split("\t")[1] == "journal"]
    return result.code, line.split("\t")


def test_no_runs_so_far(weft, workspace):
    code, line = journal_line(weft)
    assert (code, line) == (
        0,
        ["ok", "journal", f"{JOURNAL} does not exist: there are no runs yet", ""],
    )
    JOURNAL.parent.mkdir()
    JOURNAL.touch()
    assert journal_line(weft) == (0, ["ok", "journal", f"{JOURNAL}: 0 runs, 0 events", ""])


def test_a_sound_journal(weft, kept):
    events = weft("runs", "show", kept, "--json").data["run"]["seq"]
    assert journal_line(weft) == (0, ["ok", "journal", f"{JOURNAL}: 1 run, {events} events", ""])


def _noise() -> str:
    JOURNAL.write_bytes(b"\xa5" * 20_000)
    return "the file is not a database"


def _cut() -> str:
    whole = JOURNAL.read_bytes()
    JOURNAL.write_bytes(whole[: len(whole) // 2])
    return "the file is damaged"


def _hole() -> str:
    """A page of one table that holds nothing any more."""
    with closing(sqlite3.connect(JOURNAL)) as database:
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'blobs'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    whole = bytearray(JOURNAL.read_bytes())
    whole[(page - 1) * size : page * size] = bytes(size)
    JOURNAL.write_bytes(whole)
    return "the file is damaged"


def _one_event() -> str:
    change("UPDATE events SET data = '{' WHERE seq = 3")
    return "event 3 of run "


def _no_event() -> str:
    change("DELETE FROM events WHERE seq = 3")
    return " lacks event 3 of "


def _no_events() -> str:
    change("DELETE FROM events")
    return " lacks event 1 of "


def _newer() -> str:
    change("PRAGMA user_version = 99")
    return "written by a newer Weft"


@pytest.mark.parametrize("harm", [_noise, _cut, _hole, _one_event, _no_event, _no_events, _newer])
def test_a_journal_that_cannot_be_read(weft, kept, harm):
    fact = harm()
    code, line = journal_line(weft)
    assert code == 3
    assert line[0] == "fail"
    assert fact in line[2]
    away = "mv .weft .weft.damaged, or use another file: --journal FILE"
    assert line[3] == (away if harm in (_noise, _cut, _hole) else _remedies(weft)[harm])


def _remedies(weft) -> dict:
    """Sound data is never moved away: of other programs, of a newer Weft, of other runs."""
    run = weft("runs", "list", "--json").data.get("runs", [{"run": ""}])[0]["run"]
    one = f"list the others: weft runs list; only run {run} is affected"
    return {
        _one_event: one,
        _no_event: one,
        _no_events: one,
        _newer: "use another file: --journal FILE",
    }


def test_a_journal_elsewhere(weft, kept):
    JOURNAL.rename("my runs.db")
    assert journal_line(weft, "--journal", "my runs.db")[1][0] == "ok"
    Path("my runs.db").write_bytes(b"\xa5" * 20_000)
    assert journal_line(weft)[0] == 0
    hint = "  hint:  find the cause: weft doctor --journal 'my runs.db'\n"
    assert hint in weft("runs", "list", "--journal", "my runs.db").err
    code, line = journal_line(weft, "--journal", "my runs.db")
    assert (code, line[3].split(", ")[0]) == (3, "mv 'my runs.db' 'my runs.db'.damaged")


def test_a_journal_on_a_read_only_disk(weft, kept, monkeypatch):
    """Nothing can be made there, not even the file that keeps the folder out of version control."""
    (JOURNAL.parent / ".gitignore").unlink()
    disk = os.statvfs(".")
    fields = {name: getattr(disk, name) for name in ("f_blocks", "f_bfree", "f_bavail", "f_frsize")}
    mounted = SimpleNamespace(f_flag=os.ST_RDONLY, **fields)
    monkeypatch.setattr("os.statvfs", lambda _: mounted)
    really = os.open

    def open_(file, flags, *rest):
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system", str(file))
        return really(file, flags, *rest)

    monkeypatch.setattr("os.open", open_)
    for words in (("runs", "list"), ("inspect", "last"), ("replay", "last", "--check")):
        result = weft(*words)
        assert (result.code, bool(result.out)) == (0, True)
    assert [file.name for file in JOURNAL.parent.iterdir()] == [JOURNAL.name]
    state, _, fact, _ = journal_line(weft)[1]
    assert (state, fact.partition("; ")[2]) == (
        "warn",
        "read only: it is on a read-only file system",
    )
    JOURNAL.write_bytes(b"\xa5" * 20_000)
    line = journal_line(weft)[1]
    assert (line[0], line[3].split(",")[0]) == ("fail", "copy it to a writable file system")


def test_run_without_an_owner(weft, kept, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("/quit\n"))
    weft("run", "Desk", "hi", "--model", "you")
    left = weft("runs", "show", "last", "--json").data["run"]["run"]
    code, line = journal_line(weft)
    assert (code, line[0]) == (0, "warn")
    assert line[2].endswith(" events, 1 run without a process")
    assert line[3] == f"weft runs resume {left}"
    monkeypatch.setattr("sys.stdin", io.StringIO("/quit\n"))
    weft("run", "Desk", "hi", "--model", "you")
    assert journal_line(weft)[1][3] == "weft runs resume --all"
    change("UPDATE work SET owner = 'w'")
    change("INSERT INTO workers VALUES ('w', 9000000000000)")  # Both are alive.
    assert journal_line(weft)[1][0] == "ok"
    change("UPDATE workers SET seen_at = 0")
    assert journal_line(weft)[1][0] == "warn"
    change("UPDATE runs SET user_id = 'another user'")
    assert journal_line(weft)[1][0] == "ok"


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        (JOURNAL, ".weft/journal.db is a folder; the journal is a file"),
        (JOURNAL.parent, ".weft is a file; the journal needs a folder"),
    ],
)
@pytest.mark.parametrize(
    "words", [["runs", "list"], ["runs", "list", "--json"], ["run", "Support", "hi"]]
)
def test_something_else_stands_where_runs_are_kept(
    weft, workspace, path: Path, fact: str, words: list[str]
):
    path.mkdir(parents=True) if path is JOURNAL else path.touch()
    result = weft(*words)
    assert result.code == 3
    assert fact in result.out + result.err
    assert "move it away, or name a file: --journal FILE" in result.out + result.err
    code, line = journal_line(weft)
    assert (code, line[2]) == (3, fact)


def test_a_journal_that_is_busy(weft, kept, monkeypatch):
    async def busy(store):
        raise StoreError("another process is writing to it", retryable=True)

    monkeypatch.setattr("weft.adapters.sql.check.check_store", busy)
    assert journal_line(weft)[1][3] == "wait a moment, then check again: weft doctor"
    JOURNAL.rename("runs.db")
    line = journal_line(weft, "--journal", "runs.db")[1]
    assert line[3] == "wait a moment, then check again: weft doctor --journal runs.db"


def test_runs_without_sqlite(monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    assert checks.check_journal(JournalLocation(tmp_path, None)).state == "warn"
    assert checks.check_documents(tmp_path).state == "warn"


DOCUMENTS = Path(".weft") / "documents.db"


@pytest.fixture
def documents_line(weft, workspace, monkeypatch):
    """Return what doctor says of documents, and its exit code."""
    monkeypatch.delenv("WEFT_DOCUMENTS", raising=False)

    def line() -> tuple[int, list[str]]:
        result = weft("doctor")
        (found,) = [line for line in result.out.splitlines() if line.split("\t")[1] == "documents"]
        state, _, fact, remedy = found.split("\t")
        return result.code, [state, fact, remedy]

    return line


def test_documents_that_can_be_read(weft, documents_line, mongodb_database, monkeypatch):
    assert documents_line() == (
        0,
        ["ok", f"{DOCUMENTS} does not exist: there are no documents yet", ""],
    )
    assert not DOCUMENTS.exists()
    weft("documents", "put", "A", "{}")
    assert documents_line() == (0, ["ok", f"{DOCUMENTS}: 1 document in 1 collection", ""])
    monkeypatch.setenv("WEFT_DOCUMENTS", mongodb_database)
    weft("documents", "put", "A", "{}")
    weft("documents", "put", "B", "{}")
    server = mongodb_database.rpartition("/")[0]
    assert documents_line() == (0, ["ok", f"{server}: 2 documents in 2 collections", ""])


def test_documents_that_cannot_be_read(documents_line):
    DOCUMENTS.parent.mkdir()
    DOCUMENTS.write_bytes(b"\xa5" * 20_000)
    code, (state, fact, remedy) = documents_line()
    assert (code, state) == (3, "fail")
    assert fact.startswith(f"documents {DOCUMENTS}: the file is not a database (SQLite")
    away = f"mv {DOCUMENTS} {DOCUMENTS}.damaged, or name another file in WEFT_DOCUMENTS"
    assert remedy == away


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("", "wait a moment, then check again: weft doctor"),
        (
            "mongodb://ann:canary@host/db",
            "check the address in WEFT_DOCUMENTS or WEFT_STORE, and that the server is running",
        ),
    ],
)
def test_documents_that_do_not_answer(place, remedy, documents_line, weft, monkeypatch):
    weft("documents", "put", "A", "{}")
    monkeypatch.setenv("WEFT_DOCUMENTS", place)

    async def refuse(*_args):
        raise StoreError("documents: no answer", retryable=True)

    monkeypatch.setattr("weft.cli.commands.doctor.open_documents", refuse)
    assert documents_line() == (3, ["fail", "documents: no answer", remedy])


def test_documents_at_no_address(documents_line, monkeypatch):
    monkeypatch.setenv("WEFT_DOCUMENTS", "mysql://host/db")
    fact = "WEFT_DOCUMENTS must be a file, or an address of MongoDB or PostgreSQL, not mysql"
    hint = (
        "write mongodb://HOST:PORT/DATABASE, postgresql://USER@HOST/DATABASE, or the path of a file"
    )
    assert documents_line() == (3, ["fail", fact, hint])


def test_embedder_is_named(weft, workspace, monkeypatch):
    def line():
        [found] = [line for line in weft("doctor").out.splitlines() if "\tembeddings\t" in line]
        return found.split("\t")

    monkeypatch.setenv("WEFT_CACHE", str(workspace))
    fact = "none: collections are searched by keywords only"
    assert line() == ["ok", "embeddings", fact, "weft embeddings install"]
    monkeypatch.setenv("WEFT_EMBEDDINGS", "ollama:nomic")
    assert line() == ["ok", "embeddings", "ollama:nomic", ""]
    monkeypatch.setenv("WEFT_EMBEDDINGS", "local")
    fact = "the local embedding model is not installed"
    assert line() == ["fail", "embeddings", fact, "weft embeddings install"]
