"""The checks of `weft doctor`: whether everything Weft needs is here, and what fixes it."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Final

import yaml

from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.system_clock import SystemClock
from weft.app.embeddings import open_embedder
from weft.app.installation import linking_of
from weft.app.models import SAMPLE, open_registry
from weft.app.settings import ANY_MODEL, allowed_hosts, durability_of, tool_limits
from weft.cli.doctor import Diagnosis
from weft.cli.failure import refusal, remedy
from weft.cli.models import is_badged
from weft.cli.settings import PACKAGES
from weft.cli.text import counted
from weft.environment import read_environment
from weft.errors import UsageError
from weft.findings import is_error
from weft.packages.review import review
from weft.packages.workspace import EXAMPLES, is_package, shipped_folder
from weft.packages.writer import schema_files
from weft.spec.patterns import PATTERNS

#: Less free space than this is soon used up.
_LEAST_FREE: Final = 200 * 1024 * 1024


def diagnose(workspace: Path, file: Path | None = None) -> Iterator[Diagnosis]:
    """Look at everything in turn; `file` is where runs are kept, if not where they usually are."""

    def journal(folder: Path) -> Diagnosis:
        return kept_runs(folder, file)

    def disk(folder: Path) -> Diagnosis:
        return free_space(folder, file)

    yield Diagnosis("ok", "python", platform.python_version())
    yield Diagnosis("ok", "pydantic", version("pydantic"))
    yield libyaml()
    yield sqlite()
    yield watching()
    yield encoding()
    yield shipped()
    yield models_check()
    yield embeddings_check()
    for look in (writable, disk, packages, schemas, journal, documents):
        try:
            yield look(workspace)
        except OSError as error:
            # The others can still be looked at, and doctor itself is where one is sent for help.
            yield Diagnosis("fail", look.__name__, refusal(error), remedy(error))


def libyaml() -> Diagnosis:
    """Look whether YAML is read by the fast reader."""
    fact = f"{version('pyyaml')} with libyaml"
    if yaml.__with_libyaml__:
        return Diagnosis("ok", "pyyaml", fact)
    return Diagnosis(
        "warn",
        "pyyaml",
        f"{version('pyyaml')} without libyaml: YAML files are read slowly",
        "pip install --force-reinstall --only-binary pyyaml pyyaml",
    )


def sqlite() -> Diagnosis:
    """Look whether SQLite has what runs will need."""
    remedy = "install a Python whose sqlite3 module has FTS5 and JSON"
    if find_spec("_sqlite3") is None:
        return Diagnosis("warn", "sqlite", "this Python has no sqlite3 module", remedy)
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
        return Diagnosis("warn", "sqlite", fact, remedy)
    return Diagnosis("ok", "sqlite", f"{sqlite3.sqlite_version} with FTS5 and JSON")


_SQLITE_FEATURES: Final = {
    "FTS5": "CREATE VIRTUAL TABLE words USING fts5(word)",
    "JSON": "SELECT json('{}')",
}


def watching() -> Diagnosis:
    """Look whether files can be watched."""
    if find_spec("watchfiles"):
        return Diagnosis("ok", "watch", f"watchfiles {version('watchfiles')}")
    return Diagnosis("warn", "watch", "weft check --watch cannot work", "pip install watchfiles")


def encoding() -> Diagnosis:
    """Look whether the terminal can show any text."""
    name = (sys.stdout.encoding or "unknown").lower()
    if name.replace("-", "") == "utf8":
        return Diagnosis("ok", "encoding", "UTF-8")
    fact = f"{name}: some characters are shown as codes"
    return Diagnosis("warn", "encoding", fact, "export PYTHONUTF8=1")


def shipped() -> Diagnosis:
    """Look whether the examples and templates that come with Weft are there."""
    wanted = [*EXAMPLES, *(pattern.name for pattern in PATTERNS)]
    missing = [name for name in wanted if not is_package(shipped_folder() / name)]
    if missing:
        fact = f"missing: {', '.join(missing)}"
        return Diagnosis("fail", "templates", fact, "pip install --force-reinstall weft-agents")
    return Diagnosis("ok", "templates", f"{len(wanted)} packages come with Weft")


def writable(workspace: Path) -> Diagnosis:
    """Look whether the workspace can be written to."""
    place = workspace.resolve()
    if os.access(workspace, os.W_OK | os.X_OK):
        return Diagnosis("ok", "folder", f"{place} is writable")
    fact, allow = f"{place} is not writable", f"chmod u+wx {quote(str(place))}"
    if os.statvfs(workspace).f_flag & os.ST_RDONLY:
        fact, allow = f"{place} is on a read-only file system", "copy it to where you may write"
    return Diagnosis("fail", "folder", fact, allow)


def free_space(workspace: Path, file: Path | None = None) -> Diagnosis:
    """Look whether there is room for more where runs are kept."""
    apart = file is not None and file.parent.is_dir()
    free = shutil.disk_usage(file.parent if file and apart else workspace).free
    fact = f"{free // (1024 * 1024):,} MiB free"
    if free >= _LEAST_FREE:
        return Diagnosis("ok", "disk", fact)
    where = str(file) if apart else "the workspace"
    return Diagnosis("warn", "disk", fact, f"make room on the disk of {where}")


def packages(workspace: Path) -> Diagnosis:
    """Look for packages and check them."""
    if not (workspace / PACKAGES).is_dir():
        fact = f"no folder upward from here contains {PACKAGES}"
        return Diagnosis("warn", "workspace", fact, "weft init my-workspace")
    try:
        found = review(workspace)
    except OSError as error:
        repair = f"chmod -R u+rX {quote(str(workspace))}"
        return Diagnosis("fail", "workspace", refusal(error), repair)
    errors = sum(is_error(finding) for finding in found.findings)
    counts = {"package": len(found.packages), "error": errors}
    counts["warning"] = len(found.findings) - errors
    fact = ", ".join(counted(number, noun) for noun, number in counts.items())
    if not found.packages:
        return Diagnosis("warn", "workspace", fact, "weft new Example --pattern 1")
    if errors:
        return Diagnosis("warn", "workspace", fact, "weft check")
    return Diagnosis("ok", "workspace", fact)


def schemas(workspace: Path) -> Diagnosis:
    """Look whether the schemas editors use are those of this version."""
    folder = workspace / "schemas"
    remedy = f"weft schema --write {quote(str(folder))}"
    if not folder.is_dir():
        return Diagnosis("warn", "schemas", f"{folder} is missing: editors cannot help", remedy)
    stale = [name for name, text in schema_files().items() if not _holds(folder / name, text)]
    if stale:
        return Diagnosis("warn", "schemas", f"not of this version: {', '.join(stale)}", remedy)
    return Diagnosis("ok", "schemas", f"{folder} is current")


def kept_runs(workspace: Path, file: Path | None = None) -> Diagnosis:
    """Look whether the runs that were kept can be read."""
    if find_spec("_sqlite3") is None:
        return Diagnosis(
            "warn", "journal", "runs cannot be kept: this Python has no sqlite3 module"
        )
    # Deferred: some Pythons are built without what it needs.
    from weft.cli.doctor.journal import journal_check  # noqa: PLC0415
    from weft.cli.hosting import JournalLocation  # noqa: PLC0415

    return journal_check(JournalLocation(workspace, file))


def documents(workspace: Path) -> Diagnosis:
    """Look whether documents can be read."""
    if find_spec("_sqlite3") is None:
        return Diagnosis(
            "warn", "documents", "they cannot be kept: this Python has no sqlite3 module"
        )
    # Deferred: some Pythons are built without what it needs.
    from weft.cli.doctor.documents import documents_check  # noqa: PLC0415

    return documents_check(workspace, read_environment())


def _holds(file: Path, text: str) -> bool:
    return file.is_file() and file.read_bytes() == text.encode()


def models_check() -> Diagnosis:
    """Look whether the models that the environment names could be asked, and which keys it has."""
    settings = read_environment()
    usual = settings.get("WEFT_MODEL") or SAMPLE
    try:
        _refuse_wrong(settings, usual)
    except UsageError as error:
        return Diagnosis("fail", "models", str(error), error.hint or "")
    keys = [name for name in _key_settings() if settings.get(name)]
    known = f"keys: {', '.join(keys)}" if keys else "no key is set"
    return Diagnosis("ok", "models", f"{usual} where none is named; {known}")


def embeddings_check() -> Diagnosis:
    """Look what embeds the passages of collections, if anything does."""
    try:
        embedder = open_embedder(read_environment())
    except UsageError as error:
        return Diagnosis("fail", "embeddings", str(error), error.hint or "")
    if embedder is None:
        fact = "none: collections are searched by keywords alone"
        return Diagnosis("ok", "embeddings", fact, "weft embeddings install")
    return Diagnosis("ok", "embeddings", embedder.name)


def _refuse_wrong(settings: Mapping[str, str], usual: str) -> None:
    """Raise what every run would raise because of a setting, or of a model that is named in one."""
    registry, fallbacks = open_registry(settings, SystemClock())
    tool_limits(settings)
    durability_of(settings)
    allowed_hosts(settings)
    linking_of(settings)
    for name in (usual, *fallbacks, *fallbacks.values()):
        if name != ANY_MODEL and not is_badged(name):
            registry.model(name)


def _key_settings() -> Iterator[str]:
    """Yield the settings that hold keys."""
    yield from (it.key_setting for it in COMPATIBLE.values() if it.key_setting)
    for library in THROUGH_LIBRARY.values():
        yield from (name for argument, name in library.arguments if argument == "api_key")
