"""The job with Weft: a package of three agents, run by a host, asked through its thin client.

Everything is on that every run has: the journal, the manifest of what each agent was shown, prices,
retries and time limits. The result is read back from the journal, as a program that started a run
would read it.
"""

import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from job import (
    APPROVAL,
    HANDOFF_TEXT,
    MODEL,
    REVIEWER,
    ROUTER,
    SPECIALIST,
    TOOL,
    TOOL_DESCRIPTION,
    TOOL_PARAMETER_DESCRIPTION,
    Outcome,
    question,
)
from measure import Job, Options, main

from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.memory import MemoryStore
from weft.adapters.models.registry import ModelRegistry
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sql import SqliteStore
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.app.models import ModelChoice
from weft.engine.state import State
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow, link
from weft.spec.workflow import WorkflowSpec

NAME = "SupportDesk"
SCOPE = Scope("benchmark", "customer")

#: The code of the package. What the shop knows is the same as `status_of` in job.py.
CODE = {
    "tools/shop.py": f'''
async def {TOOL}(order: str, context_variables) -> str:
    """{TOOL_DESCRIPTION}

    Args:
        order: {TOOL_PARAMETER_DESCRIPTION}
    """
    status = f"shipped:{{order}}"
    context_variables.set("order_status", status)
    return status
'''.encode()
}


def agent(name: str, prompt: str) -> dict[str, object]:
    """Return an agent with one section of instructions."""
    return {"agent_name": name, "prompt_sections": [{"id": "role", "content": prompt}]}


def heard(name: str, text: str) -> dict[str, object]:
    """Return a variable that becomes true when an agent says a text."""
    trigger = {"type": "agent_text", "agent": name, "match": {"equals": text}}
    return {"type": "bool", "source": {"type": "derived", "default": False, "triggers": [trigger]}}


#: A timer that is due long after whatever is measured.
TIMER = {"type": "timer_expired", "after_seconds": 86_400}
LATE = {"type": "bool", "source": {"type": "derived", "default": False, "triggers": [TIMER]}}


def desk(base_url: str, *, timed: bool = False) -> WorkflowSpec:
    """Return the package: who takes part, what they set and how the word passes.

    The runs of a `timed` one wait for a timer besides.
    """
    tool = {"tool_type": "Agent_Tool", "agent": "Specialist", "file": "shop.py", "function": TOOL}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": NAME,
                "initial_agent": "Router",
                "model": f"{base_url}#{MODEL}",
            },
            "agents": [
                agent("Router", ROUTER),
                agent("Specialist", SPECIALIST),
                agent("Reviewer", REVIEWER),
            ],
            "variables": {
                "handed_on": heard("Router", HANDOFF_TEXT),
                "order_status": {"type": "str", "source": {"type": "derived"}},
                "approved": heard("Reviewer", APPROVAL),
                **({"late": LATE} if timed else {}),
            },
            "tools": [{**tool, "description": TOOL_DESCRIPTION}],
            "handoffs": [
                {"source_agent": "Router", "target_agent": "Specialist", "condition": "handed_on"},
                {"source_agent": "Specialist", "target_agent": "Reviewer"},
                {"source_agent": "Reviewer", "target_agent": "terminate", "condition": "approved"},
                {"source_agent": "Reviewer", "target_agent": "user"},
            ],
        }
    )


def outcome(state: State) -> Outcome:
    """Return what a finished run says about itself."""
    last = next(reversed(state.messages))
    return Outcome(
        calls=state.spent.calls,
        tool_runs=sum(message.role == "tool" for message in state.messages),
        order_status=state.variables["order_status"],
        verdict=last.text if state.outcome == "completed" else f"{state.outcome}: {state.reason}",
    )


#: What counts the CPU of a server that works for this process.
SERVERS: list[Callable[[], float]] = []


def used_cpu() -> float:
    """Return the CPU seconds of this process, and of the server that works for it."""
    return time.process_time() + sum(server() for server in SERVERS)


@asynccontextmanager
async def open_postgres() -> AsyncIterator[Store]:
    """Open a store in a server of its own that waits for the disk."""
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root), str(root / "tests")]
    # Deferred: no other store needs it.
    from benchmarks.postgres import server_cpu  # noqa: PLC0415

    from support.postgres_server import PostgresServer  # noqa: PLC0415
    from weft.adapters.sql.postgres.schema import migrate  # noqa: PLC0415
    from weft.adapters.sql.postgres.store import PostgresStore  # noqa: PLC0415

    server = PostgresServer.create({"fsync": "on", "full_page_writes": "on"})
    try:
        await migrate(server.url)
        SERVERS.append(lambda: server_cpu(server))
        yield await PostgresStore.open(server.url)
    finally:
        SERVERS.clear()
        server.remove()


@asynccontextmanager
async def open_journal(kind: str) -> AsyncIterator[Store]:
    """Open a journal; a file is in a folder of its own and goes with it. The host closes it."""
    if kind == "memory":
        yield MemoryStore()
        return
    if kind == "postgres":
        async with open_postgres() as store:
            yield store
        return
    with tempfile.TemporaryDirectory() as folder:
        yield await SqliteStore.open(Path(folder) / "weft.db", durability="full")


@asynccontextmanager
async def open_desk(options: Options, *, timed: bool = False) -> AsyncIterator[tuple[Host, Store]]:
    """Open a host with the package of the job; all of it is closed when the context ends."""
    async with open_journal(options.journal) as journal:
        clock, loader = SystemClock(), PythonToolLoader()
        registry = ModelRegistry(clock=clock, random=Random(1), settings={})
        workflow = link(desk(options.base_url, timed=timed), CODE, loader)

        async def find(_app: str, _name: str) -> Workflow:
            return workflow

        host = Host(
            store=journal,
            live=MemoryLiveStream(),
            vault=MemoryVault(),
            models=ModelChoice(registry, default="", seed=0, read_run=journal.read),
            loader=loader,
            clock=clock,
            find=find,
        )
        async with host:
            yield host, journal


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Open what the jobs share: one host with one journal and one pool of connections."""
    async with open_desk(options) as (host, _):

        async def job(number: int) -> Outcome:
            run = await host.start(NAME, scope=SCOPE, message=question(number))
            await host.settled(run, scope=SCOPE)
            return outcome(await host.state(run, scope=SCOPE))

        yield job


if __name__ == "__main__":
    main("weft", open_job, journals=("memory", "sqlite", "postgres"), cpu=used_cpu)
