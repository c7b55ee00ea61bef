"""The approval of a plan: what counts as one, where the work goes back to, and given plans."""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from support.generator_play import ANSWERS, BRIEF, FORM, ME, generator
from weft.engine.events import TurnStarted
from weft.generator.designer import DesignerModel
from weft.generator.forms.form import form_plan, read_form
from weft.generator.steps import STEPS
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
            round_ = Round(host, run)
            request = await round_.asked()
            if request.tool == "interview":
                await host.deliver(run, Answer(request.id, ANSWERS), scope=ME)
            await play(round_)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_an_approval_names_the_plan_it_is_for():
    async def play(round_: Round) -> None:
        again = await round_.answer(plan_acceptance="accepted", plan_hash="deadbeef")
        assert again.tool == PLAN
        assert again.payload["message"].startswith("deadbeef is not the hash of this plan.")
        after = await round_.answer(plan_acceptance="accepted")
        assert after.tool == "download"
        assert await round_.value("action_plan_acceptance") == "accepted"

    played(play)


def test_requested_changes_need_a_comment():
    async def play(round_: Round) -> None:
        again = await round_.answer(plan_acceptance="adjustments_requested")
        assert again.payload["message"].startswith("Say what should be different.")
        assert await round_.value("plan_comments") == []

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
    async def play(round_: Round) -> None:
        before = len(await round_.agents())
        await round_.asked()
        first = len(await round_.agents())
        await round_.answer(
            plan_acceptance="adjustments_requested", about=about, comments="shorter"
        )
        assert (await round_.agents())[first] == agent
        assert before <= first
        assert (await round_.agents())[-1] == "ProjectOverviewAgent"
        # The next comment says nothing of a part, so it is about the strategy.
        second = len(await round_.agents())
        await round_.answer(plan_acceptance="adjustments_requested", comments="shorter still")
        assert (await round_.agents())[second] == "WorkflowStrategyAgent"
        told = [(item["about"], item["text"]) for item in await round_.value("plan_comments")]
        assert told == [(about, "shorter"), ("strategy", "shorter still")]

    played(play)


def test_the_plan_can_be_asked_about_in_the_name_of_the_action_plan():
    async def play(round_: Round) -> None:
        assert (await round_.asked()).tool == "action_plan"
        after = await round_.answer(plan_acceptance="accepted")
        assert after.tool == "download"
        assert await round_.value("action_plan_acceptance") == "accepted"

    played(play, {"approve_at": "action_plan"})


def given() -> dict[str, Any]:
    """Return the initial values of a run that starts with the plan of a form."""
    plan = form_plan(read_form("form.yaml", FORM))
    return {"action_plan": plan.model_dump(mode="json", by_alias=True)}


def test_a_run_that_starts_with_a_plan_asks_about_it_at_once():
    async def play(round_: Round) -> None:
        request = await round_.asked()
        assert request.tool == PLAN
        assert request.payload["open"] == []
        assert await round_.agents() == ["ProjectOverviewAgent"]

    played(play, given())


def test_a_comment_without_a_model_is_an_open_place_and_changes_nothing_else():
    async def play(round_: Round) -> None:
        before = await round_.value("action_plan")
        again = await round_.answer(
            plan_acceptance="adjustments_requested", comments="Pay within a week."
        )
        (place,) = again.payload["open"]
        assert place.startswith("OPEN: WorkflowStrategy, TechnicalBlueprint, ModuleAgents: ")
        assert "Pay within a week." in place
        plan = await round_.value("action_plan")
        assert plan["WorkflowStrategy"].pop("assumptions") == [place]
        assert before["WorkflowStrategy"].pop("assumptions") == []
        for part in ("PatternSelection", "WorkflowStrategy", "TechnicalBlueprint", "ModuleAgents"):
            assert plan[part] == before[part]

    played(play, given())


def test_an_edited_plan_is_the_next_round():
    async def play(round_: Round) -> None:
        request = await round_.asked()
        plan = deepcopy(await round_.value("action_plan"))
        plan["WorkflowStrategy"]["greeting"] = "Good morning."
        again = await round_.answer(plan_acceptance="edited", plan=plan)
        assert again.tool == PLAN
        assert "Good morning." in again.payload["plan"]
        assert again.payload["plan_hash"] != request.payload["plan_hash"]
        rounds = await round_.value("plan_rounds")
        hashes = [each["hash"] for each in rounds]
        assert hashes == [request.payload["plan_hash"], again.payload["plan_hash"]]
        strategy = await round_.value("workflow_strategy")
        assert strategy["greeting"] == "Good morning."
        after = await round_.answer(plan_acceptance="accepted")
        assert after.tool == "download"

    played(play, given())


def test_an_edited_plan_closes_open_places_and_keeps_comments():
    async def play(round_: Round) -> None:
        await round_.answer(plan_acceptance="adjustments_requested", comments="Pay faster.")
        plan = deepcopy(await round_.value("action_plan"))
        plan["WorkflowStrategy"]["assumptions"] = []
        again = await round_.answer(plan_acceptance="edited", plan=plan)
        assert again.payload["open"] == []
        assert [each["text"] for each in await round_.value("plan_comments")] == ["Pay faster."]

    played(play, given())


def test_an_incomplete_edit_is_asked_again():
    async def play(round_: Round) -> None:
        plan = deepcopy(await round_.value("action_plan"))
        plan["WorkflowStrategy"]["modules"][0]["module_index"] = 7
        again = await round_.answer(plan_acceptance="edited", plan=plan)
        assert (
            "the plan is invalid: WorkflowStrategy.modules[0].module_index"
            in (again.payload["message"])
        )
        assert len(await round_.value("plan_rounds")) <= 1

    played(play, given())


def test_a_comment_reaches_the_agents_that_write():
    spec = generator().spec
    for step in STEPS[1:5] + STEPS[6:15] + STEPS[16:]:
        assert "plan_comments" in spec.exposure[step.agent], step.agent
