"""The tables of a SQLite journal, and how a file of any earlier version comes to have them."""

import errno
import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

from weft.adapters.sqlite.errors import on_read_only_disk, store_error
from weft.errors import StoreError
from weft.ports.journal import Durability

#: Marks a file as ours ("WEFT"), so that no other program's database is ever written to.
APPLICATION_ID: Final = 0x57454654

#: A burst may make the write-ahead log large; afterwards it is cut back to this many bytes.
LOG_BYTES: Final = 16 * 1024 * 1024

#: How long to wait before trying again to open a file that is busy.
PAUSE_SECONDS: Final = 0.01

#: The first format that is read; files of earlier ones were never released.
FIRST_VERSION: Final = 3

#: One entry per version from the first on; an entry is never changed once it has been released.
#: The tenant is part of every key.
#: Event data is text, or, if it is large, the hash of a blob: the two types tell them apart.
#: Events lie in the order they are written, whatever their run, and an index finds them. Lying in
#: the order of their key (WITHOUT ROWID) costs twice the CPU with 500 runs at once, since each run
#: then writes a page of its own, and twice the space where events are larger than a quarter page.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE runs (
            run TEXT NOT NULL, app TEXT NOT NULL, user TEXT NOT NULL, workflow TEXT NOT NULL,
            digest TEXT NOT NULL, status TEXT NOT NULL, seq INTEGER NOT NULL,
            started_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, turns INTEGER NOT NULL,
            calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
            cost_usd REAL NOT NULL, unpriced INTEGER NOT NULL, preview TEXT NOT NULL,
            outcome TEXT, reason TEXT NOT NULL, parent TEXT NOT NULL,
            uncounted INTEGER NOT NULL, owner TEXT NOT NULL, batch TEXT NOT NULL,
            PRIMARY KEY (app, run)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX runs_by_app ON runs (app, started_at)",
        "CREATE INDEX runs_by_user ON runs (app, user, started_at)",
        "CREATE INDEX runs_by_workflow ON runs (app, workflow, started_at)",
        "CREATE INDEX runs_by_status ON runs (status, app, started_at)",
        "CREATE INDEX runs_by_end ON runs (app, changed_at) WHERE status = 'ended'",
        "CREATE INDEX runs_by_digest ON runs (app, digest)",
        """
        CREATE TABLE events (
            app TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
            actor TEXT NOT NULL, cause INTEGER NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL,
            data NOT NULL,
            PRIMARY KEY (app, run, seq)
        )
        """,
        "CREATE INDEX events_by_blob ON events (app, data) WHERE typeof(data) = 'blob'",
        """
        CREATE TABLE blobs (
            app TEXT NOT NULL, digest BLOB NOT NULL, content BLOB NOT NULL,
            PRIMARY KEY (app, digest)
        )
        """,
        """
        CREATE TABLE requests (
            id TEXT NOT NULL, run TEXT NOT NULL, app TEXT NOT NULL, user TEXT NOT NULL,
            kind TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT, payload TEXT NOT NULL,
            opened_at INTEGER NOT NULL, expires_at INTEGER, sets TEXT NOT NULL,
            PRIMARY KEY (app, run, id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX requests_by_app ON requests (app, opened_at)",
        "CREATE INDEX requests_by_user ON requests (app, user, opened_at)",
        "CREATE INDEX requests_by_expiry ON requests (expires_at) WHERE expires_at IS NOT NULL",
        """
        CREATE TABLE timers (
            id TEXT NOT NULL, run TEXT NOT NULL, app TEXT NOT NULL, user TEXT NOT NULL,
            at INTEGER NOT NULL,
            PRIMARY KEY (app, run, id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX timers_by_time ON timers (at)",
        """
        CREATE TABLE packages (
            app TEXT NOT NULL, digest TEXT NOT NULL, content BLOB NOT NULL,
            PRIMARY KEY (app, digest)
        )
        """,
        "CREATE TABLE workers (owner TEXT PRIMARY KEY, heartbeat INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX workers_by_time ON workers (heartbeat)",
    ),
    (
        "ALTER TABLE requests ADD COLUMN component TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE requests ADD COLUMN mode TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE requests ADD COLUMN addressee TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX requests_by_addressee ON requests (app, addressee) WHERE addressee != ''",
        """
        CREATE TABLE kept (
            app TEXT NOT NULL, user TEXT NOT NULL, workflow TEXT NOT NULL, name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (app, user, workflow, name)
        ) WITHOUT ROWID
        """,
    ),
    # Every list of artifacts is one of these indexes, in the order of time; those without rowid end
    # with what is missing of the key, so that run and number decide among those of one time.
    (
        """
        -- The key first: else some versions of SQLite take a sound table for a damaged one.
        CREATE TABLE artifacts (
            app TEXT NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL, board TEXT NOT NULL,
            id TEXT NOT NULL, type TEXT NOT NULL, producer TEXT NOT NULL,
            correlation TEXT NOT NULL, partition TEXT NOT NULL, created_at INTEGER NOT NULL,
            visible_at INTEGER NOT NULL, policy TEXT NOT NULL, names TEXT NOT NULL,
            tags TEXT NOT NULL,
            PRIMARY KEY (app, run, seq)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX artifacts_by_id ON artifacts (app, id)",
        "CREATE INDEX artifacts_by_time ON artifacts (app, board, created_at)",
        "CREATE INDEX artifacts_by_correlation ON artifacts (app, board, correlation, created_at)",
        "CREATE INDEX artifacts_by_type ON artifacts (app, board, type, created_at)",
        "CREATE INDEX artifacts_by_producer ON artifacts (app, board, producer, created_at)",
        """
        CREATE INDEX artifacts_by_partition ON artifacts (app, board, partition, created_at)
        WHERE partition != ''
        """,
        """
        CREATE TABLE artifact_tags (
            app TEXT NOT NULL, board TEXT NOT NULL, tag TEXT NOT NULL, type TEXT NOT NULL,
            created_at INTEGER NOT NULL, run TEXT NOT NULL, seq INTEGER NOT NULL,
            PRIMARY KEY (app, board, tag, type, created_at, run, seq)
        ) WITHOUT ROWID
        """,
        """
        CREATE INDEX artifact_tags_by_time
        ON artifact_tags (app, board, tag, created_at, run, seq)
        """,
        """
        CREATE TABLE consumed (
            app TEXT NOT NULL, board TEXT NOT NULL, agent TEXT NOT NULL, artifact TEXT NOT NULL,
            run TEXT NOT NULL, turn INTEGER NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY (app, run, turn, agent, artifact)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX consumed_by_time ON consumed (app, board, at)",
        "CREATE INDEX consumed_by_agent ON consumed (app, board, agent, at)",
        "CREATE INDEX consumed_by_artifact ON consumed (app, board, artifact, at)",
        """
        CREATE TABLE letters (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL, run TEXT NOT NULL, app TEXT NOT NULL,
            receiver TEXT NOT NULL, workflow TEXT NOT NULL, digest TEXT NOT NULL,
            user TEXT NOT NULL, data BLOB NOT NULL,
            UNIQUE (app, id)
        )
        """,
        "CREATE INDEX letters_by_receiver ON letters (app, receiver)",
        "CREATE INDEX letters_by_run ON letters (app, run)",
    ),
    (
        """
        CREATE INDEX runs_by_completion ON runs (app, workflow, user)
        WHERE outcome = 'completed' AND parent = ''
        """,
    ),
)


def open_writer(path: Path, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    """Open the connection that writes; make or migrate the tables.

    A file on a read-only disk can still be read: there, it is writing that fails. Raises StoreError
    if the file cannot be used.
    """
    try:
        # Chats are private: the file is for its owner only, and so are those SQLite adds to it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        if error.errno == errno.EROFS and path.is_file():
            return _opened_to_read(path, busy_seconds)
        raise StoreError(
            f"journal {path}: the file cannot be written ({error.strerror}); "
            "name a file in a folder that exists and that you may write to"
        ) from error
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            return _opened(path, durability, busy_seconds)
        except sqlite3.Error as error:
            failure = store_error(error, path)
            # SQLite does not wait where several open a new file or the last one closes it.
            if not failure.retryable or time.monotonic() >= deadline:
                raise failure from error
        time.sleep(PAUSE_SECONDS)


def open_reader(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """Open a connection that cannot write."""
    # SQLite makes files even to read, unless it is told that nobody changes this one.
    frozen = "&immutable=1" if on_read_only_disk(path) and not _has_log(path) else ""
    return _connect(f"{path.absolute().as_uri()}?mode=ro{frozen}", busy_seconds, uri=True)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Hold the right to write; everything done meanwhile is kept, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures, such as a full disk, have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Let everything that is read meanwhile be of one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]]) -> None:
    """Bring the tables to the newest version, all steps in one transaction."""
    newest = FIRST_VERSION - 1 + len(migrations)
    if _number(connection, "user_version") >= newest:
        return
    with transaction(connection):
        # Asked again: another process may have been quicker.
        version = _number(connection, "user_version")
        for statement in chain.from_iterable(migrations[max(0, version - FIRST_VERSION + 1) :]):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {max(version, newest)}")


def refuse_strangers(connection: sqlite3.Connection, path: Path) -> bool:
    """Leave files alone that we did not make or do not understand; tell whether one has tables."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != APPLICATION_ID:
        raise StoreError(
            f"journal {path}: the file is a database of another program; name another file"
        )
    version = _number(connection, "user_version")
    newest = FIRST_VERSION - 1 + len(MIGRATIONS)
    if version > newest:
        raise StoreError(
            f"journal {path}: the file was written by a newer Weft (format {version}, this one "
            f"knows up to {newest}); use that Weft, or name another file"
        )
    if tables and version < FIRST_VERSION:
        raise StoreError(
            f"journal {path}: the file was written before Weft's first release (format {version}), "
            "which this version does not read; move it away, or name another file"
        )
    return bool(tables)


def _opened(path: Path, durability: Durability, busy_seconds: float) -> sqlite3.Connection:
    with _closed_unless_kept(_connect(str(path), busy_seconds)) as connection:
        refuse_strangers(connection, path)
        _prepare(connection, durability)
        migrate(connection, MIGRATIONS)
    return connection


def _opened_to_read(path: Path, busy_seconds: float) -> sqlite3.Connection:
    try:
        with _closed_unless_kept(open_reader(path, busy_seconds)) as connection:
            refuse_strangers(connection, path)
            migrate(connection, MIGRATIONS)
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    return connection


@contextmanager
def _closed_unless_kept(connection: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    """Close a connection that turns out to be of no use; whoever gets to the end keeps it."""
    with ExitStack() as otherwise:
        otherwise.callback(connection.close)
        yield connection
        otherwise.pop_all()


def _has_log(path: Path) -> bool:
    """Tell whether something was written last that is not in the file itself yet."""
    log = path.with_name(f"{path.name}-wal")
    return log.is_file() and log.stat().st_size > 0


def _connect(name: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
    # One thread at a time uses a connection, but it is not always the one that opened it.
    return sqlite3.connect(
        name,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=uri,
    )


def _prepare(connection: sqlite3.Connection, durability: Durability) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    if durability == "full":
        connection.execute("PRAGMA synchronous = FULL")
        # Without it macOS says that data is on disk when it is only on its way there.
        connection.execute("PRAGMA fullfsync = ON")
    else:
        connection.execute("PRAGMA synchronous = NORMAL")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
