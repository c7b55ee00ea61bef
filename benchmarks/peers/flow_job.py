"""The flow of benchmarks/flows.py: three steps, each of which sets one field, and how it is timed.

Only the standard library is used here, because every peer imports this file in an environment of
its own. A peer performs one run after the other and reports the state of each.
"""

import gc
import json
import resource
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

#: Before the clock starts.
WARMUP: Final = 30


@dataclass(frozen=True, slots=True)
class Run:
    """One run to its end: how long it took, and the state then."""

    number: int
    seconds: float
    state: dict[str, Any]


#: Does the runs of these numbers, one after the other.
Play = Callable[[Sequence[int]], list[Run]]


@dataclass(frozen=True, slots=True)
class Report:
    """One measurement, as printed."""

    peer: str
    runs: int
    cpu_ms: float
    p50_ms: float
    rss_mb: float
    ok: bool


def price_of(number: int) -> int:
    """Do what the first step does: say what an order costs."""
    return number * 3 + 5


def place_of(price: int) -> int:
    """Do what the second does: take it from its place on the shelf."""
    return price % 97


def parcel_of(number: int, place: int) -> str:
    """Do what the third does: send it."""
    return f"parcel-{number}-{place}"


def is_right(run: Run) -> bool:
    """Tell whether a run has the expected state."""
    price = price_of(run.number)
    place = place_of(price)
    sent = parcel_of(run.number, place)
    return run.state == {"number": run.number, "price": price, "place": place, "sent": sent}


def main(peer: str, open_play: Callable[[], AbstractContextManager[Play]]) -> None:
    """Read the arguments, measure one peer and print its report."""
    parser = ArgumentParser(description=f"Measure the flow of three steps with {peer}.")
    parser.add_argument("--runs", type=int, required=True)
    count = parser.parse_args().runs
    with open_play() as play:
        play(range(WARMUP))
        gc.collect()
        cpu = time.process_time()
        runs = play(range(WARMUP, WARMUP + count))
        cpu = time.process_time() - cpu
    report = Report(
        peer=peer,
        runs=len(runs),
        cpu_ms=round(cpu * 1000 / count, 4),
        p50_ms=round(median(run.seconds for run in runs) * 1000, 4),
        # Linux counts the peak in KiB.
        rss_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        ok=all(map(is_right, runs)),
    )
    print(json.dumps(asdict(report)), flush=True)


def one_after_the_other(job: Callable[[int], dict[str, Any]]) -> Play:
    """Return how a peer plays whose job is a function that returns the state."""

    def play(numbers: Sequence[int]) -> list[Run]:
        runs: list[Run] = []
        for number in numbers:
            begun = time.perf_counter()
            state = job(number)
            runs.append(Run(number, time.perf_counter() - begun, state))
        return runs

    return play
