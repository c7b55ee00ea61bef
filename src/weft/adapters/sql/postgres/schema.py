"""The tables of a store in PostgreSQL: creating them, and checking that they fit this version.

Two roles use them. The role that the address names owns the tables and writes. Everything that is
read for a person or an agent is read as `READER`, which may only select, and only the rows of the
tenant that the setting `weft.app` names: a query that forgets its tenant finds nothing.
"""

import re
from itertools import chain
from typing import Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from weft.adapters.sql.postgres.connections import FAILURES, Connection, Database, end
from weft.adapters.sql.postgres.text import table_text
from weft.adapters.sql.tables import (
    COLLECTION_TABLES,
    DOCUMENT_TABLES,
    PGVECTOR,
    POSTGRES_MIGRATIONS,
    POSTGRES_WORDS,
    TABLES,
    VERSION,
)
from weft.errors import StoreError

READER: Final = "weft_reader"

_TABLE: Final = re.compile(r"\s*CREATE TABLE (\w+)")
#: Values for sample rows, by name and type or by type; `n` is the number of the row.
_SAMPLES: Final = {
    "app text": "'app'",
    "collection bigint": "1",
    "text": "'sample ' || n",
    "bigint": "n",
    "double precision": "n",
    "bytea": "''",
    "tsvector": "'sample'",
    "USER-DEFINED": "'[1]'",
}
#: Tables without a tenant: they hold process ids and times.
_OF_ALL: Final = frozenset({"workers"})


async def migrate(url: str, *, schema: str = "weft") -> int | None:
    """Create the tables, or change those of an older version; return the version that was there.

    Raises StoreError if the tables are of a newer version, or the role may not create them.
    """
    database = Database(url, schema)
    connection = await database.connect(search_path="pg_catalog")
    try:
        await connection.execute("BEGIN")
        # One process at a time.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"weft {schema}")
        found = await _version(connection, schema)
        if found is None:
            await _create_reader(connection)
            await _create(connection, schema)
        elif found > VERSION:
            raise _newer(database, found)
        elif found < VERSION:
            await _upgrade(connection, schema, found)
        await connection.execute("COMMIT")
    except asyncpg.InsufficientPrivilegeError as error:
        raise StoreError(
            f"store {database.name}: {error}; let an administrator run `weft store migrate`, or run"
            f" first: CREATE ROLE {READER}; GRANT {READER} TO the role of WEFT_STORE"
        ) from error
    except FAILURES as error:
        raise database.explain(error) from error
    finally:
        await end(connection)
    return found


def search_path(schema: str) -> str:
    """Return where tables are, and the extension pgvector."""
    return f"{schema}, public, extensions"


async def check_version(database: Database, connection: Connection) -> None:
    """Raise StoreError unless the tables are there and of this version."""
    try:
        found = await _version(connection, database.schema)
    except FAILURES as error:
        raise database.explain(error) from error
    if found is None:
        raise StoreError(f"store {database.name} has no tables yet; run `weft store migrate`")
    if found > VERSION:
        raise _newer(database, found)
    if found < VERSION:
        raise StoreError(
            f"store {database.name} has tables of version {found}, and this Weft needs {VERSION};"
            " stop the processes that use it, then run `weft store migrate`"
        )


def _newer(database: Database, found: int) -> StoreError:
    return StoreError(
        f"store {database.name} has tables of version {found}, and this Weft knows up to {VERSION};"
        " use the Weft that wrote it"
    )


async def _version(connection: Connection, schema: str) -> int | None:
    there = await connection.fetch("SELECT to_regclass($1) IS NOT NULL", f"{schema}.schema_version")
    if not there[0][0]:
        return None
    return (await connection.fetch(f"SELECT version FROM {schema}.schema_version"))[0][0]  # noqa: S608 - ours


async def _create_reader(connection: Connection) -> None:
    """Create the role that reads, and let this role use it."""
    known = await connection.fetch("SELECT 1 FROM pg_roles WHERE rolname = $1", READER)
    if not known:  # Roles belong to all databases of a server: another one may just create it.
        await connection.execute(
            f"DO $$ BEGIN CREATE ROLE {READER} NOLOGIN; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
    member = await connection.fetch("SELECT pg_has_role(current_user, $1, 'MEMBER')", READER)
    if not member[0][0]:
        await connection.execute(f"GRANT {READER} TO CURRENT_USER")


async def _create(connection: Connection, schema: str) -> None:
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    await connection.execute(f"SET LOCAL search_path = {search_path(schema)}")
    vectors = await _create_pgvector(connection)
    texts = (*TABLES, *DOCUMENT_TABLES, *COLLECTION_TABLES, *(PGVECTOR if vectors else ()))
    tables = [found[1] for sql in texts if (found := _TABLE.match(sql))]
    for sql in (*texts, *POSTGRES_WORDS):
        await connection.execute(table_text(sql))
    await _teach_planner(connection, tables)
    if vectors:  # After the sample rows, which refer to nothing.
        await connection.execute(
            "ALTER TABLE embeddings ADD FOREIGN KEY (passage) REFERENCES passages ON DELETE CASCADE"
        )
    await connection.execute("CREATE TABLE schema_version (version bigint NOT NULL)")
    await connection.execute("INSERT INTO schema_version VALUES ($1)", VERSION)
    await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {READER}")
    await connection.execute(f"GRANT SELECT ON words TO {READER}")
    await _let_read(connection, tables)


async def _upgrade(connection: Connection, schema: str, found: int) -> None:
    """Change the tables of an older version, step by step."""
    await connection.execute(f"SET LOCAL search_path = {search_path(schema)}")
    texts = list(chain.from_iterable(POSTGRES_MIGRATIONS[found - 1 :]))
    for sql in texts:
        await connection.execute(table_text(sql))
    await _let_read(connection, [new[1] for sql in texts if (new := _TABLE.match(sql))])
    await connection.execute("UPDATE schema_version SET version = $1", VERSION)


async def _let_read(connection: Connection, tables: list[str]) -> None:
    """Let the role that reads see the rows of one tenant."""
    for table in tables:
        await connection.execute(f"GRANT SELECT ON {table} TO {READER}")
        if table not in _OF_ALL:
            await connection.execute(
                f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
                f"CREATE POLICY tenant ON {table} FOR SELECT TO {READER}"
                " USING (app = current_setting('weft.app', true))"
            )


async def _create_pgvector(connection: Connection) -> bool:
    """Create the extension pgvector if the role may; tell whether there is a usable one.

    Versions before 0.8 have no iterative scan.
    """
    if await connection.fetch("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        await connection.execute(
            "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS vector SCHEMA public; "
            "EXCEPTION WHEN insufficient_privilege OR invalid_schema_name THEN NULL; END $$"
        )
    found = await connection.fetch(
        "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
        " AND string_to_array(extversion, '.')::int[] >= '{0,8}' AND to_regtype('halfvec') > 0"
    )
    return bool(found)


async def _teach_planner(connection: Connection, tables: list[str]) -> None:
    """Give the planner statistics of sample rows, which are removed again.

    Without any it takes all indexes that begin with the tenant for equal. A store that fills
    quickly would look through all rows of a tenant until the server has counted them.
    """
    for table in tables:
        columns = await connection.fetch(
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'NO'",
            table,
        )
        names = ", ".join(name for name, _ in columns)
        values = ", ".join(
            _SAMPLES.get(f"{name} {type_}", _SAMPLES[type_]) for name, type_ in columns
        )
        await connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM generate_series(1, 300) AS n"  # noqa: S608
        )
    await connection.execute(f"ANALYZE {', '.join(tables)}")
    for table in tables:
        await connection.execute(f"DELETE FROM {table}")  # noqa: S608
