"""How a SQLite journal lies in its file: indexes, blobs, groups, growth, what pruning leaves."""

import asyncio
import sqlite3
from contextlib import closing
from itertools import chain, combinations, product

import pytest

from support.journal_play import look, play
from weft.adapters.sqlite import SqliteJournal, board, prune, queries, writer
from weft.adapters.sqlite.append import write_group
from weft.adapters.sqlite.rows import written
from weft.adapters.sqlite.schema import open_writer
from weft.engine.board.visibility import Identity
from weft.engine.events import ArtifactPublished, MessageShown, ToolReturned, TurnStarted
from weft.engine.events.codec import encode
from weft.engine.rows import ArtifactRow, DueRow, RequestClosed, TimerGone
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
from weft.testing.journal.board_samples import BoardRun
from weft.testing.journal.kinds import EVERY_KIND
from weft.testing.journal.samples import APP, SCOPE, SampleRun

LARGE = 32 * 1024


class Planner(sqlite3.Connection):
    """A connection that notes how SQLite goes about each statement before it does it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.plans: list[tuple[str, str]] = []

    def execute(self, sql, values=()):
        if sql.split()[0] in ("SELECT", "DELETE", "INSERT"):
            rows = super().execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            self.plans += [(sql, row[3]) for row in rows]
        return super().execute(sql, values)

    def executemany(self, sql, rows):
        for row in rows:
            self.execute(sql, row)


@pytest.fixture
def planner(tmp_path):
    """A connection to a journal with a few of everything."""
    path = tmp_path / "journal.db"
    open_writer(path, "normal", 1).close()
    with closing(sqlite3.connect(path, isolation_level=None, factory=Planner)) as connection:
        closed = (RequestClosed("q"), TimerGone("t"))
        for number in range(5):
            run = SampleRun(f"r{number}", digest="d")
            asked, timer = run.request("q", expires_at=5), run.timer("t", at=6)
            large = ToolReturned("c", "x" * LARGE)
            write_group(connection, [written(run.batch(large, sides=(asked, timer)))], path)
            write_group(connection, [written(run.batch(status="ended", sides=closed))], path)
            board_run = BoardRun(f"b{number}")
            write_group(connection, [written(board_run.writing(*ON_A_BOARD, status="ended"))], path)
        yield connection


#: An artifact that says everything and goes to another run, and an agent that it wakes.
ON_A_BOARD = (
    ArtifactPublished(
        "Idea",
        "x" * LARGE,
        "Ann",
        tags=("t", "u"),
        partition="p",
        visibility={"kind": "labelled", "labels": ["red"]},
        letters={"In/1": "s"},
        wakes={"s": ""},
        id="named",
    ),
    TurnStarted("Ben", inputs=("named",)),
)

#: Whatever an artifact may be found by.
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


def ask_boards(connection):
    reader = Identity("Ann", frozenset({"red"}), APP)
    for names in chain([()], combinations(FILTERS, 1), combinations(FILTERS, 2)):
        for order in ("created_at", "-created_at"):
            given = {name: FILTERS[name] for name in names}
            query = ArtifactQuery(APP, "Board", reader, 9999, **given, order=order, limit=5)
            board.find_artifacts(connection, query, count=True)
    for agent, artifact in product((None, "Ben"), (None, "named")):
        board.find_consumed(connection, APP, "Board", agent, artifact, 100)
    board.find_letters(connection, APP, "In/1", 100)
    board.find_unread(connection)


def ask_everything(connection):
    ask_boards(connection)
    for scope in (Scope(APP), SCOPE):
        queries.read_events(connection, scope, "r0", 0, None)
        queries.find_run(connection, scope, "r0")
        for run in (None, "r0"):
            queries.find_requests(connection, scope, run)
        for status, workflow, before in product((None, "ended"), (None, "Support"), (None, "r3")):
            queries.find_runs(connection, scope, status, workflow, before, 50)
        queries.find_completed(connection, scope, ("Support", "Sales"))
        prune.would_prune(connection, scope, 10_000)
    queries.find_unfinished(connection)
    queries.find_next_due(connection, 10)
    for after in (None, DueRow("timer", "t", "r0", APP, "ann", 5)):
        queries.find_due(connection, 10, after, 100)
    queries.find_package(connection, APP, "d")
    queries.note_beat(connection, "worker-1", 10)
    prune.prune_some(connection, Scope(APP), 10_000)


#: How the last sign of life of the owner of a run is found.
SIGN_OF_LIFE = ("CORRELATED SCALAR SUBQUERY 1", "SEARCH workers USING PRIMARY KEY (owner=?)")


def test_every_query_follows_an_index(planner):
    ask_everything(planner)
    assert len(planner.plans) > 60
    searching = [plan for _, plan in planner.plans if plan.startswith(("SEARCH", "SCAN"))]
    assert len(searching) > 50
    scanned = [it for it in planner.plans if it[1].startswith("SCAN")]
    # The names of one artifact are no table.
    small = ("CONSTANT", "json_each")
    assert [it for it in scanned if not any(name in it[1] for name in small)] == []


def test_artifacts_need_no_sorting_unless_they_are_few(planner):
    ask_boards(planner)
    sorting = [sql for sql, plan in planner.plans if "TEMP B-TREE" in plan]
    assert all("artifacts_by_id" in sql for sql in sorting)
    indexes = {
        word
        for _, plan in planner.plans
        if plan.startswith(("SEARCH a ", "SEARCH t ", "SEARCH consumed "))
        for word in plan.split()
        if "_by_" in word
    }
    stored = planner.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    tables = ("artifacts_by", "artifact_tags_by", "consumed_by")
    assert indexes == {name for (name,) in stored if name.startswith(tables)}


def test_pages_of_runs_need_no_sorting(planner):
    ask_everything(planner)
    lists = [
        plan
        for sql, plan in planner.plans
        if "ORDER BY started_at DESC" in sql and plan not in SIGN_OF_LIFE
    ]
    assert len(lists) == 16
    assert all(it.startswith("SEARCH runs USING INDEX runs_by_") for it in lists)
    pages = [
        plan
        for sql, plan in planner.plans
        if "(started_at, run) <" in sql and plan not in SIGN_OF_LIFE
    ]
    assert all("started_at" in it for it in pages), pages


def test_an_artifact_that_cannot_be_stored_spoils_no_other(tmp_path):
    path = tmp_path / "j.db"
    batches = [BoardRun(f"r{it}").writing(*ON_A_BOARD) for it in range(3)]
    broken = (it._replace(type=None) for it in batches[1].sides if isinstance(it, ArtifactRow))
    batches[1] = batches[1]._replace(sides=tuple(broken))
    with closing(open_writer(path, "normal", 1)) as connection:
        outcomes = write_group(connection, [written(it) for it in batches], path)
    assert [it is None for it in outcomes] == [True, False, True]
    assert "cannot be stored" in str(outcomes[1])
    for table, count in (("runs", 2), ("artifacts", 2), ("artifact_tags", 4), ("letters", 2)):
        assert look(path, f"SELECT count(*) FROM {table}") == [(count,)]


async def test_data_is_apart_when_it_is_large(tmp_path):
    frame = len(encode(ToolReturned("c", "")))
    small = ToolReturned("c", "ä" + "x" * (LARGE - frame - 2))
    large = ToolReturned("c", "ä" + "x" * (LARGE - frame - 1))
    journal = await SqliteJournal.open(tmp_path / "j.db")
    for name in ("r1", "r2"):
        await journal.append(SampleRun(name).batch(small, large, large))
    await journal.close()
    kinds = look(tmp_path / "j.db", "SELECT typeof(data), length(data) FROM events ORDER BY seq")
    assert kinds == [("text", LARGE - 1)] * 2 + [("blob", 32)] * 4
    blobs = look(tmp_path / "j.db", "SELECT length(digest), content FROM blobs")
    assert blobs == [(32, encode(large))]


async def test_pruning_leaves_nothing_behind(tmp_path):
    journal = await SqliteJournal.open(tmp_path / "j.db", durability="normal")
    for number in range(30):
        run = SampleRun(f"r{number}")
        large = ToolReturned("c", f"{number % 3}" * 50_000)
        sides = (run.request("q"), run.timer("t", at=5))
        batch = run.batch(*EVERY_KIND, large, status="ended", sides=sides, package=b"content")
        await journal.append(batch)
        await journal.append(BoardRun(f"b{number}").writing(*ON_A_BOARD, status="ended"))
    await journal.prune(SCOPE, ended_before=10_000, dry_run=False)
    await journal.close()
    tables = {name for (name,) in look(tmp_path / "j.db", "SELECT name FROM pragma_table_list")}
    for table in tables - {"sqlite_schema", "sqlite_temp_schema", "workers", "kept"}:
        assert look(tmp_path / "j.db", f"SELECT count(*) FROM {table}") == [(0,)]


async def test_pruning_makes_way_for_those_who_append(tmp_path, monkeypatch):
    steps = []

    def counted(connection, scope, ended_before):
        some = prune.prune_some(connection, scope, ended_before)
        steps.append((some.runs, some.events))
        return some

    monkeypatch.setattr("weft.adapters.sqlite.journal.prune_some", counted)
    journal = await SqliteJournal.open(tmp_path / "j.db", durability="normal")
    for number in range(5):
        texts = [MessageShown(f"{it}") for it in range(900)]
        await journal.append(SampleRun(f"long{number}").batch(*texts, status="ended", at=1))
    short = [SampleRun(f"short{it}").batch(status="ended", at=5) for it in range(130)]
    await asyncio.gather(*map(journal.append, short))
    pruned = await journal.prune(SCOPE, ended_before=10_000, dry_run=False)
    assert (pruned.runs, pruned.events) == (135, 4630)
    await journal.close()
    assert steps == [(3, 2700), (100, 1898), (32, 32), (0, 0)]


async def test_those_who_come_at_the_same_time_share_a_transaction(tmp_path, monkeypatch):
    groups = []

    def counted(connection, batches, path):
        groups.append(len(batches))
        return write_group(connection, batches, path)

    monkeypatch.setattr(writer, "write_group", counted)
    journal = await SqliteJournal.open(tmp_path / "j.db")
    runs = [SampleRun(f"r{number:03}") for number in range(300)]

    async def write(run):
        for _ in range(4):
            await journal.append(run.batch(MessageShown("a"), MessageShown("b")))

    await asyncio.gather(*map(write, runs))
    for run in runs:
        assert [it.seq for it in await journal.read(SCOPE, run.run)] == list(range(1, 9))
    await journal.close()
    assert sum(groups) == 1200
    assert len(groups) <= 8


def test_storage_is_linear_in_events(tmp_path):
    def size(count: int) -> float:
        path = tmp_path / f"{count}.db"

        async def story():
            journal = await SqliteJournal.open(path, durability="normal")
            run = SampleRun("r1")
            while run.seq < count:
                await journal.append(run.batch(*EVERY_KIND))
            await journal.close()
            return run.seq

        events = play(story())
        return path.stat().st_size / events

    assert size(10_000) <= 1.1 * size(1_000)
