"""How every peer is measured: the same arguments, the same clock, one line of JSON at the end.

Only the standard library is used here, because every peer imports this file in an environment of
its own. README.md in the folder above states the contract.
"""

import asyncio
import gc
import json
import resource
import time
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Literal

from job import Outcome, is_right

#: Does one job to its end; the number makes its question unlike any other.
Job = Callable[[int], Awaitable[Outcome]]
#: Looks up how many milliseconds the turns of a chat took; none if it did not end as it must.
Turns = Callable[[], Awaitable[list[float]]]
#: Lets the user of an open chat ask, and returns when the chat is at rest again.
Talk = Callable[[], Awaitable[Turns]]
#: Opens a chat that waits for its user.
OpenChat = Callable[[int], Awaitable[Talk]]


@dataclass(frozen=True, slots=True)
class Options:
    """What the runner asks of a peer."""

    base_url: str
    concurrency: int
    jobs: int
    warmup: int
    journal: Literal["memory", "sqlite", "postgres"]


@dataclass(frozen=True, slots=True)
class Report:
    """One measurement, as printed."""

    peer: str
    concurrency: int
    cpu_ms_per_call: float
    wall_s: float
    rss_mb: float
    calls: int
    ok: bool


def main(
    peer: str,
    open_job: Callable[[Options], AbstractAsyncContextManager[Job]],
    *,
    journals: tuple[str, ...] = ("memory",),
    cpu: Callable[[], float] = time.process_time,
) -> None:
    """Read the arguments, measure one peer and print its report.

    `cpu` returns the seconds that were used so far, by this process and what works for it.
    """
    parser = ArgumentParser(description=f"Measure the three-agent job with {peer}.")
    parser.add_argument("--base-url", required=True, help="address of the model, ending in /v1")
    parser.add_argument("--concurrency", type=int, required=True, help="jobs under way at once")
    parser.add_argument("--jobs", type=int, required=True, help="jobs to measure")
    parser.add_argument("--warmup", type=int, help="jobs before measuring (default: concurrency)")
    parser.add_argument("--journal", choices=journals, default="memory")
    given = parser.parse_args()
    warmup = given.concurrency if given.warmup is None else given.warmup
    options = Options(given.base_url, given.concurrency, given.jobs, warmup, given.journal)
    # As servers do: waiting jobs would be examined again and again. The same for every peer.
    gc.set_threshold(50_000, 20, 20)
    name = peer if options.journal == "memory" else f"{peer}_{options.journal}"
    print(json.dumps(asdict(asyncio.run(_measure(name, open_job, options, cpu)))), flush=True)


async def _measure(
    peer: str,
    open_job: Callable[[Options], AbstractAsyncContextManager[Job]],
    options: Options,
    used: Callable[[], float],
) -> Report:
    async with open_job(options) as job:
        await _run(job, range(options.warmup), options.concurrency)
        numbers = range(options.warmup, options.warmup + options.jobs)
        gc.collect()
        cpu, wall = used(), time.perf_counter()
        outcomes = await _run(job, numbers, options.concurrency)
        cpu, wall = used() - cpu, time.perf_counter() - wall
        calls = sum(outcome.calls for outcome in outcomes.values())
        return Report(
            peer=peer,
            concurrency=options.concurrency,
            cpu_ms_per_call=round(cpu * 1000 / calls, 4),
            wall_s=round(wall, 3),
            # Linux counts the peak in KiB.
            rss_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            calls=calls,
            ok=all(is_right(number, outcomes[number]) for number in numbers),
        )


async def _run(job: Job, numbers: Iterable[int], concurrency: int) -> dict[int, Outcome]:
    """Do all jobs with at most so many under way, each worker taking the next that is left."""
    left = iter(numbers)
    outcomes: dict[int, Outcome] = {}

    async def work() -> None:
        for number in left:
            outcomes[number] = await job(number)

    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(work())
    return outcomes
