"""weft doctor: check everything Weft needs, and print the commands that fix it."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, Literal

import yaml
from cyclopts import Parameter

from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.system_clock import SystemClock
from weft.app.documents import documents_file, open_documents
from weft.app.embeddings import open_embedder
from weft.app.folders import LOCAL
from weft.app.installation import linking_of
from weft.app.models import SAMPLE, open_registry
from weft.app.settings import ANY_MODEL, allowed_hosts, durability_of, tool_limits
from weft.cli.failure import Exit, os_error_text, remedy
from weft.cli.hosting import JournalFile, JournalLocation, is_stopped
from weft.cli.results import Result
from weft.cli.settings import PACKAGES
from weft.cli.starting import is_badged
from weft.cli.streams import Streams, counted
from weft.environment import read_environment
from weft.errors import StoreError, UsageError
from weft.findings import is_error
from weft.packages.review import review
from weft.packages.workspace import EXAMPLES, is_package, shipped_folder
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS

#: Less free disk space than this is a warning.
_LEAST_FREE: Final = 200 * 1024 * 1024

_NO_SQLITE: Final = "this Python has no sqlite3 module"
_ELSEWHERE: Final = "or use another file: --journal FILE"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check; `remedy` is the command that fixes it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    fact: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnoses(Result):
    """The results of all checks."""

    ok: bool
    checks: tuple[Diagnosis, ...]

    @property
    def exit(self) -> Exit:
        """The exit code: 3 if a check failed."""
        return Exit.DONE if self.ok else Exit.SETUP

    def show(self, streams: Streams) -> None:
        """Print a table; with --quiet only the problems."""
        checks = [each for each in self.checks if each.state != "ok" or not streams.settings.quiet]
        rows = [(each.state, each.subject, each.fact, each.remedy) for each in checks]
        streams.rows(rows, styles={"ok": "green", "warn": "yellow", "fail": "red"})


def doctor(
    *, journal: JournalFile = None, streams: Annotated[Streams, Parameter(parse=False)]
) -> Result:
    """Check the setup, and print the commands that fix it."""
    found = tuple(diagnose(streams.settings.workspace, journal))
    return Diagnoses(all(each.state != "fail" for each in found), found)


def diagnose(workspace: Path, file: Path | None = None) -> Iterator[Diagnosis]:
    """Run every check; `file` is the journal, if it is not the one of the workspace."""
    location = JournalLocation(workspace, file)
    yield Diagnosis("ok", "python", platform.python_version())
    yield Diagnosis("ok", "pydantic", version("pydantic"))
    yield check_yaml()
    yield check_sqlite()
    yield check_watching()
    yield check_encoding()
    yield check_templates()
    yield check_models()
    yield check_embeddings()
    for subject, check in {
        "folder": lambda: check_folder(workspace),
        "disk": lambda: check_disk(location),
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


def check_disk(location: JournalLocation) -> Diagnosis:
    """Check the free disk space for the journal."""
    folder = location.file.parent
    is_apart = location.journal is not None and folder.is_dir()
    free = shutil.disk_usage(folder if is_apart else location.workspace).free
    fact = f"{free // (1024 * 1024):,} MiB free"
    if free >= _LEAST_FREE:
        return Diagnosis("ok", "disk", fact)
    where = str(location.file) if is_apart else "the workspace"
    return Diagnosis("warn", "disk", fact, f"free some space on the disk of {where}")


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


def check_models() -> Diagnosis:
    """Check the models that the environment names, and list its keys."""
    settings = read_environment()
    usual = settings.get("WEFT_MODEL") or SAMPLE
    try:
        _require_valid(settings, usual)
    except UsageError as error:
        return Diagnosis("fail", "models", str(error), error.hint or "")
    keys = [name for name in _key_settings() if settings.get(name)]
    known = f"keys: {', '.join(keys)}" if keys else "no key is set"
    return Diagnosis("ok", "models", f"{usual} by default; {known}")


def _require_valid(settings: Mapping[str, str], usual: str) -> None:
    """Raise what every run would raise because of the settings."""
    registry, fallbacks = open_registry(settings, SystemClock())
    tool_limits(settings)
    durability_of(settings)
    allowed_hosts(settings)
    linking_of(settings)
    for name in (usual, *fallbacks, *fallbacks.values()):
        if name != ANY_MODEL and not is_badged(name):
            registry.model(name)


def _key_settings() -> Iterator[str]:
    """Yield the names of the settings that hold keys."""
    yield from (each.key_setting for each in COMPATIBLE.values() if each.key_setting)
    for library in THROUGH_LIBRARY.values():
        yield from (name for argument, name in library.arguments if argument == "api_key")


def check_embeddings() -> Diagnosis:
    """Check the embedding model of collections."""
    try:
        embedder = open_embedder(read_environment())
    except UsageError as error:
        return Diagnosis("fail", "embeddings", str(error), error.hint or "")
    if embedder is None:
        fact = "none: collections are searched by keywords only"
        return Diagnosis("ok", "embeddings", fact, "weft embeddings install")
    return Diagnosis("ok", "embeddings", embedder.name)


def check_journal(location: JournalLocation) -> Diagnosis:
    """Read every event, and name the runs that no process works on."""
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "journal", f"runs cannot be kept: {_NO_SQLITE}")
    # Deferred: some Pythons are built without sqlite3.
    from weft.adapters.sqlite.health import examine  # noqa: PLC0415

    file = location.file
    if location.blocked:
        return Diagnosis("fail", "journal", location.blocked, _move_away(location))
    if not file.exists():
        return Diagnosis("ok", "journal", f"{file} does not exist: there are no runs yet")
    try:
        found = examine(file)
    except StoreError as error:
        return Diagnosis("fail", "journal", str(error), _journal_remedy(error, location))
    fact = f"{file}: {counted(found.runs, 'run')}, {counted(found.events, 'event')}"
    unfinished = [row for row in found.unfinished if (row.app, row.user) == _LOCAL_KEY]
    stopped = [row.run for row in unfinished if is_stopped(row)]
    if stopped:
        fact += f", {counted(len(stopped), 'run')} without a process"
        which = stopped[0] if len(stopped) == 1 else "--all"
        return Diagnosis("warn", "journal", fact, f"weft runs resume {which}{location.options}")
    return _check_writable(location, fact)


_LOCAL_KEY: Final = (LOCAL.app, LOCAL.user)


def _check_writable(location: JournalLocation, fact: str) -> Diagnosis:
    """Warn about a sound journal that cannot be written."""
    # Deferred: some Pythons are built without sqlite3.
    from weft.adapters.sqlite.errors import on_read_only_disk  # noqa: PLC0415

    if on_read_only_disk(location.file):
        fact += "; read only: it is on a read-only file system"
        return Diagnosis("warn", "journal", fact, f"copy it to a writable one, {_ELSEWHERE}")
    if not os.access(location.file, os.W_OK):
        path = quote(str(location.file))
        fact += "; read only: it may not be written"
        return Diagnosis("warn", "journal", fact, f"chmod u+w {path}, {_ELSEWHERE}")
    return Diagnosis("ok", "journal", fact)


def _journal_remedy(error: StoreError, location: JournalLocation) -> str:
    """Return what to do about a journal; sound data of others is never moved away."""
    # Deferred: some Pythons are built without sqlite3.
    from weft.adapters.sqlite.errors import on_read_only_disk  # noqa: PLC0415

    if error.retryable:
        return f"wait a moment, then check again: weft doctor{location.options}"
    if on_read_only_disk(location.file):
        return f"copy it to a writable file system, {_ELSEWHERE}"
    if not os.access(location.file, os.R_OK):
        return f"chmod u+rw {quote(str(location.file))}, {_ELSEWHERE}"
    text = str(error)
    if (damaged := _damaged_run(text)) is not None:
        return f"list the others: weft runs list{location.options}; only run {damaged} is affected"
    if "another program" in text or "newer Weft" in text:
        return "use another file: --journal FILE"
    return _move_away(location)


def _damaged_run(message: str) -> str | None:
    """Return the run that an error is about, if it is about one run only."""
    words = message.split()
    if "run" not in words[:-1]:
        return None
    return words[words.index("run") + 1].rstrip(":,")


def _move_away(location: JournalLocation) -> str:
    """Return the command that moves a damaged journal away without losing it."""
    # The whole folder: SQLite keeps recent events in a second file.
    path = quote(str(location.file.parent if location.journal is None else location.file))
    return f"mv {path} {path}.damaged, {_ELSEWHERE}"


def check_documents(workspace: Path) -> Diagnosis:
    """Check where documents are, and read some."""
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "documents", f"documents cannot be kept: {_NO_SQLITE}")
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
    return Diagnosis("ok", "documents", f"{file or _address(settings)}: {fact}")


async def _read_documents(workspace: Path, settings: Mapping[str, str]) -> list[int]:
    """Return the number of documents of each collection, after reading one of each."""
    store = await open_documents(workspace, settings)
    try:
        found = await store.collections(LOCAL)
        for collection, _ in found:
            await store.page(LOCAL, collection, limit=1)
        return [count for _, count in found]
    finally:
        await store.close()


def _documents_remedy(error: StoreError, file: Path | None) -> str:
    if file is None:
        return "check the address in WEFT_DOCUMENTS, and that the server is running"
    if error.retryable:
        return "wait a moment, then check again: weft doctor"
    path = quote(str(file))
    return f"mv {path} {path}.damaged, or name another file in WEFT_DOCUMENTS"


def _address(settings: Mapping[str, str]) -> str:
    # Deferred: it needs an optional dependency, which is installed here.
    from weft.adapters.documents.mongodb_values import shown_address  # noqa: PLC0415

    return shown_address(settings["WEFT_DOCUMENTS"])
