"""What runs cost while they wait: for a model that takes its time, and for people.

    python benchmarks/waiting.py [--enforce]

A crowd of 1,000 chats is open with a model that takes 200 ms, and the time of their turns is
compared with that of the job written by hand. Their users ask evenly over some seconds; then all at
once, where both sides wait for the processor more than for the model. After that 10,000 chats wait
for their users, and 10,000 more for a timer as well, and the process should have nothing to do.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final, Literal

from peers.roster import FOLDER, PEERS, environment
from turns import mock_model

CROWD: Final = 1000
LATENCY_MS: Final = 200
#: Over how many seconds the users of the crowd ask: slow or busy machines keep up with this.
SPREAD_S: Final = 20.0
ROUNDS: Final = 1
#: All at once is over in seconds and differs more from one time to the next.
ROUNDS_AT_ONCE: Final = 5
LIMIT_S: Final = 120
TURN_BUDGET: Final = 1.5

WAITING: Final = 10_000
#: Runs that are started before anything is measured, and how many are started at a time.
FIRST: Final = 1000
AT_A_TIME: Final = 500
WATCHED_S: Final = 2.0
#: A process that does nothing may still be looked after by its interpreter.
IDLE_CPU_BUDGET: Final = 0.01
#: Bytes of memory for each waiting run.
MEMORY_BUDGET: Final = 256

Kind = Literal["memory", "sqlite"]
Line = dict[str, float]


def crowd(peer: str, journal: Kind, over: float, base_url: str) -> Line:
    """Measure a crowd in a process of its own."""
    command = [
        *(str(PEERS[peer].python), str(FOLDER / "crowd.py"), "--peer", peer, "--journal", journal),
        *("--runs", str(CROWD), "--over", str(over), "--base-url", base_url),
    ]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True
    )
    return json.loads(done.stdout)


def middle(lines: list[Line]) -> Line:
    """Return the median of every number, but the sum of failed runs: every failure counts."""
    medians = {name: median(line[name] for line in lines) for name in lines[0]}
    return {**medians, "failed": sum(line["failed"] for line in lines)}


def crowds(journal: Kind, over: float, rounds: int, base_url: str) -> tuple[Line, Line]:
    """Measure the floor and Weft in turns, and return the medians of both."""
    floor: list[Line] = []
    weft: list[Line] = []
    for _ in range(rounds):
        floor.append(crowd("floor", journal, over, base_url))
        weft.append(crowd("weft", journal, over, base_url))
    return middle(floor), middle(weft)


def is_within(floor: Line, weft: Line) -> bool:
    """Tell whether no run failed, by hand neither, and the turns of Weft are short enough."""
    none_failed = not floor["failed"] and not weft["failed"]
    return none_failed and weft["p99_ms"] <= TURN_BUDGET * floor["p99_ms"]


def report_crowds(rounds: int) -> bool:
    """Print how long turns take in a crowd, and tell whether that is within budget."""
    if missing := PEERS["floor"].missing:
        print(f"crowd left out: the floor is {missing}")
        return False
    print(f"{CROWD:,} chats, a model that takes {LATENCY_MS} ms; milliseconds of a turn")
    print(
        f"  {'journal':<8} {'asked over':>10} | {'floor p50':>9} {'p99':>6} | {'Weft p50':>9}"
        f" {'p99':>6} | {'p99 ratio':>9} {'failed':>6} {'CPU s':>6}"
    )
    within: list[bool] = []
    kinds: tuple[Kind, ...] = ("memory", "sqlite")
    with mock_model(LATENCY_MS) as base_url:
        for over in (SPREAD_S, 0.0):
            for journal in kinds:
                times = rounds if over else rounds * ROUNDS_AT_ONCE
                floor, weft = crowds(journal, over, times, base_url)
                ratio = weft["p99_ms"] / floor["p99_ms"]
                print(
                    f"  {journal:<8} {over:>8g} s | {floor['p50_ms']:>9.0f} {floor['p99_ms']:>6.0f}"
                    f" | {weft['p50_ms']:>9.0f} {weft['p99_ms']:>6.0f} | {ratio:>9.2f}"
                    f" {weft['failed']:>6.0f} {weft['cpu_s']:>6.2f}",
                    flush=True,
                )
                within.append(is_within(floor, weft))
    print(f"budgets: none fails; p99 at most {TURN_BUDGET:g} x the floor's")
    return all(within)


def resident() -> int:
    """Return how many bytes of memory this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def report_waiting(*, timed: bool) -> bool:
    """Print what waiting runs cost, and tell whether that is within budget.

    `timed` ones wait for a timer of their own besides.
    """
    # Deferred: the crowds do not need it.
    sys.path.insert(0, str(FOLDER))
    from measure import Options  # noqa: PLC0415
    from weft_job import NAME, SCOPE, open_desk  # noqa: PLC0415

    # An unused address: the model is not called.
    options = Options("http://127.0.0.1:9/v1", 0, 0, 0, "sqlite")
    async with open_desk(options, timed=timed) as (host, store):

        async def begin(count: int) -> None:
            for size in portions(count):
                await asyncio.gather(*(host.start(NAME, scope=SCOPE) for _ in range(size)))
            await asyncio.sleep(0.1)
            gc.collect()

        await begin(FIRST)
        before = resident()
        await begin(WAITING - FIRST)
        each = (resident() - before) / (WAITING - FIRST)
        cpu = time.process_time()
        await asyncio.sleep(WATCHED_S)
        share = (time.process_time() - cpu) / WATCHED_S
        waiting = len(await store.requests(SCOPE))
        due = await store.next_due()
    what = "people, and each for a timer" if timed else "people"
    print(f"{waiting:,} runs wait for {what} (started: {WAITING:,})")
    print(f"  CPU: {share:.2%} of one core over {WATCHED_S:g} s (budget {IDLE_CPU_BUDGET:.0%})")
    print(f"  memory: {each:.0f} bytes for each of the last {WAITING - FIRST:,}", end=" ")
    print(f"(budget {MEMORY_BUDGET})")
    all_wait = waiting == WAITING and timed is (due is not None)
    return all_wait and share <= IDLE_CPU_BUDGET and each <= MEMORY_BUDGET


def portions(count: int) -> Iterator[int]:
    """Yield how many runs are started at a time."""
    while count > 0:
        yield min(AT_A_TIME, count)
        count -= AT_A_TIME


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    parser = ArgumentParser(description="Measure what runs cost while they wait.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--only", choices=("crowd", "people", "timers"), help="measure one of them")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    options = parser.parse_args()
    reports = {
        "crowd": lambda: report_crowds(options.rounds),
        "people": lambda: asyncio.run(report_waiting(timed=False)),
        "timers": lambda: asyncio.run(report_waiting(timed=True)),
    }
    within = [report() for name, report in reports.items() if options.only in (None, name)]
    return 1 if options.enforce and not all(within) else 0


if __name__ == "__main__":
    sys.exit(main())
