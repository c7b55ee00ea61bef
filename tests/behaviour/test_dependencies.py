"""Workflows that require others: they start once their user has completed each of these."""

import asyncio

import pytest

from support.run_play import ADA
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.errors import UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Stop
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel

BOB = Scope("app", "bob")


def declared(name, *required, workflow_dependencies=None, **parts):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": name,
                "initial_agent": "Clerk",
                "workflow_dependencies": workflow_dependencies or {"required_workflows": required},
            },
            "agents": [{"agent_name": "Clerk"}],
            "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate"}],
            **parts,
        }
    )


def flow(name, *required):
    work = {"kind": "agent", "agent": "Clerk"}
    parts = {"flow": {"steps": [{"kind": "step", "name": "greet", "work": work}]}}
    return declared(name, *required, handoffs=[], **parts)


def board(name, *required):
    agent = {"agent": "Clerk", "consumes": [{"types": ["Note"]}]}
    note = {"name": "Note", "fields": {"text": {"type": "str"}}}
    parts = {"board": {"artifacts": ["Note"], "agents": [agent]}, "models": [note], "handoffs": []}
    return declared(name, *required, **parts)


class Desk:
    """Hosts of several workflows over one journal."""

    def __init__(self, journal):
        self.journal = journal

    def host(self, spec, model=None):
        return host_for(spec, model or ScriptedModel(["Done."]), store=self.journal)

    async def complete(self, name, scope=ADA, **parts):
        host = self.host(declared(name, **parts))
        run = await host.start(name, scope=scope, message="Hello")
        assert (await host.settled(run, scope=scope)).outcome == "completed"

    async def refused(self, spec, scope=ADA, **start):
        with pytest.raises(UsageError) as error:
            await self.host(spec).start(spec.orchestrator.workflow_name, scope=scope, **start)
        return str(error.value), error.value.hint


@pytest.fixture(params=["memory", "sqlite"])
def play(request, tmp_path):
    def played(scenario):
        async def opened():
            stored = request.param == "sqlite"
            journal = await SqliteStore.open(tmp_path / "j.db") if stored else MemoryStore()
            await scenario(Desk(journal))
            await journal.close()

        asyncio.run(asyncio.wait_for(opened(), 20))

    return played


def test_a_workflow_starts_when_each_it_requires_was_completed(play):
    async def scenario(desk):
        needs = {"required_workflows": ["Onboarding", "Terms"]}
        billing = declared("Billing", workflow_dependencies=needs)
        message, hint = await desk.refused(billing, message="Pay")
        assert message == (
            "Billing starts after Onboarding and Terms are completed, which they are not for ada"
        )
        assert hint == "run them first: weft run Onboarding, weft run Terms"
        await desk.complete("Terms")
        await desk.complete("Onboarding", BOB)
        message, hint = await desk.refused(billing, message="Pay")
        assert message == "Billing starts after Onboarding is completed, which it is not for ada"
        assert hint == "run it first: weft run Onboarding"
        await desk.complete("Onboarding")
        host = desk.host(billing)
        run = await host.start("Billing", scope=ADA, message="Pay")
        assert (await host.settled(run, scope=ADA)).outcome == "completed"
        assert "not for bob" in (await desk.refused(billing, BOB, message="Pay"))[0]

    play(scenario)


def test_a_run_that_waits_was_stopped_or_is_a_fork_does_not_count(play):
    async def scenario(desk):
        host = desk.host(declared("Onboarding"), ScriptedModel(["One.", "Two."]))
        waiting = await host.start("Onboarding", scope=ADA)
        await host.settled(waiting, scope=ADA)
        await desk.refused(declared("Billing", "Onboarding"))
        await host.deliver(waiting, Stop(), scope=ADA)
        await host.settled(waiting, scope=ADA)
        await desk.refused(declared("Billing", "Onboarding"))
        run = await host.start("Onboarding", scope=BOB, message="Hello")
        await host.settled(run, scope=BOB)
        fork = await host.fork(run, scope=BOB, turn=1)
        assert (await host.settled(fork, scope=BOB)).outcome == "completed"
        whole = Scope("app", "bob")
        await desk.host(declared("Billing", "Onboarding")).start("Billing", scope=whole)

    play(scenario)


def test_a_flow_is_gated_as_well(play):
    async def scenario(desk):
        message, _ = await desk.refused(flow("Billing", "Onboarding"))
        assert message.startswith("Billing starts after Onboarding is completed")
        await desk.complete("Onboarding")
        host = desk.host(flow("Billing", "Onboarding"))
        run = await host.start("Billing", scope=ADA)
        assert (await host.settled(run, scope=ADA)).outcome == "completed"

    play(scenario)


def test_the_first_artifact_of_a_correlation_and_the_schedules_of_a_board_are_gated(play):
    async def scenario(desk):
        host = desk.host(board("Billing", "Onboarding"))
        with pytest.raises(UsageError, match="Billing starts after Onboarding"):
            await host.publish("Billing", "Note", {"text": "Pay"}, scope=ADA)
        with pytest.raises(UsageError, match="Billing starts after Onboarding"):
            await host.start_schedules("Billing", scope=ADA)
        await desk.complete("Onboarding")
        made = await host.publish("Billing", "Note", {"text": "Pay"}, scope=ADA, correlation="c")
        added = await host.publish("Billing", "Note", {"text": "Now"}, scope=ADA, correlation="c")
        assert added.run == made.run
        # The correlation of another user is another one.
        with pytest.raises(UsageError, match="Billing starts after Onboarding"):
            await host.publish("Billing", "Note", {"text": "Now"}, scope=BOB, correlation="c")
        await host.quiet()

    play(scenario)
