"""What it costs to get a run back from its journal, and how that and the file grow with its length.

    python benchmarks/fold.py [--enforce]

The journal is one that the engine has decided itself: a chat with an agent that does real work. In
every turn it asks for tools over and over, they set a variable and return, and in the end it
answers its user, who has another question. Only model, tools and user follow a script. The same
with three agents that work side by side shows what that costs.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sql import SqliteStore
from weft.engine.commands import CallModel, CallTool
from weft.engine.events import (
    KIND_NAMES,
    Event,
    ModelReplied,
    RequestAnswered,
    RunStarted,
    ToolRequest,
    ToolReturned,
    Usage,
    VariableSet,
)
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import fold
from weft.engine.rows import Batch, batch
from weft.engine.snapshot import dump, load
from weft.engine.state import State
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.workflow import Workflow, link
from weft.spec.workflow import WorkflowSpec

SMALL, MIDDLE, LARGE = 1_000, 10_000, 100_000
#: Milliseconds of CPU for folding the middle length.
FOLD_BUDGET_MS: Final = 250.0
COST_GROWTH_BUDGET: Final = 1.3
SIZE_GROWTH_BUDGET: Final = 1.1
SIDE_BY_SIDE_BUDGET: Final = 1.1
#: After so many events a snapshot is loaded, against decoding and folding them.
LONG: Final = 3_000
SNAPSHOT_BUDGET: Final = 0.2
ROUNDS: Final = 5
#: A short measurement is repeated until about so many events were folded.
EVENTS_PER_ROUND: Final = 20_000

RUN: Final = "019a8f3c-0001-7c1e-9d2b-5f6a7b8c9d0e"
SCOPE: Final = Scope("benchmark", "customer")
#: Model calls of a turn before its last, and the tools each of them asks for.
STEPS: Final = 20
TOOLS: Final = 4
#: What the stock knows about every part, so that results are as long as real ones.
NOTES: Final = "Kept dry, counted every Monday, ordered again when fewer than ten are left. " * 5

CODE: Final = {
    "tools/parts.py": b'''
async def find_part(number: str, context_variables) -> dict:
    """Find a part in the stock."""
    return {"number": number}
'''
}

T = TypeVar("T")


def stockroom(*keepers: str) -> WorkflowSpec:
    """Return the package: one tool, one variable, and agents; several work side by side."""
    role = "You keep the stock. The last part was {last_part}. Look every part up before you reply."
    prompt = [{"id": "role", "content": role}]
    tool = {"tool_type": "Agent_Tool", "file": "parts.py", "function": "find_part"}
    group = {"name": "Keepers", "members": keepers, "next": "user"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Stockroom",
                "initial_agent": keepers[0] if len(keepers) == 1 else "Keepers",
                "max_turns": 500,
                "parallel": [group] if len(keepers) > 1 else [],
            },
            "agents": [{"agent_name": keeper, "prompt_sections": prompt} for keeper in keepers],
            "variables": {
                "last_part": {"type": "str", "source": {"type": "derived", "default": "none"}}
            },
            "tools": [
                {**tool, "agent": keeper, "description": "Find a part."} for keeper in keepers
            ],
            "handoffs": [{"source_agent": keeper, "target_agent": "user"} for keeper in keepers],
        }
    )


def answer(command: CallModel | CallTool) -> tuple[NewEvent, ...]:
    """Return the scripted result of a command."""
    if isinstance(command, CallTool):
        number = str(command.arguments["number"])
        result = {"part": number, "in_stock": command.seq % 90, "shelf": "C-12", "notes": NOTES}
        set_by_tool = VariableSet("last_part", number, f"tool:{command.tool}")
        returned = ToolReturned(command.id, result)
        return tuple(
            NewEvent("tool:find_part", data, command.seq, command.turn)
            for data in (set_by_tool, returned)
        )
    wanted = TOOLS if command.call <= STEPS else 0
    requests = tuple(
        ToolRequest(
            f"{command.turn}.{command.call}.{at}",
            "find_part",
            {"number": f"P-{command.seq + at:06}"},
        )
        for at in range(wanted)
    )
    text = "" if wanted else "All the parts you asked for are there; they are on shelf C-12."
    reply = ModelReplied(
        call=command.call,
        text=text,
        tool_requests=requests,
        usage=Usage(1800 + command.call * 40, 60, 900, 0.0021),
        model="a-model",
    )
    return (NewEvent(f"agent:{command.agent}", reply, command.seq, command.turn),)


def story(workflow: Workflow, count: int) -> Iterator[Batch]:
    """Yield the batches of one long run, as the runtime writes them, until there are enough."""
    state = State(RUN)
    begun = RunStarted(workflow.name, workflow.digest, SCOPE.app, SCOPE.user or "", {})
    waiting: list[tuple[NewEvent, ...]] = [(NewEvent("user:customer", begun),)]
    at = 1_763_000_000_000
    while state.seq < count:
        if not waiting:
            (request,) = state.requests
            asked = RequestAnswered(request, "And which of these can be sent today?", "customer")
            waiting.append((NewEvent("user:customer", asked),))
        at += 250
        decision = decide(workflow, state, waiting.pop(0), at)
        yield batch(state, decision.state, decision.events, id=f"b{state.seq}", held=True)
        state = decision.state
        waiting += map(answer, decision.effects)
    # The caller cuts off further events.


def best_cpu(work: Callable[[], T], times: int) -> float:
    """Return the least CPU seconds for doing something once, in several rounds of so many times."""
    costs: list[float] = []
    for _ in range(ROUNDS):
        before = time.process_time()
        for _ in range(times):
            work()
        costs.append((time.process_time() - before) / times)
    return min(costs)


def fold_us(workflow: Workflow, events: list[Event]) -> float:
    """Return the microseconds of CPU that folding takes for each event."""
    times = max(1, EVENTS_PER_ROUND // len(events))
    return best_cpu(lambda: fold(workflow.compiled, RUN, events), times) / len(events) * 1e6


async def stored(path: Path, batches: list[Batch]) -> None:
    """Write a run into a file."""
    store = await SqliteStore.open(path, durability="normal")
    for one in batches:
        await store.append(one, owner="worker")
    await store.close()


async def read_us(path: Path, count: int) -> float:
    """Return the microseconds of CPU that reading from the file takes for each event."""
    store = await SqliteStore.open(path)
    costs: list[float] = []
    for _ in range(ROUNDS):
        before = time.process_time()
        events = await store.read(SCOPE, RUN)
        costs.append(time.process_time() - before)
        if len(events) < count:
            raise SystemExit(f"only {len(events)} of {count} events were read")
    await store.close()
    return min(costs) / len(events) * 1e6


def up_to(batches: list[Batch], count: int) -> list[Batch]:
    """Return the first batches that have at least so many events."""
    return [batch for batch in batches if batch.expected < count]


def report_fold(workflow: Workflow, batches: list[Batch]) -> bool:
    """Print what folding costs, and tell whether that is within budget."""
    events = [event for one in batches for event in one.events]
    cost = {count: fold_us(workflow, events[:count]) for count in (SMALL, MIDDLE, LARGE)}
    for count, each in cost.items():
        print(f"fold {count:>7,} events: {each * count / 1000:8.1f} ms, {each:.2f} us each")
    whole, growth = cost[MIDDLE] * MIDDLE / 1000, cost[LARGE] / cost[SMALL]
    print(f"fold {MIDDLE:,}: {whole:.0f} ms (budget {FOLD_BUDGET_MS:.0f})")
    print(f"cost per event, {LARGE:,} / {SMALL:,}: {growth:.2f} (budget {COST_GROWTH_BUDGET})")
    return whole <= FOLD_BUDGET_MS and growth <= COST_GROWTH_BUDGET


def report_side_by_side(one: Workflow, batches: list[Batch], loader: PythonToolLoader) -> bool:
    """Print what folding costs when three agents work side by side, against one."""
    three = link(stockroom("A", "B", "C"), CODE, loader)
    alone = [event for batch in batches for event in batch.events][:MIDDLE]
    beside = [event for batch in story(three, MIDDLE) for event in batch.events][:MIDDLE]
    ratios = [fold_us(three, beside) / fold_us(one, alone) for _ in range(3)]
    ratio = sorted(ratios)[1]
    print(f"cost per event, three side by side / one: {ratio:.2f} (budget {SIDE_BY_SIDE_BUDGET})")
    return ratio <= SIDE_BY_SIDE_BUDGET


def report_snapshot(workflow: Workflow, batches: list[Batch]) -> bool:
    """Print what a snapshot costs against decoding and folding the events before it."""
    events = [event for one in batches for event in one.events][:LONG]
    raw = [(KIND_NAMES[type(event.data)], encode(event.data)) for event in events]
    content = dump(fold(workflow.compiled, RUN, events))
    folding = fold_us(workflow, events) * LONG / 1000
    decoding = best_cpu(lambda: [decode(*each) for each in raw], 5) * 1000
    writing = best_cpu(lambda: dump(load(content)), 20) * 1000
    loading = best_cpu(lambda: load(content), 20) * 1000
    share = loading / (folding + decoding)
    print(f"snapshot of {LONG:,} events: {len(content) / 1000:.0f} kB, written in "
          f"{writing - loading:.1f} ms, loaded in {loading:.1f} ms")  # fmt: skip
    print(f"load / decode and fold {LONG:,} events: {share:.2f} (budget {SNAPSHOT_BUDGET})")
    return share <= SNAPSHOT_BUDGET


def report_file(batches: list[Batch]) -> bool:
    """Print how the file grows and what reading it costs, and tell whether it is within budget."""
    sizes: dict[int, float] = {}
    for count in (SMALL, MIDDLE):
        some = up_to(batches, count)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fold.db"
            asyncio.run(stored(path, some))
            sizes[count] = path.stat().st_size / some[-1].row.seq
            reading = asyncio.run(read_us(path, count))
    growth = sizes[MIDDLE] / sizes[SMALL]
    print(f"read {MIDDLE:,} events from SQLite: {reading * MIDDLE / 1000:.0f} ms, no budget")
    print(f"bytes per event: {sizes[SMALL]:.0f} at {SMALL:,}, {sizes[MIDDLE]:.0f} at {MIDDLE:,}")
    print(f"bytes per event, {MIDDLE:,} / {SMALL:,}: {growth:.2f} (budget {SIZE_GROWTH_BUDGET})")
    return growth <= SIZE_GROWTH_BUDGET


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    loader = PythonToolLoader()
    workflow = link(stockroom("Keeper"), CODE, loader)
    batches = list(story(workflow, LARGE))
    within = [
        report_fold(workflow, batches),
        report_snapshot(workflow, batches),
        report_side_by_side(workflow, batches, loader),
        report_file(batches),
    ]
    loader.close()
    return 1 if "--enforce" in sys.argv and not all(within) else 0


if __name__ == "__main__":
    sys.exit(main())
