"""Flows in the hands of tests: declared with functions and classes as they stand in a test."""

import asyncio
from dataclasses import replace
from typing import Any

from weft.adapters.memory import MemoryStore
from weft.dsl.objects import LocalObjects
from weft.engine.events import ContextFetched, Event, ToolFailed, ToolReturned
from weft.engine.state import State
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.ports.store import Store
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
        self.journal: Store = MemoryStore()
        self.registry = RetrieverRegistry()
        for collection, adapter in (collections or {}).items():
            self.registry.register(collection, adapter)

    def ref(self, value: object) -> str:
        return self.objects.refer(value).name

    def function(self, value: object) -> dict[str, Any]:
        name, options = self.objects.refer(value)
        return {"kind": "function", "function": name, "options": options}

    def agent(self, agent: str, value: object) -> dict[str, Any]:
        name, options = self.objects.refer(value)
        return {"kind": "agent", "agent": agent, "step": name, "options": options}

    def spec(self, *steps: Any, state: object = None, variables=None, **flow: Any) -> WorkflowSpec:
        declared = {"steps": list(steps), **flow}
        if state is not None:
            declared["state"] = self.ref(state)
        return WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "F"},
                "agents": [{"agent_name": agent} for agent in self.agents],
                "variables": {
                    name: variable if isinstance(variable, dict) else derived(variable)
                    for name, variable in (variables or {}).items()
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
            store=self.journal,
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
        return [event.data for event in self.events if isinstance(event.data, ToolFailed)]

    def returned(self) -> list[Any]:
        """Return what code has returned, as its events say it."""
        return [event.data.value for event in self.events if isinstance(event.data, ToolReturned)]

    def fetched(self) -> list[Any]:
        found = [event.data for event in self.events if isinstance(event.data, ContextFetched)]
        return [item.step for item in found if item.step is not None]

    def faults(self) -> list[str]:
        found = [event.data for event in self.events if isinstance(event.data, ContextFetched)]
        return [item.error for item in found if item.error]


def derived(type_: str, default: Any = None, merge: str | None = None) -> dict[str, Any]:
    made = {"type": type_, "source": {"type": "derived", "default": default}}
    return {**made, "merge": merge} if merge else made


def step(name: str, work: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"kind": "step", "name": name, "work": work, **rest}
