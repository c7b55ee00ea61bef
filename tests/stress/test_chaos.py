"""Runs with payments through real hosts, while workers are killed or stopped for a while, and the
server is restarted.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from stress.chaos_worker import CODE, PAYMENTS, SPEC
from support.effort import TIMES
from support.postgres_server import PostgresServer
from weft.adapters.sql.postgres.schema import migrate
from weft.adapters.sql.postgres.store import PostgresStore
from weft.engine.events import Event, ToolReturned
from weft.errors import StoreError, UsageError
from weft.ports.model import ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.runs.ownership import DEAD_AFTER
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

WORKER = Path(__file__).with_name("chaos_worker.py")
ADA = Scope("app", "ada")
WORKERS = 3
RUNS = min(200, 40 * TIMES)
#: Seconds between two runs that are started, and between two workers that are killed.
START_EVERY = 0.3
KILL_EVERY = 1.5
#: After so many workers were killed, one is stopped for so many seconds.
KILLS_PER_PAUSE = 2
PAUSES = (5.3, 8.0)
#: Seconds in which all runs must have ended after the last kill.
PATIENCE = 240
#: How many workers must have been killed; more runs are started until they are.
KILLS = 3 * TIMES
#: Milliseconds in which a run of a dead worker must go on: 5 s without a heartbeat, and 1 s until
#: the next look. The machine then needs the time of two steps, which is measured.
TAKEN_OVER_WITHIN = 6_000
STEPS = 2
#: Milliseconds by which one take-over may be later on a machine that does other work as well: a
#: heartbeat, a look or a step then waits for a processor. The median must do without.
ALLOWANCE = 2_000
#: Milliseconds by which the clocks of the store and the worker may differ on one machine.
SAME_TIME = 20
#: Milliseconds from the begin of a payment to its record at most, if its worker sends heartbeats.
RECORDED_WITHIN = 15_000


class Did(NamedTuple):
    """A line in the log of the workers."""

    what: str
    process: int
    at: int
    run: str
    key: str


class Lost(NamedTuple):
    """A worker that was killed, or stopped for a while."""

    process: int
    at: int


def now() -> int:
    return time.time_ns() // 1_000_000


def without(away: list[tuple[int, int]], begin: int, end: int) -> int:
    """Return the milliseconds of a time in which the server was there."""
    return end - begin - sum(max(0, min(end, to) - max(begin, from_)) for from_, to in away)


class Workers:
    """Worker processes, of which one after the other is killed and replaced, or stopped."""

    def __init__(self, address: str, log: Path) -> None:
        self._address = address
        self._log = log
        self._chance = random.Random(11)
        self._processes = [self._started() for _ in range(WORKERS)]
        self.killed: list[Lost] = []
        self.paused: list[Lost] = []

    def _started(self) -> subprocess.Popen[bytes]:
        where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(WORKER), self._address, str(self._log)]
        return subprocess.Popen(command, env=where)

    async def all_ready(self) -> None:
        """Wait until every worker is ready: otherwise no living worker could take over."""
        while True:
            ready = {did.process for did in self.done() if did.what == "ready"}
            if all(process.pid in ready for process in self._processes):
                return
            await asyncio.sleep(0.05)

    async def kill_at_random(self) -> None:
        """Kill one worker after the other in the middle of a payment, and now and then stop one."""
        while True:
            await asyncio.sleep(KILL_EVERY * self._chance.uniform(0.5, 1.5))
            await self.all_ready()
            if len(self.killed) < KILLS_PER_PAUSE * (len(self.paused) + 1):
                self._kill(await self._paying())
            else:
                await self._pause(await self._paying())

    def _kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        self.killed.append(Lost(worker.pid, now()))
        self._processes[self._processes.index(worker)] = self._started()

    async def _pause(self, worker: subprocess.Popen[bytes]) -> None:
        """Stop a worker for so long that it counts as dead, and let it continue."""
        seconds = PAUSES[len(self.paused) % len(PAUSES)]
        worker.send_signal(signal.SIGSTOP)
        self.paused.append(Lost(worker.pid, now()))
        await asyncio.sleep(seconds)
        worker.send_signal(signal.SIGCONT)

    async def _paying(self) -> subprocess.Popen[bytes]:
        """Return a worker that has just paid and has not recorded it yet."""
        begun = now()
        by_pid = {process.pid: process for process in self._processes}
        while True:
            for did in self.done():
                if did.what == "pay" and did.at >= begun:
                    return by_pid[did.process]
            await asyncio.sleep(0.02)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def done(self) -> list[Did]:
        """Return what the workers have noted, in order."""
        text = self._log.read_text().rpartition("\n")[0]  # The last line may not be whole.
        lines = [line.split() for line in text.splitlines()]
        noted = [Did(what, int(pid), int(at), run, key) for what, pid, at, run, key in lines]
        return sorted(noted, key=lambda did: did.at)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of its own: it is restarted."""
    made = PostgresServer.create()
    yield made
    made.remove()


@asynccontextmanager
async def gateway_on(address: str) -> AsyncGenerator[Host]:
    """Open a host that performs nothing."""

    def refuse(request: ModelRequest) -> str:
        raise AssertionError(f"the gateway asks the model of {request.agent}")

    store = await PostgresStore.open(address)
    async with host_for(SPEC, FunctionModel(refuse), code=CODE, store=store, works=False) as host:
        yield host


async def start(gateway: Host, run: str) -> None:
    """Start a run, however often it takes while the server is away."""
    while True:
        try:
            await gateway.start("Paying", scope=ADA, message="Pay.", run=run)
        except StoreError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.1)
        except UsageError as error:  # It was started, and the answer was lost.
            if "was started before" not in str(error):
                raise
            return
        else:
            return


async def start_all(
    gateway: Host, server: PostgresServer, workers: Workers
) -> tuple[list[str], list[tuple[int, int]]]:
    """Start runs until enough workers were killed, and restart the server twice.

    Returns the runs, and when the server was away: from and until.
    """
    runs: list[str] = []
    away: list[tuple[int, int]] = []
    while len(runs) < RUNS or len(workers.killed) < KILLS or not workers.paused:
        runs.append(f"run{len(runs)}")
        assert len(runs) < 20 * RUNS, "no worker could be killed while it paid"
        await start(gateway, runs[-1])
        await asyncio.sleep(START_EVERY)
        if len(runs) in (RUNS // 3, 2 * RUNS // 3):
            begun = now()
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            away.append((begun, now()))
    return runs, away


async def outcomes(gateway: Host, runs: list[str]) -> dict[str, str | None]:
    """Return how each run has ended, when all have or it takes too long."""
    deadline = time.monotonic() + PATIENCE
    while True:
        rows = [await gateway.run(run, scope=ADA) for run in runs]
        if all(row.status == "ended" for row in rows) or time.monotonic() > deadline:
            return {row.run: row.outcome for row in rows}
        await asyncio.sleep(0.5)


def was_silent(beats: list[int], since: int, until: int) -> bool:
    """Tell whether a worker sent no heartbeat for so long that others could take its runs."""
    before = [at for at in beats if at <= since][-1:]
    times = [*before, *(at for at in beats if since < at < until), until]
    return any(later - at >= DEAD_AFTER - SAME_TIME for at, later in pairwise(times))


def repeated(
    begun: list[Did], beats: dict[int, list[int]], away: list[tuple[int, int]]
) -> list[str]:
    """Return payments begun again although the worker that began the first could record it.

    It could not if it counted as dead, because it was killed or stalled, or if the server was away.
    """
    by_key: defaultdict[str, list[Did]] = defaultdict(list)
    for payment in begun:
        by_key[payment.key].append(payment)
    found: list[str] = []
    for key, made in by_key.items():
        for first, second in pairwise(made):
            own = beats[first.process]
            was_away = without(away, first.at, second.at) < second.at - first.at
            last = max((at for at in own if at < second.at), default=first.at)
            is_slow = without(away, first.at, last) > RECORDED_WITHIN
            if is_slow or not (was_away or was_silent(own, first.at, second.at)):
                found.append(f"{key}: begun by {first.process} and by {second.process}")
    return found


def unsafe(begun: list[Did], beats: dict[int, list[int]]) -> list[str]:
    """Return payments that were begun by a worker which counted as dead at that time."""
    return [
        f"{did.key}: begun by {did.process} at {did.at}"
        for did in begun
        if was_silent(beats[did.process], did.at, did.at)
    ]


def late(begun: list[Did], events: dict[str, list[Event]]) -> list[str]:
    """Return payments that were begun after their result was recorded."""
    recorded = {
        str(event.data.value): event.at
        for told in events.values()
        for event in told
        if isinstance(event.data, ToolReturned)
    }
    return [
        f"{did.key}: begun {did.at - recorded[did.key]} ms after its result"
        for did in begun
        if did.at > recorded.get(did.key, did.at) + SAME_TIME
    ]


def time_of_a_step(done: list[Did]) -> float:
    """Return the milliseconds from a model call to the payment that it asks for."""
    asked: dict[tuple[int, str], int] = {}
    times: list[int] = []
    for did in done:
        if did.what == "ask":
            asked[did.process, did.run] = did.at
        elif did.what == "pay" and (did.process, did.run) in asked:
            times.append(did.at - asked.pop((did.process, did.run)))
    return median(times)


def take_overs(
    done: list[Did], killed: list[Lost], events: dict[str, list[Event]]
) -> list[tuple[str, int, int]]:
    """Return the runs that dead workers have left: run, when it was left, ms until it went on.

    A run belongs to the worker that did something in it last. It goes on when another does, or
    when an event is written.
    """
    found: list[tuple[str, int, int]] = []
    for process, at in killed:
        last = {did.run: did.process for did in done if did.at <= at}
        for run in (run for run, owner in last.items() if owner == process):
            next_ = [did.at for did in done if did.run == run and did.at > at]
            next_ += [event.at for event in events[run] if event.at > at]
            if next_:  # Else it had ended.
                found.append((run, at, min(next_) - at))
    return found


def undisturbed(left: list[tuple[str, int, int]], lost: list[Lost]) -> list[tuple[str, int, int]]:
    """Return the take-overs that no second loss can have delayed.

    The successor takes a run when its owner counts as dead. If a worker is lost from then on until
    the run goes on, that may be the successor: the run then waits for the next one.
    """

    def is_disturbed(at: int, took: int) -> bool:
        dead = at + DEAD_AFTER - 1_000  # The last heartbeat was sent within a second before.
        return any(dead <= other.at <= at + took for other in lost)

    return [each for each in left if not is_disturbed(*each[1:])]


def report(line: str) -> None:
    """Print something for the one who reads a failure."""
    sys.stdout.write(f"{line}\n")


def test_no_payment_is_repeated_after_its_result_when_workers_and_server_die(
    server: PostgresServer, tmp_path: Path
) -> None:
    async def scenario() -> None:
        await migrate(server.url)
        log = tmp_path / "log"
        log.touch()
        workers = Workers(server.url, log)
        try:
            async with gateway_on(server.url) as gateway:
                await workers.all_ready()
                killing = asyncio.create_task(workers.kill_at_random())
                runs, away = await start_all(gateway, server, workers)
                killing.cancel()
                ended = await outcomes(gateway, runs)
                told = {
                    run: [
                        each
                        async for each in gateway.events(run, scope=ADA)
                        if isinstance(each, Event)
                    ]
                    for run in runs
                    if ended[run]
                }
        finally:
            workers.end()
        assert ended == dict.fromkeys(runs, "completed")
        beats: defaultdict[int, list[int]] = defaultdict(list)
        done: list[Did] = []
        for did in workers.done():
            if did.what == "beat":
                beats[did.process].append(did.at)
            elif did.what != "ready":
                done.append(did)
        begun = [did for did in done if did.what == "begin"]
        payments = [did for did in done if did.what == "pay"]
        keys = {payment.key for payment in payments}
        left = take_overs(done, workers.killed, told)
        times = sorted(without(away, at, at + took) for _, at, took in left)
        alone = undisturbed(left, [*workers.killed, *workers.paused])
        longest = max((without(away, at, at + took) for _, at, took in alone), default=0)
        step = time_of_a_step(done)
        report(f"{len(runs)} runs, {len(workers.killed)} workers killed, server away {away}")
        report(f"{len(workers.paused)} workers stopped: {workers.paused}")
        report(f"{len(payments)} payments of {len(keys)} keys; a step takes {step} ms")
        report(f"take-over in ms: {times}; killed: {workers.killed}; left: {left}")
        report(f"{len(alone)} take-overs without a second loss, at most {longest} ms")
        returned = [
            event.data.value
            for events in told.values()
            for event in events
            if isinstance(event.data, ToolReturned)
        ]
        assert sorted(map(str, returned)) == sorted(keys)
        assert len(keys) == len(runs) * PAYMENTS
        assert not late(begun, told)
        assert not unsafe(begun, beats)
        assert not repeated(begun, beats, away)
        assert workers.paused
        assert times
        assert median(times) < TAKEN_OVER_WITHIN + STEPS * step
        assert longest < TAKEN_OVER_WITHIN + STEPS * step + ALLOWANCE

    asyncio.run(scenario())


#: Heartbeats of worker 1 until 3 s and from 9 s on, and of worker 2 all the time.
BEATS = {1: [1_000, 2_000, 3_000, 9_000, 10_000], 2: list(range(0, 30_000, 1_000))}


def paid(process: int, at: int) -> Did:
    return Did("begin", process, at, "run", "key")


@pytest.mark.parametrize(
    ("first", "second", "away", "is_fault"),
    [
        (paid(1, 2_900), paid(2, 8_100), [], False),
        (paid(1, 2_900), paid(2, 7_900), [], True),
        (paid(2, 1_100), paid(1, 9_500), [], True),
        (paid(2, 1_100), paid(1, 9_500), [(1_200, 4_000)], False),
        (paid(2, 1_100), paid(1, 29_500), [(1_200, 4_000)], True),
    ],
)
def test_payment_is_repeated_only_after_5_s_without_heartbeat_or_server(
    first, second, away, is_fault
):
    assert bool(repeated([first, second], BEATS, away)) == is_fault


def test_take_over_is_disturbed_by_a_loss_after_the_owner_counts_as_dead():
    left = [("early", 1_000, 5_100), ("both", 2_000, 9_800), ("late", 20_000, 5_200)]
    lost = [Lost(1, 1_000), Lost(1, 2_000), Lost(2, 7_000), Lost(2, 25_300)]
    assert undisturbed(left, lost) == [("early", 1_000, 5_100), ("late", 20_000, 5_200)]


@pytest.mark.parametrize(("at", "is_fault"), [(7_900, False), (8_100, True), (9_100, False)])
def test_payment_that_a_dead_worker_begins_is_found(at, is_fault):
    assert bool(unsafe([paid(1, at)], BEATS)) == is_fault
