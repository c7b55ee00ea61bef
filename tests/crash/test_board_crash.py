"""Boards whose processes are killed: every artifact is handled once, and none is lost."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import pytest

from support.board_cascade import NAME, handled, host_of, spec
from support.effort import TIMES
from support.run_play import ADA, Seconds
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import Event
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.testing.journal.lossy import LossyJournal

KILLER = Path(__file__).with_name("board_killer.py")
TESTS = Path(__file__).parents[1]
KILLS = 5 if TIMES > 1 else 2
#: How many artifacts are published: with what follows, three times as many are handled.
ARTIFACTS = 24 if TIMES == 1 else 3334
APP = Scope("app")


def lives(path: Path, artifacts: int, number: int, letters: int, until: int | None) -> int:
    """Let a process live until so many batches are written, or to its end; return how it ended."""
    command = [sys.executable, str(KILLER), str(path), str(artifacts), str(number), str(letters)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
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
    journal = await SqliteJournal.open(path)
    host = host_of(spec(), journal)
    async with host:
        runs: dict[str, list[Event]] = {}
        for row in await journal.runs(APP, limit=1000):
            assert row.status != "running"
            runs[row.run] = await journal.read(APP, row.run)
            workflow = await host.workflow(row.run, scope=APP)
            assert check_replay(workflow, row.run, runs[row.run]) == []
        assert await journal.unread() == []
        consumed = await journal.consumed("app", NAME, limit=1_000_000)
    told = Counter((it.agent, it.artifact) for it in consumed)
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
    path = tmp_path / "journal.db"
    killed_often(path, ARTIFACTS, 0, 4 * ARTIFACTS)
    runs = asyncio.run(found(path))
    seeds = [f"{it}" for it in range(ARTIFACTS)]
    assert all_handled(runs) == Counter(
        {
            **{("Scout", (it,)): 1 for it in seeds},
            **{("Writer", (f"{it}>Scout",)): 1 for it in seeds},
            **{("Editor", (f"{it}>Scout>Writer",)): 1 for it in seeds},
        }
    )


def test_letters_with_killed_processes_are_handled_once(tmp_path):
    path, artifacts = tmp_path / "journal.db", max(12, ARTIFACTS // 2 * 2 // 3)
    killed_often(path, artifacts, 1, 4 * artifacts)
    whole = all_handled(asyncio.run(found(path)))
    seeds = [f"{it}" for it in range(artifacts)]
    for agent, end in (("Scout", ""), ("Reader", ""), ("Writer", ">Scout")):
        of_agent = {what: n for (who, what), n in whole.items() if who == agent}
        assert of_agent == {(f"{it}{end}",): 1 for it in seeds}
    paired = Counter(it for (who, what), _ in whole.items() if who == "Pairs" for it in what)
    assert set(paired.values()) == {1}
    assert len(paired) == artifacts // 2 * 2


# -- without processes: a store that stops at any append, and one that loses acknowledgements


class StoppingJournal:
    """Stops at an append for good: before it is written, or after."""

    def __init__(self, journal, at, *, written):
        self._journal = journal
        self._left = at
        self._written = written
        self.stopped = asyncio.Event()
        self._writing = set()

    def __getattr__(self, name):
        return getattr(self._journal, name)

    async def append(self, batch):
        self._left -= 1
        if self._left <= 0:
            if self._left == 0 and self._written:
                await self._append(batch)
            self.stopped.set()
            await asyncio.Event().wait()
        await self._append(batch)

    async def _append(self, batch):
        task = asyncio.create_task(self._journal.append(batch))
        self._writing.add(task)
        await asyncio.shield(task)

    async def still(self):
        """Return when nothing is being written any more: the dead write nothing later."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    async def claim(self, *_args, **_options):
        """Do nothing: the dead release nothing."""
        return False

    async def close(self):
        """Leave the store to those who live."""


class Hours(Seconds):
    """A clock that goes on where another has stopped, when its process counts as dead."""

    def __init__(self, since):
        super().__init__()
        self._time = count(1000 + since * 3_600_000, 1000)
        self._ids = count(since * 1000)


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


async def stopped_at(journal, at, written):
    """Let a host work until its store stops, and leave it as a killed process leaves its runs."""
    stopping = StoppingJournal(journal, at, written=written)
    host = host_of(spec(AGENTS), stopping, clock=Hours(0))
    work = asyncio.create_task(publish(host))
    stopped = asyncio.create_task(stopping.stopped.wait())
    await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    was_stopped = stopping.stopped.is_set()
    for task in (work, stopped):
        task.cancel()
    await asyncio.gather(work, stopped, return_exceptions=True)
    await host.close()
    await stopping.still()
    return was_stopped


async def gone_on(journal, hour=1):
    """Let another host take everything up, and return what was handled in all."""
    async with host_of(spec(AGENTS), journal, clock=Hours(hour)) as host:
        await host.recover()
        await publish(host)
        runs = {}
        for row in await host.runs(scope=APP):
            assert row.status == "waiting"
            events = [it async for it in host.events(row.run, scope=APP) if isinstance(it, Event)]
            workflow = await host.workflow(row.run, scope=APP)
            assert check_replay(workflow, row.run, events) == []
            runs[row.run] = events
        assert await host._journal.unread() == []
        return all_handled(runs)


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


async def opened(kind, path):
    return MemoryJournal() if kind == "memory" else await SqliteJournal.open(path)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, APPENDS + 1, 1 if TIMES > 1 else 3))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_whoever_dies_at_an_append_leaves_a_board_that_goes_on(tmp_path, kind, at, written):
    async def scenario():
        journal = await opened(kind, tmp_path / "j.db")
        assert await stopped_at(journal, at, written)
        return await gone_on(journal)

    expect_whole(asyncio.run(asyncio.wait_for(scenario(), 30)))


@pytest.mark.parametrize("number", range(1, APPENDS + 1, 1 if TIMES > 1 else 4))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_board_with_lost_acknowledgements_loses_nothing(tmp_path, kind, number):
    """The acknowledgement of each n-th batch is lost; of all of them where n is 1."""
    journal = LossyJournal(await opened(kind, tmp_path / "j.db"), lambda it: it % number == 0)
    whole = await gone_on(journal)
    expect_whole(whole)
    assert journal.written >= APPENDS
    assert journal.lost == journal.written // number
