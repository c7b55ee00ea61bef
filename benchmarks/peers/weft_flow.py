"""The flow with Weft: three functions over a state that is a class of pydantic, durability `full`.

Plain functions may block, so they are called in threads; `--async-steps` measures functions that
are awaited instead. A run and its result are waited for as `run_flow` does.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from flow_job import Play, Run, main, parcel_of, place_of, price_of
from pydantic import BaseModel, ConfigDict

from weft.app.flows import open_flow, wait_until_idle
from weft.app.folders import LOCAL
from weft.flow import Workflow
from weft.runtime.host import Host

NAME: Final = "Order"
ASYNC: Final = "--async-steps"


class Order(BaseModel):
    """What the steps share."""

    model_config = ConfigDict(frozen=True)

    number: int = 0
    price: int = 0
    place: int = 0
    sent: str = ""


def price(state: Order) -> dict[str, Any]:
    """Say what the order costs."""
    return {"price": price_of(state.number)}


def reserve(state: Order) -> dict[str, Any]:
    """Take it from its place."""
    return {"place": place_of(state.price)}


def ship(state: Order) -> dict[str, Any]:
    """Send it."""
    return {"sent": parcel_of(state.number, state.place)}


def awaited(step: Callable[[Order], dict[str, Any]]) -> Callable[[Order], Any]:
    """Return a step as a function that is awaited."""

    async def work(state: Order) -> dict[str, Any]:
        return step(state)

    work.__name__ = work.__qualname__ = step.__name__
    return work


def flow(*, in_threads: bool = True) -> Workflow[Order]:
    """Return the three steps in a row."""
    steps = (
        [price, reserve, ship] if in_threads else [awaited(step) for step in (price, reserve, ship)]
    )
    return Workflow.create(NAME, Order).start_with(steps[0]).then(steps[1]).then(steps[2])


async def completed(host: Host, number: int) -> str:
    """Begin a run and return its name when it has ended."""
    run = await host.start(NAME, scope=LOCAL, values={"number": number})
    row = await host.settled(run, scope=LOCAL)
    if row.outcome != "completed":
        sys.exit(f"the flow ended as {row.outcome}: {row.reason}")
    return run


@contextmanager
def open_play() -> Iterator[Play]:
    """Open a host for the flow, with its journal in a new file."""
    steps = flow(in_threads=ASYNC not in sys.argv)

    async def play(host: Host, numbers: Sequence[int]) -> list[Run]:
        runs: list[Run] = []
        for number in numbers:
            begun = time.perf_counter()
            run = await host.start(NAME, scope=LOCAL, values={"number": number})
            state = await wait_until_idle(host, run, None)
            runs.append(Run(number, time.perf_counter() - begun, dict(state.variables)))
        return runs

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        opened = open_flow(steps, journal=Path(folder) / "weft.db")
        host = runner.run(opened.__aenter__())
        try:
            yield lambda numbers: runner.run(play(host, numbers))
        finally:
            runner.run(opened.__aexit__(None, None, None))


if __name__ == "__main__":
    asynchronous = ASYNC in sys.argv
    if asynchronous:
        sys.argv.remove(ASYNC)
    main("weft", open_play)
