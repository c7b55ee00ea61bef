"""What only a store with a server has: lost connections, notifications, roles, and its tables."""

import asyncio
import inspect
import re
import secrets
from contextlib import asynccontextmanager

import asyncpg
import pytest

from support.postgres_server import PostgresServer
from support.postgres_stores import store_place
from weft.adapters.live.merged import MergedLiveStream
from weft.adapters.nats.signal import NatsSignal
from weft.adapters.sql import queries, queue
from weft.adapters.sql.postgres import schema, text
from weft.adapters.sql.postgres.connections import BY_KEY, Line
from weft.adapters.sql.postgres.schema import migrate
from weft.adapters.sql.postgres.store import _IN_ORDER, READER, PostgresStore
from weft.adapters.sql.tables import SQLITE_MIGRATIONS, VERSION
from weft.adapters.sql.write_statements import LOCK, UPDATE_RUNS
from weft.adapters.vault import EncryptedVault
from weft.engine.events import MessageShown, RequestAnswered
from weft.engine.rows import Mail
from weft.errors import AlreadyAnswered, RunOwned, StoreError
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
from weft.testing.ports.live import LIVE_CHECKS
from weft.testing.ports.vault import ANSWER, VAULT_CHECKS
from weft.testing.ports.waiting import until
from weft.testing.store.samples import SCOPE, SampleRun

RUN = ("shop", "r1")
OPERATOR = Scope.operator("shop")

#: Seconds for what comes soon, on a machine that may be busy.
PATIENCE = 20


def named(check) -> str:
    return check.__name__


def held(run: SampleRun, *data):
    return run.batch(*data)._replace(held=True)


def mail(number: int, to: str = "r1") -> Mail:
    return Mail("shop", to, f"m{number}", "user:ann", MessageShown(f"{number}"))


# Other processes


async def listening(*workers):
    """Let workers live, and wait until they hear notifications."""
    for store, name in workers:
        await store.beat(name)
        assert await store.wait(PATIENCE)  # What was missed before is a reason to look.


@asynccontextmanager
async def waiting(*stores):
    """Let stores wait; yield a function that returns those that are woken, at least one."""
    waits = {asyncio.create_task(store.wait(PATIENCE)): store for store in stores}
    await asyncio.sleep(0.05)

    async def woken():
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.2)  # Another one would be woken at the same time.
        return [store for wait, store in waits.items() if wait.done() and wait.result()]

    try:
        yield woken
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def test_mail_wakes_the_owner_of_the_run(postgres_database):
    async with store_place(postgres_database) as place:
        gateway, owner, other = [await place.open() for _ in range(3)]
        await owner.append(held(SampleRun("r1")), owner="w1")
        await listening((owner, "w1"), (other, "w2"))
        async with waiting(owner, other) as woken:
            await gateway.put(mail(1))
            assert await woken() == [owner]
        assert (await owner.claim("w1")).runs == [RUN]


async def test_free_run_wakes_one_living_worker(postgres_database):
    async with store_place(postgres_database) as place:
        gateway, dead, one, two = [await place.open() for _ in range(4)]
        await dead.beat("dead")
        await place.sql("UPDATE workers SET seen_at = 0")
        await listening((one, "w1"), (two, "w2"))
        for number in range(5):
            async with waiting(one, two) as woken:
                await gateway.append(SampleRun(f"r{number}").batch()._replace(due_at=0), owner="")
                assert len(await woken()) == 1


async def test_run_becomes_due_while_no_worker_lives(postgres_database):
    async with store_place(postgres_database) as place:
        gateway = await place.open()
        await gateway.append(SampleRun("r1").batch()._replace(due_at=0), owner="")
        assert await gateway.put(mail(1)) == "r1"
        worker = await place.open()
        assert (await worker.claim("w1")).runs == [RUN]


async def test_worker_of_the_same_process_is_woken_without_a_notification(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        await listening((store, "w1"))
        store._listener._channels.clear()
        waiting = asyncio.create_task(store.wait(PATIENCE))
        await asyncio.sleep(0.05)
        await store.append(SampleRun("r1").batch()._replace(due_at=0), owner="")
        assert await waiting


async def test_nats_wakes_the_owner_of_the_run(postgres_database, nats_url):
    name = secrets.token_hex(4)
    async with store_place(postgres_database) as place:
        signals = [NatsSignal(nats_url, name=name) for _ in range(2)]
        await until(lambda: all(signal.is_ready for signal in signals), "connections to NATS")
        gateway, worker = [await place.open(signal=signal) for signal in signals]
        await worker.append(held(SampleRun("r1")), owner="w1")
        await worker.beat("w1")
        waiting = asyncio.create_task(worker.wait(PATIENCE))
        await asyncio.sleep(0.05)
        await gateway.put(mail(1))
        assert await waiting


async def test_follower_gets_events_of_another_process(postgres_database):
    async with store_place(postgres_database) as place:
        writer, reader = await place.open(), await place.open()
        run = SampleRun("r1")
        await writer.append(held(run), owner="w1")
        events = reader.follow(SCOPE, "r1")
        assert (await anext(events)).seq == 1
        for seq in range(2, 5):
            following = asyncio.create_task(anext(events))
            await asyncio.sleep(0.02)
            batch = held(run)
            await repeated(lambda batch=batch: writer.append(batch, owner="w1"))
            assert (await asyncio.wait_for(following, PATIENCE)).seq == seq
            if seq == 3:  # What is written while nothing is heard is read afterwards.
                await place.end_connections()
        await events.aclose()


async def test_follower_waits_without_a_query(postgres_database):
    async with store_place(postgres_database) as place:
        writer, reader = await place.open(), await place.open()
        run = SampleRun("r1")
        await writer.append(held(run), owner="w1")
        events = reader.follow(SCOPE, "r1")
        await anext(events)
        following = asyncio.create_task(anext(events))
        activity = "SELECT max(query_start) FROM pg_stat_activity WHERE application_name = 'weft'"
        queries_at = []
        for _ in range(10):  # It may not wait yet at first.
            queries_at += await place.sql(activity)
            await asyncio.sleep(0.5)
            if queries_at[-1:] == await place.sql(activity):
                break
        else:
            raise AssertionError(f"the follower queries while it waits: {queries_at}")
        await writer.append(held(run), owner="w1")
        await following
        await events.aclose()


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=named)
async def test_live_stream(check, postgres_database):
    async with store_place(postgres_database) as place:
        streams = [MergedLiveStream((await place.open()).bus()) for _ in range(2)]
        heard = [stream._bus._listener for stream in streams]
        await until(lambda: all(len(one._heard) == 2 for one in heard), "channels")

        async def opened():
            return tuple(streams)

        await check(opened)


@pytest.mark.parametrize("check", VAULT_CHECKS, ids=named)
async def test_vault(check, postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()

        async def opened():
            return EncryptedVault(store, bytes(32))

        await check(opened)


async def test_secrets_are_gone_when_the_run_has_ended(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        vault = EncryptedVault(store, bytes(32))
        run = SampleRun("r1")
        await store.append(held(run), owner="w1")
        await vault.put(RUN, "q", ANSWER)
        await vault.put(("shop", "r2"), "q", ANSWER)
        await store.append(run.batch(status="ended"), owner="w1")
        assert await place.sql("SELECT run FROM secret_answers") == [("r2",)]


# Lost connections


@asynccontextmanager
async def lost_answers(store: PostgresStore, statement: str):
    """Perform a statement of the writer once, and lose the connection before its answer."""
    real = Line.use
    lost = []

    @asynccontextmanager
    async def use(self):
        async with real(self) as connection:
            execute = connection.execute

            async def lose(query, *values):
                done = await execute(query, *values)
                if query == statement and not lost:
                    lost.append(query)
                    raise ConnectionResetError("the answer was lost")
                return done

            yield _Losing(connection, lose)

    store._writer.use = use.__get__(store._writer)
    try:
        yield lost
    finally:
        del store._writer.use


class _Losing:
    def __init__(self, connection, execute):
        self._connection = connection
        self.execute = execute

    def __getattr__(self, name):
        return getattr(self._connection, name)


async def test_batch_whose_answer_was_lost_is_not_written_twice(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        run = SampleRun("r1")
        await store.append(held(run), owner="w1")
        batch = held(run)
        async with lost_answers(store, "COMMIT"):
            with pytest.raises(StoreError) as raised:
                await store.append(batch, owner="w1")
            assert (raised.value.uncertain, raised.value.retryable) == (True, True)
            assert await store.append(batch, owner="w1") is False
        assert [event.seq for event in await store.read(SCOPE, "r1")] == [1, 2]


async def test_mail_whose_answer_was_lost_is_not_delivered_twice(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        run = SampleRun("r1")
        first = run.batch(changes=(run.request("q1"),))._replace(held=True)
        await store.append(first, owner="w1")
        answer = mail(1)._replace(data=RequestAnswered("q1", "yes", "ann"), request="q1")
        async with lost_answers(store, "COMMIT"):
            with pytest.raises(StoreError) as raised:
                await store.put(answer)
            assert raised.value.uncertain
            assert await store.put(answer) == "r1"
        assert len(await store.pending(*RUN)) == 1
        with pytest.raises(AlreadyAnswered):
            await store.put(answer._replace(id="m2"))


async def test_connection_lost_before_the_end_writes_nothing(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        run = SampleRun("r1")
        await store.append(held(run), owner="w1")
        batch = held(run)
        async with lost_answers(store, "BEGIN"):
            with pytest.raises(StoreError) as raised:
                await store.append(batch, owner="w1")
            assert (raised.value.uncertain, raised.value.retryable) == (False, True)
        assert len(await store.read(SCOPE, "r1")) == 1
        assert await store.append(batch, owner="w1") is False


async def repeated(attempt):
    """Repeat what fails because of a lost connection."""
    for _ in range(3):
        try:
            return await attempt()
        except StoreError as error:
            if not error.retryable:
                raise
    raise AssertionError("the connection does not come back")


async def test_store_recovers_after_all_connections_ended(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        run = SampleRun("r1")
        for _ in range(3):
            batch = held(run)
            await repeated(lambda batch=batch: store.append(batch, owner="w1"))
            assert (await repeated(lambda: store.beat("w1"))).alive
            assert len(await repeated(lambda: store.read(SCOPE, "r1"))) == batch.expected + 1
            await place.end_connections()


async def test_store_waits_for_a_server_that_restarts():
    server = PostgresServer.create()
    try:
        async with store_place(server.url, is_new=True) as place:
            store = await place.open()
            run = SampleRun("r1")
            await store.append(held(run), owner="w1")
            server.stop("immediate")
            batch = held(run)
            with pytest.raises(StoreError, match=r"lost|reached") as raised:
                await store.append(batch, owner="w1")
            assert raised.value.retryable
            with pytest.raises(StoreError, match="cannot be reached"):
                await store.append(batch, owner="w1")
            assert not store.is_connected
            with pytest.raises(StoreError, match="start the server, or correct WEFT_STORE"):
                await place.open()
            server.start()
            assert await store.append(batch, owner="w1") is False
            assert store.is_connected
            assert len(await store.read(SCOPE, "r1")) == 2
    finally:
        server.remove()


async def test_writer_that_is_stopped_loses_its_locks(postgres_database):
    async with store_place(postgres_database) as place:
        stopped, store = await place.open(), await place.open()
        run = SampleRun("r1")
        await store.append(held(run), owner="w1")
        async with stopped._writer.use() as connection:
            begun = asyncio.get_running_loop().time()
            await connection.execute("BEGIN")
            statement, values = text.statement_text(LOCK([RUN]))
            await connection.fetch(statement, *values)
            await store.append(held(run), owner="w1")
            assert 1.5 <= asyncio.get_running_loop().time() - begun < PATIENCE
            connection.terminate()


# Roles


READS = {
    "read": lambda store: store.read(OTHER, "r1"),
    "run": lambda store: store.run(OTHER, "r1"),
    "named": lambda store: store.named("other", "a name"),
    "runs": lambda store: store.runs(OTHER),
    "open_run": lambda store: store.open_run("other", "a name"),
    "runs that run": lambda store: store.runs(OTHER, status="running"),
    "runs of a workflow": lambda store: store.runs(OTHER, workflow="Support"),
    "runs of a user": lambda store: store.runs(Scope("other", "ann")),
    "requests": lambda store: store.requests(OTHER),
    "requests of a run": lambda store: store.requests(OTHER, run="r1"),
    "requests of a user": lambda store: store.requests(Scope("other", "ann")),
    "carried": lambda store: store.carried(Scope("other", "ann"), "Support"),
    "completed": lambda store: store.completed(OTHER, ["Support"]),
    "package": lambda store: store.package("other", "digest-1"),
    "pending": lambda store: store.pending("other", "r1"),
    "snapshot": lambda store: store.snapshot("other", "r1"),
    "secrets": lambda store: store.secrets(("other", "r1"), ""),
    "artifacts": lambda store: store.artifacts(
        ArtifactQuery("other", "B", None, 0, None), count=True
    ),
    "consumed": lambda store: store.consumed("other", "B", owners=None),
    "prune": lambda store: store.prune(OTHER, ended_before=1 << 60, dry_run=True),
    "record": lambda store: store.record("other", "key", "k1"),
    "records": lambda store: store.records("other", "key"),
}
OTHER = Scope.operator("other")


async def fill(place, store: PostgresStore) -> None:
    """Write something for every list, all of the tenant shop."""
    run = SampleRun("r1")
    first = run.batch(changes=(run.request("q1"), run.carried("color", "red")), package=b"package")
    await store.append(first._replace(row=first.row._replace(name="a name")), owner="w1")
    await store.put(mail(1))
    await store.append(SampleRun("r2").batch(status="ended"), owner="w1")
    await store.put_secret(RUN, "q1", b"secret")
    await store.add_record("shop", "key", "k1", {})
    sample = "('shop', 'r1', 1, 'a', 'd', 'x')"
    await place.sql(f"INSERT INTO snapshots VALUES {sample}".replace("'x'", "'\\x00'"))
    columns = ", ".join(
        ["'shop'", "'r1'", "1", "'B'", *["'x'"] * 5, "1", "1", *["'public'"] * 3, "''"]
    )
    await place.sql(f"INSERT INTO artifacts VALUES ({columns})")
    await place.sql("INSERT INTO consumed_artifacts VALUES ('shop', 'r1', 1, 'a', 'x', 'B', 1, '')")


def test_every_route_that_reads_is_tried():
    methods = inspect.getmembers(PostgresStore, inspect.isfunction)
    reading = {name for name, method in methods if "self._ask(" in inspect.getsource(method)}
    assert reading == {route.split()[0] for route in READS}


@pytest.fixture
def forgotten_filters(monkeypatch):
    """Every statement forgets to compare the tenant with the one that asks."""
    real = text._text.__wrapped__

    def forget(statement, types, start):
        found = real(statement, types, start)
        return re.sub(r"(?:\b\w\.)?\bapp = (\$\d+)::text", r"\1::text IS NOT NULL", found)

    monkeypatch.setattr(text, "_text", forget)


@pytest.mark.parametrize("route", READS)
async def test_forgotten_tenant_filter_shows_nothing(route, postgres_database, request):
    async with store_place(postgres_database) as place:
        store = await place.open()
        await fill(place, store)
        request.getfixturevalue("forgotten_filters")
        reader = await place.open()
        found = await READS[route](reader)
        assert not found or not any(found) or found == (0, 0, 0), found


@pytest.mark.parametrize("route", READS)
async def test_without_the_role_a_forgotten_filter_would_show_rows(
    route, postgres_database, request
):
    """The test before can fail: as the owner of the tables, every route finds foreign rows."""
    async with store_place(postgres_database) as place:
        store = await place.open()
        await fill(place, store)
        request.getfixturevalue("forgotten_filters")
        reader = await place.open()
        reader._readers = [Line(reader._database)]
        try:
            found = await READS[route](reader)
        except StoreError as error:  # It has read an artifact, but not its event.
            found = "cannot be read" in str(error)
            assert found
            return
        assert found
        assert found != (0, 0, 0)
        assert any(found)


async def test_reader_may_only_select(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        await fill(place, store)
        async with store._readers[0].use() as connection:
            assert await connection.fetch("SELECT * FROM runs") == []
            await connection.execute("SELECT set_config('weft.app', 'shop', false)")
            assert len(await connection.fetch("SELECT * FROM runs")) == 2
            for statement in (
                "DELETE FROM runs",
                "UPDATE runs SET user_id = 'x'",
                "INSERT INTO workers VALUES ('x', 1)",
                "SELECT * FROM schema_version",
                "CREATE TABLE mine (a text)",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)


async def test_readers_see_one_tenant_after_the_other(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        scopes = [Scope.operator(f"app{number}") for number in range(6)]
        for scope in scopes:
            await store.append(SampleRun("r1", app=scope.app).batch(), owner="w1")
        found = await asyncio.gather(*(store.runs(scope) for scope in scopes * 10))
        assert [[row.app for row in rows] for rows in found] == [[item.app] for item in scopes * 10]


# Tables


async def test_tables_that_are_missing_or_of_another_version_are_refused(postgres_database):
    async with store_place(postgres_database, is_new=True) as place:
        assert await migrate(place.url, schema=place.schema) == VERSION
        await place.sql("UPDATE schema_version SET version = version + 1")
        newer = f"version {VERSION + 1}, .* knows up to {VERSION}; use the Weft that wrote it"
        for attempt in (place.open(), migrate(place.url, schema=place.schema)):
            with pytest.raises(StoreError, match=newer):
                await attempt
        await place.sql("UPDATE schema_version SET version = 0")
        with pytest.raises(StoreError, match=r"of version 0.* run `weft store migrate`"):
            await place.open()
        with pytest.raises(StoreError, match="has no tables yet; run `weft store migrate`"):
            await PostgresStore.open(place.url, schema="nothing")


async def test_tables_of_an_older_version_are_migrated(postgres_database, monkeypatch):
    steps = (
        *schema.POSTGRES_MIGRATIONS,
        ("CREATE TABLE notes (app text NOT NULL, note text NOT NULL)",),
        ("INSERT INTO notes VALUES ('shop', 'a'), ('bank', 'b')", "ALTER TABLE runs ADD x bigint"),
    )
    async with store_place(postgres_database, is_new=True) as place:
        await fill(place, await place.open())
        monkeypatch.setattr(schema, "VERSION", VERSION + 2)
        older = f"version {VERSION}, .* needs {VERSION + 2}; stop .* run `weft store migrate`"
        with pytest.raises(StoreError, match=older):
            await place.open()
        broken = (*steps[:-1], (*steps[-1], "ALTER TABLE nothing ADD x bigint"))
        monkeypatch.setattr(schema, "POSTGRES_MIGRATIONS", broken)
        with pytest.raises(StoreError, match='relation "nothing" does not exist'):
            await migrate(place.url, schema=place.schema)
        assert await place.sql("SELECT version FROM schema_version") == [(VERSION,)]
        monkeypatch.setattr(schema, "POSTGRES_MIGRATIONS", steps)
        assert await migrate(place.url, schema=place.schema) == VERSION
        assert await migrate(place.url, schema=place.schema) == VERSION + 2
        store = await place.open()
        assert len(await store.runs(OPERATOR)) == 2
        async with store._readers[0].use() as connection:
            await connection.execute("SELECT set_config('weft.app', 'shop', false)")
            rows = await connection.fetch("SELECT note FROM notes")
    assert [note for (note,) in rows] == ["a"], "a new table is under row-level security"


def test_every_version_has_a_step():
    assert len(SQLITE_MIGRATIONS) == len(schema.POSTGRES_MIGRATIONS) == VERSION - 1


async def test_server_that_is_down_is_reported_without_its_password():
    with pytest.raises(StoreError) as raised:
        await PostgresStore.open("postgresql://me:hidden@127.0.0.1:1/x")
    assert "store postgresql://127.0.0.1/x cannot be reached" in str(raised.value)
    assert "hidden" not in str(raised.value)


async def test_new_tables_are_read_by_their_keys(postgres_database):
    """A planner without statistics would look through all runs of a tenant for each of them."""
    async with store_place(postgres_database, is_new=True) as place:
        store = await place.open()
        runs = [SampleRun(f"run {number}") for number in range(300)]
        await asyncio.gather(*(store.append(held(run), owner="w1") for run in runs))
        keys = [("shop", run.run) for run in runs]
        connection = await asyncpg.connect(
            place.url, server_settings={**BY_KEY, "search_path": place.schema}
        )
        statement, values = text.statement_text(LOCK(keys))
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values))
        await connection.close()
        assert "runs_pkey" in plan, plan
        assert "work_pkey" in plan, plan


async def test_new_tables_are_listed_in_the_order_of_an_index(postgres_database):
    """A planner without statistics would sort all rows of a tenant to return some of them."""
    listed = {
        "runs": queries.find_runs(OPERATOR, None, None, None, 50),
        "waiting": queries.find_runs(OPERATOR, "waiting", None, None, 50),
        "runs of a user": queries.find_runs(SCOPE, None, None, None, 50),
        "requests": queries.find_requests(OPERATOR, None, None, 50),
        "due": queue.next_due(),
    }
    async with store_place(postgres_database, is_new=True) as place:
        store = await place.open()
        runs = [SampleRun(f"run {number}", user=f"{number}") for number in range(300)]
        batches = [run.batch(status="waiting", changes=[run.request("q")]) for run in runs]
        await asyncio.gather(*(store.append(batch, owner="w1") for batch in batches))
        connection = await asyncpg.connect(
            place.url, server_settings={**_IN_ORDER, "search_path": place.schema, "role": READER}
        )
        plans = {}
        for name, query in listed.items():
            statement, values = text.statement_text(next(query))
            rows = await connection.fetch(f"EXPLAIN {statement}", *values)
            plans[name] = "\n".join(row[0] for row in rows).replace("Sort Key", "")
        await connection.close()
        assert [name for name, plan in plans.items() if "Index" not in plan] == [], plans
        assert [name for name, plan in plans.items() if "Sort" in plan] == [], plans


async def test_batches_change_runs_without_new_index_entries(postgres_database):
    async with store_place(postgres_database, is_new=True) as place:
        store = await place.open()
        run = SampleRun("r1")
        for _ in range(20):
            await store.append(held(run), owner="w1")
        await store.close()
        counted = (
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
            " WHERE schemaname = $1 AND relname = 'runs'"
        )
        updated = in_place = 0
        for _ in range(200):  # The server counts some time after the end of a connection.
            ((updated, in_place),) = await place.sql(counted, place.schema)
            if updated == 19:
                break
            await asyncio.sleep(0.02)
        assert updated == 19
        assert in_place >= 15


# Values


@pytest.mark.parametrize("words", ["a\0b", "a\x1fb\x1ec", "", "🎉 'quoted' \\ \"text\""])
async def test_previews_may_have_any_character(words, postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        batches = [SampleRun(f"r{number}").batch() for number in range(3)]
        changed = [one._replace(row=one.row._replace(preview=words)) for one in batches]
        await asyncio.gather(*(store.append(batch, owner="w1") for batch in changed))
        shown = {row.preview for row in await store.runs(SCOPE)}
        assert shown == {re.sub("[\0\x1e\x1f]", "\ufffd", words)}


async def test_unusual_ids_do_not_harm_others_of_their_group(postgres_database):
    async with store_place(postgres_database) as place:
        store = await place.open()
        names = ["a\x1fb", "\x1e", "a'b", 'a"b', "é", "a,b{}", "x" * 300]
        bad = "a\0b"
        runs = [SampleRun(name).batch() for name in [*names, bad]]
        outcomes = await asyncio.gather(
            *(store.append(batch, owner="w1") for batch in runs), return_exceptions=True
        )
        assert outcomes[:-1] == [False] * len(names)
        assert isinstance(outcomes[-1], StoreError)
        assert "cannot be stored" in str(outcomes[-1])
        assert sorted(row.run for row in await store.runs(SCOPE)) == sorted(names)


async def test_second_owner_is_refused(postgres_database):
    async with store_place(postgres_database) as place:
        one, two = await place.open(), await place.open()
        run = SampleRun("r1")
        await one.append(held(run), owner="w1")
        with pytest.raises(RunOwned):
            await two.append(held(run), owner="w2")


def test_statements_are_updated_by_their_key():
    statement, _ = text.statement_text(UPDATE_RUNS([("x",) * 22, ("y",) * 22]))
    assert "string_to_array($1::text" in statement
