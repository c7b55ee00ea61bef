"""What an artifact costs on a board, from the first to the last of a long correlation.

    python benchmarks/board_cascade.py [--enforce]

Three agents pass on what comes: the first is woken by what is published from outside, the next by
what the one before has made. Everything is in one correlation. Functions work in place of models,
so that what is measured is the board. Agents are shown what the default provider gives, or nothing.
"""

import asyncio
import gc
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final, Literal

from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.runtime.host import Host
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel

#: Artifacts in all: one from outside becomes three, and the last agent publishes nothing.
SMALL, LARGE = 100, 10_000
#: Cost of an artifact in a correlation with many, as a multiple of that in one with few.
GROWTH_BUDGET: Final = 1.3
#: So many correlations are played one after the other where each is short.
REPEATED: Final = 20
ROUNDS: Final = 3
#: How many are published before what follows from them is waited for.
AT_A_TIME: Final = 20

NAME: Final = "Cascade"
SCOPE: Final = Scope("benchmark", "ada")
TYPES: Final = ("Lead", "Pitch", "Review")
AGENTS: Final = ("Scout", "Writer", "Editor")
NOTES: Final = "Met at the fair in spring, wants to hear of prices and of delivery in autumn. " * 4

Kind = Literal["memory", "sqlite"]
Context = Literal["default", "empty"]


async def scout(inputs: Any) -> Any:  # noqa: ANN401 - what engines get and give
    """Make a pitch of a lead."""
    return {"type": "Pitch", "payload": inputs.artifacts[0].payload}


async def writer(inputs: Any) -> Any:  # noqa: ANN401
    """Make a review of a pitch."""
    return {"type": "Review", "payload": inputs.artifacts[0].payload}


async def editor(inputs: Any) -> None:  # noqa: ANN401
    """Read a review."""
    del inputs


def cascade(context: Context) -> WorkflowSpec:
    """Return the board."""
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    agents = [
        {
            "agent": agent,
            "consumes": [{"types": [type_]}],
            "publishes": [{"type": made}] if made else [],
            "engines": [{"kind": "function", "function": f"local:{agent.lower()}"}],
            **({"context": {"kind": "empty"}} if context == "empty" else {}),
        }
        for agent, type_, made in zip(AGENTS, TYPES, (*TYPES[1:], ""), strict=True)
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": NAME},
            "agents": [{"agent_name": name} for name in AGENTS],
            "board": {
                "artifacts": [{"name": name, "schema": schema} for name in TYPES],
                "agents": agents,
                "breaker": 1_000_000,
            },
        }
    )


async def play(host: Host, correlation: str, artifacts: int) -> None:
    """Let so many artifacts go through a correlation."""
    left = artifacts // len(TYPES)
    while left > 0:
        for number in range(min(left, AT_A_TIME)):
            payload = {"number": number, "notes": NOTES}
            await host.publish(NAME, TYPES[0], payload, scope=SCOPE, correlation=correlation)
        left -= AT_A_TIME
        await host.quiet()


async def opened(kind: Kind, folder: str) -> Store:
    """Open a new store."""
    if kind == "memory":
        return MemoryStore()
    return await SqliteStore.open(Path(folder) / "store.db", durability="normal")


async def cost(kind: Kind, context: Context, artifacts: int, times: int) -> tuple[float, float]:
    """Return the microseconds that one artifact takes, of CPU and in all."""
    objects = {"local:scout": scout, "local:writer": writer, "local:editor": editor}
    with tempfile.TemporaryDirectory() as folder:
        store = await opened(kind, folder)
        linking = Linking(objects=objects)
        spec = cascade(context)
        async with host_for(spec, ScriptedModel([]), store=store, linking=linking) as host:
            await play(host, "warm", len(TYPES) * AT_A_TIME)
            gc.collect()
            cpu, wall = time.process_time(), time.perf_counter()
            for number in range(times):
                await play(host, f"c{number}", artifacts)
            spent = time.process_time() - cpu, time.perf_counter() - wall
            count = times * (artifacts // len(TYPES)) * len(TYPES)
            state = await host.state("c0", scope=SCOPE)
            if state.turns != artifacts // len(TYPES) * len(TYPES):
                raise SystemExit(f"{state.turns} of {artifacts} artifacts were handled")
    return spent[0] / count * 1e6, spent[1] / count * 1e6


def report(kind: Kind, context: Context, rounds: int) -> bool:
    """Print what an artifact costs with few and with many, and tell whether it is within budget."""
    few: list[tuple[float, float]] = []
    many: list[tuple[float, float]] = []
    for _ in range(rounds):
        few.append(asyncio.run(cost(kind, context, SMALL, REPEATED)))
        many.append(asyncio.run(cost(kind, context, LARGE, 1)))
    (small, small_wall), (large, large_wall) = min(few), min(many)
    growth = large / small
    print(
        f"  {kind:<8} {context:<8} {small:>8.0f} {large:>8.0f} {growth:>7.2f}"
        f" {small_wall:>9.0f} {large_wall:>8.0f}",
        flush=True,
    )
    return growth <= GROWTH_BUDGET


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    parser = ArgumentParser(description="Measure what an artifact costs on a board.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--only", choices=("memory", "sqlite"), help="measure one store")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    options = parser.parse_args()
    print(f"Three agents, one correlation; microseconds of CPU for one of {SMALL:,} and {LARGE:,}")
    print(f"  {'journal':<8} {'context':<8} {SMALL:>8,} {LARGE:>8,} {'growth':>7} {'elapsed':>18}")
    kinds: tuple[Kind, ...] = ("memory", "sqlite")
    contexts: tuple[Context, ...] = ("default", "empty")
    within = [
        report(kind, context, options.rounds)
        for kind in kinds
        if options.only in (None, kind)
        for context in contexts
    ]
    print(f"budget: growth at most {GROWTH_BUDGET:g}")
    return 1 if options.enforce and not all(within) else 0


if __name__ == "__main__":
    sys.exit(main())
