"""How many processes 100,000 concurrent conversations need, simulated from measured costs.

Each conversation waits for its person, sends a message, and gets a reply after some model calls. A
message costs CPU of the gateway, of a worker and of the database; each of them is a number of cores
that do one thing after the other. The costs are those that `postgres.py` and `turns.py` print on a
machine; give your own. The simulation draws the times at random, with a fixed seed.

Usage: python benchmarks/scaling.py [--conversations N] [--workers N] [--gateway-ms X] ...
"""

import argparse
import heapq
import random
from typing import Final

SECONDS: Final = 120


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
    parser.add_argument("--gateway-ms", type=float, default=1.8, help="CPU per message")
    parser.add_argument("--worker-ms", type=float, default=0.5, help="CPU per model call")
    parser.add_argument(
        "--database-ms", type=float, default=0.2, help="CPU per transaction's share"
    )
    for name, value in simulate(parser.parse_args()).items():
        print(f"{name:<22}{value:>10.1f}")


if __name__ == "__main__":
    main()
