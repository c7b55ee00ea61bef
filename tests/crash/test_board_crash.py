"""Boards whose processes are killed: every artifact is handled once, and none is lost."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from support.board_cascade import NAME, handled, host_of, spec
from support.effort import TIMES
from support.journal_play import look
from support.run_play import ADA
from support.stopping_store import LaterClock, StoppingStore, work_until_stopped
from weft.adapters.sql import SqliteStore
from weft.engine.events import Event
from weft.errors import StoreError
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.testing.store.lossy import LossyStore

KILLER = Path(__file__).with_name("board_killer.py")
TESTS = Path(__file__).parents[1]
KILLS = 5 if TIMES > 1 else 2
#: How many artifacts are published: with what follows, three times as many are handled.
ARTIFACTS = 24 if TIMES == 1 else 3334
APP = Scope.operator("app")


def lives(path: Path, artifacts: int, number: int, letters: int, until: int | None) -> int:
    """Let a process live until so many batches are written, or to its end; return how it ended."""
    command = [sys.executable, str(KILLER), str(path), str(artifacts), str(number), str(letters)]
    places = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": places}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if until is not None and int(line) >= until:
                os.kill(child.pid, signal.SIGKILL)
                break
        else:
            until = None
        child.stdout.close()
    assert until is None or child.returncode == -signal.SIGKILL
    return child.returncode


async def found(path: Path) -> dict[str, list[Event]]:
    """Read all runs; what replays otherwise than it was written is a fault."""
    store = await SqliteStore.open(path)
    host = host_of(spec(), store)
    async with host:
        runs: dict[str, list[Event]] = {}
        for row in await store.runs(APP, limit=1000):
            assert row.status != "running"
            runs[row.run] = await store.read(APP, row.run)
            workflow = await host.workflow(row.run, scope=APP)
            assert check_replay(workflow, row.run, runs[row.run]) == []
        consumed = await store.consumed("app", NAME, owners=None, limit=1_000_000)
    assert look(path, "SELECT * FROM mail") == []
    told = Counter((entry.agent, entry.artifact) for entry in consumed)
    assert set(told.values()) <= {1}, "every artifact is handled once by each agent"
    return runs


def all_handled(runs: dict[str, list[Event]]) -> Counter[tuple[str, tuple[str, ...]]]:
    whole: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for run, events in runs.items():
        whole += handled(events, run)
    return whole


def killed_often(path: Path, artifacts: int, letters: int, batches: int) -> None:
    """Kill one process after another somewhere on the way, then let one live."""
    chance = Random(artifacts + letters)
    share = batches // (KILLS + 2)
    for number in range(KILLS):
        until = chance.randint(1, 2 * share)
        assert lives(path, artifacts, number, letters, until) == -signal.SIGKILL
    assert lives(path, artifacts, KILLS, letters, None) == 0


def test_cascade_with_killed_processes_handles_every_artifact_once(tmp_path):
    path = tmp_path / "store.db"
    killed_often(path, ARTIFACTS, 0, 4 * ARTIFACTS)
    runs = asyncio.run(found(path))
    seeds = [f"{number}" for number in range(ARTIFACTS)]
    assert all_handled(runs) == Counter(
        {
            **{("Scout", (seed,)): 1 for seed in seeds},
            **{("Writer", (f"{seed}>Scout",)): 1 for seed in seeds},
            **{("Editor", (f"{seed}>Scout>Writer",)): 1 for seed in seeds},
        }
    )


def test_letters_with_killed_processes_are_handled_once(tmp_path):
    path, artifacts = tmp_path / "store.db", max(12, ARTIFACTS // 2 * 2 // 3)
    killed_often(path, artifacts, 1, 4 * artifacts)
    whole = all_handled(asyncio.run(found(path)))
    seeds = [f"{number}" for number in range(artifacts)]
    for agent, end in (("Scout", ""), ("Reader", ""), ("Writer", ">Scout")):
        of_agent = {what: n for (who, what), n in whole.items() if who == agent}
        assert of_agent == {(f"{seed}{end}",): 1 for seed in seeds}
    paired = Counter(item for (who, what), _ in whole.items() if who == "Pairs" for item in what)
    assert set(paired.values()) == {1}
    assert len(paired) == artifacts // 2 * 2


# -- without processes: a store that stops at any append, and one that loses acknowledgements


AGENTS = ("Scout", "Writer", "Editor", "Gate", "Reader", "Pairs")
#: Appends of the board below, at least.
APPENDS = 16


async def publish(host):
    """Publish everything that is not there yet."""
    for number, type_ in enumerate(("Seed", "Left", "Right", "Seed")):
        await host.publish(
            NAME, type_, {"label": f"{number}"}, scope=ADA, correlation="c1", id=f"i{number}"
        )
    await host.quiet()


async def stopped_at(path, at, written):
    """Let a host work until its store stops; tell whether it did."""
    clock = LaterClock(0)
    stopping = StoppingStore(await SqliteStore.open(path, clock=clock), at, after=written)
    host = host_of(spec(AGENTS), stopping, clock=clock)
    return await work_until_stopped(host, stopping, publish(host))


async def gone_on(path, lose=0):
    """Let another host take everything up, and return what was handled in all."""
    clock = LaterClock(1)
    store = await SqliteStore.open(path, clock=clock)
    if lose:
        store = LossyAppends(store, lose)
    async with host_of(spec(AGENTS), store, clock=clock) as host:
        await host.recover()
        await publish(host)
        runs = {}
        for row in await host.runs(scope=APP):
            assert row.status == "waiting"
            events = [
                event async for event in host.events(row.run, scope=APP) if isinstance(event, Event)
            ]
            workflow = await host.workflow(row.run, scope=APP)
            assert check_replay(workflow, row.run, events) == []
            runs[row.run] = events
    assert look(path, "SELECT * FROM mail") == []
    return all_handled(runs), store


class LossyAppends(LossyStore):
    """Loses the first answer to each n-th batch."""

    def __init__(self, store, number):
        super().__init__(store)
        self._number = number
        self.batches = set()

    async def append(self, batch, *, owner):
        left = await self._store.append(batch, owner=owner)
        if batch.id not in self.batches:
            self.batches.add(batch.id)
            if len(self.batches) % self._number == 0:
                self.lost += 1
                raise StoreError("the connection broke", retryable=True, uncertain=True)
        return left

    def _answer(self, _what):
        """Lose no answers to mail, claims and heartbeats."""


#: What each agent is to handle, whatever happens.
WHOLE = {
    ("Scout", ("0",)),
    ("Scout", ("3",)),
    ("Writer", ("0>Scout",)),
    ("Writer", ("3>Scout",)),
    ("Editor", ("0>Scout>Writer",)),
    ("Editor", ("3>Scout>Writer",)),
    ("Gate", ("1", "2")),
    ("Reader", ("0",)),
    ("Reader", ("3",)),
    ("Pairs", ("0>Scout", "3>Scout")),
}


def expect_whole(whole):
    assert {(who, tuple(sorted(what))) for who, what in whole} == WHOLE
    assert set(whole.values()) == {1}


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, APPENDS + 1, 1 if TIMES > 1 else 3))
def test_board_continues_after_a_process_dies_at_an_append(tmp_path, at, written):
    async def scenario():
        assert await stopped_at(tmp_path / "store.db", at, written)
        return await gone_on(tmp_path / "store.db")

    expect_whole(asyncio.run(asyncio.wait_for(scenario(), 30))[0])


@pytest.mark.parametrize("number", range(1, APPENDS + 1, 1 if TIMES > 1 else 4))
async def test_board_with_lost_answers_loses_nothing(tmp_path, number):
    """The first answer to each n-th batch is lost; to all of them where n is 1."""
    whole, store = await gone_on(tmp_path / "store.db", number)
    expect_whole(whole)
    assert len(store.batches) >= APPENDS
    assert store.lost == len(store.batches) // number
