"""What steps are told of what came before, and what holds when a process ends in the middle."""

import asyncio
from datetime import datetime

import pytest
from pydantic import BaseModel

from support.flow_hosts import SCOPE, FlowPlay, derived, step
from weft.adapters.sql import SqliteStore
from weft.context.agent_step import AgentStep, Failure, PathResult, StepContext
from weft.context.step_context import AssembledContext
from weft.ports.live import TextDelta
from weft.ports.retrieval import Collection
from weft.testing import FunctionModel, InMemoryVectorAdapter, ScriptedModel


class Library(Collection):
    """Passages for tests."""


class Trip(BaseModel):
    booked: list[str] = []
    note: str = ""


VARIABLES = {"booked": derived("list[str]", [], "append"), "note": derived("str", "")}


def noting(given):
    """Return a step that keeps what it was given."""

    def note(state, context: StepContext):
        given.append((state, context))

    return note


def ran(play, *steps, **flow):
    return play.run(play.spec(*steps, state=Trip, variables=VARIABLES, **flow))


def broken(state):
    raise LookupError("no seat left")


def test_failure_path_receives_the_failure():
    play, given = FlowPlay(), []
    path = {"steps": [step("note", play.function(noting(given)))]}
    ended = ran(play, step("fly", play.function(broken), on_failure=path))
    assert ended.outcome == "failed"
    ((_, context),) = given
    failure = context.failure
    assert isinstance(failure, Failure)
    assert (failure.step, failure.attempt, failure.type) == ("fly", 1, "LookupError")
    assert "no seat left" in failure.message
    assert "in broken" in failure.stack
    assert isinstance(failure.at, datetime)
    assert failure.at.tzinfo is not None
    assert failure.input


def test_compensation_receives_the_step_it_undoes():
    play, given = FlowPlay(), []
    book = step(
        "book",
        play.function(lambda state: {"booked": ["hotel"]}),
        compensate=play.function(noting(given)),
    )
    later = step("later", play.function(lambda state: {"booked": ["car"]}))
    ended = ran(play, book, later, step("fly", play.function(broken)))
    assert ended.outcome == "failed"
    ((state, context),) = given
    assert context.undoes.step == "book"
    assert context.undoes.turn == 1
    assert context.undoes.state == Trip(booked=["hotel"])
    assert state.booked == ["hotel", "car"]
    assert context.failure.step == "fly"


def test_an_agent_may_undo_a_step_and_is_shown_no_context():
    class Undo(Write):
        def build_messages(self, state, assembly, context):
            assert assembly.is_empty
            yield {"role": "user", "content": f"Undo {context.undoes.step}."}

    adapter = InMemoryVectorAdapter()
    play = FlowPlay(
        agents=["Writer"], model=ScriptedModel(["Undone."]), collections={Library: adapter}
    )
    book = step(
        "book",
        play.function(lambda state: None),
        compensate=play.agent("Writer", Undo),
        context=SOURCES,
    )
    ended = ran(play, book, step("fly", play.function(broken)))
    assert ended.outcome == "failed"
    assert play.model.requests[0].messages[-1]["content"] == "Undo book."
    assert len(adapter.searches) == 1
    assert ended.variables["note"] == "Undone. []"


def test_join_receives_the_result_of_each_path():
    play, given = FlowPlay(), []
    recovery = {"steps": [step("recover", play.function(lambda state: None))]}
    paths = [
        {"name": "good", "steps": [step("a", play.function(lambda state: {"note": "a"}))]},
        {"name": "bad", "steps": [step("b", play.function(broken))]},
        {
            "name": "saved",
            "steps": [step("c", play.function(broken))],
            "on_failure": recovery,
        },
    ]
    join = step("join", play.function(noting(given)))
    fork = {"kind": "fork", "name": "fork", "paths": paths, "join": join}
    ended = ran(play, fork)
    assert ended.outcome == "completed"
    ((state, context),) = given
    assert state.note == "a"
    assert {name: path.status for name, path in context.paths.items()} == {
        "good": "success", "bad": "failed", "saved": "recovered",
    }  # fmt: skip
    assert context.paths["good"] == PathResult("success", None)
    assert context.paths["bad"].failure.type == "LookupError"


def test_attempts_are_counted_and_have_keys_of_their_own():
    play, given = FlowPlay(), []

    def shaky(state, context):
        given.append(context)
        if context.attempt == 1:
            raise ConnectionError

    retry = {"attempts": 2, "delay_seconds": 0.01}
    assert ran(play, step("shaky", play.function(shaky), retry=retry)).outcome == "completed"
    assert [item.attempt for item in given] == [1, 2]
    assert given[0].key != given[1].key


def test_secrets_do_not_stand_in_what_is_kept_of_an_exception(monkeypatch):
    def telling(state):
        raise LookupError("the key is hush-hush-42")

    secret = {
        "type": "str",
        "source": {"type": "environment", "env_var": "API_KEY"},
        "secret": True,
    }
    play = FlowPlay(environment={"API_KEY": "hush-hush-42"})
    spec = play.spec(
        step("tell", play.function(telling)), variables={**VARIABLES, "api_key": secret}
    )
    play.run(spec)
    (failed,) = play.failures()
    assert failed.exception["type"] == "LookupError"
    assert "hush-hush" not in str(failed)


class Write(AgentStep[Trip]):
    def system_prompt(self):
        return "You write."

    def user_prompt(self, state):
        return "Write."

    def apply(self, state, response, assembly):
        return {
            "note": f"{response.text} {[result.content for result in assembly.retrieval_results]}"
        }


@pytest.mark.parametrize("where", ["prompt", "messages", "assembler"])
def test_failure_before_a_step_has_its_exception_without_secrets(where):
    def fail():
        raise LookupError("the key is hush-hush-42")

    class Failing(Write):
        def user_prompt(self, state):
            return fail() if where == "prompt" else "Write."

        def build_messages(self, state, assembly, context):
            if where == "messages":
                fail()
            return super().build_messages(state, assembly, context)

    class Assembler:
        async def assemble(self, state, context):
            return fail() if where == "assembler" else AssembledContext.empty()

    given = []
    play = FlowPlay(agents=["Writer"], environment={"API_KEY": "hush-hush-42"})
    secret = {
        "type": "str",
        "source": {"type": "environment", "env_var": "API_KEY"},
        "secret": True,
    }
    failing = step(
        "failing",
        play.agent("Writer", Failing),
        context={"assembler": play.ref(Assembler)},
        on_failure={"steps": [step("note", play.function(noting(given)))]},
    )
    ended = play.run(play.spec(failing, variables={**VARIABLES, "api_key": secret}))
    assert ended.outcome == "failed"
    ((_, context),) = given
    assert context.failure.type == "LookupError"
    assert context.failure.message.startswith("the key is ")
    assert "in fail" in context.failure.stack
    assert "hush-hush" not in str(play.events) + context.failure.stack


SOURCES = {"sources": [{"kind": "retrieval", "collection": "Library", "query": "bees"}]}


def test_after_a_crash_nothing_is_asked_again_and_the_same_bytes_are_sent(tmp_path):
    sent, asked = [], asyncio.Event()

    async def never(request):
        sent.append(request.messages)
        asked.set()
        await asyncio.sleep(30)

    def library(*passages):
        made = InMemoryVectorAdapter()
        made.seed(*passages)
        return made

    async def first():
        play = FlowPlay(
            agents=["Writer"],
            model=FunctionModel(never),
            collections={Library: library(("Bees dance.", 0.9))},
        )
        play.journal = await SqliteStore.open(tmp_path / "journal.db")
        node = step("write", play.agent("Writer", Write), context=SOURCES)
        spec = play.spec(node, state=Trip, variables=VARIABLES)
        async with play.host(spec) as host:
            await host.start("F", scope=SCOPE, run="r1")
            await asked.wait()
        return play, spec

    async def second(before, spec):
        play = FlowPlay(
            agents=["Writer"],
            model=ScriptedModel(["Done."]),
            collections={Library: library(("Ants crawl.", 0.9))},
        )
        play.objects = before.objects
        play.journal = await SqliteStore.open(tmp_path / "journal.db")
        async with play.host(spec) as host:
            await host.resume("r1", scope=SCOPE, take_over=True)
            await host.settled("r1", scope=SCOPE)
            sent.append(play.model.requests[0].messages)
            return await host.state("r1", scope=SCOPE)

    async def whole():
        return await second(*await first())

    ended = asyncio.run(whole())
    assert sent[0] == sent[1]
    assert ended.variables["note"] == "Done. ['Bees dance.']"


async def test_reply_is_streamed():
    play = FlowPlay(agents=["Writer"], model=ScriptedModel(["One two three."]))
    node = step("write", play.agent("Writer", Write))
    async with play.host(play.spec(node, state=Trip, variables=VARIABLES)) as host:
        run = await host.start("F", scope=SCOPE, streamed=True)
        heard = [event async for event in host.events(run, scope=SCOPE, follow=True)]
    assert "".join(item.text for item in heard if isinstance(item, TextDelta)) == "One two three."


@pytest.mark.parametrize("reply", ['{"note": 3}', "no json"])
def test_a_reply_that_does_not_fit_the_class_of_the_step_fails_the_attempt(reply):
    class Note(BaseModel):
        note: str

    class Strict(Write):
        output_type = Note

    play = FlowPlay(agents=["Writer"], model=ScriptedModel([reply] * 5))
    ended = ran(play, step("write", play.agent("Writer", Strict)))
    assert ended.outcome == "failed"
    assert "the reply is not a valid Note" in play.failures()[0].error
