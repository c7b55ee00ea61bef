"""What one message, one publication and one step ask of the code, and a message of the store.

    python benchmarks/one_message.py [--enforce] [--verbose]

- **chat**: a message to a waiting chat with one agent, until the run waits for the next message.
- **board**: an artifact that wakes one agent with a model, until the board is idle.
- **flow**: a run of three steps compared with one of two: what one more step touches. A step is a
  function, and the files are those in which the third step calls a function.

Everything is in memory, and each is measured when it has run before and everything is imported.
Counted are calls of Python functions of Weft (each resumption of a coroutine is one) and the files
they are in; for the chat also calls of the store.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel

import weft
from weft.adapters.memory import MemoryStore
from weft.app.flows import open_flow
from weft.app.hosts import LOCAL
from weft.board import Board, artifact
from weft.flow import Workflow
from weft.ports.store import Store
from weft.runtime.signals import UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, ScriptedModel, host_for


class Budget(NamedTuple):
    """The most files and calls; None: not limited."""

    files: int
    calls: int | None


#: Reads of the store for one chat message.
QUERY_BUDGET: Final = 2
BUDGETS: Final = {
    "chat": Budget(40, 350),
    "board": Budget(55, 800),
    "flow": Budget(45, None),
}

PACKAGE: Final = Path(weft.__file__).parent
READS: Final = ("read", "follow", "run", "runs", "requests", "pending", "next_due", "snapshot")


class CountingStore:
    """Counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the store
        if name in (*READS, "append", "put", "take", "claim", "package", "beat"):
            self.asked[name] += 1
        return getattr(self._store, name)


class Calls:
    """Counts the calls of Weft's functions, while it is the profiler of the thread."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count one call."""
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            self.functions[f"{file[len(str(PACKAGE)) + 1 :]}:{frame.f_code.co_qualname}"] += 1

    @property
    def files(self) -> set[str]:
        """The files in which functions were called."""
        return {name.partition(":")[0] for name in self.functions}


async def counted(work: Callable[[], Awaitable[Any]]) -> Calls:
    """Do something and return the calls that it took."""
    calls = Calls()
    sys.setprofile(calls)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return calls


def chat() -> WorkflowSpec:
    """Return the package: an agent that answers its user."""
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Chat", "initial_agent": "Helper"},
            "agents": [
                {"agent_name": "Helper", "prompt_sections": [{"id": "role", "content": "Help."}]}
            ],
            "handoffs": [{"source_agent": "Helper", "target_agent": "user"}],
        }
    )


async def one_message() -> tuple[Calls, Counter[str]]:
    """Measure the third message of a chat."""
    store = CountingStore(MemoryStore())
    model = ScriptedModel({"Helper": ["one", "two", "three"]})
    async with host_for(chat(), model, store=cast("Store", store)) as host:

        async def send(text: str) -> None:
            await host.deliver(run, UserMessage(text), scope=LOCAL)
            await host.settled(run, scope=LOCAL)

        run = await host.start("Chat", scope=LOCAL, message="hello")
        await host.settled(run, scope=LOCAL)
        await send("first")
        store.asked.clear()
        calls = await counted(lambda: send("second"))
        if model.left:
            raise SystemExit("the agent did not answer")
        return calls, store.asked


@artifact
class Order(BaseModel):
    """What wakes the agent."""

    number: int


@artifact
class Receipt(BaseModel):
    """What the agent publishes."""

    text: str


async def one_publication() -> Calls:
    """Measure the third publication to a board with one agent."""
    model = FunctionModel(lambda _: {"text": "received"})
    board = Board(model=model)
    board.agent("clerk").consumes(Order).publishes(Receipt)
    async with board:

        async def publish() -> None:
            await board.publish(Order(number=1))
            await board.run_until_idle()

        await publish()
        await publish()
        calls = await counted(publish)
        if len(model.requests) != 3:
            raise SystemExit("the agent was not woken")
        return calls


class Trip(BaseModel):
    """The state of the flow."""

    count: int = 0


async def run_of(steps: int) -> Calls:
    """Measure the third run of a flow of so many steps."""
    flow = Workflow("Trip", Trip)
    taken: list[int] = []

    async def step(state: Trip) -> dict[str, int]:
        taken.append(state.count)
        return {"count": state.count + 1}

    last = flow.start_with(step, name="step 0")
    for number in range(1, steps):
        last = last.then(step, name=f"step {number}")
    async with open_flow(flow) as host:

        async def run() -> None:
            run = await host.start("Trip", scope=LOCAL)
            await host.settled(run, scope=LOCAL)

        await run()
        await run()
        calls = await counted(run)
        if len(taken) != 3 * steps:
            raise SystemExit("not all steps were run")
        return calls


async def one_more_step() -> Calls:
    """Return what a run of three steps takes more than one of two."""
    two, three = await run_of(2), await run_of(3)
    more = Calls()
    more.functions = three.functions - two.functions
    return more


async def measured() -> dict[str, tuple[Calls, Counter[str]]]:
    """Measure everything."""
    return {
        "chat": await one_message(),
        "board": (await one_publication(), Counter()),
        "flow": (await one_more_step(), Counter()),
    }


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    within = True
    for name, (calls, asked) in asyncio.run(measured()).items():
        budget = BUDGETS[name]
        files, total = len(calls.files), calls.functions.total()
        limits = f"{budget.files} files" + (f", {budget.calls} calls" if budget.calls else "")
        print(f"{name}: {files} files, {total} calls of {len(calls.functions)} functions", end="")
        print(f" (budget {limits})")
        within &= files <= budget.files and (budget.calls is None or total <= budget.calls)
        if "--verbose" in sys.argv:
            for function, count in sorted(calls.functions.items()):
                print(f"    {count:4} {function}")
        if name == "chat":
            reads = sum(asked[kind] for kind in READS)
            print(f"store: {asked['append']} appends, {reads} reads (budget {QUERY_BUDGET})")
            within &= reads <= QUERY_BUDGET
    return 1 if "--enforce" in sys.argv and not within else 0


if __name__ == "__main__":
    sys.exit(main())
