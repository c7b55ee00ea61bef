"""Several processes on one file of a store."""

import subprocess
import sys

from support.journal_play import look, play
from weft.adapters.sql import SqliteStore
from weft.testing.store.samples import SCOPE

RIVAL = """
import asyncio, sys
from pathlib import Path
from weft.adapters.sql import SqliteStore
from weft.errors import StoreConflict
from weft.testing.store.samples import ME, SCOPE, SampleRun

async def main():
    # All begin each round at the same moment, the first on a file that does not exist yet.
    print("ready", flush=True)
    sys.stdin.readline()
    store = await SqliteStore.open(Path(sys.argv[1]), busy_seconds=30)
    for _ in range(25):
        row = await store.run(SCOPE, "r1")
        run = SampleRun("r1", seq=row.seq if row else 0)
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            await store.append(run.batch(), owner=ME)
            print("won", flush=True)
        except StoreConflict:
            print("lost", flush=True)
        sys.stdin.readline()
    await store.close()

asyncio.run(main())
"""


def test_of_several_processes_one_wins_each_round(tmp_path):
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", RIVAL, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rivals = [subprocess.Popen(command, **pipes) for _ in range(4)]

    def next_lines():
        lines = [rival.stdout.readline() for rival in rivals]
        for rival in rivals:
            rival.stdin.write("go\n")
            rival.stdin.flush()
        return sorted(lines)

    assert next_lines() == ["ready\n"] * 4
    for _ in range(25):
        assert next_lines() == ["ready\n"] * 4
        assert next_lines() == ["lost\n"] * 3 + ["won\n"]
    for rival in rivals:
        rival.communicate(timeout=60)
        assert rival.returncode == 0

    async def story():
        store = await SqliteStore.open(path)
        events = await store.read(SCOPE, "r1")
        await store.close()
        return [event.seq for event in events]

    assert play(story()) == list(range(1, 26))
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
