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

import asyncpg
import pytest

from support.effort import TIMES
from support.retrieval_play import by_words, collection_database

ADDER = Path(__file__).with_name("collection_adder.py")
FILES = 60 if TIMES > 1 else 20


def text(number: int) -> str:
    return f"unique{number} bees dance. " * (1 + number % 3 * 40)


def write(workspace: Path) -> None:
    (workspace / "notes").mkdir()
    for number in range(FILES):
        (workspace / "notes" / f"{number}.txt").write_text(text(number))


def killed(workspace: Path, store: str, lines: int, seconds: float) -> bool:
    """Let a process add until it has said so many lines; tell whether it was killed."""
    command = [sys.executable, str(ADDER), str(workspace), store]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _, _ in zip(range(lines), child.stdout, strict=False):
            pass
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
    return child.returncode == -signal.SIGKILL


async def searched(workspace: Path, store: str) -> list[str | None]:
    """Add all files, and return what a search finds for each."""
    async with by_words(workspace, store) as collections:
        await collections.add("Notes", [workspace / "notes"])
        best = [
            (await collections.search("Notes", f"unique{number} bees dance", min_relevance=0))[0]
            for number in range(FILES)
        ]
    return [item.source_id for item in best]


STORED = (
    "SELECT sources.source, content FROM passages JOIN sources ON sources.id = passages.source "
    "WHERE vector IS NOT NULL ORDER BY 1, passages.id"
)
COUNTED = "SELECT passages, (SELECT count(*) FROM passages) FROM collections"


def rows_of_file(workspace: Path) -> tuple[list[tuple[str, str]], tuple[int, int]]:
    """Return the passages with vectors, and the counted passages beside those there are."""
    [file] = workspace.glob(".weft/collections/*/*.db")
    with sqlite3.connect(file) as connection:
        rows = connection.execute(STORED).fetchall()
        [counts] = connection.execute(COUNTED)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    connection.close()
    return rows, counts


async def rows_of_database(url: str) -> tuple[list[tuple[str, str]], tuple[int, int]]:
    """Return the same of PostgreSQL, and check that each vector is there for pgvector too."""
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    try:
        rows = [tuple(row) for row in await connection.fetch(STORED)]
        [counts] = await connection.fetch(COUNTED)
        assert await connection.fetchval("SELECT count(*) FROM embeddings") == len(rows)
    finally:
        await connection.close()
    return rows, tuple(counts)


def found(workspace: Path, store: str) -> tuple[list[tuple[str, str]], list[str | None]]:
    """Return what is in the collection, and what a search finds for each source."""
    best = asyncio.run(searched(workspace, store))
    rows, counts = asyncio.run(rows_of_database(store)) if store else rows_of_file(workspace)
    assert counts == (len(rows), len(rows))
    return rows, best


@pytest.fixture(params=["files", "postgres"])
def stores(request):
    """The addresses of two empty stores of collections; '' for the files of a workspace."""
    if request.param == "files":
        yield "", ""
        return
    server = request.getfixturevalue("postgres_url")
    with collection_database(server) as one, collection_database(server) as other:
        yield one, other


def test_a_killed_add_is_repeated_and_nothing_is_lost_or_twice(tmp_path, stores):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
        write(folder)
    expected = found(whole, stores[0])
    chance = Random(11)
    kills = [
        killed(broken, stores[1], 2 + 7 * (number % 3), chance.random() * 0.01)
        for number in range(2 * TIMES)
    ]
    assert any(kills)
    assert found(broken, stores[1]) == expected
    assert expected[1] == [f"notes/{number}.txt" for number in range(FILES)]
