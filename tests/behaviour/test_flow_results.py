"""What a program gets of a run of its flow, and what is made only once for all runs."""

import asyncio
from typing import Annotated

import pytest
from pydantic import BaseModel, Field, model_validator

from weft.app.flows import open_flow, run_flow
from weft.app.folders import LOCAL
from weft.engine.events import ModelReplied
from weft.errors import RunError
from weft.flow import Append, Workflow, agent
from weft.testing import ScriptedModel


class Doc(BaseModel):
    text: str = ""
    words: int = 0


def count(state: Doc):
    return {"words": len(state.text.split())}


async def double(state: Doc):
    return {"words": state.words * 2}


class Counted(Workflow[Doc]):
    """A flow that knows how often it was built."""

    builds = 0

    def build(self):
        self.builds += 1
        return super().build()


def flow():
    return Counted("Count", Doc).start_with(count).then(double)


def test_a_run_comes_to_the_state_after_its_last_step():
    result = asyncio.run(run_flow(flow(), Doc(text="one two")))
    assert result.outcome == "completed"
    assert result.output == Doc(text="one two", words=4)


async def test_the_state_of_a_run_that_has_just_ended_is_the_one_in_the_journal(tmp_path):
    async with open_flow(flow(), journal=tmp_path / "journal.db") as host:
        run = await host.start("Count", scope=LOCAL, values={"text": "one"})
        ended = await host.settled_state(run, scope=LOCAL)
        later = await host.settled_state(run, scope=LOCAL)  # It is in memory no more.
        read = await host.state(run, scope=LOCAL)
    assert ended.status == "ended"
    assert ended.variables["words"] == 2
    assert vars(ended) == vars(later) == vars(read)


async def test_a_flow_is_built_when_its_host_opens_and_not_for_every_run():
    counted = flow()
    async with open_flow(counted) as host:
        for text in ("one", "one two"):
            run = await host.start("Count", scope=LOCAL, values={"text": text})
            assert (await host.settled(run, scope=LOCAL)).outcome == "completed"
    assert counted.builds == 1


class Bounded(BaseModel):
    kind: str = Field("a", max_length=3)
    least: int = Field(0, ge=0)
    most: int = 9
    words: Annotated[list[Annotated[str, Field(max_length=3)]], Append] = []

    @model_validator(mode="after")
    def in_order(self):
        if self.least > self.most:
            raise ValueError("least is more than most")
        return self


class Limits(BaseModel):
    least: int
    most: int


class Words(BaseModel):
    words: list[str]


def asked(output=None, reply=None):
    return (
        Workflow.create("Ask", Bounded)
        .agent("Writer", prompt="You write.", output_type=reply)
        .start_with(agent("Writer", prompt="Write.", output=output), name="write")
    )


@pytest.mark.parametrize(
    ("flow", "wrong", "right", "told", "field", "value"),
    [
        (
            asked("kind"),
            "a long reply",
            "ok",
            "kind: String should have at most 3 characters",
            "kind",
            "ok",
        ),
        (
            asked(reply=Limits),
            '{"least": -1, "most": 5}',
            '{"least": 1, "most": 5}',
            "least: Input should be greater than or equal to 0",
            "least",
            1,
        ),
        (
            asked(reply=Limits),
            '{"least": 6, "most": 5}',
            '{"least": 5, "most": 5}',
            "least is more than most",
            "least",
            5,
        ),
        (
            asked(reply=Words),
            '{"words": ["new", "newest"]}',
            '{"words": ["new"]}',
            "words.2: String should have at most 3 characters",
            "words",
            ["old", "new"],
        ),
    ],
)
def test_a_reply_that_the_class_of_the_state_does_not_take_is_asked_for_again(
    flow, wrong, right, told, field, value
):
    model = ScriptedModel([wrong, right])
    ended = asyncio.run(run_flow(flow, Bounded(words=["old"]), model=model))
    assert ended.outcome == "completed", ended.reason
    assert getattr(ended.output, field) == value
    assert told in model.requests[1].messages[-1]["content"]


async def test_a_step_fails_whose_agent_gives_no_reply_that_the_class_takes(tmp_path):
    model = ScriptedModel(["a long reply"] * 3)
    journal = tmp_path / "journal.db"
    ended = await run_flow(asked("kind"), Bounded(), model=model, journal=journal)
    async with open_flow(asked("kind"), journal=journal) as host:
        told = [event.data async for event in host.events(ended.run, scope=LOCAL)]
    misfits = [item.output_error for item in told if isinstance(item, ModelReplied)]
    assert ended.outcome == "failed"
    assert ended.output == Bounded()
    assert misfits == ["kind: String should have at most 3 characters"] * 3


def test_a_completed_run_whose_state_does_not_fit_its_class_is_an_error():
    flow = (
        Workflow.create("Ask", Bounded)
        .start_with(lambda state: None, name="begin")
        .await_approval("editor", lambda ask: ask.into(lambda state: state.kind))
    )
    answered = run_flow(flow, Bounded(), answer=lambda request: {"decision": "approve"})
    with pytest.raises(RunError, match=r"has completed.*is not a valid Bounded: kind"):
        asyncio.run(answered)
