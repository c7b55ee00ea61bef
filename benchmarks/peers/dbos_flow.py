"""The flow with DBOS: a workflow that calls three steps, kept in SQLite.

Plain functions, called from the main thread: what its documentation shows first, and the cheapest.
DBOS leaves `synchronous` at what SQLite has, FULL. It also leaves the rollback journal, with two
syncs and a file made and removed per transaction; the file is put into WAL mode here beforehand,
which stays with the file and costs less.
"""

import logging
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dbos import DBOS
from flow_job import Play, main, one_after_the_other, parcel_of, place_of, price_of


@DBOS.step()
def price(number: int) -> int:
    """Say what the order costs."""
    return price_of(number)


@DBOS.step()
def reserve(cost: int) -> int:
    """Take it from its place."""
    return place_of(cost)


@DBOS.step()
def ship(number: int, place: int) -> str:
    """Send it."""
    return parcel_of(number, place)


@DBOS.workflow()
def order(number: int) -> dict[str, Any]:
    """Do the three steps."""
    cost = price(number)
    place = reserve(cost)
    return {"number": number, "price": cost, "place": place, "sent": ship(number, place)}


@contextmanager
def open_play() -> Iterator[Play]:
    """Launch DBOS with a new file; both go when the context ends."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dbos.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        DBOS(
            config={
                "name": "flow",
                "system_database_url": f"sqlite:///{path}",
                "run_admin_server": False,
            }
        )
        DBOS.launch()
        try:
            yield one_after_the_other(order)
        finally:
            DBOS.destroy()


if __name__ == "__main__":
    main("dbos", open_play)
