"""Runs for tests that look at journals: played to the end by a real host, then read back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

from weft.adapters.memory import MemoryStore
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.engine.events import Event
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow, link
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for

ADA = Scope("app", "ada")


class Seconds:
    """A clock: every look at it is a second later."""

    def __init__(self) -> None:
        self._time = count(1000, 1000)
        self._ids = count(0)  # The host itself is named first.

    def now(self) -> int:
        return next(self._time)

    def new_id(self) -> str:
        return f"run{next(self._ids)}"

    async def sleep_until(self, at: int) -> None:
        """Nobody waits: a pause is over at once, and whatever is far away never comes."""
        now = self.now()
        if at - now > 2000:
            await asyncio.Event().wait()
        self._time = count(max(at, now), 1000)


@dataclass(frozen=True)
class Played:
    """A run that was played: everything an inspection needs."""

    workflow: Workflow
    run: str
    events: list[Event]

    def at(self, kind: type, number: int = 0) -> Event:
        """The event of a kind, by its number among them."""
        return [event for event in self.events if isinstance(event.data, kind)][number]


def linked(declared: WorkflowSpec, code: Mapping[str, bytes]) -> Workflow:
    """Return a workflow that is looked at and not run: its code is let go again."""
    with closing(PythonToolLoader()) as loader:
        return link(declared, code, loader)


async def read(host: Host, run: str) -> Played:
    """Read a run back from the journal of its host."""
    events = [event async for event in host.events(run, scope=ADA) if isinstance(event, Event)]
    return Played(await host.workflow(run, scope=ADA), run, events)


def play(
    spec: WorkflowSpec,
    model: Any,
    *,
    code: Mapping[str, bytes] | None = None,
    message: str | None = "hello",
    values: Mapping[str, Any] | None = None,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
    after: Callable[[Host, str], Awaitable[Any]] | None = None,
    **ports: Any,
) -> Played:
    """Play a run until it rests, do something with it, let it rest again, and read it back.

    If `after` returns the name of another run, that one is read. `ports` are those of the host.
    """

    async def scenario() -> Played:
        # The store has a clock of its own: only what the host does takes time.
        given = {"clock": Seconds(), "store": MemoryStore(), "environment": environment}
        given |= ports
        host = host_for(spec, model, code=code or {}, **given)
        async with host:
            run = await host.start("W", scope=ADA, message=message, values=values, model=name)
            await host.settled(run, scope=ADA)
            if after is not None:
                run = await after(host, run) or run
                await host.settled(run, scope=ADA)
            return await read(host, run)

    return asyncio.run(asyncio.wait_for(scenario(), 30))
