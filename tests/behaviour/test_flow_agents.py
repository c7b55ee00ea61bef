"""Agents at steps of flows: tools, replies that do not fit, models that fail or take too long."""

import asyncio

from pydantic import BaseModel

from support.flow_options import waits
from weft.app.folders import LOCAL
from weft.engine.events import ModelFailed, ToolReturned, TurnFailed
from weft.errors import ModelError
from weft.flow import (
    AgentStep,
    AssembledContext,
    Response,
    StepContext,
    Workflow,
    agent,
    open_flow,
    run_flow,
)
from weft.testing import FunctionModel, ManualClock, ScriptedModel, call


class Doc(BaseModel):
    text: str = ""
    number: int = 0
    seen: list[str] = []


class Verdict(BaseModel):
    text: str
    number: int


def plain(**options) -> Workflow[Doc]:
    work = agent("Writer", prompt="Write.", output=options.pop("output", None))
    flow = Workflow.create("F", Doc).agent("Writer", prompt="You write.", **options)
    return flow.start_with(work, lambda o: o.with_retry(2, delay=0.001), name="write")


def look_up(word: str) -> str:
    """Return what a word means."""
    return f"{word} is a machine"


def test_an_agent_uses_its_tools_within_a_step():
    async def whole():
        model = ScriptedModel([call("look_up", word="loom"), "A loom."])
        async with open_flow(plain(tools=[look_up], output="text"), model=model) as host:
            run = await host.start("F", scope=LOCAL)
            await host.settled(run, scope=LOCAL)
            state = await host.state(run, scope=LOCAL)
            events = [event.data async for event in host.events(run, scope=LOCAL)]
        return state, events, model.requests[1].messages

    state, events, messages = waits(whole)
    assert (state.outcome, state.variables["text"]) == ("completed", "A loom."), state.reason
    assert "loom is a machine" in [
        event.value for event in events if isinstance(event, ToolReturned)
    ]
    assert "loom is a machine" in str(messages)


def test_a_reply_that_does_not_fit_its_class_is_asked_for_again_or_fails_the_attempt():
    async def whole(*lines):
        model = ScriptedModel(list(lines))
        return await run_flow(plain(output_type=Verdict), Doc(), model=model)

    good = {"text": "Old.", "number": 3}
    result = waits(lambda: whole("no JSON", {"text": "Old."}, good, good, good))
    assert (result.outcome, result.output.number) == ("completed", 3), result.reason
    result = waits(lambda: whole(*["no JSON"] * 20))
    assert result.outcome == "failed"


def test_a_model_that_fails_fails_the_attempt_and_the_step_is_tried_again():
    async def whole():
        model = ScriptedModel([ModelError("overloaded"), "Fine."])
        async with open_flow(plain(output="text"), model=model) as host:
            run = await host.start("F", scope=LOCAL)
            await asyncio.sleep(0.05)
            await host.settled(run, scope=LOCAL)
            state = await host.state(run, scope=LOCAL)
            events = [event.data async for event in host.events(run, scope=LOCAL)]
        return state, events

    state, events = waits(whole)
    assert (state.outcome, state.variables["text"]) == ("completed", "Fine."), state.reason
    assert [type(event) for event in events if isinstance(event, ModelFailed | TurnFailed)] == [
        ModelFailed,
        TurnFailed,
    ]


def test_a_model_that_takes_too_long_is_given_up_and_its_late_reply_changes_nothing():
    async def whole():
        clock, asked, go_on = ManualClock(), asyncio.Event(), asyncio.Event()

        async def slow(request):
            asked.set()
            await go_on.wait()
            return "Late."

        work = agent("Writer", prompt="Write.", output="text")
        flow = Workflow.create("F", Doc).agent("Writer")
        flow.start_with(work, lambda o: o.with_timeout(60))
        async with open_flow(flow, model=FunctionModel(slow), clock=clock) as host:
            run = await host.start("F", scope=LOCAL)
            await asked.wait()
            await clock.advance(60)
            go_on.set()
            await host.settled(run, scope=LOCAL)
            return await host.state(run, scope=LOCAL)

    state = waits(whole)
    assert (state.outcome, state.variables["text"]) == ("failed", "")
    assert state.reason == "Writer did not finish within 60 s"


class Remember(AgentStep[Doc]):
    def system_prompt(self) -> str:
        return "You remember."

    def user_prompt(self, state: Doc) -> str:
        return f"Round {state.number}"

    def apply(self, state: Doc, response: Response, assembly: AssembledContext):
        return {"text": response.text, "number": state.number + 1}


def test_the_step_of_an_agent_in_a_loop_has_its_conversation_before_its_prompt():
    async def whole():
        model = ScriptedModel(["one", "two", "three"])
        flow = (
            Workflow.create("F", Doc)
            .start_with(lambda s: None, name="begin")
            .repeat_until(
                lambda s: s.number >= 3,
                "Rounds",
                lambda body: body.then(
                    Remember,
                    lambda o: o.with_context(
                        lambda c: c.from_literal("Be brief.").from_history(max_messages=2)
                    ),
                ),
            )
        )
        await run_flow(flow, Doc(), model=model)
        return [[message["content"] for message in request.messages] for request in model.requests]

    first, second, third = waits(whole)
    assert first == ["You remember.", "Context:\nBe brief.", "Round 0"]
    assert second[0] == "You remember."
    assert second[-1] == "Round 1"
    assert "one" in second
    assert "two" in third
    assert "one" not in third


def test_an_agent_may_undo_a_step():
    async def whole():
        model = ScriptedModel({"Clerk": ["Cancelled."]})
        undo = agent("Clerk", prompt="Cancel {number}.", output="text")

        def broken(state: Doc):
            raise ValueError("no")

        flow = (
            Workflow.create("F", Doc)
            .agent("Clerk")
            .start_with(lambda s: {"number": 7}, lambda o: o.compensate(undo), name="order")
            .then(broken)
        )
        result = await run_flow(flow, Doc(), model=model)
        return result, model.requests[0].messages[-1]["content"]

    result, told = waits(whole)
    assert (result.outcome, result.output.text, told) == ("failed", "Cancelled.", "Cancel 7.")


def test_agents_side_by_side_are_asked_at_the_same_time_and_apart():
    async def whole():
        waiting, all_there = [], asyncio.Event()

        async def together(request):
            waiting.append(request.agent)
            if len(waiting) == 2:
                all_there.set()
            await all_there.wait()
            return request.agent

        def path(name, field):
            work = agent(name, prompt="Go.", output=field)
            return lambda p: p.then(work, name=name.lower())

        def sum_up(state: Doc, context: StepContext):
            return {"seen": [state.text, *(path.status for path in context.paths.values())]}

        class Two(Doc):
            other: str = ""

        flow = (
            Workflow.create("F", Two)
            .agent("A")
            .agent("B")
            .start_with(lambda s: None, name="begin")
            .fork(path("A", "text"), path("B", "other"))
            .join(sum_up)
        )
        return await run_flow(flow, Two(), model=FunctionModel(together))

    result = waits(whole)
    assert result.outcome == "completed", result.reason
    assert result.output.seen[1:] == ["success", "success"]
    assert result.output.text.startswith("A")
    assert result.output.other.startswith("B")
