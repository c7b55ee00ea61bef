"""The approval of a plan: what counts as one, where the work goes back to, and given plans."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from support.generator_play import BRIEF, ME, generator
from weft.engine.events import TurnStarted
from weft.generator.designer.model import DesignerModel
from weft.runtime.host import Host
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for

PLAN = "mermaid_sequence_diagram"


class Round:
    """A generation that has come to the question about its plan."""

    def __init__(self, host: Host, run: str) -> None:
        self.host, self.run = host, run

    async def asked(self) -> Any:
        await self.host.settled(self.run, scope=ME)
        (request,) = await self.host.requests(scope=ME, run=self.run)
        return request

    async def answer(self, **fields: Any) -> Any:
        request = await self.asked()
        given = {"plan_hash": request.payload["plan_hash"], **fields}
        await self.host.deliver(self.run, Answer(request.id, given), scope=ME)
        return await self.asked()

    async def agents(self) -> list[str]:
        events = [event async for event in self.host.events(self.run, scope=ME)]
        return [event.data.agent for event in events if isinstance(event.data, TurnStarted)]

    async def value(self, name: str) -> Any:
        return (await self.host.state(self.run, scope=ME)).variables[name]


def played(play: Any, values: Mapping[str, Any] | None = None) -> None:
    package = generator()

    async def whole() -> None:
        async with host_for(package.spec, DesignerModel(), code=package.code) as host:
            run = await host.start("Generator", scope=ME, message=BRIEF, values=values or {})
            it = Round(host, run)
            request = await it.asked()
            if request.tool == "interview":
                await host.deliver(run, Answer(request.id, {}), scope=ME)
            await play(it)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_approval_names_the_plan_it_is_for():
    async def play(it: Round) -> None:
        again = await it.answer(plan_acceptance="accepted", plan_hash="deadbeef")
        assert again.tool == PLAN
        assert again.payload["message"].startswith("deadbeef is not the hash of this plan.")
        after = await it.answer(plan_acceptance="accepted")
        assert after.tool == "download"
        assert await it.value("action_plan_acceptance") == "accepted"

    played(play)


def test_requested_changes_need_a_comment():
    async def play(it: Round) -> None:
        again = await it.answer(plan_acceptance="adjustments_requested")
        assert again.payload["message"].startswith("Say what shall be different.")
        assert await it.value("plan_comments") == []

    played(play)


@pytest.mark.parametrize(
    ("about", "agent"),
    [
        ("pattern", "PatternAgent"),
        ("strategy", "WorkflowStrategyAgent"),
        ("blueprint", "WorkflowArchitectAgent"),
        ("agents", "WorkflowImplementationAgent"),
    ],
)
def test_changes_go_to_the_agent_whose_part_they_concern(about, agent):
    async def play(it: Round) -> None:
        before = len(await it.agents())
        await it.asked()
        first = len(await it.agents())
        await it.answer(plan_acceptance="adjustments_requested", about=about, comments="shorter")
        assert (await it.agents())[first] == agent
        assert before <= first
        assert (await it.agents())[-1] == "ProjectOverviewAgent"
        # The next comment says nothing of a part, so it is about the strategy.
        second = len(await it.agents())
        await it.answer(plan_acceptance="adjustments_requested", comments="shorter still")
        assert (await it.agents())[second] == "WorkflowStrategyAgent"
        told = [(item["about"], item["text"]) for item in await it.value("plan_comments")]
        assert told == [(about, "shorter"), ("strategy", "shorter still")]

    played(play)


def test_the_plan_can_be_asked_about_in_the_name_of_the_action_plan():
    async def play(it: Round) -> None:
        assert (await it.asked()).tool == "action_plan"
        after = await it.answer(plan_acceptance="accepted")
        assert after.tool == "download"
        assert await it.value("action_plan_acceptance") == "accepted"

    played(play, {"approve_at": "action_plan"})


def test_a_run_that_begins_with_a_plan_asks_about_it_at_once():
    kept: dict[str, Any] = {}

    async def first(it: Round) -> None:
        await it.asked()
        kept["plan"] = await it.value("action_plan")

    async def second(it: Round) -> None:
        request = await it.asked()
        assert request.tool == PLAN
        assert await it.agents() == ["ProjectOverviewAgent"]
        # A comment begins from what the plan is for.
        await it.answer(plan_acceptance="adjustments_requested", comments="add specialist Auditor")
        plan = await it.value("action_plan")
        names = [agent["agent_name"] for item in plan["ModuleAgents"] for agent in item["agents"]]
        assert "Auditor" in names
        goal = kept["plan"]["PatternSelection"]["workflows"][0]["description"]
        assert plan["PatternSelection"]["workflows"][0]["description"] == goal

    played(first)
    played(second, {"action_plan": kept["plan"]})
