"""What a page of a list reads in PostgreSQL: as many rows as it has, and not all that there are."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from support.postgres_stores import store_place
from weft.adapters.sql import queries
from weft.adapters.sql.board import find_artifacts
from weft.adapters.sql.postgres import text
from weft.adapters.sql.postgres.store import _IN_ORDER, READER
from weft.ports.scope import Scope
from weft.runtime.board.reading import owners_of
from weft.testing.store.board_samples import BoardRun, published, query
from weft.testing.store.samples import APP, ME, SampleRun

PAGE = 5
MANY = 300
ANN = Scope(APP, "ann", roles=("clerk",))

PAGES = {
    "requests of a user (S5)": queries.find_requests(ANN, None, None, PAGE),
    "the next requests of a user": queries.find_requests(ANN, None, (2000, "r1", "q1"), PAGE),
    "artifacts of a user": find_artifacts(
        query(owners=owners_of(ANN), limit=PAGE, order="-created_at"), count=False
    ),
    "artifacts of some types": find_artifacts(
        query(owners=owners_of(ANN), types=("Note", "Idea"), limit=PAGE), count=False
    ),
}


async def fill(store: Any) -> None:
    """Write many requests of Ann and for clerks, and many artifacts, her own and shared ones."""
    for number in range(MANY):
        run = SampleRun(f"r{number}")
        addressee = "role:clerk" if number % 2 else ""
        asked = run.request(f"q{number}", opened_at=2000 + number, addressee=addressee)
        await store.append(run.batch(status="waiting", changes=[asked]), owner=ME)
    for name, owner in (("own", "user:ann"), ("shared", "")):
        board = BoardRun(name, owner=owner)
        notes = [published(number, id=f"{name}{number}") for number in range(MANY)]
        await store.append(board.writing(*notes), owner=ME)


def rows_read(plan: Any) -> Iterator[int]:
    """Yield how many rows each scan of a table has read."""
    if "Relation Name" in plan:
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from rows_read(part)


@pytest.fixture(scope="module")
def read(postgres_database: str) -> dict[str, int]:
    """Return the most rows that a scan reads, for each list."""

    async def explain() -> dict[str, int]:
        async with store_place(postgres_database, is_new=True) as place:
            await fill(await place.open())
            await place.sql("ANALYZE")  # As the server does by itself after a while.
            settings = {**_IN_ORDER, "search_path": place.schema, "role": READER, "weft.app": APP}
            connection = await asyncpg.connect(place.url, server_settings=settings)
            found: dict[str, int] = {}
            for name, transaction in PAGES.items():
                sql, values = text.statement_text(next(transaction))
                explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}"
                plan = json.loads(await connection.fetchval(explained, *values))[0]["Plan"]
                found[name] = max(int(rows) for rows in rows_read(plan))
            await connection.close()
            return found

    return asyncio.run(explain())


@pytest.mark.parametrize("name", PAGES)
def test_page_reads_no_more_than_it_has(name, read):
    assert 0 < read[name] <= 2 * PAGE
