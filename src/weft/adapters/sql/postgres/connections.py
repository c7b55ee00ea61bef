"""Connections to PostgreSQL that may be lost: they are opened again when they are next needed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from weft.adapters.sql.postgres.text import merge_writes, statement_text
from weft.adapters.sql.statements import Call, Rows, Transaction
from weft.errors import StoreError

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
#: A statement that takes longer is taken for a lost connection.
COMMAND_SECONDS: Final = 60.0
#: Seconds between two attempts to connect, at first and at most.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

#: A writer that is stopped while it holds locks loses them after so many milliseconds.
IDLE_IN_TRANSACTION: Final = 1_500

_SETTINGS: Final = {
    "application_name": "weft",
    "jit": "off",
    "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION}",
}

#: Whatever is written is found by its key. The planner is asked once, when the tables may be empty,
#: and would choose to read them whole.
BY_KEY: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

#: Whatever a driver raises when the server is gone, even in the middle of a message.
LOST: Final[tuple[type[BaseException], ...]] = (
    OSError,
    EOFError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
FAILURES: Final = (*LOST, asyncpg.PostgresError)

#: What a value is to blame for: it is out of range, breaks a rule, or is too large for an index.
_OF_VALUES: Final = ("22", "23", "54")
#: The connection is gone: broken, ended by the server or its administrator, or idle for too long.
_OF_CONNECTIONS: Final = ("08", "57", "25P03", "53300")
#: Another transaction was in the way, or a disk is full.
_OF_OTHERS: Final = ("40", "55P03", "53")
#: The tables are not there.
_NO_TABLE: Final = ("42P01", "3F000", "42501")


class Connection(Protocol):
    """What is used of a connection of asyncpg."""

    async def fetch(self, query: str, *args: object) -> list[Any]: ...

    async def execute(self, query: str, *args: object) -> str: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


class Database:
    """Where the tables are, and how to connect to it."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self.schema = schema
        parts = urlsplit(url)
        #: For messages: without the password.
        self.name = f"postgresql://{parts.hostname or 'localhost'}{parts.path}"
        self._pause = 0.0
        #: Whether the last attempt to connect succeeded, and no connection was lost since.
        self.is_reachable = True

    async def connect(self, **settings: str) -> Connection:
        """Return a new connection; after a failure the next attempt is made later.

        Raises StoreError if there is none.
        """
        if self._pause:
            await asyncio.sleep(self._pause)
        connect = cast("Any", asyncpg).connect
        try:
            found = await connect(
                self._url,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                statement_cache_size=1_000,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                server_settings={**_SETTINGS, "search_path": self.schema, **settings},
            )
        except (*FAILURES, ValueError) as error:
            self.is_reachable = False
            self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            raise self.unreachable(error) from error
        self._pause = 0.0
        self.is_reachable = True
        return cast("Connection", found)

    def unreachable(self, error: BaseException) -> StoreError:
        """Return the error that says that the server cannot be used."""
        return StoreError(
            f"store {self.name} cannot be reached: {_words(error)}; start the server, or correct"
            " WEFT_STORE",
            retryable=True,
        )

    def explain(self, error: BaseException, *, uncertain: bool = False) -> Exception:
        """Return what to raise for an error of the driver: ValueError if a value is to blame."""
        state: str | None = getattr(error, "sqlstate", None)
        if state is None and isinstance(error, ValueError):
            return error
        if state is None or state.startswith(_OF_CONNECTIONS):
            return StoreError(
                f"store {self.name}: the connection was lost ({_words(error)})",
                retryable=True,
                uncertain=uncertain,
            )
        if state.startswith(_OF_VALUES):
            return ValueError(_words(error))
        if state.startswith(_NO_TABLE):
            return StoreError(f"store {self.name}: {_words(error)}; run `weft store migrate`")
        return StoreError(
            f"store {self.name}: {_words(error)}", retryable=state.startswith(_OF_OTHERS)
        )


class Line:
    """One connection for one transaction after the other."""

    def __init__(self, database: Database, **settings: str) -> None:
        self._database = database
        self._settings = settings
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        #: How many use it or wait for it.
        self.waiting = 0
        #: The tenant whose rows a reader sees now.
        self._tenant: str | None = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Connection]:
        """Yield the connection; it is given up if something goes wrong that it may not survive."""
        self.waiting += 1
        try:
            async with self._lock:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._database.connect(**self._settings)
                    self._tenant = None
                try:
                    yield self._connection
                except ValueError:
                    raise
                except (*LOST, asyncio.CancelledError):
                    # The answer to what was sent may still come, or a transaction may be open.
                    self._connection.terminate()
                    raise
        finally:
            self.waiting -= 1

    async def write(self, transaction: Transaction[T]) -> T:
        """Run a transaction, whole or not at all."""
        committing = False
        try:
            async with self.use() as connection:
                await connection.execute("BEGIN")
                try:
                    result = await drive(connection, transaction)
                except LOST as error:
                    if isinstance(error, ValueError):  # The driver cannot encode a value.
                        await connection.execute("ROLLBACK")
                    raise
                except Exception:
                    if not connection.is_closed():
                        await connection.execute("ROLLBACK")
                    raise
                committing = True
                await connection.execute("COMMIT")
                return result
        except FAILURES as error:
            raise self._database.explain(error, uncertain=committing) from error

    async def run(self, transaction: Transaction[T], app: str | None = None) -> T:
        """Run statements, each a transaction of its own; a reader sees one tenant."""
        try:
            async with self.use() as connection:
                if app is not None and self._tenant != app:
                    await connection.fetch("SELECT set_config('weft.app', $1, false)", app)
                    self._tenant = app
                return await drive(connection, transaction)
        except FAILURES as error:
            raise self._database.explain(error, uncertain=app is None) from error

    async def close(self) -> None:
        """End the connection."""
        async with self._lock:
            if self._connection is not None:
                await end(self._connection)
                self._connection = None


async def end(connection: Connection) -> None:
    """Close a connection, which may be lost already."""
    try:
        async with asyncio.timeout(1):
            await connection.close()
    except FAILURES:
        connection.terminate()


async def drive(connection: Connection, transaction: Transaction[T]) -> T:
    """Run the statements of a transaction; return its result."""
    try:
        call = next(transaction)
        while True:
            if isinstance(call, list):
                for text, arguments in merge_writes(call):
                    await connection.fetch(text, *arguments)
                call = transaction.send([])
            else:
                call = transaction.send(await _fetch(connection, call))
    except StopIteration as stop:
        return stop.value


async def _fetch(connection: Connection, call: Call) -> Rows:
    if call.statement.columns and not call.rows:
        return []
    text, arguments = statement_text(call)
    return [tuple(row) for row in await connection.fetch(text, *arguments)]


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
