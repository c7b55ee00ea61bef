"""Flows in code, run as they are and as another process reads them."""

import asyncio
from typing import Annotated

import pytest
from pydantic import BaseModel

import weft
from weft import Answer, Scope
from weft.board import Board, FilterConfig, artifact
from weft.errors import UsageError
from weft.flow import AgentStep, Append, Workflow, agent, open_flow
from weft.testing import FunctionModel, ScriptedModel


class Draft(BaseModel):
    topic: str = ""
    text: str = ""


class Speaker(AgentStep[Draft]):
    """Says something about a topic."""

    def __init__(self, who: str = "nobody") -> None:
        self.who = who

    def system_prompt(self) -> str:
        return f"You are {self.who}."

    def user_prompt(self, state: Draft) -> str:
        return state.topic

    def apply(self, state, response, assembly):
        return {"text": response.text}


@artifact
class Lead(BaseModel):
    name: str


@artifact
class Note(BaseModel):
    name: str


def told_back() -> FunctionModel:
    """A model whose reply is all it was sent."""
    return FunctionModel(
        lambda request: "\n".join(str(message["content"]) for message in request.messages)
    )


def test_the_class_of_an_agents_step_is_made_with_its_options():
    flow = Workflow.create("Speaking", Draft).start_with(Speaker(who="Ada"))
    spec = flow.build()
    assert spec.flow
    assert spec.flow.steps[0].work.options == {"who": "Ada"}
    # A copy knows nothing of the objects here: the class is made anew.
    result = weft.run(spec.model_copy(), Draft(topic="Bees"), model=told_back())
    assert result.output.text == "You are Ada.\nBees"


def test_artifacts_of_a_board_are_shown_that_the_filters_let_through(tmp_path):
    async def publish() -> None:
        async with Board(name="Sales", journal=tmp_path / "journal.db") as board:
            board.types(Lead, Note)
            for item in (Lead(name="Ada"), Note(name="Bob"), Lead(name="Cy")):
                await board.publish(item)

    asyncio.run(publish())
    flow = Workflow.create("Speaking", Draft).start_with(
        Speaker,
        lambda o: o.with_context(
            lambda c: c.from_board("Sales", filters=FilterConfig(types=("Lead",)))
        ),
    )
    result = weft.run(flow, Draft(), model=told_back(), journal=tmp_path / "journal.db")
    assert '"Cy"' in result.output.text
    assert '"Ada"' in result.output.text
    assert '"Bob"' not in result.output.text


def test_agent_step_sends_its_prompt_and_sets_the_reply():
    flow = (
        Workflow.create("Speaking", Draft)
        .agent("Editor", prompt="You shorten texts about {topic}.")
        .start_with(agent("Editor", prompt="Shorten {text}.", output=lambda s: s.text))
    )
    result = weft.run(flow, Draft(topic="bees", text="a lot"), model=told_back())
    assert "You shorten texts about bees." in result.output.text
    assert result.output.text.endswith("Shorten a lot.")


def test_a_condition_in_code_decides_as_its_text_does():
    def kept(state: Draft) -> dict[str, str]:
        return {"text": state.text + "!"}

    for test in (lambda s: (s.text == "Hi!!") & ~(s.topic == "x"), 'text == "Hi!!"'):
        flow = (
            Workflow.create("Speaking", Draft)
            .start_with(agent("Editor", output=lambda s: s.text))
            .agent("Editor", prompt="Greet.")
            .repeat_until(test, "again", lambda p: p.then(kept))
        )
        result = weft.run(flow, Draft(), model=ScriptedModel(["Hi"]))
        assert result.output.text == "Hi!!"


class Diary(BaseModel):
    log: Annotated[list[str], Append] = []


class Held:
    """What cannot be written as JSON."""

    def __init__(self, line) -> None:
        self._line = line

    def __str__(self) -> str:
        return self._line


def logs(entry):
    return lambda state: {"log": [entry[0] if isinstance(entry, list) else str(entry)]}


@pytest.mark.parametrize("wrap", [lambda item: item, lambda item: [item], Held])
async def test_a_step_that_is_put_before_others_changes_nothing_for_runs_under_way(tmp_path, wrap):
    def shop(*, more: bool):
        flow = Workflow.create("Shop", Diary).start_with(logs(wrap("begin")), name="begin")
        flow = flow.then(logs(wrap("new")), name="new") if more else flow
        return flow.await_approval("user:ada").then(logs(wrap("ship")), name="ship")

    scope = Scope("shop", "ada")
    async with open_flow(shop(more=False), journal=tmp_path / "j.db") as host:
        run = await host.start("Shop", scope=scope)
        await host.settled(run, scope=scope)
    async with open_flow(shop(more=True), journal=tmp_path / "j.db") as host:
        (asked,) = await host.requests(scope=scope)
        await host.deliver(run, Answer(asked.id, {"decision": "approve"}), scope=scope)
        await host.settled(run, scope=scope)
        state = await host.state(run, scope=scope)
    assert (state.outcome, state.variables["log"]) == ("completed", ["begin", "ship"])


class Counter:
    def __init__(self) -> None:
        self.calls = []

    def run(self, state, context) -> None:
        self.calls.append(context.step)


def test_two_objects_of_one_class_are_both_called():
    one, other = Counter(), Counter()
    weft.run(Workflow.create("Shop", Diary).start_with(one, name="one").then(other, name="other"))
    assert (one.calls, other.calls) == (["one"], ["other"])


class Pay:
    def __init__(self, api_key) -> None:
        self.api_key = api_key

    def run(self, state):
        return {"log": [f"{len(self.api_key)} letters"]}


def test_a_key_that_an_object_holds_is_written_nowhere(tmp_path):
    flow = Workflow.create("Shop", Diary).start_with(Pay("hunter-two"), name="pay")
    assert "hunter" not in flow.build().model_dump_json()
    with pytest.raises(UsageError, match="only this process has local:Pay_"):
        flow.save(tmp_path / "Shop")
    result = weft.run(flow, journal=tmp_path / "journal.db")
    assert result.output.log == ["10 letters"]
    assert all(b"hunter" not in file.read_bytes() for file in tmp_path.glob("journal.db*"))
