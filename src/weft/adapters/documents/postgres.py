"""Documents in PostgreSQL, beside the store of runs, for any number of processes.

One connection writes; few read, in a role that sees one tenant at a time; one listens to other
processes while somebody watches. The writers of a tenant take turns, so that two of them create
one document, and its changes are numbered in the order in which they become visible.
"""

from typing import Final, TypeVar

from weft.adapters.documents.requests import TENANT_FIELD
from weft.adapters.documents.sql import SqlDocuments
from weft.adapters.sql.statements import Statement, Transaction
from weft.errors import SetupError, StoreError

try:
    from weft.adapters.sql.postgres.connections import BY_KEY, Database, Line, end
    from weft.adapters.sql.postgres.listener import Listener
    from weft.adapters.sql.postgres.schema import READER, check_version
except ImportError as error:
    raise SetupError(
        f"PostgreSQL needs a library that is not installed: {error.name or error}",
        hint='install it: pip install "weft-agents[postgres]"',
    ) from error

T = TypeVar("T")

#: How many connections read at once.
READERS: Final = 2

_TAKE_TURN: Final = Statement("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
_NOTIFY: Final = Statement("SELECT pg_notify($1, '')")


class _Database(Database):
    """A database whose address is that of another setting than WEFT_STORE."""

    setting = "WEFT_STORE"

    def unreachable(self, error: BaseException) -> StoreError:
        text = str(super().unreachable(error)).replace("WEFT_STORE", self.setting)
        return StoreError(text, retryable=True)


class PostgresDocuments(SqlDocuments):
    """The documents port over PostgreSQL; the connections are made when they are first used.

    `setting` names the address in messages.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "weft",
        tenant_field: str = TENANT_FIELD,
        setting: str = "WEFT_STORE",
    ) -> None:
        self._database = _Database(url, schema)
        self._database.setting = setting
        super().__init__(f"documents {self._database.name}", tenant_field=tenant_field)
        self._channel = f"{schema}_documents"
        self._writer = Line(self._database, **BY_KEY)
        self._readers = [Line(self._database, role=READER, **BY_KEY) for _ in range(READERS)]
        self._listener = Listener(self._database, self._wake_watchers)
        self._is_checked = False

    async def opened(self) -> None:
        if not self._is_checked:
            connection = await self._database.connect()
            try:
                await check_version(self._database, connection)
            finally:
                await end(connection)
            self._is_checked = True

    async def _read(self, transaction: Transaction[T], app: str) -> T:
        await self.opened()
        line = min(self._readers, key=lambda reader: reader.waiting)
        return await line.run(transaction, app)

    async def _write(self, transaction: Transaction[T], app: str) -> T:
        await self.opened()
        return await self._writer.write(self._in_turn(transaction, app))

    def _in_turn(self, transaction: Transaction[T], app: str) -> Transaction[T]:
        yield _TAKE_TURN((), f"{self._channel} {app}")
        result = yield from transaction
        yield _NOTIFY((), self._channel)
        return result

    async def _watch(self) -> None:
        self._listener.listen(self._channel, lambda _: self._wake_watchers())

    async def _close(self) -> None:
        await self._listener.close()
        for line in (self._writer, *self._readers):
            await line.close()
