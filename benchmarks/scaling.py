"""How many processes 100,000 concurrent conversations need, simulated from measured costs.

Each conversation waits for its person, sends a message, and gets a reply after some model calls. A
message costs CPU of the gateway, of a worker and of the database; each of them is a number of cores
that do one thing after the other. The cost of a worker is read from what `turns.py --json FILE` has
measured on this machine; without it, and for the other costs, the defaults are those of
docs/scaling.md. The simulation draws the times at random, with a fixed seed.

Usage: python benchmarks/scaling.py [--costs FILE] [--conversations N] [--gateway-ms X] ...
"""

import argparse
import heapq
import json
import random
import sys
from pathlib import Path
from typing import Final

SECONDS: Final = 120

#: CPU in milliseconds: of a gateway per message, of a worker per model call, and of the database
#: for its share of a transaction.
DEFAULTS: Final = {"gateway": 1.8, "worker": 0.5, "database": 0.2}
#: What a worker does in `turns.py`: the peer, and how many conversations there are at once.
WORKER: Final = ("weft_postgres", "50")


class Cores:
    """Cores that do one job after the other; a job begins on the one that is free first."""

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count
        self.busy = 0.0

    def do(self, now: float, seconds: float) -> float:
        """Return when a job that comes now is done."""
        end = max(now, heapq.heappop(self._free)) + seconds
        heapq.heappush(self._free, end)
        self.busy += seconds
        return end


def simulate(options: argparse.Namespace) -> dict[str, float]:
    """Play all conversations; return the load of each part and the delays it causes."""
    chance = random.Random(7)
    gateway, database = Cores(options.gateways), Cores(options.database_cores)
    workers = Cores(options.workers)
    # When each conversation continues, and how many model calls it has left; 0: a message.
    due = [(chance.uniform(0, options.think_seconds), 0) for _ in range(options.conversations)]
    heapq.heapify(due)
    delays: list[float] = []
    messages = 0
    while due[0][0] < SECONDS:
        now, calls = heapq.heappop(due)
        if calls == 0:
            messages += 1
            ready = gateway.do(now, options.gateway_ms / 1000)
            ready = database.do(ready, options.database_ms / 1000)
            calls = options.calls
        else:
            ready = database.do(
                workers.do(now, options.worker_ms / 1000), options.database_ms / 1000
            )
            calls -= 1
        delays.append(ready - now)
        wait = chance.expovariate(1 / (options.model_seconds if calls else options.think_seconds))
        heapq.heappush(due, (ready + wait, calls))
    delays.sort()
    return {
        "messages per second": messages / SECONDS,
        "gateway load %": 100 * gateway.busy / SECONDS / options.gateways,
        "worker load %": 100 * workers.busy / SECONDS / options.workers,
        "database load %": 100 * database.busy / SECONDS / options.database_cores,
        "delay p50 ms": 1000 * delays[len(delays) // 2],
        "delay p99 ms": 1000 * delays[len(delays) * 99 // 100],
    }


def measured_worker_ms(file: Path) -> float:
    """Return the CPU of a model call that `turns.py` has measured, with that of the database."""
    peer, level = WORKER
    try:
        return float(json.loads(file.read_text())["turns"][level][peer]["cpu_ms_per_call"])
    except (OSError, ValueError, KeyError) as error:
        sys.exit(
            f"{file} has no costs of {peer} with {level} at once ({error!r}): "
            "write it with python benchmarks/turns.py --json FILE"
        )


def choose_costs(options: argparse.Namespace) -> None:
    """Set the costs that were not given, and print where each comes from."""
    for part, default in DEFAULTS.items():
        name = f"{part}_ms"
        source = f"--{part}-ms"
        if getattr(options, name) is None and part == "worker" and options.costs is not None:
            options.worker_ms = measured_worker_ms(options.costs)
            source = f"{options.costs}: {WORKER[0]}, {WORKER[1]} at once"
        elif getattr(options, name) is None:
            setattr(options, name, default)
            source = "default"
        print(f"{part:<9}{getattr(options, name):>6.2f} ms ({source})")


def main() -> None:
    """Print what a deployment would do."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--think-seconds", type=float, default=60, help="between two messages")
    parser.add_argument("--model-seconds", type=float, default=4, help="of one model call")
    parser.add_argument("--calls", type=int, default=3, help="model calls per message")
    parser.add_argument("--gateways", type=int, default=5)
    parser.add_argument("--workers", type=int, default=9)
    parser.add_argument("--database-cores", type=int, default=4)
    parser.add_argument("--gateway-ms", type=float, help="CPU per message")
    parser.add_argument("--worker-ms", type=float, help="CPU per model call")
    parser.add_argument("--database-ms", type=float, help="CPU per transaction's share")
    parser.add_argument(
        "--costs", type=Path, metavar="FILE", help="what turns.py --json has written"
    )
    options = parser.parse_args()
    choose_costs(options)
    for name, value in simulate(options).items():
        print(f"{name:<22}{value:>10.1f}")


if __name__ == "__main__":
    main()
