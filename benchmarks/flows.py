"""What a run of a flow costs: three steps, each of which sets a field, safe on disk one by one.

    benchmarks/peers/install dbos langgraph
    python benchmarks/flows.py [--enforce] [--only latency|peers]

**Latency.** From the start of a run until it has ended, beside three transactions by hand that
write the same rows (events and the row of the run, into the same tables with the same indexes) in
another file, each off the event loop (`asyncio.to_thread`). The rows are made beforehand. The two
take turns, run by run, both with `synchronous=FULL`; of each, the best median of fifty counts.

**Peers.** CPU for a run and its result, one run after the other, all threads: Weft, DBOS and
LangGraph with its SQLite checkpointer, each in its own process and environment, in turns. Every
number is the best of several rounds. All write ahead (WAL) with `synchronous=FULL`.
"""

import asyncio
import gc
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from peers.roster import FOLDER, Peer, Unmeasured, environment

sys.path.insert(0, str(FOLDER))  # The programs of the peers import each other by name.

from weft_flow import completed, flow

from by_hand import Rows, insert, noted_batches, open_connection, rows_of
from weft.adapters.sql.rows import Written, column_names
from weft.adapters.sql.tables import RUN_COLUMNS
from weft.app.flows import open_flow

#: The median of runs, as a multiple of three transactions by hand.
LATENCY_BUDGET: Final = 3.0
#: CPU of Weft as a part of that of the others: what holds today. The aim is 1/5 and 1/2.
PEER_BUDGETS: Final = {"dbos": 1 / 2, "langgraph": 1 / 1.3}

PAIRS: Final = 400
#: So many runs make one median.
TOGETHER: Final = 50
WARMUP: Final = 30
STEPS: Final = 3
ROUNDS: Final = 4
LIMIT_S: Final = 120

PEERS: Final = (
    Peer("weft", "weft_flow.py", None),
    Peer("weft_async", "weft_flow.py", None),
    Peer("dbos", "dbos_flow.py", "dbos", framework=True),
    Peer("langgraph", "langgraph_flow.py", "langgraph", framework=True),
)
RUNS: Final = {"weft": 400, "weft_async": 400, "dbos": 150, "langgraph": 150}

_COLUMNS: Final = column_names(RUN_COLUMNS)
INSERT_RUN: Final = (
    f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    "ON CONFLICT (app, run) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[6:])
)

#: The rows of events and the row of the run, of one transaction.
RunRows = tuple[Rows, tuple[Any, ...]]


# -- latency


def transactions(written: Sequence[Written]) -> list[RunRows]:
    """Return the rows of a run in three transactions: by hand, a run begins with its first step."""
    begun, *steps = written
    groups = [[begun, steps[0]], *([step] for step in steps[1:])]
    if len(groups) != STEPS:
        sys.exit(f"cannot compare: a run was written in {len(written)} batches")
    return [(rows_of(group), group[-1].run) for group in groups]


def insert_run(connection: sqlite3.Connection, rows: RunRows) -> None:
    """Write rows by hand, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    insert(connection, rows[0])
    connection.execute(INSERT_RUN, rows[1])
    connection.execute("COMMIT")


async def in_turns(folder: Path, pairs: int, *, in_threads: bool) -> tuple[float, float]:
    """Return how long a run takes in milliseconds, and writing its rows by hand."""
    runs: list[float] = []
    by_hand: list[float] = []
    kind = "plain" if in_threads else "async"
    with ExitStack() as stack:
        noted = stack.enter_context(noted_batches())
        hand = await asyncio.to_thread(open_connection, folder / f"hand-{kind}.db", "full")
        stack.enter_context(closing(hand))
        opened = open_flow(flow(in_threads=in_threads), journal=folder / f"weft-{kind}.db")
        async with opened as host:
            for number in range(WARMUP + pairs):
                if number == WARMUP:
                    gc.collect()
                    runs, by_hand = [], []
                noted.clear()
                begun = time.perf_counter()
                await completed(host, number)
                runs.append(time.perf_counter() - begun)
                rows = transactions([written for group in noted for written in group])
                begun = time.perf_counter()
                for row in rows:
                    await asyncio.to_thread(insert_run, hand, row)
                by_hand.append(time.perf_counter() - begun)
    return best_median(runs) * 1000, best_median(by_hand) * 1000


def best_median(seconds: Sequence[float]) -> float:
    """Return the least of the medians of those that followed each other."""
    return min(median(seconds[at : at + TOGETHER]) for at in range(0, len(seconds), TOGETHER))


def report_latency(pairs: int) -> bool:
    """Print how long runs take beside the same rows by hand, and tell whether that is in budget."""
    print(f"latency of a run (best p50 of {TOGETHER} among {pairs}, ms)")
    print(f"  {'steps':<22} {'Weft':>7} {'by hand':>8} {'ratio':>6}")
    within = True
    with tempfile.TemporaryDirectory() as folder:
        for in_threads, name in ((True, "functions, in threads"), (False, "functions, awaited")):
            weft, hand = asyncio.run(in_turns(Path(folder), pairs, in_threads=in_threads))
            ratio = weft / hand
            within = within and ratio <= LATENCY_BUDGET
            print(f"  {name:<22} {weft:>7.2f} {hand:>8.2f} {ratio:>6.2f}", flush=True)
    print(f"budget: {LATENCY_BUDGET:g} x three transactions by hand")
    return within


# -- peers


@dataclass(frozen=True, slots=True)
class Cost:
    """What a peer printed of one round."""

    cpu_ms: float
    p50_ms: float
    rss_mb: float


def measure(peer: Peer) -> Cost:
    """Run one peer in a process of its own and return what it printed."""
    count = RUNS[peer.name]
    command = [str(peer.python), str(FOLDER / peer.program), "--runs", str(count)]
    if peer.name == "weft_async":
        command.append("--async-steps")
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
    except subprocess.TimeoutExpired as trouble:
        raise Unmeasured(f"not finished after {LIMIT_S} s") from trouble
    except subprocess.CalledProcessError as trouble:
        last = trouble.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise Unmeasured(f"ended with exit code {trouble.returncode}: {last[0]}") from trouble
    line = json.loads(done.stdout.splitlines()[-1])
    if not line["ok"] or line["runs"] != count:
        raise Unmeasured(f"did the job wrongly: {done.stdout.strip()}")
    return Cost(line["cpu_ms"], line["p50_ms"], line["rss_mb"])


def best(costs: Sequence[Cost]) -> Cost:
    """Return the least that was ever needed."""
    return Cost(*(min(getattr(cost, name) for cost in costs) for name in Cost.__slots__))


def report_peers(rounds: int) -> bool:
    """Print what a run costs each, and tell whether that is within budget."""
    costs: dict[str, list[Cost]] = {}
    for number in range(rounds):
        for peer in PEERS:
            if peer.missing:
                if not number:
                    print(f"left out: {peer.name}: {peer.missing}")
                continue
            print(f"round {number + 1} of {rounds}: {peer.name}", file=sys.stderr, flush=True)
            try:
                costs.setdefault(peer.name, []).append(measure(peer))
            except Unmeasured as trouble:
                print(f"not measured: {peer.name}: {trouble}")
    found = {name: best(all_) for name, all_ in costs.items()}
    weft = found.get("weft")
    print("CPU of a run with its result, one after the other (best of rounds)")
    print(f"  {'peer':<11} {'CPU ms':>7} {'Weft needs':>11} {'p50 ms':>7} {'peak MB':>8}")
    for name, cost in found.items():
        part = f"1/{cost.cpu_ms / weft.cpu_ms:.1f}" if weft else ""
        print(
            f"  {name:<11} {cost.cpu_ms:>7.2f} {part:>11} {cost.p50_ms:>7.2f} {cost.rss_mb:>8.0f}"
        )
    limits = ", ".join(f"1/{1 / budget:g} of {name}" for name, budget in PEER_BUDGETS.items())
    print(f"budgets: at most {limits}")
    if weft is None or any(name not in found for name in PEER_BUDGETS):
        print("Not every budget was checked: that takes Weft and both peers.")
        return False
    return all(weft.cpu_ms <= found[name].cpu_ms * budget for name, budget in PEER_BUDGETS.items())


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    parser = ArgumentParser(description="Measure what a run of a flow costs.")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--only", choices=("latency", "peers"), help="measure one of the two")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    options = parser.parse_args()
    within: list[bool] = []
    if options.only != "peers":
        within.append(report_latency(options.pairs))
    if options.only != "latency":
        within.append(report_peers(options.rounds))
    return 1 if options.enforce and not all(within) else 0


if __name__ == "__main__":
    sys.exit(main())
