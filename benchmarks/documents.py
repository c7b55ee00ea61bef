"""What it costs to find a document, beside the same query written by hand in the same run.

"Source" is the whole fetch stage of a run: a `once` variable is looked up, judged by its type, and
becomes events. "By hand" is sqlite3 through `asyncio.to_thread` on a table with the same key and an
index on the field, and `json.loads`; neither the tenant nor the query is checked there. Every cost
is the best of several rounds that take turns. Usage: python benchmarks/documents.py [--enforce]
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from weft.adapters.documents.sqlite import SqliteDocuments
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.engine.commands import Fetch
from weft.engine.state import State
from weft.ports.documents import Collection
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.runtime.variables.fetching import fetch
from weft.runtime.workflow import link
from weft.spec.workflow import WorkflowSpec

RATIO_BUDGET: Final = 3.0
ROUNDS: Final = 15
FINDS: Final = 500
DOCUMENTS: Final = 20_000

SCOPE: Final = Scope.operator("shop")
ORDERS: Final = Collection("Orders")

Find = Callable[[str], Awaitable[Any]]


def document(number: int) -> dict[str, Any]:
    """Return one of the documents."""
    lines = [{"sku": f"A-{number}", "count": number} for number in range(5)]
    return {"customer": f"c{number}", "status": "open", "total": number / 4, "lines": lines}


def fill(path: Path) -> None:
    """Put documents into a store in one go: what that costs is not the question here."""
    rows = ((f"k{number}", json.dumps(document(number))) for number in range(DOCUMENTS))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO documents (app, database, collection, key, body) "
            "VALUES ('shop', '', 'Orders', ?, ?)",
            rows,
        )
        connection.execute(
            "CREATE INDEX by_customer "
            "ON documents (app, database, collection, json_extract(body, '$.customer'))"
        )


def by_source(store: SqliteDocuments) -> Find:
    """Return what a run does at its start for a variable that comes from a document."""
    source = {"type": "database", "collection": "Orders", "search_by": "customer"}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {
                "customer": {"type": "str", "source": {"type": "derived"}},
                "order": {"type": "dict[str, any]", "source": source},
            },
        }
    )
    with closing(PythonToolLoader()) as loader:
        workflow = link(spec, {}, loader)
    outside, command = (
        ExternalPorts(documents=store),
        Fetch("", 0, ("order",), servers=False, seq=1),
    )

    state = State("run", app="shop")

    async def find(number: str) -> Any:  # noqa: ANN401
        state.variables = {"customer": f"c{number}", "order": None}
        read, _ = await fetch(outside, workflow, state, command)
        return read

    return find


def by_hand(connection: sqlite3.Connection, condition: str, prefix: str) -> Find:
    """Return the query as somebody would write it."""
    place = "app = ? AND database = ? AND collection = ?"
    sql = f"SELECT body FROM documents WHERE {place} AND {condition}"

    def read(value: str) -> Any:  # noqa: ANN401
        return json.loads(connection.execute(sql, ("shop", "", "Orders", value)).fetchone()[0])

    return lambda number: asyncio.to_thread(read, f"{prefix}{number}")


async def cost(find: Find) -> float:
    """Return the microseconds that one find takes."""
    begun = time.perf_counter()
    for number in range(0, FINDS * 31, 31):
        if await find(str(number % DOCUMENTS)) is None:
            raise SystemExit("a document was not found")
    return (time.perf_counter() - begun) / FINDS * 1e6


async def compare(name: str, weft: Find, hand: Find) -> bool:
    """Print what a find costs each way, and tell whether that is within budget."""
    pairs = [(await cost(weft), await cost(hand)) for _ in range(ROUNDS)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    print(f"{name:<9} {ours:7.0f} {theirs:7.0f} {ours / theirs:6.2f}")
    return ours / theirs <= RATIO_BUDGET


async def main() -> int:
    """Measure, print, and fail with --enforce where the budget is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.db"
        store = await SqliteDocuments.open(path)
        fill(path)
        print(f"microseconds to find one of {DOCUMENTS:,} documents (budget {RATIO_BUDGET:g} x)")
        print(f"{'':<9} {'Weft':>7} {'by hand':>7} {'ratio':>6}")
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            within = [
                await compare(
                    "by key",
                    lambda number: store.find(SCOPE, ORDERS, {"_id": f"k{number}"}),
                    by_hand(connection, "key = ?", "k"),
                ),
                await compare(
                    "by field",
                    lambda number: store.find(SCOPE, ORDERS, {"customer": f"c{number}"}),
                    by_hand(connection, "json_extract(body, '$.customer') = ?", "c"),
                ),
                await compare(
                    "source",
                    by_source(store),
                    by_hand(connection, "json_extract(body, '$.customer') = ?", "c"),
                ),
            ]
        await store.close()
    return 1 if "--enforce" in sys.argv and not all(within) else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
