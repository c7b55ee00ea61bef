"""How a store lies in its file: indexes, blobs, groups, growth, what pruning leaves."""

import asyncio
import sqlite3
import time
from contextlib import closing
from itertools import chain, combinations, product

import pytest

from support.journal_play import look, play
from weft.adapters.sql import SqliteStore, board, prune, queries, queue
from weft.adapters.sql import store as sql_store
from weft.adapters.sql.rows import batch_rows, mail_row
from weft.adapters.sql.sqlite import FORMAT
from weft.adapters.sql.sqlite_database import drive, execute, statement_text
from weft.adapters.sql.statements import Statement
from weft.adapters.sql.write import Append, Put, write_group
from weft.adapters.sqlite_file import open_file
from weft.engine.board.visibility import Identity
from weft.engine.events import ArtifactPublished, MessageShown, ToolReturned, TurnStarted
from weft.engine.events.codec import encode
from weft.engine.rows import ArtifactRow, MailTaken, RequestClosed
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
from weft.testing.store.board_samples import BoardRun
from weft.testing.store.kinds import EVERY_KIND
from weft.testing.store.samples import APP, ME, OPERATOR, SCOPE, SampleRun, mail

LARGE = 8 * 1024


class Planner(sqlite3.Connection):
    """A connection that notes how SQLite goes about each statement before it does it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.plans: list[tuple[str, str]] = []

    def execute(self, sql, values=()):
        if sql.split()[0] in ("SELECT", "DELETE", "INSERT", "UPDATE", "WITH"):
            rows = super().execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            self.plans += [(sql, row[3]) for row in rows]
        return super().execute(sql, values)


def write(connection, *items):
    """Write items in one transaction, and return what became of them."""
    transaction = write_group(items, notify=lambda *_: [], refreshed={}, dead_after=5000)
    return drive(connection, transaction, 10_000)


def append(connection, *batches):
    return write(connection, *(Append(batch_rows(batch, lambda: "new"), ME) for batch in batches))


@pytest.fixture
def planner(tmp_path):
    """A connection to a store with a few of everything."""
    path = str(tmp_path / "store.db")
    open_file(path, FORMAT, busy_seconds=1, durability="normal").close()
    with closing(sqlite3.connect(path, isolation_level=None, factory=Planner)) as connection:
        for number in range(5):
            run = SampleRun(f"r{number}", digest="d", name=f"c{number}")
            asked = [run.request("q"), run.request("p", addressee="role:boss")]
            large = ToolReturned("c", "x" * LARGE)
            append(connection, run.batch(large, changes=asked, package=b"p", held=True))
            letters = [mail(run.run, "m", request="q"), mail(run.name, "n", named=True)]
            puts = [Put(mail_row(letter, lambda: "unused"), None) for letter in letters]
            assert write(connection, *puts) == [run.run, run.run]
            closed = [RequestClosed("q"), RequestClosed("p"), MailTaken("m"), MailTaken("n")]
            append(connection, run.batch(status="ended", changes=closed, at=10))
            append(connection, BoardRun(f"b{number}").writing(*ON_A_BOARD, status="ended"))
        yield connection


#: An artifact that says everything, and an agent that it wakes.
ON_A_BOARD = (
    ArtifactPublished(
        "Idea",
        "x" * LARGE,
        "Ann",
        tags=("t", "u"),
        partition="p",
        visibility={"kind": "labelled", "labels": ["red"]},
        id="named",
    ),
    TurnStarted("Ben", inputs=("named",)),
)

#: What an artifact may be found by.
FILTERS = {
    "types": ("Idea", "Plan"),
    "tags": ("t", "u"),
    "all_tags": ("t",),
    "without_tags": ("v",),
    "producers": ("Ann", "Ben"),
    "correlation": "c1",
    "partition": "p",
    "since": 1,
    "until": 10_000,
    "text": "x",
    "ids": ("named", "b1.1"),
}


def ask(connection, *transactions):
    for transaction in transactions:
        drive(connection, transaction, 10_000)


def ask_boards(connection):
    reader = Identity("Ann", frozenset({"red"}), APP)
    for names in chain([()], combinations(FILTERS, 1), combinations(FILTERS, 2)):
        for order in ("created_at", "-created_at"):
            given = {name: FILTERS[name] for name in names}
            asked = ArtifactQuery(APP, "Board", reader, 9999, ("",), **given, order=order, limit=5)
            ask(connection, board.find_artifacts(asked, count=True))
    for owners, order in product((None, ("",), ("", "user:x")), ("-created_at", "appeared_at")):
        asked = ArtifactQuery(APP, "Board", None, 9999, owners, order=order, after=(5, "r", 1))
        ask(connection, board.find_artifacts(asked, count=True))
    for agent, artifact in product((None, "Ben"), (None, "named")):
        ask(connection, board.find_consumed(APP, "Board", ("",), agent, artifact, 100))


def ask_everything(connection):
    ask_boards(connection)
    for scope in (OPERATOR, SCOPE, Scope(APP, "ann", roles=("boss", "x"))):
        ask(connection, queries.read_events(scope, "r0", 0, None), queries.find_run(scope, "r0"))
        for run, after in product((None, "r0"), (None, (5, "r0", "q"))):
            ask(connection, queries.find_requests(scope, run, after, 50))
        for status, workflow, before in product(
            (None, "running", "waiting", "ended"), (None, "Support"), (None, "r3")
        ):
            ask(connection, queries.find_runs(scope, status, workflow, before, 50))
        ask(connection, queries.find_completed(scope, ("Support", "Sales")))
        ask(connection, prune.would_prune(scope, 10_000))
    ask(
        connection,
        queries.find_named(APP, "c1"),
        queries.find_package(APP, "d"),
        queries.find_snapshot(APP, "r0"),
        queries.find_carried(SCOPE, "Support"),
        queries.find_mail(APP, "r0", 100),
        queries.find_seqs([(APP, f"r{number}") for number in range(5)]),
        queue.claim("w1", 50),
        queue.take("w1", APP, "r0", force=True),
        queue.beat("w1", 5000),
        queue.release("w1", [(APP, "r0"), (APP, "r1")], 0),
        queue.next_due(),
        queue.workload(5000),
        prune.prune_some(OPERATOR, 10_000),
    )


def test_every_query_follows_an_index(planner):
    ask_everything(planner)
    searching = [plan for _, plan in planner.plans if plan.startswith(("SEARCH", "SCAN"))]
    assert len(searching) > 100
    scanned = [(sql, plan) for sql, plan in planner.plans if plan.startswith("SCAN")]
    # Row sets are in the statement; the owners of runs in work are few.
    # So are workers.
    small = (
        "CONSTANT",
        "subquery",
        "workers",
        *(f"SCAN {name}" for name in ("x", "d", "o", "f", "excluded")),
    )
    assert [item for item in scanned if not any(name in item[1] for name in small)] == []


def test_artifacts_need_no_sorting_unless_they_are_few(planner):
    planner.plans.clear()
    ask_boards(planner)
    sorting = [sql for sql, plan in planner.plans if "TEMP B-TREE" in plan]
    assert [sql for sql in sorting if "artifacts_by_id" not in sql] == []
    indexes = {
        word
        for _, plan in planner.plans
        if plan.startswith(("SEARCH a ", "SEARCH t ", "SEARCH consumed_artifacts "))
        for word in plan.split()
        if "_by_" in word
    }
    stored = planner.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    tables = ("artifacts_by", "artifact_tags_by", "consumed_artifacts_by")
    assert indexes == {name for (name,) in stored if name.startswith(tables)}


def test_pages_of_runs_and_requests_need_no_sorting(planner):
    ask_everything(planner)
    lists = [
        (sql, plan)
        for sql, plan in planner.plans
        if ("ORDER BY r.started_at DESC" in sql or "ORDER BY opened_at" in sql)
        and "run = ?" not in sql.replace("r.run = ?", "")
    ]
    assert len(lists) > 100
    assert [sql for sql, plan in lists if "TEMP B-TREE" in plan] == []


#: Open chats of many users, as they lie in the file.
CHATS = """
    WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO requests
    SELECT 'shop', 'r' || i, 'q', 'u' || i, 'chat', 'Helper', NULL, 'null', i, NULL, '[]', '', '',
           CASE i % 10 WHEN 0 THEN 'role:boss' WHEN 1 THEN 'user:u7' ELSE '' END, 0
    FROM n
"""


async def test_open_requests_of_a_user_do_not_cost_more_among_many(tmp_path):
    """The first page of one user's requests among 100,000 chats, against that among 1,000 (S5)."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path, durability="normal")
    costs = []
    for first, last in ((1, 1_000), (1_001, 100_000)):
        look(path, CHATS, first, last)
        for scope in (Scope(APP, "u7", roles=("boss",)), Scope(APP, "u8")):
            times = []
            for _ in range(40):
                started = time.perf_counter()
                found = await store.requests(scope, limit=50)
                times.append(time.perf_counter() - started)
            assert len(found) == (50 if scope.roles else 1)
            costs.append(sorted(times)[5])
    await store.close()
    assert costs[2] < 3 * costs[0], costs
    assert costs[3] < 3 * costs[1], costs


async def test_followers_that_wait_make_no_queries(tmp_path, monkeypatch):
    asked = []
    find, read = queries.find_seqs, queries.read_events
    monkeypatch.setattr(queries, "find_seqs", lambda runs: asked.append(len(runs)) or find(runs))
    monkeypatch.setattr(queries, "read_events", lambda *given: asked.append(1) or read(*given))
    here = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    there = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    runs = [SampleRun(f"r{number}") for number in range(1000)]
    await asyncio.gather(*(here.append(run.batch(), owner=ME) for run in runs))
    followers = [here.follow(SCOPE, run.run, after=1) for run in runs]
    waiting = [asyncio.create_task(anext(follower)) for follower in followers]
    await asyncio.sleep(1)
    while asked:  # Each has read once, and the file was looked at after the last write.
        asked.clear()
        await asyncio.sleep(0.5)
    for _ in range(20):  # What this process writes is known without a query.
        await here.append(runs[0].batch(), owner=ME)
        await asyncio.sleep(0.02)
    assert (await waiting[0]).seq == 2
    await asyncio.sleep(0.5)
    assert asked == []
    # One query finds what another process has written; it is not asked for each run.
    await there.append(runs[5].batch(), owner=ME)
    assert (await asyncio.wait_for(waiting[5], 5)).seq == 2
    assert asked == []
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for store in (here, there):
        await store.close()


async def test_followers_miss_nothing_when_pruned_rows_give_their_numbers_to_others(tmp_path):
    here = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    there = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    kept, gone = SampleRun("kept"), SampleRun("gone")
    await there.append(kept.batch(), owner=ME)
    await there.append(gone.batch(), owner=ME)
    following = [asyncio.create_task(anext(here.follow(SCOPE, "kept", after=1)))]
    while here._last is None or here._last[2] != "gone":  # noqa: ASYNC110 - from outside
        await asyncio.sleep(0.01)
    connection = sqlite3.connect(tmp_path / "store.db")
    with connection:  # One transaction: the newest event is another one under the same number.
        connection.execute("DELETE FROM events WHERE run = 'gone'")
        connection.execute(
            "INSERT INTO events SELECT app, run, 2, at, actor, cause, turn, kind, data "
            "FROM events WHERE run = 'kept'"
        )
        connection.execute("UPDATE runs SET seq = 2 WHERE run = 'kept'")
    connection.close()
    assert (await asyncio.wait_for(following[0], 5)).seq == 2
    for store in (here, there):
        await store.close()


async def test_heartbeats_and_claims_do_not_wait_for_the_disk(tmp_path):
    store = await SqliteStore.open(tmp_path / "store.db")
    statements = []
    store._database._connection.set_trace_callback(statements.append)
    await store.beat("w1")
    await store.claim("w1")
    begins = [number for number, sql in enumerate(statements) if sql == "BEGIN IMMEDIATE"]
    assert len(begins) >= 2
    assert {statements[number - 1] for number in begins} == {"PRAGMA synchronous = NORMAL"}
    await store.append(SampleRun("r1").batch(held=True), owner="w1")
    begins = [number for number, sql in enumerate(statements) if sql == "BEGIN IMMEDIATE"]
    assert statements[begins[-1] - 1] == "PRAGMA synchronous = FULL"
    store._database._connection.set_trace_callback(None)
    await store.close()


async def test_a_message_takes_two_transactions_and_no_read(tmp_path):
    store = await SqliteStore.open(tmp_path / "store.db")
    run = SampleRun("r1")
    await store.append(run.batch(changes=[run.request("q1")], status="waiting"), owner=ME)
    await store.beat(ME)
    statements = []
    store._database._connection.set_trace_callback(statements.append)
    message = run.batch(MessageShown("hi"), changes=[RequestClosed("q1")], held=True, direct=True)
    await store.append(message, owner=ME)
    await store.append(run.batch(changes=[run.request("q2")], status="waiting"), owner=ME)
    store._database._connection.set_trace_callback(None)
    await store.close()
    kinds = [sql.split()[0] for sql in statements]
    each = ["BEGIN", "WITH", *["INSERT"] * 2]
    assert kinds == [*each, "DELETE", "INSERT", "COMMIT", *each, *["INSERT"] * 2, "COMMIT"]


async def test_an_artifact_that_cannot_be_stored_spoils_no_other(tmp_path):
    path = tmp_path / "store.db"
    batches = [BoardRun(f"r{number}").writing(*ON_A_BOARD) for number in range(3)]
    broken = [row._replace(type=None) for row in batches[1].changes if isinstance(row, ArtifactRow)]
    batches[1] = batches[1]._replace(changes=tuple(broken))
    store = await SqliteStore.open(path)
    attempts = (store.append(batch, owner=ME) for batch in batches)
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    await store.close()
    assert [outcome is False for outcome in outcomes] == [True, False, True]
    assert "cannot be stored" in str(outcomes[1])
    for table, count in (("runs", 2), ("artifacts", 2), ("artifact_tags", 4), ("work", 2)):
        assert look(path, f"SELECT count(*) FROM {table}") == [(count,)]


async def test_data_is_apart_when_it_is_large(tmp_path):
    frame = len(encode(ToolReturned("c", "")))
    small = ToolReturned("c", "ä" + "x" * (LARGE - frame - 2))
    large = ToolReturned("c", "ä" + "x" * (LARGE - frame - 1))
    store = await SqliteStore.open(tmp_path / "j.db")
    for name in ("r1", "r2"):
        await store.append(SampleRun(name).batch(small, large, large), owner=ME)
    await store.close()
    sizes = look(tmp_path / "j.db", "SELECT length(data) FROM events ORDER BY seq")
    assert sizes == [(LARGE - 1,)] * 2 + [(65,)] * 4
    assert look(tmp_path / "j.db", "SELECT content FROM blobs") == [(encode(large).decode(),)]


async def test_pruning_leaves_nothing_behind(tmp_path):
    store = await SqliteStore.open(tmp_path / "j.db", durability="normal")
    for number in range(30):
        run = SampleRun(f"r{number}")
        large = ToolReturned("c", f"{number % 3}" * 50_000)
        changes = [run.request("q")]
        batch = run.batch(*EVERY_KIND, large, status="ended", changes=changes, package=b"content")
        await store.append(batch, owner=ME)
        ended = BoardRun(f"b{number}").writing(*ON_A_BOARD, status="ended")
        await store.append(ended, owner=ME)
    await store.prune(SCOPE, ended_before=10_000, dry_run=False)
    await store.close()
    tables = {name for (name,) in look(tmp_path / "j.db", "SELECT name FROM pragma_table_list")}
    for table in tables - {"sqlite_schema", "sqlite_temp_schema", "workers", "carried_values"}:
        assert look(tmp_path / "j.db", f"SELECT count(*) FROM {table}") == [(0,)]


async def test_pruning_makes_way_for_those_who_append(tmp_path, monkeypatch):
    steps = []
    kept = prune.prune_some

    def counted(scope, ended_before):
        some = yield from kept(scope, ended_before)
        steps.append((some.runs, some.events))
        return some

    monkeypatch.setattr(prune, "prune_some", counted)
    store = await SqliteStore.open(tmp_path / "j.db", durability="normal")
    for number in range(5):
        texts = [MessageShown(f"{place}") for place in range(900)]
        long = SampleRun(f"long{number}").batch(*texts, status="ended", at=1)
        await store.append(long, owner=ME)
    short = [SampleRun(f"short{number}").batch(status="ended", at=5) for number in range(130)]
    await asyncio.gather(*(store.append(batch, owner=ME) for batch in short))
    pruned = await store.prune(SCOPE, ended_before=10_000, dry_run=False)
    assert (pruned.runs, pruned.events) == (135, 4630)
    await store.close()
    assert steps == [(3, 2700), (100, 1898), (32, 32), (0, 0)]


async def test_those_who_come_at_the_same_time_share_a_transaction(tmp_path, monkeypatch):
    groups = []

    def counted(items, **options):
        groups.append(len(items))
        return write_group(items, **options)

    monkeypatch.setattr(sql_store, "write_group", counted)
    store = await SqliteStore.open(tmp_path / "j.db")
    runs = [SampleRun(f"r{number:03}") for number in range(300)]

    async def write_four(run):
        for _ in range(4):
            await store.append(run.batch(MessageShown("a"), MessageShown("b")), owner=ME)

    await asyncio.gather(*map(write_four, runs))
    for run in runs:
        assert [event.seq for event in await store.read(SCOPE, run.run)] == list(range(1, 9))
    await store.close()
    assert sum(groups) == 1200
    assert len(groups) <= 8


def test_storage_is_linear_in_events(tmp_path):
    def size(count: int) -> float:
        path = tmp_path / f"{count}.db"

        async def story():
            store = await SqliteStore.open(path, durability="normal")
            run = SampleRun("r1")
            while run.seq < count:
                await store.append(run.batch(*EVERY_KIND), owner=ME)
            await store.close()
            return run.seq

        events = play(story())
        return path.stat().st_size / events

    assert size(10_000) <= 1.1 * size(1_000)


def test_row_sets_of_any_size_are_written_in_few_statements():
    statement = Statement("INSERT INTO things (name) {rows}", "name")
    statement_text.cache_clear()
    for count in range(300):
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE things (name TEXT)")
            rows = [(f"{number}",) for number in range(count)]
            if rows:
                execute(connection, statement(rows), 0)
            assert connection.execute("SELECT name FROM things").fetchall() == rows
    assert statement_text.cache_info().currsize <= 19


async def test_runs_are_released_while_others_append_all_the_time(tmp_path):
    store = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    run = SampleRun("r1")

    async def write_for_ever(name):
        other = SampleRun(name)
        while True:
            await store.append(other.batch(), owner="w2")

    others = [asyncio.create_task(write_for_ever(f"other{number}")) for number in range(5)]
    await asyncio.sleep(0.05)
    held = asyncio.create_task(store.append(run.batch(held=True), owner=ME))
    await asyncio.sleep(0)
    await asyncio.wait_for(store.release(ME, [(APP, "r1")]), 10)
    row = await store.run(SCOPE, "r1")
    assert (held.done(), row.owner) == (True, "")
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await store.close()


async def test_writes_of_others_before_the_first_read_are_noticed(tmp_path):
    here = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    there = await SqliteStore.open(tmp_path / "store.db", durability="normal")
    run = SampleRun("r1")
    await there.append(run.batch(), owner=ME)
    # The thread that looks is busy while another process writes.
    here._database._thread.do(lambda: time.sleep(0.3), lambda *_: None)
    events = here.follow(SCOPE, "r1")
    assert (await anext(events)).seq == 1
    await there.append(run.batch(), owner=ME)
    assert (await asyncio.wait_for(anext(events), 5)).seq == 2
    await events.aclose()
    await asyncio.sleep(0.2)
    # Nor is what was noticed once noticed again by a worker that begins to wait.
    assert [await here.wait(0.2), await here.wait(0.2)] == [False, False]
    for store in (here, there):
        await store.close()
