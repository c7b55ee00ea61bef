"""Random flows whose processes die anywhere come to the same end, and undo nothing twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from crash.flow_lives import flow_host, run_to_end
from support.effort import TIMES
from support.stopping_store import LaterClock, StoppingStore, work_until_stopped
from weft.adapters.sql import SqliteStore

LIVES = Path(__file__).with_name("flow_lives.py")


def expect_the_same(undisturbed, disturbed, before, after):
    assert disturbed == undisturbed
    assert disturbed["most"] <= 1, "nothing is undone twice"
    names = [Counter(note.split()[1] for note in set(notes)) for notes in (before, after)]
    assert names[0] == names[1], "each call is made again only under its own key"


async def run_once(seed, path, note, lives=0, stop=None):
    """Let a process run the flow to its end, or until its store stops."""
    store = await SqliteStore.open(path, durability="normal", clock=LaterClock(lives))
    if stop is None:
        async with flow_host(seed, store, note, lives) as host:
            return await run_to_end(host, seed)
    stopping = StoppingStore(store, stop[0], after=stop[1])
    host = flow_host(seed, stopping, note, lives)
    return await work_until_stopped(host, stopping, run_to_end(host, seed))


async def disturbed(seed, chance, folder):
    before: list[str] = []
    whole = await run_once(seed, folder / f"{seed}-whole.db", before.append)
    after: list[str] = []
    path = folder / f"{seed}.db"
    for lives in range(chance.randint(1, 4)):
        stop = (chance.randint(1, 12), chance.random() < 0.5)
        await run_once(seed, path, after.append, lives, stop)
    expect_the_same(whole, await run_once(seed, path, after.append, 9), before, after)


@pytest.mark.parametrize("block", range(5))
def test_flow_continues_after_a_process_dies_at_an_append(block, tmp_path):
    for seed in range(block * 10 * TIMES, (block + 1) * 10 * TIMES):
        try:
            asyncio.run(asyncio.wait_for(disturbed(seed, Random(seed), tmp_path), 20))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def test_flows_whose_processes_are_killed_come_to_the_same_end(tmp_path):
    """The first three processes of each flow die by kill -9, as long as there is something left."""
    seeds = [str(number) for number in range(1000, 1000 + 3 * TIMES)]
    path = os.pathsep.join((str(LIVES.parent.parent), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, str(LIVES), str(tmp_path), *seeds],
        check=False,
        capture_output=True,
        text=True,
        timeout=120 * TIMES,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    stories = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(stories) == len(seeds)
    for told in stories:
        assert (told["exits"][0], told["exits"][-1]) == (0, 0)
        expect_the_same(*told["ends"], *told["effects"])
    killed = sum(told["exits"].count(-signal.SIGKILL) for told in stories)
    assert killed >= 4 * TIMES
