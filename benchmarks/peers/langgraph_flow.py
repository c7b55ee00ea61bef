"""The flow with LangGraph: a state graph of three nodes and its SQLite checkpointer.

The synchronous `SqliteSaver`, the cheaper of its two, and `durability="sync"`: a step is safe
before the next begins. It puts the file into WAL mode itself; `synchronous` is set to FULL here.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flow_job import Play, main, one_after_the_other, parcel_of, place_of, price_of
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Order(TypedDict):
    """What the nodes share."""

    number: int
    price: int
    place: int
    sent: str


def price(state: Order) -> dict[str, Any]:
    """Say what the order costs."""
    return {"price": price_of(state["number"])}


def reserve(state: Order) -> dict[str, Any]:
    """Take it from its place."""
    return {"place": place_of(state["price"])}


def ship(state: Order) -> dict[str, Any]:
    """Send it."""
    return {"sent": parcel_of(state["number"], state["place"])}


def make_graph() -> StateGraph[Order]:
    """Put the three steps in a row."""
    graph = StateGraph(Order)
    for step in (price, reserve, ship):
        graph.add_node(step.__name__, step)
    graph.add_edge(START, "price")
    graph.add_edge("price", "reserve")
    graph.add_edge("reserve", "ship")
    graph.add_edge("ship", END)
    return graph


@contextmanager
def open_play() -> Iterator[Play]:
    """Compile the graph once, with its checkpoints in a new file."""
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "checkpoints.db"
        saver = stack.enter_context(SqliteSaver.from_conn_string(str(path)))
        saver.conn.execute("PRAGMA synchronous = FULL")
        compiled = make_graph().compile(checkpointer=saver)

        def job(number: int) -> dict[str, Any]:
            config = {"configurable": {"thread_id": str(number)}}
            start = {"number": number, "price": 0, "place": 0, "sent": ""}
            return compiled.invoke(start, config, durability="sync")

        yield one_after_the_other(job)


if __name__ == "__main__":
    main("langgraph", open_play)
