"""Flows with steps that note that they were called, on a host whose clock the test moves."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from support.flow_hosts import SCOPE, FlowPlay, step
from weft.engine.events import Event, TurnStarted
from weft.engine.rows import RequestRow
from weft.engine.state import State
from weft.inspect.replay import check_replay
from weft.ports.clock import Clock
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.runtime.host import Host
from weft.runtime.signals import Answer
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing import ManualClock, host_for

T = TypeVar("T")

#: Everybody of the tenant, for whoever looks from outside.
ALL = Scope.operator(SCOPE.app)


def waits(work: Callable[[], Awaitable[T]]) -> T:
    """Run an async test; one that hangs fails."""
    return asyncio.run(asyncio.wait_for(work(), 30))


class FailsFirst:
    """Fails some times, then returns."""

    def __init__(self, times: int, then: Any = None):
        self.left, self.then = times, then
        self.states: list[tuple[Any, int, str]] = []

    def __call__(self, state: Any, context: Any) -> Any:
        self.states.append((state["n"], context.attempt, context.key))
        if self.left:
            self.left -= 1
            raise ConnectionError("not there")
        return self.then


class OptionPlay(FlowPlay):
    """One flow; `calls` are the steps whose code was called, `undo:NAME` for compensations."""

    def __init__(self, *, clock: Clock | None = None, store: Store | None = None, **rest: Any):
        super().__init__(**rest)
        self.clock = clock or ManualClock()
        self.journal = store or self.journal
        self.calls: list[str] = []

    def work(self, name: str, does: Any = None) -> dict[str, Any]:
        """Return what notes its name, then raises, returns, or is called with state and context."""

        def call(state: Any, context: Any) -> Any:
            self.calls.append(name)
            if isinstance(does, BaseException):
                raise does
            return does(state, context) if callable(does) else does

        return self.function(call)

    def step(self, name: str, does: Any = None, **options: Any) -> dict[str, Any]:
        return step(name, self.work(name, does), **options)

    def undo(self, name: str, does: Any = None) -> dict[str, Any]:
        return self.work(f"undo:{name}", does)

    def path(self, *names: str, **rest: Any) -> dict[str, Any]:
        return {"steps": [self.step(name) for name in names], **rest}

    def host(self, spec: WorkflowSpec, *, outside: ExternalPorts | None = None) -> Host:
        return host_for(
            spec,
            self.model,
            store=self.journal,
            clock=self.clock,
            outside=outside or ExternalPorts(retrievers=self.registry),
            linking=Linking(objects={**self.objects.table, **self.objects.given}),
        )

    @asynccontextmanager
    async def begun(self, spec: WorkflowSpec, **values: Any) -> AsyncGenerator["Begun"]:
        """Start a run and let it come to rest."""
        async with self.host(spec) as host:
            run = await host.start("F", scope=SCOPE, values=values, run="r1")
            begun = Begun(self, host, run)
            await begun.rest()
            yield begun

    def run(self, spec: WorkflowSpec, **values: Any) -> State:
        """Let a run go on until it rests; decided again from its journal it goes the same way."""

        async def whole() -> State:
            async with self.begun(spec, **values) as begun:
                return begun.state

        return waits(whole)

    def play(self, *steps: Any, variables: Any = None, values: Any = None, **flow: Any) -> State:
        """Run a flow that waits for nothing, and return what it came to."""
        return self.run(self.spec(*steps, variables=variables, **flow), **(values or {}))

    def of(self, kind: type[T]) -> list[T]:
        return [event.data for event in self.events if isinstance(event.data, kind)]

    @property
    def steps(self) -> list[str]:
        """The steps that were begun, as the journal has them."""
        return [
            f"undo:{event.step}" if event.undoes else event.step for event in self.of(TurnStarted)
        ]


class Begun:
    """A run under way."""

    def __init__(self, play: OptionPlay, host: Host, run: str) -> None:
        self.play, self.host, self.run = play, host, run
        self.state: State

    async def rest(self) -> State:
        await self.host.idle(self.run, scope=SCOPE)
        self.play.events = list[Event](await self.play.journal.read(SCOPE, self.run))
        self.state = await self.host.state(self.run, scope=SCOPE)
        workflow = await self.host.workflow(self.run, scope=SCOPE)
        assert check_replay(workflow, self.run, self.play.events) == []
        return self.state

    async def after(self, seconds: float) -> State:
        """Let time pass, and whatever is due then happen."""
        await self.play.clock.advance(seconds)  # type: ignore[attr-defined]
        for _ in range(20):
            await asyncio.sleep(0.001)
        return await self.rest()

    async def requests(self) -> list[RequestRow]:
        return await self.host.requests(scope=ALL, run=self.run)

    async def answer(self, decision: str, scope: Scope = ALL, **more: Any) -> State:
        (asked,) = await self.requests()
        value = {"decision": decision, **more}
        await self.host.deliver(self.run, Answer(asked.id, value), scope=scope)
        return await self.rest()
