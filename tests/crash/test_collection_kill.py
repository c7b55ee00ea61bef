"""A process that adds to a collection is killed at any moment: repeated, it loses nothing."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from support.effort import TIMES
from support.retrieval_play import by_words

ADDER = Path(__file__).with_name("collection_adder.py")
FILES = 60 if TIMES > 1 else 20


def text(number: int) -> str:
    return f"unique{number} bees dance. " * (1 + number % 3 * 40)


def write(workspace: Path) -> None:
    (workspace / "notes").mkdir()
    for number in range(FILES):
        (workspace / "notes" / f"{number}.txt").write_text(text(number))


def killed(workspace: Path, lines: int, seconds: float) -> bool:
    """Let a process add until it has said so many lines; tell whether it was killed."""
    command = [sys.executable, str(ADDER), str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _, _ in zip(range(lines), child.stdout, strict=False):
            pass
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
    return child.returncode == -signal.SIGKILL


async def searched(workspace: Path) -> list[str | None]:
    """Add all files, and return what a search finds for each."""
    async with by_words(workspace) as collections:
        await collections.add("Notes", [workspace / "notes"])
        best = [
            (await collections.search("Notes", f"unique{it} bees dance", min_relevance=0))[0]
            for it in range(FILES)
        ]
    return [it.source_id for it in best]


def found(workspace: Path) -> tuple[list[tuple[str, str]], list[str | None]]:
    """Return what is in the collection, and what a search finds for each source."""
    best = asyncio.run(searched(workspace))
    [file] = workspace.glob(".weft/collections/*/*.db")
    with sqlite3.connect(file) as connection:
        rows = connection.execute(
            "SELECT sources.source, content FROM passages "
            "JOIN sources ON sources.id = passages.source "
            "JOIN vectors ON vectors.passage = passages.id ORDER BY 1, passages.id"
        ).fetchall()
        [[passages]] = connection.execute("SELECT count(*) FROM passages")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    connection.close()
    assert passages == len(rows)
    return rows, best


def test_a_killed_add_is_repeated_and_nothing_is_lost_or_twice(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
        write(folder)
    expected = found(whole)
    chance = Random(11)
    kills = [killed(broken, 2 + 7 * (it % 3), chance.random() * 0.01) for it in range(2 * TIMES)]
    assert any(kills)
    assert found(broken) == expected
    assert expected[1] == [f"notes/{it}.txt" for it in range(FILES)]
