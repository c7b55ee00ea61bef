"""Several processes on one journal file."""

import subprocess
import sys

from support.journal_play import look, play
from weft.adapters.sqlite import SqliteJournal
from weft.testing.journal.samples import SCOPE

RIVAL = """
import asyncio, sys
from pathlib import Path
from weft.adapters.sqlite import SqliteJournal
from weft.errors import StoreConflict
from weft.testing.journal.samples import SCOPE, SampleRun

async def main():
    # All begin at the same moment, on a file that does not exist yet.
    print("ready", flush=True)
    sys.stdin.readline()
    journal = await SqliteJournal.open(Path(sys.argv[1]), busy_seconds=30)
    won = lost = 0
    while won + lost < 25:
        row = await journal.run(SCOPE, "r1")
        run = SampleRun("r1", seq=row.seq if row else 0)
        try:
            await journal.append(run.batch())
            won += 1
        except StoreConflict:
            lost += 1
    await journal.close()
    print(won, lost)

asyncio.run(main())
"""


def test_of_several_processes_one_wins_each_round(tmp_path):
    path = tmp_path / "journal.db"
    command = [sys.executable, "-c", RIVAL, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rivals = [subprocess.Popen(command, **pipes) for _ in range(4)]
    assert [rival.stdout.readline() for rival in rivals] == ["ready\n"] * len(rivals)
    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    results = [rival.communicate(timeout=60)[0].split() for rival in rivals]
    won = sum(int(it[0]) for it in results)
    lost = sum(int(it[1]) for it in results)
    assert won + lost == 100
    assert lost > 0

    async def story():
        journal = await SqliteJournal.open(path)
        events = await journal.read(SCOPE, "r1")
        await journal.close()
        return [it.seq for it in events]

    assert play(story()) == list(range(1, won + 1))
    assert look(path, "PRAGMA integrity_check") == [("ok",)]
