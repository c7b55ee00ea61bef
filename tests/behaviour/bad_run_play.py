"""What tests of runs with bad input share: a small workflow, a host for it, what is looked at."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from weft.adapters.sql import SqliteStore
from weft.engine.events import Event, RequestAnswered, RequestOpened
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for

T = TypeVar("T")

ADA = Scope("app", "ada")


def play(scenario: Callable[[], Awaitable[T]], seconds: float = 30) -> T:
    """Run a scenario, but not for ever."""

    async def bounded() -> T:
        return await asyncio.wait_for(scenario(), seconds)

    return asyncio.run(bounded())


def spec(
    *tools: str, ui: tuple[str, ...] = (), variables: Mapping[str, Any] | None = None, **rest: Any
) -> WorkflowSpec:
    """Declare one agent with tools that stand in one file, and an end after its first reply."""
    common = {"agent": "Clerk", "file": "work.py", "description": "d"}
    shown = {"tool_type": "UI_Tool", "ui": {"component": "Pick", "mode": "inline"}}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", "initial_agent": "Clerk"},
            "agents": [{"agent_name": "Clerk"}],
            "variables": {
                name: {"type": type_, "source": {"type": "derived"}}
                for name, type_ in (variables or {"count": "int"}).items()
            },
            "tools": [
                *({"tool_type": "Agent_Tool", "function": tool, **common} for tool in tools),
                *({"function": item, **shown, **common} for item in ui),
            ],
            "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate"}],
            **rest,
        }
    )


@dataclass(frozen=True)
class Told:
    """What is left of a run."""

    row: RunRow
    state: State
    events: list[Event]

    def only(self, kind: type[T]) -> T:
        """The one event of a kind."""
        (found,) = [event.data for event in self.events if isinstance(event.data, kind)]
        return found

    @property
    def answered(self) -> list[RequestAnswered]:
        """What people have said and answered, after the message the run began with."""
        found = [event.data for event in self.events if isinstance(event.data, RequestAnswered)]
        return [
            item for item in found if item.id not in (f"{self.row.run}:1", f"{self.row.parent}:1")
        ]

    @property
    def questions(self) -> list[RequestOpened]:
        """What tools have asked people."""
        found = [event.data for event in self.events if isinstance(event.data, RequestOpened)]
        return [request for request in found if request.kind == "ui"]


async def finished(host: Host, run: str) -> Told:
    """Wait for a run to settle, and look at all of it."""
    row = await host.settled(run, scope=ADA)
    events = [event async for event in host.events(run, scope=ADA)]
    return Told(row, await host.state(run, scope=ADA), events)


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run code in a process of its own, which finds the modules of the tests; talk to it."""
    tests = str(Path(__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {tests!r})\n{code}"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def open_host(path: Path, declared: WorkflowSpec, model: Model, code: bytes = b"") -> Host:
    """Open a host on a journal file."""
    journal = await SqliteStore.open(path, busy_seconds=0.2)
    files = {"tools/work.py": code} if code else {}
    return host_for(declared, model, code=files, store=journal)
