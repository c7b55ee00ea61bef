"""What the store costs as it grows: open chats, long runs, timers and followers.

    python benchmarks/store_growth.py [--only NAME] [--store sqlite|postgres] [--enforce]

- **requests**: the first page of one user's open requests among 100,000 open chats, beside that
  among 1,000: wall time.
- **cold**: a message to a run of 3,000 events that is not in memory, beside one of 100 events: CPU
  of this process and of the server.
- **timers**: 100,000 runs that wait for timers: CPU of an idle worker, and of the server; then how
  late the timers of 300 other runs are, which a gateway has started.
- **followers**: transactions that 1,000 followers of idle runs make.
- **message**: transactions and reads of a message to a run, in one process.
"""

import asyncio
import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.postgres import server_cpu  # noqa: E402

from support.postgres_server import PostgresServer  # noqa: E402
from weft.adapters.sql import SqliteStore  # noqa: E402
from weft.adapters.sql.postgres.schema import migrate  # noqa: E402
from weft.adapters.sql.postgres.store import PostgresStore  # noqa: E402
from weft.adapters.sql.rows import SIDE_STATEMENTS, batch_rows, insertion  # noqa: E402
from weft.adapters.sql.statements import Call, Rows, Transaction  # noqa: E402
from weft.adapters.sql.store import SqlStore  # noqa: E402
from weft.adapters.sql.tables import RUN_COLUMNS  # noqa: E402
from weft.engine.events import TimerFired, TimerSet  # noqa: E402
from weft.ports.scope import Scope  # noqa: E402
from weft.runtime.host import Host  # noqa: E402
from weft.runtime.signals import UserMessage  # noqa: E402
from weft.spec.workflow import WorkflowSpec  # noqa: E402
from weft.testing import FunctionModel, host_for  # noqa: E402
from weft.testing.store.samples import SampleRun  # noqa: E402

APP: Final = "shop"
ANN: Final = Scope(APP, "ann")

FEW_CHATS, MANY_CHATS = 1_000, 100_000
PAGES: Final = 300
SHORT_RUN, LONG_RUN = 100, 3_000
COLD_MESSAGES: Final = 9
IDLE_RUNS: Final = 100_000
WATCHED_S: Final = 30.0
TIMED_RUNS: Final = 300
#: Seconds until a timer is due, and over which the timers are spread.
DUE_AFTER_S: Final = 2
SPREAD_S: Final = 5.0
FOLLOWERS: Final = 1_000
FOLLOWED_S: Final = 5.0

GROWTH_BUDGET: Final = 3.0
IDLE_CPU_BUDGET: Final = 0.005
LATE_BUDGET_MS: Final = 100.0
TRANSACTIONS_BUDGET: Final = 2

INSERT_RUNS: Final = insertion("runs", RUN_COLUMNS)
INSERT_WORK: Final = insertion("work", ("app", "run", "owner", "due_at:number"))
#: Rows that are written at once.
PIECE: Final = 500


class Figure(NamedTuple):
    """A number, and the most that it may be."""

    text: str
    value: float
    budget: float

    @property
    def is_within(self) -> bool:
        """Whether the budget is kept."""
        return self.value <= self.budget


class Place:
    """A database of one kind, which can be opened several times."""

    def __init__(self, folder: Path, server: PostgresServer | None) -> None:
        self._file = folder / "store.db"
        self._server = server

    async def open(self) -> SqlStore:
        """Open the store, as another process would."""
        if self._server is None:
            return await SqliteStore.open(self._file)
        return await PostgresStore.open(self._server.url)

    def cpu(self) -> float:
        """Return the CPU seconds of this process and of the server."""
        server = 0.0 if self._server is None else server_cpu(self._server)
        return time.process_time() + server


@asynccontextmanager
async def new_place(kind: str) -> AsyncIterator[Place]:
    """Make an empty database; the server waits for the disk."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield Place(Path(folder), None)
            return
        server = PostgresServer.create({"fsync": "on", "full_page_writes": "on"})
        try:
            await migrate(server.url)
            yield Place(Path(folder), server)
        finally:
            server.remove()


async def load(store: SqlStore, calls: Iterator[Call]) -> None:
    """Write rows by hand, in pieces."""

    def write(call: Call) -> Transaction[None]:
        yield [call]

    for call in calls:
        await store.load(write(call))


def pieces(first: int, last: int) -> Iterator[range]:
    """Yield the numbers of the rows that are written at once."""
    for start in range(first, last, PIECE):
        yield range(start, min(start + PIECE, last))


async def requests(place: Place) -> list[Figure]:
    """Measure a page of requests among few and among many."""
    store = await place.open()
    scope = Scope(APP, "u7", roles=("boss",))

    def rows(numbers: range) -> Rows:
        addressees = ("role:boss", *["user:u7"] * 2, *[""] * 7)
        return [
            (APP, f"r{n}", "q", f"u{n}", "chat", "Helper", None, "null", n, None, "[]", "", "",
             addressees[n % 10])
            for n in numbers
        ]  # fmt: skip

    async def page() -> float:
        times: list[float] = []
        for _ in range(PAGES):
            begun = time.perf_counter()
            found = await store.requests(scope, limit=50)
            times.append(time.perf_counter() - begun)
            if len(found) != 50:
                raise SystemExit(f"expected 50 requests, found {len(found)}")
        return median(times) * 1e6

    costs: list[float] = []
    for first, last in ((0, FEW_CHATS), (FEW_CHATS, MANY_CHATS)):
        insert = SIDE_STATEMENTS["requests"]
        await load(store, (insert(rows(piece)) for piece in pieces(first, last)))
        costs.append(await page())
    await store.close()
    print(f"  page of requests: {costs[0]:.0f} us among {FEW_CHATS:,} chats,", end=" ")
    print(f"{costs[1]:.0f} us among {MANY_CHATS:,}")
    return [Figure("open requests, many / few chats", costs[1] / costs[0], GROWTH_BUDGET)]


def chat(**variables: object) -> WorkflowSpec:
    """Return a workflow whose agent answers its user."""
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Chat", "initial_agent": "A", "max_turns": 500},
            "agents": [{"agent_name": "A"}],
            "handoffs": [{"source_agent": "A", "target_agent": "user"}],
            "variables": variables,
        }
    )


def host_on(store: SqlStore, spec: WorkflowSpec, *, works: bool = True) -> Host:
    """Return a host with a model that answers at once."""
    return host_for(spec, FunctionModel(lambda _: "What else?"), store=store, works=works)


async def say(host: Host, run: str) -> None:
    """Send a message, and wait for the answer."""
    await host.deliver(run, UserMessage("and then?"), scope=ANN)
    await host.settled_state(run, scope=ANN)


async def cold(place: Place) -> list[Figure]:
    """Measure messages to a short and a long run that are not in memory."""
    spec = chat()
    lengths = {"short": SHORT_RUN, "long": LONG_RUN, "other": SHORT_RUN}
    async with host_on(await place.open(), spec) as host:
        for run, length in lengths.items():
            await host.start("Chat", scope=ANN, message="hello", run=run)
            await host.settled(run, scope=ANN)
            while (await host.run(run, scope=ANN)).seq < length:
                await say(host, run)
    costs: dict[str, list[float]] = {"short": [], "long": []}
    for _ in range(COLD_MESSAGES):
        for run, times in costs.items():
            async with host_on(await place.open(), spec) as host:
                await say(host, "other")  # Connections are open then, and all code was used.
                used = place.cpu()
                await say(host, run)
                times.append((place.cpu() - used) * 1e3)
    short, long = (median(times) for times in costs.values())
    if not short:  # The CPU of a server is counted in steps of 10 ms.
        raise SystemExit("the cost of a short run is too small to be counted")
    print(f"  cold message: {short:.1f} ms CPU after {SHORT_RUN} events,", end=" ")
    print(f"{long:.1f} ms after {LONG_RUN:,}")
    return [Figure("cold message, long / short run", long / short, GROWTH_BUDGET)]


async def timers(place: Place) -> list[Figure]:
    """Measure an idle worker over many runs with timers, and how late timers are."""
    store = await place.open()
    due_at = (time.time_ns() // 1_000_000) + 86_400_000

    def rows() -> Iterator[Call]:
        for piece in pieces(0, IDLE_RUNS):
            runs = [SampleRun(f"idle{n}") for n in piece]
            yield INSERT_RUNS([batch_rows(run.batch(status="waiting"), str).run for run in runs])
            yield INSERT_WORK([(APP, run.run, "", due_at + n) for n, run in enumerate(runs)])

    await load(store, rows())
    await store.close()
    trigger = {"type": "timer_expired", "after_seconds": DUE_AFTER_S}
    late = {"type": "bool", "source": {"type": "derived", "default": False, "triggers": [trigger]}}
    spec, times = chat(late=late), list[int]()
    worker = host_on(await place.open(), spec)
    gateway = host_on(await place.open(), spec, works=False)
    async with worker, gateway:
        await worker.recover()
        await asyncio.sleep(1)
        used = place.cpu()
        await asyncio.sleep(WATCHED_S)
        share = (place.cpu() - used) / WATCHED_S
        chance = random.Random(1)
        runs = [f"timed{number}" for number in range(TIMED_RUNS)]
        for run in runs:
            await gateway.start("Chat", scope=ANN, run=run)
            await asyncio.sleep(chance.random() * 2 * SPREAD_S / TIMED_RUNS)
        await asyncio.sleep(DUE_AFTER_S + 1)
        for run in runs:
            events = [event async for event in gateway.events(run, scope=ANN)]
            due = {event.data.id: event.data.at for event in events if is_a(event, TimerSet)}
            fired = [event for event in events if is_a(event, TimerFired)]
            times += (event.at - due[event.data.id] for event in fired)
    if len(times) != TIMED_RUNS:
        raise SystemExit(f"{len(times)} of {TIMED_RUNS} timers fired")
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    print(f"  {IDLE_RUNS:,} idle runs: {share:.2%} of a core over {WATCHED_S:g} s;", end=" ")
    print(f"timers are {median(times):.0f} ms late, p99 {p99} ms")
    return [
        Figure("CPU of an idle worker", share, IDLE_CPU_BUDGET),
        Figure("timers late, p99 in ms", p99, LATE_BUDGET_MS),
    ]


def is_a(event: Any, kind: type) -> bool:  # noqa: ANN401 - an event or streamed text
    """Tell whether an event is of a kind."""
    return isinstance(getattr(event, "data", None), kind)


def counted(store: SqlStore) -> Counter[str]:
    """Count the transactions of a store from now on: writes, reads, and those of the queue."""
    made: Counter[str] = Counter()

    def count(owner: object, method: str, name: str) -> None:
        real = getattr(owner, method)

        def counting(*given: object) -> object:
            made[name] += 1
            return real(*given)

        setattr(owner, method, counting)

    for name in ("write", "queue", "read"):
        count(store, f"_{name}", name)
    if isinstance(store, SqliteStore):  # PostgreSQL writes groups like all else.
        count(vars(store)["_group"], "_perform", "write")
    return made


async def followers(place: Place) -> list[Figure]:
    """Count the transactions of followers that wait."""
    store = await place.open()
    runs = [SampleRun(f"r{number}") for number in range(FOLLOWERS)]
    await asyncio.gather(*(store.append(run.batch(), owner="w") for run in runs))
    scope = Scope.operator(APP)
    waiting = [
        asyncio.create_task(anext(store.follow(scope, run.run, after=run.seq))) for run in runs
    ]
    await asyncio.sleep(3)  # Each reads once, and those of a server begin to listen.
    made = counted(store)
    await asyncio.sleep(FOLLOWED_S)
    total = made.total()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await store.close()
    print(f"  {FOLLOWERS:,} idle followers: {total} transactions in {FOLLOWED_S:g} s")
    return [Figure("transactions of idle followers", total, 0)]


async def message(place: Place) -> list[Figure]:
    """Count the transactions of one message in one process."""
    store = await place.open()
    async with host_on(store, chat()) as host:
        run = await host.start("Chat", scope=ANN, message="hello")
        await host.settled(run, scope=ANN)
        await say(host, run)
        made = counted(store)
        await say(host, run)
        found = dict(made)
    print(f"  one message: {found}")
    return [
        Figure("transactions of a message", found.get("write", 0), TRANSACTIONS_BUDGET),
        Figure("reads of a message", found.get("read", 0), 0),
    ]


MEASURES: Final[dict[str, Callable[[Place], Awaitable[list[Figure]]]]] = {
    "requests": requests,
    "cold": cold,
    "timers": timers,
    "followers": followers,
    "message": message,
}


async def measured(kinds: list[str], names: list[str]) -> bool:
    """Measure, print, and tell whether all budgets are kept."""
    within = True
    for kind in kinds:
        print(kind, flush=True)
        for name in names:
            async with new_place(kind) as place:
                for figure in await MEASURES[name](place):
                    mark = "" if figure.is_within else "  over"
                    print(f"    {figure.text}: {figure.value:.4g} (budget {figure.budget:g}){mark}")
                    within &= figure.is_within
    return within


def main() -> int:
    """Measure, and fail with --enforce where a budget is exceeded."""
    parser = ArgumentParser(description="Measure what the store costs as it grows.")
    parser.add_argument("--only", choices=tuple(MEASURES), help="measure one of them")
    parser.add_argument("--store", choices=("sqlite", "postgres"), help="measure one store")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    options = parser.parse_args()
    kinds = [options.store] if options.store else ["sqlite", "postgres"]
    names = [options.only] if options.only else list(MEASURES)
    within = asyncio.run(measured(kinds, names))
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    sys.exit(main())
