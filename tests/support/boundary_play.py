"""Packages with hooks, triggers and rules, and runs of them that outlive their hosts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from support.run_play import ADA, Played, read
from weft.adapters.memory import MemoryStore
from weft.runtime.host import Host
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for

END = [{"source_agent": "A", "target_agent": "terminate"}]


def declared(*agents: Any, orchestrator: Mapping[str, Any] | None = None, **rest: Any):
    """Declare a workflow; without agents it has one, A, that ends the run after its turn."""
    named = agents or ("A",)
    base = {"workflow_name": "W", "initial_agent": "A", **(orchestrator or {})}
    given = rest if agents or "handoffs" in rest else {"handoffs": END, **rest}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": base,
            "agents": [item if isinstance(item, dict) else {"agent_name": item} for item in named],
            **given,
        }
    )


def derived(type_: str, default: Any = None, *triggers: Any) -> dict[str, Any]:
    """Declare a derived variable with triggers."""
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source}


def of(played: Played, *kinds: type) -> list[Any]:
    """What happened of some kinds, in order."""
    return [event.data for event in played.events if isinstance(event.data, kinds)]


class Kept(MemoryStore):
    """Outlives its hosts."""

    async def close(self) -> None:
        pass


async def in_turns(
    spec: WorkflowSpec,
    scenes: Iterable[Callable[[Host, str], Awaitable[Any]]],
    models: Iterable[Any],
    *,
    message: str | None = "hello",
    **ports: Any,
) -> Played:
    """Play a run in several hosts one after the other: each is closed when its scene is over.

    The first scene starts with the run begun; each later one with the run taken up again.
    """
    journal = Kept()
    run, played = "", None
    for scene, model in zip(scenes, models, strict=True):
        async with host_for(spec, model, store=journal, **ports) as host:
            if run:
                await host.resume(run, scope=ADA)
            else:
                run = await host.start("W", scope=ADA, message=message, streamed=True)
            await asyncio.wait_for(scene(host, run), 20)
            played = await read(host, run)
    assert played is not None
    return played


async def rest(host: Host, run: str) -> Any:
    """Wait until a run rests."""
    return await host.settled(run, scope=ADA)
