"""Flows of programs: run from scripts and in event loops, with what they need."""

import asyncio
import json
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict

import weft
from weft.errors import CheckFailed, LinkError, UsageError
from weft.flow import (
    AgentStep,
    Append,
    StepContext,
    StepResult,
    Workflow,
    agent,
    open_flow,
    run_flow,
)
from weft.retrieval import Collection, open_collections
from weft.testing import InMemoryVectorAdapter, ScriptedModel


class Library(Collection):
    """Passages for tests."""


class Draft(BaseModel):
    model_config = ConfigDict(frozen=True)

    topic: str
    text: str = ""
    tries: int = 0
    notes: Annotated[list[str], Append] = []
    decision: str | None = None


class Write(AgentStep[Draft]):
    def system_prompt(self) -> str:
        return "You write."

    def user_prompt(self, state: Draft) -> str:
        return f"Write about {state.topic}."

    def apply(self, state, response, assembly):
        passages = [result.content for result in assembly.retrieval_results]
        return {"text": response.text, "notes": passages}


def check(state: Draft):
    return state.model_copy(update={"notes": [*state.notes, "checked"]})


def writing():
    """Return a flow that searches, writes and checks."""
    return (
        Workflow.create("Writing", Draft)
        .start_with(
            Write,
            lambda step: step.with_context(
                lambda c: c.from_retrieval(Library, lambda r: r.query(lambda s: s.topic))
            ),
        )
        .then(check)
    )


def library(*texts):
    made = InMemoryVectorAdapter[Library]()
    made.seed(*((text, 0.9) for text in texts or ("Bees dance.",)))
    return made


def test_a_script_runs_a_flow_with_a_state_and_gets_the_state_at_its_end():
    result = weft.run(
        writing(),
        Draft(topic="Bees"),
        model=ScriptedModel(["A text."]),
        collections={Library: library()},
    )
    assert result.outcome == "completed"
    assert result.output == Draft(topic="Bees", text="A text.", notes=["Bees dance.", "checked"])
    assert result.run == result.state.run
    assert result.reason == result.state.reason


def test_a_flow_that_was_built_runs_with_what_only_this_process_has():
    def note(state: Draft):
        return {"notes": ["here"]}

    spec = Workflow.create("Noting", Draft).start_with(note).build()
    result = weft.run(spec, Draft(topic="Bees"))
    assert result.output.notes == ["here"]
    copied = spec.model_copy()
    with pytest.raises(LinkError, match="is defined in code that is not loaded here"):
        weft.run(copied, Draft(topic="Bees"))


def test_a_mapping_is_a_state_as_well():
    flow = Workflow.create("Checking", Draft).start_with(check)
    assert weft.run(flow, {"topic": "Bees"}).output.notes == ["checked"]
    assert weft.run(flow.build(), {"topic": "Bees"}).output["notes"] == ["checked"]


def test_adapters_are_swapped_without_touching_the_flow():
    flow = writing()
    for text in ("One.", "Two."):
        given = {"Library": library(text)}
        model = ScriptedModel(["A text."])
        result = weft.run(flow, Draft(topic="Bees"), model=model, collections=given)
        assert result.output.notes[0] == text


def test_unregistered_name_is_refused():
    with pytest.raises(UsageError, match="searches the collection Library, which does not exist"):
        weft.run(writing(), Draft(topic="Bees"), model=ScriptedModel([]))
    with pytest.raises(UsageError, match="str has no method search"):
        weft.run(writing(), Draft(topic="Bees"), collections={Library: "text"})


class Other(BaseModel):
    topic: str


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (Other(topic="x"), "the state of Checking is a Draft, not a Other"),
        ({"tries": "many", "topic": "x"}, "the state is not a valid Draft: tries"),
        (None, "the state is not a valid Draft: topic is missing"),
        ({"topik": "x", "topic": "y"}, "Draft has no field topik\nhint: did you mean topic?"),
    ],
)
def test_invalid_state_is_refused_before_the_run(state, told):
    flow = Workflow.create("Checking", Draft).start_with(check)
    with pytest.raises(UsageError, match=told):
        weft.run(flow, state)


def test_a_run_that_waits_says_for_whom():
    flow = Workflow.create("Checking", Draft).start_with(check)
    flow = flow.await_approval("manager", lambda item: item.text("Print {topic}?"))
    result = weft.run(flow, Draft(topic="Bees"))
    assert (result.outcome, result.reason) == (None, "waits for role:manager: Print Bees?")


def test_a_collection_that_is_not_there_names_the_nearest():
    with pytest.raises(UsageError, match="searches the collection Library") as caught:
        weft.run(writing(), Draft(topic="Bees"), model="sample", collections={"Librari": library()})
    hint = caught.value.hint or ""
    assert hint.startswith("did you mean Librari? or create it: weft collection add Library PATHS")
    assert 'workspace="."' in hint


def test_object_that_is_not_a_flow_is_refused():
    with pytest.raises(UsageError, match="int is not a flow"):
        weft.run(3, None)
    flow = Workflow.create("Checking", Draft).start_with(check)
    with pytest.raises(UsageError, match="a flow starts with a state"):
        weft.run(flow, None, values={"topic": "x"})
    with pytest.raises(CheckFailed) as caught:
        weft.run(flow.then(agent("Nobody")), Draft(topic="x"))
    assert caught.value.__context__ is None
    flow = Workflow.create("Checking", Draft).start_with(check)
    plain = flow.build().model_copy(update={"flow": None})
    with pytest.raises(UsageError, match="Checking is not a flow"):
        weft.run(plain, Draft(topic="x"))


def test_run_is_stored_in_the_named_journal(tmp_path):
    flow = Workflow.create("Checking", Draft).start_with(check)
    weft.run(flow, Draft(topic="x"), journal=tmp_path / "my.db")
    assert (tmp_path / "my.db").exists()
    result = weft.run(flow, Draft(topic="x"), workspace=tmp_path)
    assert (tmp_path / ".weft" / "journal.db").exists()

    async def again():
        async with open_flow(flow, workspace=tmp_path) as host:
            return await host.state(result.run, scope=weft.Scope("local", "me"))

    assert asyncio.run(again()).outcome == "completed"


def test_it_does_not_return_while_only_a_time_is_waited_for():
    def shaky(state: Draft, context: StepContext):
        if context.attempt < 3:
            raise ConnectionError("not yet")
        return {"tries": context.attempt}

    flow = Workflow.create("Shaky", Draft).start_with(
        shaky, lambda step: step.with_retry(3, delay=0.02)
    )
    result = weft.run(flow, Draft(topic="x"))
    assert (result.outcome, result.output.tries) == ("completed", 3)


def approving():
    return (
        Workflow.create("Approving", Draft)
        .start_with(check)
        .await_approval("role:editor", lambda a: a.into(lambda s: s.decision))
        .then(check, name="again")
    )


def test_run_flow_returns_when_it_waits_for_a_person():
    result = weft.run(approving(), Draft(topic="x"))
    assert result.outcome is None
    assert result.state.status == "waiting"
    assert result.output.notes == ["checked"]


def test_person_is_asked_every_question():
    asked = []

    def answer(request):
        asked.append(request.addressee)
        return {"decision": "approve"}

    result = weft.run(approving(), Draft(topic="x"), answer=answer)
    assert asked == ["role:editor"]
    assert result.outcome == "completed"
    assert result.output.decision == "approve"


def test_a_run_that_failed_has_the_state_it_left():
    def broken(state):
        raise LookupError("gone")

    flow = Workflow.create("Broken", Draft).start_with(check).then(broken)
    result = weft.run(flow, Draft(topic="x"))
    assert result.outcome == "failed"
    assert "gone" in result.reason
    assert result.output.notes == ["checked"]


async def test_a_program_with_a_loop_awaits_it():
    with pytest.raises(UsageError, match="an event loop is already running") as caught:
        weft.run(writing(), Draft(topic="x"))
    assert "await weft.flow.run_flow(flow, state)" in (caught.value.hint or "")
    outcome = await run_flow(
        writing(),
        Draft(topic="Bees"),
        model=ScriptedModel(["A text."]),
        collections={Library: library()},
    )
    assert outcome.output.text == "A text."


async def test_a_host_starts_several_runs_of_a_flow():
    scope = weft.Scope("app", "ada")
    model = ScriptedModel(["One.", "Two."])
    async with open_flow(writing(), model=model, collections={Library: library()}) as host:
        for _ in range(2):
            values = {"topic": "Bees"}
            run = await host.start("Writing", scope=scope, values=values)
            await host.settled(run, scope=scope)
        outcome = await host.state(run, scope=scope)
    assert outcome.variables["text"] == "Two."


def test_a_name_of_a_model_answers_for_all():
    result = weft.run(
        Workflow.create("Sampled", Draft).start_with(Write), Draft(topic="x"), model="sample"
    )
    assert result.outcome == "completed"
    assert result.output.text


def test_the_collections_of_a_workspace_are_searched_unless_another_adapter_is_given(tmp_path):
    async def fill():
        async with open_collections(tmp_path, environment={"WEFT_EMBEDDINGS": "none"}) as made:
            await made.add_texts(Library, {"bees.md": "Bees dance to tell the way."})

    def ran(**rest):
        flow = Workflow.create("Writing", Draft).start_with(
            Write,
            lambda step: step.with_context(
                lambda c: c.from_retrieval(
                    Library, lambda r: r.query(lambda s: s.topic).min_relevance(0)
                )
            ),
        )
        model = ScriptedModel(["A text."])
        return weft.run(flow, Draft(topic="bees dance"), model=model, workspace=tmp_path, **rest)

    with pytest.raises(UsageError, match="searches the collection Library, which does not exist"):
        ran()
    asyncio.run(fill())
    assert ran().output.notes == ["Bees dance to tell the way."]
    assert ran(collections={Library: library("Other.")}).output.notes == ["Other."]


def write_package(workspace, flow):
    """Write a flow as the files of a package, and return the workspace."""
    folder = workspace / "workflows" / "Filed"
    variables = {
        name: {"type": "str", "description": name, "source": {"type": "derived", "default": ""}}
        for name in ("topic", "text")
    }
    files = {
        "orchestrator.json": {"workflow_name": "Filed"},
        "agents.json": {"agents": [{"agent_name": "Writer"}]},
        "context_variables.json": {"context_variables": {"definitions": variables}},
        "flow.json": flow,
    }
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "tools").mkdir()
    (folder / "tools" / "steps.py").write_text(CODE)
    return workspace


CODE = """
tries = []

def shout(state, context):
    tries.append(context.attempt)
    if context.attempt == 1:
        raise ConnectionError("not yet")
    return {"text": state.text.upper() + str(len(tries))}
"""

SOURCES = [{"kind": "retrieval", "collection": "Library", "query_path": "topic"}]
FILED = {
    "steps": [
        {
            "kind": "step",
            "name": "write",
            "work": {"kind": "agent", "agent": "Writer", "prompt": "Write.", "output": "text"},
            "context": {"sources": SOURCES},
        },
        {
            "kind": "step",
            "name": "shout",
            "work": {"kind": "function", "function": "tools.steps:shout"},
            "retry": {"attempts": 2, "delay_seconds": 0.02},
        },
    ]
}


def test_a_flow_in_files_runs_by_its_name_with_adapters_that_are_given(tmp_path):
    workspace = write_package(tmp_path, FILED)
    given = {"workspace": workspace, "values": {"topic": "bees"}, "model": "sample"}
    with pytest.raises(UsageError, match="searches the collection Library, which does not exist"):
        weft.run("Filed", **given)
    adapter = library("Bees dance.")
    state = weft.run("Filed", **given, collections={Library: adapter})
    assert state.outcome == "completed", state.reason
    assert state.variables["text"].endswith("2")
    assert [search.query for search in adapter.searches] == ["bees"]


def test_a_flow_in_files_begins_with_values_and_no_message(tmp_path):
    workspace = write_package(tmp_path, FILED)
    with pytest.raises(UsageError, match="begins with values, not with a message"):
        weft.run("Filed", "Hello", workspace=workspace, model="sample")


def test_warnings_about_a_flow_are_logged_when_it_is_run(caplog):
    flow = Workflow.create("Warned", Draft).start_with(
        lambda doc: StepResult({}, confidence=0.9),
        lambda item: item.require_confidence(0.5),
        name="sure",
    )
    assert weft.run(flow, Draft(topic="looms")).outcome == "completed"
    assert "FLOW013" in caplog.text
