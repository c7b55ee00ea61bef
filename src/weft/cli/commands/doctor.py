"""weft doctor: check everything Weft needs, and print the commands that fix it."""

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final

import yaml
from cyclopts import Parameter

import weft
from weft.adapters.documents.requests import shown_address
from weft.adapters.sqlite_file import is_on_read_only_disk
from weft.app.diagnosis import (
    Diagnosis,
    check_disk,
    check_embeddings,
    check_models,
    check_page,
)
from weft.app.documents import documents_address, documents_file, open_documents
from weft.app.folders import JOURNAL
from weft.app.models import SAMPLE
from weft.app.settings import SETTINGS
from weft.app.stores import shown_store
from weft.cli.failure import Exit, os_error_text, remedy
from weft.cli.hosting import (
    MAKE_KEY,
    VIEWERS,
    JournalFile,
    JournalLocation,
    RunServer,
    ServerUrl,
    find_server,
    is_stopped,
    other_version,
)
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.settings import PACKAGES
from weft.cli.streams import Streams, counted
from weft.environment import read_environment
from weft.errors import AccessDenied, PortError, StoreError, UsageError
from weft.findings import is_error
from weft.packages.review import review
from weft.packages.workspace import EXAMPLES, is_package, shipped_folder
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS

#: At most so many running runs are looked at.
_MOST_RUNNING: Final = 10_000

_NO_SQLITE: Final = "this Python has no sqlite3 module"
_ELSEWHERE: Final = "or use another file: --journal FILE"


def doctor(
    *,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Result:
    """Check the setup, or a server, and print the commands that fix it."""
    workspace = streams.settings.workspace
    named = find_server(workspace, journal, server)
    found = () if server is not None else tuple(diagnose(workspace, journal))
    if named is not None:
        found += asyncio.run(_diagnose_server(named))
    is_ok = all(each.state != "fail" for each in found)
    shown = [each for each in found if each.state != "ok" or not streams.settings.quiet]
    rows = [(each.state, each.subject, each.fact, each.remedy) for each in shown]
    table = streams.table(rows, styles={"ok": "green", "warn": "yellow", "fail": "red"})
    data = {"ok": is_ok, "checks": found}
    return Result(data, table if rows else "", outcome=Exit.DONE if is_ok else Exit.SETUP)


async def _diagnose_server(server: RunServer) -> tuple[Diagnosis, ...]:
    """Check a server: its address, version, key and store; for operators workers and models."""
    # Deferred: most commands need no client.
    from weft.client import Client  # noqa: PLC0415

    async with Client(server.url, key=server.key) as client:
        try:
            await client.require_alive()
        except (PortError, UsageError, AccessDenied) as error:
            start = "weft serve, or correct the address"
            return (Diagnosis("fail", "server", str(error), start),)
        found = [Diagnosis("ok", "server", f"{server.url} answers")]
        try:
            me = await client.me()
        except (PortError, UsageError, AccessDenied) as error:
            found.append(Diagnosis("fail", "key", str(error), f"{MAKE_KEY}; set WEFT_SERVER_KEY"))
        else:
            found += (_check_key(me), _check_version(me["version"], me["mode"]))
            if not {"operator", "administrator"}.isdisjoint(me["roles"]):
                found += [
                    Diagnosis(
                        each["state"], f"server: {each['subject']}", each["fact"], each["remedy"]
                    )
                    for each in await client.doctor()
                    if each["subject"] in ("runs", "models")
                ]
        try:
            await client.require_ready()
            found.append(Diagnosis("ok", "store", "runs can be started"))
        except (PortError, UsageError) as error:
            look = "weft doctor, in the workspace of the server"
            found.append(Diagnosis("fail", "store", str(error), look))
        with suppress(PortError, UsageError, AccessDenied):  # They are for operators of `local`.
            checks = [Diagnosis(**check) for check in await client.doctor()]
            found += (each for each in checks if each.subject in (*SETTINGS, "--no-work"))
    return tuple(found)


def _check_key(me: Mapping[str, Any]) -> Diagnosis:
    fact = f"{me['user']} of {me['app']}: {', '.join(me['roles'])}"
    if VIEWERS.isdisjoint(me["roles"]):
        return Diagnosis("warn", "key", f"{fact}; commands are for developers", MAKE_KEY)
    return Diagnosis("ok", "key", fact)


def _check_version(number: str, mode: str) -> Diagnosis:
    if number == weft.__version__:
        return Diagnosis("ok", "version", f"Weft {number}, {mode}")
    fix = f'pip install "weft-agents=={number}"'
    return Diagnosis("warn", "version", other_version(number), fix)


def diagnose(workspace: Path, file: str | None = None) -> Iterator[Diagnosis]:
    """Run every check; `file` is the journal, if it is not the one of the workspace."""
    location = JournalLocation(workspace, file)
    yield Diagnosis("ok", "python", platform.python_version())
    yield Diagnosis("ok", "pydantic", version("pydantic"))
    yield check_yaml()
    yield check_sqlite()
    yield check_watching()
    yield check_encoding()
    yield check_templates()
    yield check_page()
    settings = read_environment()
    yield check_models(settings, default=SAMPLE)
    yield check_embeddings(settings)
    for subject, check in {
        "folder": lambda: check_folder(workspace),
        "disk": lambda: check_disk_of(location),
        "workspace": lambda: check_packages(workspace),
        "schemas": lambda: check_schemas(workspace),
        "journal": lambda: check_journal(location),
        "documents": lambda: check_documents(workspace),
    }.items():
        try:
            yield check()
        except OSError as error:
            # The other checks still run.
            yield Diagnosis("fail", subject, os_error_text(error), remedy(error))
        except UsageError as error:  # A wrong setting, or a library that is not installed.
            yield Diagnosis("fail", subject, str(error), error.hint or "")


def check_yaml() -> Diagnosis:
    """Check that YAML is read by the fast parser."""
    number = version("pyyaml")
    if yaml.__with_libyaml__:
        return Diagnosis("ok", "pyyaml", f"{number} with libyaml")
    return Diagnosis(
        "warn",
        "pyyaml",
        f"{number} without libyaml: YAML files are read slowly",
        "pip install --force-reinstall --only-binary pyyaml pyyaml",
    )


def check_sqlite() -> Diagnosis:
    """Check that SQLite has the features that the journal needs."""
    install = "install a Python whose sqlite3 module has FTS5 and JSON"
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "sqlite", _NO_SQLITE, install)
    # Deferred: some Pythons are built without it.
    import sqlite3  # noqa: PLC0415

    missing: list[str] = []
    database = sqlite3.connect(":memory:")
    for feature, statement in _SQLITE_FEATURES.items():
        try:
            database.execute(statement)
        except sqlite3.OperationalError:
            missing.append(feature)
    database.close()
    if missing:
        fact = f"{sqlite3.sqlite_version} without {' and '.join(missing)}"
        return Diagnosis("warn", "sqlite", fact, install)
    return Diagnosis("ok", "sqlite", f"{sqlite3.sqlite_version} with FTS5 and JSON")


_SQLITE_FEATURES: Final = {
    "FTS5": "CREATE VIRTUAL TABLE words USING fts5(word)",
    "JSON": "SELECT json('{}')",
}


def check_watching() -> Diagnosis:
    """Check that files can be watched."""
    if find_spec("watchfiles"):
        return Diagnosis("ok", "watch", f"watchfiles {version('watchfiles')}")
    fact = "weft check --watch is not available"
    return Diagnosis("warn", "watch", fact, "pip install watchfiles")


def check_encoding() -> Diagnosis:
    """Check that the terminal can show any text."""
    name = (sys.stdout.encoding or "unknown").lower()
    if name.replace("-", "") == "utf8":
        return Diagnosis("ok", "encoding", "UTF-8")
    fact = f"{name}: some characters are shown as codes"
    return Diagnosis("warn", "encoding", fact, "export PYTHONUTF8=1")


def check_templates() -> Diagnosis:
    """Check that the examples and templates of Weft are installed."""
    wanted = [*EXAMPLES, *(pattern.name for pattern in PATTERNS)]
    missing = [name for name in wanted if not is_package(shipped_folder() / name)]
    if missing:
        fact = f"missing: {', '.join(missing)}"
        return Diagnosis("fail", "templates", fact, "pip install --force-reinstall weft-agents")
    return Diagnosis("ok", "templates", f"{len(wanted)} packages come with Weft")


def check_folder(workspace: Path) -> Diagnosis:
    """Check that the workspace is writable."""
    place = workspace.resolve()
    if os.access(workspace, os.W_OK | os.X_OK):
        return Diagnosis("ok", "folder", f"{place} is writable")
    fact, allow = f"{place} is not writable", f"chmod u+wx {quote(str(place))}"
    if os.statvfs(workspace).f_flag & os.ST_RDONLY:
        fact, allow = f"{place} is on a read-only file system", "copy it to a writable one"
    return Diagnosis("fail", "folder", fact, allow)


def check_disk_of(location: JournalLocation) -> Diagnosis:
    """Check the free disk space for the journal."""
    folder = (location.file or location.workspace / JOURNAL).parent
    is_apart = folder != (location.workspace / JOURNAL).parent and folder.is_dir()
    where = str(location.file) if is_apart else "the workspace"
    return check_disk(folder if is_apart else location.workspace, where)


def check_packages(workspace: Path) -> Diagnosis:
    """Check the packages of the workspace."""
    if not (workspace / PACKAGES).is_dir():
        fact = f"no folder upward from here contains {PACKAGES}"
        return Diagnosis("warn", "workspace", fact, "weft init my-workspace")
    try:
        found = review(workspace)
    except OSError as error:
        repair = f"chmod -R u+rX {quote(str(workspace))}"
        return Diagnosis("fail", "workspace", os_error_text(error), repair)
    errors = sum(is_error(finding) for finding in found.findings)
    counts = {"package": len(found.packages), "error": errors}
    counts["warning"] = len(found.findings) - errors
    fact = ", ".join(counted(number, noun) for noun, number in counts.items())
    if not found.packages:
        return Diagnosis("warn", "workspace", fact, "weft new Example --pattern 1")
    if errors:
        return Diagnosis("warn", "workspace", fact, "weft check")
    return Diagnosis("ok", "workspace", fact)


def check_schemas(workspace: Path) -> Diagnosis:
    """Check that the schemas for editors are those of this version."""
    folder = workspace / "schemas"
    write = f"weft schema --write {quote(str(folder))}"
    if not folder.is_dir():
        return Diagnosis("warn", "schemas", f"{folder} is missing: editors cannot help", write)
    stale = [name for name, text in schema_files().items() if not _has(folder / name, text)]
    if stale:
        return Diagnosis("warn", "schemas", f"not of this version: {', '.join(stale)}", write)
    return Diagnosis("ok", "schemas", f"{folder} is current")


def _has(file: Path, text: str) -> bool:
    return file.is_file() and file.read_bytes() == text.encode()


def check_journal(location: JournalLocation) -> Diagnosis:
    """Read every event of a file, or connect to PostgreSQL; name runs that no process works on."""
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "journal", f"runs cannot be stored: {_NO_SQLITE}")
    if location.blocked:
        return Diagnosis("fail", "journal", location.blocked, _move_away(location))
    if location.is_missing:
        return Diagnosis("ok", "journal", f"{location.file} does not exist: there are no runs yet")
    try:
        return asyncio.run(_check_store(location))
    except StoreError as error:
        fix = _journal_remedy(str(error), location, retryable=error.retryable)
        return Diagnosis("fail", "journal", str(error), fix)


async def _check_store(location: JournalLocation) -> Diagnosis:
    # Deferred: some Pythons are built without sqlite3.
    from weft.adapters.sql.check import check_store  # noqa: PLC0415
    from weft.app.store_admin import operated_store  # noqa: PLC0415

    async with operated_store(location.address) as store:
        if location.file is None:  # It may be large: `weft store check` reads everything.
            fact = f"{shown_store(location.address)} can be reached"
        else:
            found = await check_store(store)
            if found.problems:
                first, *others = found.problems
                more = f", and {counted(len(others), 'more problem')}" if others else ""
                return Diagnosis("fail", "journal", first + more, _journal_remedy(first, location))
            fact = (
                f"{location.file}: {counted(found.runs, 'run')}, {counted(found.events, 'event')}"
            )
        running = await store.runs(command_scope(), status="running", limit=_MOST_RUNNING)
    stopped = [row.run for row in running if is_stopped(row)]
    if stopped:
        fact += f", {counted(len(stopped), 'run')} without a process"
        which = stopped[0] if len(stopped) == 1 else "--all"
        return Diagnosis("warn", "journal", fact, f"weft runs resume {which}{location.options}")
    return _check_writable(location, fact)


def _check_writable(location: JournalLocation, fact: str) -> Diagnosis:
    """Warn about a sound journal that cannot be written."""
    file = location.file
    if file is None:
        return Diagnosis("ok", "journal", fact)
    if is_on_read_only_disk(str(file)):
        fact += "; read only: it is on a read-only file system"
        return Diagnosis("warn", "journal", fact, f"copy it to a writable one, {_ELSEWHERE}")
    if not os.access(file, os.W_OK):
        fact += "; read only: it may not be written"
        return Diagnosis("warn", "journal", fact, f"chmod u+w {quote(str(file))}, {_ELSEWHERE}")
    return Diagnosis("ok", "journal", fact)


def _journal_remedy(text: str, location: JournalLocation, *, retryable: bool = False) -> str:
    """Return what to do about a journal; sound data of others is never moved away."""
    file = location.file
    if file is None:
        if "weft store migrate" in text:
            return f"weft store migrate{location.options}"
        return "check the address in WEFT_STORE or --journal, and that the server is running"
    if retryable:
        return f"wait a moment, then check again: weft doctor{location.options}"
    if is_on_read_only_disk(str(file)):
        return f"copy it to a writable file system, {_ELSEWHERE}"
    if not os.access(file, os.R_OK):
        return f"chmod u+rw {quote(str(file))}, {_ELSEWHERE}"
    if (damaged := _damaged_run(text)) is not None:
        return f"list the others: weft runs list{location.options}; only run {damaged} is affected"
    if "another program" in text or "newer Weft" in text:
        return "use another file: --journal FILE"
    return _move_away(location)


def _damaged_run(message: str) -> str | None:
    """Return the run that an error concerns, if it concerns only one."""
    words = message.split()
    if "run" not in words[:-1]:
        return None
    return words[words.index("run") + 1].rstrip(":,")


def _move_away(location: JournalLocation) -> str:
    """Return the command that moves a damaged journal away without losing it."""
    # The whole folder: SQLite keeps recent events in a second file.
    file = location.file or Path()
    path = quote(str(file.parent if file == location.workspace / JOURNAL else file))
    return f"mv {path} {path}.damaged, {_ELSEWHERE}"


def check_documents(workspace: Path) -> Diagnosis:
    """Check where documents are, and read some."""
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "documents", f"documents cannot be stored: {_NO_SQLITE}")
    settings = read_environment()
    try:
        file = documents_file(workspace, settings)
        if file is not None and not file.exists():
            fact = f"{file} does not exist: there are no documents yet"
            return Diagnosis("ok", "documents", fact)
        counts = asyncio.run(_read_documents(workspace, settings))
    except StoreError as error:
        file = documents_file(workspace, settings)
        return Diagnosis("fail", "documents", str(error), _documents_remedy(error, file))
    except UsageError as error:  # a wrong setting, or a library that is not installed
        return Diagnosis("fail", "documents", str(error), error.hint or "")
    fact = f"{counted(sum(counts), 'document')} in {counted(len(counts), 'collection')}"
    place = file or shown_address(documents_address(settings))
    return Diagnosis("ok", "documents", f"{place}: {fact}")


async def _read_documents(workspace: Path, settings: Mapping[str, str]) -> list[int]:
    """Return the number of documents of each collection, after reading one of each."""
    store = await open_documents(workspace, settings)
    try:
        found = await store.collections(command_scope())
        for collection, _ in found:
            await store.page(command_scope(), collection, limit=1)
        return [count for _, count in found]
    finally:
        await store.close()


def _documents_remedy(error: StoreError, file: Path | None) -> str:
    if file is None:
        return "check the address in WEFT_DOCUMENTS or WEFT_STORE, and that the server is running"
    if error.retryable:
        return "wait a moment, then check again: weft doctor"
    path = quote(str(file))
    return f"mv {path} {path}.damaged, or name another file in WEFT_DOCUMENTS"
