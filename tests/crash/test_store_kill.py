"""A process that appends is killed at any moment: what it knew to be written is there, whole."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import groupby
from pathlib import Path
from random import Random

import pytest

from support.effort import TIMES
from support.journal_play import look, play
from weft.adapters.sql import SqliteStore
from weft.ports.scope import Scope
from weft.testing.store.samples import SCOPE

APPENDER = Path(__file__).with_name("store_appender.py")
KILLS = 2 * TIMES


def killed_after(path: Path, durability: str, process: int, seconds: float) -> Counter[str]:
    """Let a process append for a while, kill it, and return where it said its runs stand."""
    command = [sys.executable, str(APPENDER), str(path), durability, str(process)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
        lines = [first, *child.stdout]
    assert child.returncode == -signal.SIGKILL
    told: Counter[str] = Counter()
    for line in lines:
        # The last line may be cut short by the kill, and then means nothing.
        if line.endswith("\n"):
            name, seq = line.split()
            told[name] = int(seq)
    return told


async def expect_whole(path: Path, scope: Scope) -> dict[str, int]:
    """Check every run in a scope, and return where the runs stand."""
    store = await SqliteStore.open(path)
    stands: dict[str, int] = {}
    for row in await store.runs(scope, limit=100_000):
        found = await store.read(scope, row.run)
        assert [event.seq for event in found] == list(range(1, row.seq + 1))
        for _, batch in groupby(found, key=lambda event: event.data.id):
            parts = [event.data.value for event in batch]
            assert [part["number"] for part in parts] == list(range(parts[0]["of"]))
        stands[row.run] = row.seq
        if scope == SCOPE:
            last = found[-1].data.id
            asked = await store.requests(scope, run=row.run)
            assert [item.id for item in asked] == [f"q{last}"]
    await store.close()
    return stands


def expect_no_remains(path: Path) -> None:
    """Check that nothing is left of what was removed, and nothing is missing of what was not."""
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
    assert look(path, "SELECT run FROM events EXCEPT SELECT run FROM runs") == []
    used = "SELECT data FROM events WHERE data LIKE '#%'"
    assert look(path, f"SELECT count(*) FROM blobs WHERE digest NOT IN ({used})") == [(0,)]
    assert look(path, f"SELECT count(*) FROM ({used} EXCEPT SELECT digest FROM blobs)") == [(0,)]
    assert look(path, "SELECT run FROM work EXCEPT SELECT run FROM runs") == []
    needed = "SELECT digest FROM runs WHERE app = 'churn' EXCEPT SELECT digest FROM packages"
    assert look(path, needed) == []


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_killed_at_any_moment(tmp_path, durability):
    path = tmp_path / "store.db"
    chance = Random(durability)
    reached: dict[str, int] = {}
    for process in range(KILLS):
        told = killed_after(path, durability, process, chance.uniform(0, 0.4))
        stands = play(expect_whole(path, SCOPE))
        for name, seq in {**reached, **told}.items():
            assert stands[name] >= seq
        play(expect_whole(path, Scope.operator("churn")))
        expect_no_remains(path)
        assert told
        reached = stands
    assert sum(reached.values()) > KILLS
