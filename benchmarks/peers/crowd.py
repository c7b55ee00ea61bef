"""Many chats at once with a model that takes its time: how long are turns, and does any run fail?

    python crowd.py --peer floor|weft --base-url URL --runs N [--over SECONDS] [--journal sqlite]

Prints one line of JSON. All chats are opened first; then their users ask, evenly over so many
seconds or all at once. A turn takes from when it begins until it has ended, for Weft by its own
journal. As many chats run before and do not count, so that opening connections is not
opened.
"""

import asyncio
import gc
import json
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aiohttp import ClientSession
from floor_job import Desk, do, open_desks
from floor_store import Keep
from job import is_right
from measure import OpenChat, Options, Talk, Turns


class TimedDesk(Desk):
    """A desk that notes how long its turns take."""

    def __init__(self, session: ClientSession, url: str, keep: Keep, number: int) -> None:
        super().__init__(session, url, keep, number)
        self.turns: list[float] = []

    async def turn(self, agent: str, prompt: str, tools: list[Any] | None = None) -> str:
        """Let one agent answer."""
        begun = time.perf_counter()
        text = await super().turn(agent, prompt, tools)
        self.turns.append((time.perf_counter() - begun) * 1000)
        return text


@asynccontextmanager
async def floor_chats(options: Options) -> AsyncIterator[OpenChat]:
    """Run the job as written by hand."""
    async with open_desks(options, TimedDesk) as desk_of:

        async def open_chat(number: int) -> Talk:
            desk = desk_of(number)

            async def talk() -> Turns:
                outcome = await do(desk, number)

                async def turns() -> list[float]:
                    return desk.turns if is_right(number, outcome) else []

                return turns

            return talk

        yield open_chat


def opened(peer: str, options: Options) -> AbstractAsyncContextManager[OpenChat]:
    """Open one side; the floor is measured in a process that knows nothing of Weft."""
    if peer == "floor":
        return floor_chats(options)
    from weft_crowd import weft_chats  # noqa: PLC0415

    return weft_chats(options)


async def evenly(talks: list[Talk], seconds: float) -> list[Turns]:
    """Let one user after the other ask, over so many seconds, and wait for all."""

    async def later(at: int, talk: Talk) -> Turns:
        await asyncio.sleep(seconds * at / len(talks))
        return await talk()

    return await asyncio.gather(*map(later, range(len(talks)), talks))


async def measured(peer: str, options: Options, over: float) -> dict[str, float]:
    """Warm up with all at once, then measure."""
    async with opened(peer, options) as open_chat:
        await evenly(await asyncio.gather(*map(open_chat, range(options.warmup))), 0.0)
        numbers = range(options.warmup, options.warmup + options.jobs)
        talks = await asyncio.gather(*map(open_chat, numbers))
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        done = await evenly(talks, over)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        # Looked up when all is over: what measures must not slow down what is measured.
        results = [await turns() for turns in done]
    turns = sorted(turn for result in results for turn in result)
    return {
        "failed": sum(not result for result in results),
        "p50_ms": at_share(turns, 0.5),
        "p99_ms": at_share(turns, 0.99),
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu, 3),
    }


def at_share(ordered: list[float], share: float) -> float:
    """Return the value that this share of all values does not exceed."""
    return round(ordered[int(len(ordered) * share)], 1) if ordered else float("inf")


def main() -> None:
    """Measure one peer and print its line."""
    parser = ArgumentParser(description="Measure the turns of many runs at once.")
    parser.add_argument("--peer", choices=("floor", "weft"), required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--over", type=float, default=0.0, help="seconds in which users ask")
    parser.add_argument("--journal", choices=("memory", "sqlite"), default="memory")
    given = parser.parse_args()
    options = Options(given.base_url, given.runs, given.runs, given.runs, given.journal)
    # What docs/running.md advises for a process with many runs, on both sides.
    gc.set_threshold(50_000, 20, 20)
    print(json.dumps(asyncio.run(measured(given.peer, options, given.over))))


if __name__ == "__main__":
    main()
