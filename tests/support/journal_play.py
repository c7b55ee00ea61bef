"""What tests of journals share: a bounded event loop, and a look into the file."""

import asyncio
import sqlite3
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def play(story: Coroutine[Any, Any, T]) -> T:
    """Run a story, but not for ever."""
    return asyncio.run(asyncio.wait_for(story, 60))


def look(path: Path, sql: str, *values: Any) -> list[Any]:
    """Ask a database file, or change it, while another connection has it open."""
    with closing(sqlite3.connect(path, timeout=0)) as connection, connection:
        return connection.execute(sql, values).fetchall()
