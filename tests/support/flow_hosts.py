"""Flows in the hands of tests: declared with functions and classes as they stand in a test."""

import asyncio
from dataclasses import replace
from typing import Any

from weft.adapters.memory import MemoryJournal
from weft.dsl.objects import LocalObjects
from weft.engine.events import ContextFetched, Event, ToolFailed, ToolReturned
from weft.engine.state import State
from weft.ports.external import ExternalPorts
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.flow.retrieval import RetrieverRegistry
from weft.runtime.host import Host
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing import ScriptedModel, host_for

SCOPE = Scope("app", "ada")


class FlowPlay:
    """One flow, its host and its runs."""

    def __init__(
        self, *, agents=(), model=None, collections=None, environment=None, **spec: Any
    ) -> None:
        self.objects = LocalObjects()
        self.agents = agents
        self.run_id = "r1"
        self.environment = environment or {}
        self.given = spec
        self.model = model or ScriptedModel([])
        self.journal: Journal = MemoryJournal()
        self.registry = RetrieverRegistry()
        for collection, adapter in (collections or {}).items():
            self.registry.register(collection, adapter)

    def ref(self, it: object) -> str:
        return self.objects.refer(it).name

    def function(self, it: object) -> dict[str, Any]:
        name, options = self.objects.refer(it)
        return {"kind": "function", "function": name, "options": options}

    def agent(self, agent: str, it: object) -> dict[str, Any]:
        name, options = self.objects.refer(it)
        return {"kind": "agent", "agent": agent, "step": name, "options": options}

    def spec(self, *steps: Any, state: object = None, variables=None, **flow: Any) -> WorkflowSpec:
        declared = {"steps": list(steps), **flow}
        if state is not None:
            declared["state"] = self.ref(state)
        return WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "F"},
                "agents": [{"agent_name": it} for it in self.agents],
                "variables": {
                    name: it if isinstance(it, dict) else derived(it)
                    for name, it in (variables or {}).items()
                },
                "flow": declared,
                **self.given,
            }
        )

    def host(self, spec: WorkflowSpec) -> Host:
        objects = {**self.objects.table, **self.objects.given}
        return host_for(
            spec,
            self.model,
            journal=self.journal,
            outside=replace(ExternalPorts(), retrievers=self.registry),
            environment=self.environment,
            linking=Linking(objects=objects),
        )

    def run(self, spec: WorkflowSpec, **values: Any) -> State:
        """Let a run go on until it waits for a person or has ended."""
        return asyncio.run(self.ended(spec, **values))

    async def ended(self, spec: WorkflowSpec, **values: Any) -> State:
        async with self.host(spec) as host:
            run = await host.start("F", scope=SCOPE, values=values, run=self.run_id)
            while (await host.settled(run, scope=SCOPE)).status == "waiting":
                state = await host.state(run, scope=SCOPE)
                if state.requests:
                    break
                async for _ in host.events(run, scope=SCOPE, after=state.seq, follow=True):
                    break
            self.events: list[Event] = await self.journal.read(SCOPE, run)
            return await host.state(run, scope=SCOPE)

    def failures(self) -> list[ToolFailed]:
        return [it.data for it in self.events if isinstance(it.data, ToolFailed)]

    def returned(self) -> list[Any]:
        """Return what code has returned, as its events say it."""
        return [it.data.value for it in self.events if isinstance(it.data, ToolReturned)]

    def fetched(self) -> list[Any]:
        found = [it.data for it in self.events if isinstance(it.data, ContextFetched)]
        return [it.step for it in found if it.step is not None]

    def faults(self) -> list[str]:
        found = [it.data for it in self.events if isinstance(it.data, ContextFetched)]
        return [it.error for it in found if it.error]


def derived(type_: str, default: Any = None, merge: str | None = None) -> dict[str, Any]:
    made = {"type": type_, "source": {"type": "derived", "default": default}}
    return {**made, "merge": merge} if merge else made


def step(name: str, work: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"kind": "step", "name": name, "work": work, **rest}
