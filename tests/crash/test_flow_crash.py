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

from crash.flow_lives import lived
from support.effort import TIMES
from support.stopping_journal import StoppingJournal
from weft.adapters.memory import MemoryJournal

LIVES = Path(__file__).with_name("flow_lives.py")


async def dies(seed, journal, fatal, note, lives, *, after):
    """Let a host work until its store stops, and leave it as a killed process leaves its runs."""
    stopping = StoppingJournal(journal, fatal, after=after)
    work = asyncio.create_task(lived(seed, stopping, note, lives))
    stopped = asyncio.create_task(stopping.stopped.wait())
    await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for task in (work, stopped):
        task.cancel()
    await asyncio.gather(work, stopped, return_exceptions=True)


def expect_the_same(undisturbed, disturbed, before, after):
    assert disturbed == undisturbed
    assert disturbed["most"] <= 1, "nothing is undone twice"
    names = [Counter(it.split()[1] for it in set(notes)) for notes in (before, after)]
    assert names[0] == names[1], "each call is made again only under its own key"


async def disturbed(seed, chance):
    before: list[str] = []
    whole = await lived(seed, MemoryJournal(), before.append)
    journal, after = MemoryJournal(), []
    for lives in range(chance.randint(1, 4)):
        await dies(
            seed, journal, chance.randint(1, 12), after.append, lives, after=chance.random() < 0.5
        )
    expect_the_same(whole, await lived(seed, journal, after.append, 9), before, after)


@pytest.mark.parametrize("block", range(5))
def test_flow_continues_after_a_process_dies_at_an_append(block):
    for seed in range(block * 10 * TIMES, (block + 1) * 10 * TIMES):
        try:
            asyncio.run(asyncio.wait_for(disturbed(seed, Random(seed)), 20))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def test_flows_whose_processes_are_killed_come_to_the_same_end(tmp_path):
    """The first three processes of each flow die by kill -9, as long as there is something left."""
    seeds = [str(it) for it in range(1000, 1000 + 3 * TIMES)]
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
    stories = [json.loads(it) for it in done.stdout.splitlines()]
    assert len(stories) == len(seeds)
    for told in stories:
        assert (told["exits"][0], told["exits"][-1]) == (0, 0)
        expect_the_same(*told["ends"], *told["effects"])
    killed = sum(told["exits"].count(-signal.SIGKILL) for told in stories)
    assert killed >= 4 * TIMES
