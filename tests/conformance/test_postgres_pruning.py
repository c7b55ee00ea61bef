"""Removing runs from PostgreSQL while another process writes: it has more than one writer."""

import asyncio
from contextlib import asynccontextmanager

import asyncpg

from support.postgres_stores import store_place
from weft.adapters.sql.postgres import text
from weft.adapters.sql.queries import save_snapshot
from weft.engine.events import ToolReturned
from weft.engine.rows import Snapshot
from weft.testing.store.samples import APP, ME, OPERATOR, SCOPE, SampleRun

LARGE = ToolReturned("c", "x" * 40_000)
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@asynccontextmanager
async def transaction_under_way(place, work):
    """Keep the transaction of some work from ending until the block has ended.

    A deferred trigger waits, as the transaction ends, for a lock that is held here.
    """
    await place.sql(
        "CREATE FUNCTION wait_at_the_end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.batch <> '' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF; "
        "RETURN NULL; END $$"
    )
    await place.sql(
        "CREATE CONSTRAINT TRIGGER wait AFTER INSERT OR UPDATE ON runs"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_the_end()"
    )
    lock = await asyncpg.connect(place.url)
    await lock.execute("SELECT pg_advisory_lock(7)")
    writing = asyncio.create_task(work)
    try:
        await blocked(lock, 1)
        yield lock
    finally:
        await lock.close()
        await writing


async def blocked(connection, count, *unless):
    """Return when so many transactions wait for a lock, or a task has ended."""
    async with asyncio.timeout(20):
        while not any(task.done() for task in unless):
            if await connection.fetchval(WAITING) >= count:
                return
            await asyncio.sleep(0.02)


async def pruned(store):
    return await store.prune(OPERATOR, ended_before=1 << 50, dry_run=False)


async def test_value_that_a_batch_uses_just_now_is_not_removed(postgres_database):
    async with store_place(postgres_database, is_new=True) as place:
        store, other = await place.open(), await place.open()
        await store.append(SampleRun("old").batch(LARGE, status="ended", at=5), owner=ME)
        batch = SampleRun("new").batch(LARGE)
        async with transaction_under_way(place, other.append(batch, owner=ME)) as lock:
            pruning = asyncio.create_task(pruned(store))
            await blocked(lock, 2, pruning)
        assert (await pruning).runs == 1
        [event] = await store.read(SCOPE, "new")
        assert event.data == LARGE


async def test_package_of_a_run_that_begins_just_now_is_not_removed(postgres_database):
    async with store_place(postgres_database, is_new=True) as place:
        store, other = await place.open(), await place.open()
        ended = SampleRun("old").batch(status="ended", at=5, package=b"package")
        await store.append(ended, owner=ME)
        batch = SampleRun("new").batch(package=b"package")
        async with transaction_under_way(place, other.append(batch, owner=ME)) as lock:
            pruning = asyncio.create_task(pruned(store))
            await blocked(lock, 2, pruning)
        assert (await pruning).runs == 1
        assert await store.package(APP, batch.row.digest) == b"package"


async def test_snapshot_that_is_saved_late_does_not_outlive_its_run(postgres_database):
    """A new run of the same id would begin with the state of the old one."""
    async with store_place(postgres_database) as place:
        store = await place.open()
        run = SampleRun("r1")
        await store.append(run.batch(), owner=ME)
        call = next(save_snapshot(APP, "r1", Snapshot(1, "1", run.digest, b"state")))
        [statement] = call if isinstance(call, list) else [call]
        saving = await asyncpg.connect(place.url)
        try:
            await saving.execute(f"SET search_path = {place.schema}; BEGIN")
            sql, values = text.statement_text(statement)
            await saving.fetch(sql, *values)

            async def end_and_prune():
                await store.append(run.batch(status="ended", at=5), owner=ME)
                await pruned(store)

            ending = asyncio.create_task(end_and_prune())
            await blocked(saving, 1, ending)
            await saving.execute("COMMIT")
            await asyncio.wait_for(ending, 20)
        finally:
            await saving.close()
        assert await store.snapshot(APP, "r1") is None
