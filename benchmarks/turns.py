"""What a turn costs: CPU per model call of one job, by hand, with Weft and with frameworks.

    benchmarks/peers/install
    python benchmarks/turns.py [--peers floor,langgraph] [--concurrency 1,50,500] [--enforce]
        [--json FILE]

Every peer runs in its own process and environment against one mock model on 127.0.0.1; the rounds
are interleaved, so that a busy machine weighs on all alike, and only ratios of medians are held
against a budget. README.md beside this file explains how to read the tables and how to add a peer.
"""

import json
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from peers.job import CALLS_PER_JOB, TALLY
from peers.roster import FOLDER, PEERS, Measurement, Peer, Unmeasured, environment, measure, warmup
from peers.verdict import budgets, judgement, middle, table

ROUNDS: Final = 3
CONCURRENCY: Final = (1, 50, 500)
#: A measurement this long has averaged itself: later rounds do not repeat it.
LONG_S: Final = 10.0

SERVER: Final = Path(__file__).with_name("mock_server.py")

#: By concurrency and name of the peer.
Results = dict[int, dict[str, list[Measurement]]]
Medians = dict[int, dict[str, Measurement]]


@contextmanager
def mock_model(latency_ms: float = 0.0) -> Iterator[str]:
    """Serve the model in a process of its own and give its address; it ends with the context."""
    command = [sys.executable, str(SERVER), "--port", "0", "--until-eof"]
    command += ["--answers", str(FOLDER / "answers.py"), "--latency-ms", str(latency_ms)]
    where = {**environment(), "PYTHONPATH": str(FOLDER)}
    with subprocess.Popen(
        command, env=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        # Both streams are pipes, so neither is None.
        try:
            port = server.stdout.readline().strip()
            if not port:
                sys.exit("cannot measure: benchmarks/mock_server.py did not start")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.stdin.close()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()


def answered(base_url: str) -> int:
    """Ask the mock model how many calls it has answered."""
    body = json.dumps({"model": TALLY, "messages": []}).encode()
    request = Request(f"{base_url}/chat/completions", data=body)
    with urlopen(request, timeout=10) as response:
        return int(json.load(response)["choices"][0]["message"]["content"])


def measure_and_count(peer: Peer, *, base_url: str, concurrency: int) -> Measurement:
    """Measure a peer, and let the server confirm how often it was really asked."""
    before = answered(base_url)
    measured = measure(peer, base_url=base_url, concurrency=concurrency)
    asked = answered(base_url) - before
    agreed = (peer.jobs(concurrency) + warmup(concurrency)) * CALLS_PER_JOB
    if asked != agreed:
        raise Unmeasured(f"asked the model {asked} times instead of {agreed}")
    return measured


def rounds(peers: list[Peer], levels: list[int], count: int) -> tuple[Results, list[str]]:
    """Measure everything in turn, over and over; return the results and what went wrong."""
    results: Results = {level: defaultdict(list) for level in levels}
    troubles: dict[tuple[int, str], str] = {}
    with mock_model() as base_url:
        for number in range(1, count + 1):
            for level in levels:
                for peer in peers:
                    past = results[level][peer.name]
                    if (level, peer.name) in troubles or (past and past[0].wall_s > LONG_S):
                        continue
                    say(f"round {number} of {count}, {level} at once: {peer.name}")
                    try:
                        past.append(measure_and_count(peer, base_url=base_url, concurrency=level))
                    except Unmeasured as trouble:
                        troubles[level, peer.name] = f"{peer.name}, {level} at once: {trouble}"
    return results, list(troubles.values())


def say(line: str) -> None:
    """Print progress to stderr."""
    print(line, file=sys.stderr, flush=True)


def choose(names: list[str]) -> list[Peer]:
    """Return the peers of these names that are installed, and say which are left out."""
    chosen: list[Peer] = []
    for name in names:
        if missing := PEERS[name].missing:
            print(f"left out: {name}: {missing}")
        else:
            chosen.append(PEERS[name])
    return chosen


def medians_of(results: Results) -> Medians:
    """Return the median of every number that was measured."""
    return {
        level: {name: middle(values) for name, values in by_name.items() if values}
        for level, by_name in results.items()
    }


def as_json(medians: Medians) -> str:
    """Return what `scaling.py --costs` reads."""
    levels = {
        str(level): {name: asdict(one) for name, one in by_name.items()}
        for level, by_name in medians.items()
    }
    return json.dumps({"turns": levels}, indent=2) + "\n"


def report(medians: Medians, troubles: list[str]) -> bool:
    """Print tables, budgets and failures, and tell whether all budgets are met."""
    for level, by_name in medians.items():
        print("\n".join(table(by_name, level)))
    promises = list(budgets(medians))
    if promises:
        print("budgets", *judgement(promises), sep="\n")
    for trouble in troubles:
        print(f"not measured: {trouble}")
    if not promises or any(one.value is None for one in promises):
        print("Not every budget was checked: that takes Weft, the floor and the frameworks.")
        return False
    return not troubles and not any(one.exceeded for one in promises)


def names_of_peers(text: str) -> list[str]:
    """Read names with commas between them."""
    names = text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        known = ", ".join(PEERS)
        raise ArgumentTypeError(f"no such peer: {', '.join(unknown)}. There are: {known}")
    return names


def number_above_zero(text: str) -> int:
    """Read a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def levels_of_concurrency(text: str) -> list[int]:
    """Read whole numbers above zero with commas between them."""
    return [number_above_zero(part) for part in text.split(",")]


def main() -> int:
    """Measure, print, and fail on request when a budget is exceeded."""
    parser = ArgumentParser(description="Measure what a turn costs, beside other frameworks.")
    parser.add_argument("--peers", type=names_of_peers, default=list(PEERS), metavar="A,B")
    parser.add_argument(
        "--concurrency", type=levels_of_concurrency, default=list(CONCURRENCY), metavar="N,M"
    )
    parser.add_argument("--rounds", type=number_above_zero, default=ROUNDS, metavar="N")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the medians, for scaling.py"
    )
    options = parser.parse_args()
    results, troubles = rounds(choose(options.peers), options.concurrency, options.rounds)
    medians = medians_of(results)
    if options.json is not None:
        options.json.write_text(as_json(medians))
    fine = report(medians, troubles)
    return 1 if options.enforce and not fine else 0


if __name__ == "__main__":
    sys.exit(main())
