"""Runs of two tenants, followers that leave, packages that are touched: nothing gets mixed up."""

import asyncio
import os

from behaviour.bad_run_play import ADA
from support.run_play import Seconds
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.app.workflows import WorkspaceWorkflows
from weft.packages.workspace import shipped_folder
from weft.ports.scope import Scope
from weft.runtime.runs import live_stream as deltas
from weft.runtime.workflow_cache import WorkflowCache
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, host_for

CHAT = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "Chat", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
        "handoffs": [{"source_agent": "A", "target_agent": "user"}],
    }
)


async def test_runs_of_one_name_have_keys_of_their_own():
    model = FunctionModel(lambda _: "hello")
    async with host_for(CHAT, model, clock=Seconds()) as host:
        for app in ("shop", "bank"):
            scope = Scope(app, "ada")
            await host.start("Chat", scope=scope, message="hi", run="order-1")
            await host.settled("order-1", scope=scope)
    keys = [request.key for request in model.requests]
    assert [key.partition(":")[0] for key in keys] == ["shop/order-1", "bank/order-1"]


async def test_a_follower_may_leave_in_the_middle_of_much(monkeypatch):
    monkeypatch.setattr(deltas, "MAX_WAITING_ITEMS", 3)
    model = FunctionModel(lambda _: "hello")
    async with host_for(CHAT, model) as host:
        run = await host.start("Chat", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        events = host.events(run, scope=ADA, follow=True)
        first = await anext(events)
        await asyncio.sleep(0.05)  # More comes than may wait.
        await asyncio.wait_for(events.aclose(), 5)
        assert first.seq == 1


async def test_a_package_that_was_only_touched_keeps_its_code(tmp_path):
    folder = tmp_path / "workflows" / "HelloWorld"
    source = shipped_folder() / "HelloWorld"
    for file in source.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = folder / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    loader = PythonToolLoader()
    cache = WorkflowCache(None, loader, WorkspaceWorkflows(tmp_path, loader, "development"))
    first = await cache.named("app", "HelloWorld")
    for file in folder.rglob("*.json"):
        os.utime(file, (1, 1))
    again = await cache.named("app", "HelloWorld")
    assert again.digest == first.digest
    del first
    assert loader.load(again.digest, {}, {}) is again.tools, "it is still loaded"
    loader.close()
