"""Steps of flows: what code is given, and what counts of what it returns."""

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from datetime import date

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from support.flow_hosts import SCOPE, FlowPlay, derived, step
from weft import run as run_workflow
from weft import tool
from weft.context.agent_step import AgentStep, Response, StepContext, StepResult
from weft.engine.events import ToolCalled
from weft.errors import LinkError, UsageError
from weft.flow import Workflow
from weft.testing import FunctionModel, ScriptedModel


class Doc(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str = ""
    words: int = Field(default=0, ge=0)
    notes: list[str] = []
    scores: dict[str, int] = {}
    seen: date | None = None

    @field_validator("text")
    @classmethod
    def _stripped(cls, value: str) -> str:
        return value.strip()


VARIABLES = {
    "text": derived("str", ""),
    "words": derived("int", 0),
    "notes": derived("list[str]", [], "append"),
    "scores": derived("dict[str, int]", {}, "merge"),
    "seen": derived("str | None"),
}


def ran(function, *, state=Doc, model=None, **values):
    """Run a flow of one function, and return the play and the state it came to."""
    play = FlowPlay(model=model)
    spec = play.spec(step("work", play.function(function)), state=state, variables=VARIABLES)
    ended = play.run(spec, **values)
    return play, ended


def failure(function, **rest) -> str:
    """Return why a step of one function failed."""
    play, ended = ran(function, **rest)
    assert ended.outcome == "failed"
    (failure,) = play.failures()
    return failure.error


# -- what a function is given


def test_a_function_is_given_the_state_as_an_object_of_its_class():
    def count(state: Doc):
        assert isinstance(state, Doc)
        return {"words": len(state.text.split())}

    _, ended = ran(count, text="one two three")
    assert ended.outcome == "completed"
    assert ended.variables["words"] == 3


def test_a_function_may_be_async():
    async def count(state: Doc):
        return {"words": len(state.text.split())}

    assert ran(count, text="one two")[1].variables["words"] == 2


def test_a_function_may_want_a_context():
    def told(state: Doc, context: StepContext):
        return {"text": f"{context.run} {context.step} {context.attempt} {context.key}"}

    play, ended = ran(told)
    (called,) = [event for event in play.events if isinstance(event.data, ToolCalled)]
    assert ended.variables["text"] == f"r1 work 1 app/r1:{called.seq}"


def test_declared_default_is_kept():
    with pytest.raises(LinkError, match="takes neither"):
        ran(lambda state, other, third: None)
    with pytest.raises(LinkError, match="takes neither"):
        ran(lambda state, *, context: None)
    assert ran(lambda state, most=7: {"words": most})[1].variables["words"] == 7
    assert ran(lambda *given: {"words": len(given)})[1].variables["words"] == 2


def test_a_class_does_a_step_with_run_and_is_made_with_its_options():
    class Count:
        def __init__(self, most: int):
            self.most = most

        def run(self, state: Doc):
            return {"words": self.most}

    play = FlowPlay()
    work = {**play.function(Count), "options": {"most": 5}}
    spec = play.spec(step("work", work), state=Doc, variables=VARIABLES)
    assert play.run(spec).variables["words"] == 5
    assert ran(Count(6))[1].variables["words"] == 6


def test_invalid_step_is_refused_before_a_run():
    class Nothing: ...

    with pytest.raises(LinkError, match="does no step"):
        ran(Nothing())
    with pytest.raises(LinkError, match="is not a state class"):
        ran(lambda state: None, state=Nothing())


def test_the_state_is_frozen_and_what_is_done_to_it_changes_nothing():
    def change(state: Doc):
        state.notes.append("mine")
        state.text = "other"

    play, ended = ran(change, notes=["a"])
    assert "Instance is frozen" in play.failures()[0].error
    assert ended.variables["notes"] == ["a"]


def test_without_a_class_the_state_is_a_mapping_with_attributes_that_cannot_be_changed():
    def work(state):
        with pytest.raises(TypeError, match="the state is read-only"):
            state["words"] = 1
        with pytest.raises(TypeError, match="the state is read-only"):
            state.words = 1
        with pytest.raises(TypeError, match="the state is read-only"):
            state.update(words=1)
        with pytest.raises(AttributeError, match="the state has no field wrods"):
            _ = state.wrods
        assert state["scores"] == state.scores == {"a": 1}
        assert state.scores.a == 1
        assert state.scores | {"b": 2} == {"a": 1, "b": 2}
        return {"words": len(state.text.split())}

    play, ended = ran(work, state=None, text="one two", scores={"a": 1})
    assert ended.outcome == "completed", play.failures()
    assert ended.variables["words"] == 2


def test_a_context_is_frozen():
    def work(state, context):
        with pytest.raises(FrozenInstanceError):
            context.step = "other"

    assert ran(work)[1].outcome == "completed"


# -- what counts of what it returns


def test_nothing_may_be_returned():
    _, ended = ran(lambda state: None, text="a")
    assert ended.outcome == "completed"
    assert ended.variables["text"] == "a"


def test_values_are_made_what_their_class_says():
    _, ended = ran(lambda state: {"text": " a ", "words": "3", "seen": date(2020, 1, 2)})
    assert ended.variables["text"] == "a"
    assert ended.variables["words"] == 3
    assert ended.variables["seen"] == "2020-01-02"


def test_of_a_state_that_is_returned_the_difference_counts():
    def work(state: Doc):
        assert state.seen == date(2020, 1, 2)
        return state.model_copy(update={"text": "b", "notes": [*state.notes, "new"]})

    play, ended = ran(work, text="a", notes=["old"], seen="2020-01-02")
    (returned,) = play.returned()
    assert returned == {"set": {"text": "b", "notes": ["new"]}, "confidence": None}
    assert ended.variables["notes"] == ["old", "new"]


def test_of_a_mapping_that_is_returned_whole_the_difference_counts():
    play, _ = ran(lambda state: state, state=None, text="a")
    (returned,) = play.returned()
    assert returned["set"] == {}


def test_new_entries_are_appended_and_new_keys_merged():
    def work(state):
        return {"notes": ("b", "c"), "scores": {"b": 2}}

    for kind in (Doc, None):
        _, ended = ran(work, state=kind, notes=["a"], scores={"a": 1})
        assert ended.variables["notes"] == ["a", "b", "c"]
        assert ended.variables["scores"] == {"a": 1, "b": 2}


def test_of_a_state_only_what_was_added_is_appended_or_merged():
    def work(state: Doc):
        return Doc(notes=[*state.notes, "b"], scores={**state.scores, "a": 3, "b": 2})

    _, ended = ran(work, notes=["a"], scores={"a": 1})
    assert ended.variables["notes"] == ["a", "b"]
    assert ended.variables["scores"] == {"a": 3, "b": 2}


def test_a_result_says_how_sure_it_is():
    play, _ = ran(lambda state: StepResult({"words": 1}, confidence=0.8))
    (returned,) = play.returned()
    assert returned == {"set": {"words": 1}, "confidence": 0.8}


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (3, "it returned a value of type int; return a dict of changed fields, a Doc or None"),
        ([("words", 1)], "it returned a value of type list"),
        ({"wrods": 1}, "it returned wrods, and the state has no such field; did you mean words?"),
        ({"zzzzzz": 1}, "available: text, words, notes, scores, seen"),
        ({"words": "many"}, "invalid Doc: words: Input should be a valid integer"),
        ({"words": -1}, "words: Input should be greater than or equal to 0"),
        ({"words": "x", "text": 1}, r"\(and 1 more\)"),
        ({"notes": "abc"}, "notes is appended to: return a list of the new entries"),
        ({"scores": ["a"]}, "scores is merged: return a mapping of the new keys"),
        (Doc.model_construct(words="x"), "invalid Doc: words"),
        (Doc(notes=["other"], scores={"a": 1}), "with merge: append, and the list was changed"),
        (Doc(notes=["a"], scores={}), "with merge: merge, and a was removed"),
        (StepResult({}, confidence=2), "the confidence 2; it is a number from 0 to 1"),
        (StepResult({}, confidence=True), "the confidence True"),
        (StepResult(5), "a value of type int"),
    ],
)
def test_invalid_result_fails_the_step_and_changes_nothing(returned, told):
    def work(state):
        return returned

    play, ended = ran(work, notes=["a"], scores={"a": 1}, words=4)
    (failed,) = play.failures()
    assert ended.outcome == "failed"
    assert re.search(told, failed.error)
    assert failed.error.startswith("work")
    assert (ended.variables["words"], ended.variables["notes"]) == (4, ["a"])


def test_without_a_class_types_are_those_of_the_variables():
    assert "words" in failure(lambda state: {"words": "many"}, state=None)
    told = failure(lambda state: {"text": object()}, state=None)
    assert "it returned a value of type dict that is not JSON" in told
    told = failure(lambda state: 3, state=None)
    assert "return a dict of changed fields, the state or None" in told


class Order(Doc):
    text: str
    words: int


@pytest.mark.parametrize(
    ("state", "values", "told", "hint"),
    [
        (
            Doc,
            {"words": -5},
            "words: Input should be greater than or equal to 0",
            "--set words=...",
        ),
        (Order, {}, "text, words are missing", "--set text=... --set words=..."),
        (Order, {"words": 2}, "text is missing", "weft run F --set text=..."),
    ],
)
async def test_a_state_that_does_not_fit_its_class_is_refused_before_anything_is_written(
    state, values, told, hint
):
    play = FlowPlay()
    variables = {**VARIABLES, "text": derived("str"), "words": derived("int")}
    variables = variables if state is Order else VARIABLES
    spec = play.spec(
        step("work", play.function(lambda item: None)), state=state, variables=variables
    )

    async with play.host(spec) as host:
        with pytest.raises(UsageError, match=f"F cannot start: {told}") as caught:
            await host.start("F", scope=SCOPE, values=values)
        assert caught.value.hint.endswith(hint)
        assert not await host.runs(scope=SCOPE)


# -- what goes wrong in it


def test_messages_and_the_log_name_the_step(caplog):
    caplog.set_level("INFO", "weft.tools")
    play = FlowPlay()
    undo = play.function(lambda state: {"nothing": 1})
    spec = play.spec(
        step("first", play.function(lambda state: None), compensate=undo),
        step("second", play.function(lambda state: [state.missing])),
        state=Doc,
        variables=VARIABLES,
    )
    ended = play.run(spec)
    assert ended.reason.startswith("second failed: AttributeError: ")
    told = [failure.error for failure in play.failures()]
    assert told[-1].startswith("first.compensate: it returned nothing, and the state has no such")
    (message,) = caplog.messages
    assert message.startswith("step second failed with AttributeError (attempt 1)\n")
    assert failure(lambda state: 3).startswith("work: it returned a value of type int")


def test_an_exception_is_kept_with_its_type_its_message_and_where_it_came_from():
    def broken(state):
        raise LookupError("no such thing")

    play, ended = ran(broken)
    (failed,) = play.failures()
    assert ended.outcome == "failed"
    assert failed.error == "work failed: LookupError: no such thing"
    assert failed.exception is not None
    assert failed.exception["type"] == "LookupError"
    assert failed.exception["message"] == "no such thing"
    assert "in broken" in failed.exception["stack"]
    assert "weft/adapters" not in failed.exception["stack"]


def test_a_long_stack_is_cut_where_it_begins():
    def deep(state, context):
        def go(left):
            return _one(left) if left % 2 else _two(left)

        def _one(left):
            return go(left - 1)

        def _two(left):
            return go(left - 1) if left else 1 / 0

        go(60)

    (failed,) = ran(deep)[0].failures()
    assert len(failed.exception["stack"]) == 4000
    assert failed.exception["stack"].endswith("ZeroDivisionError: division by zero")


def test_exception_with_a_broken_message_is_reported():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    def broken(state):
        raise Odd

    (failed,) = ran(broken)[0].failures()
    assert failed.exception["message"] == "its message cannot be read"


def test_a_step_that_takes_too_long_is_given_up():
    @tool(timeout=0.05)
    async def slow(state):
        await asyncio.sleep(30)

    (failed,) = ran(slow)[0].failures()
    assert failed.kind == "timeout"
    assert failed.exception["type"] == "TimeoutError"


def test_the_time_of_a_step_is_the_time_of_its_code():
    def slow(state):
        time.sleep(0.3)

    play = FlowPlay()
    spec = play.spec(step("work", play.function(slow), timeout_seconds=0.05), variables=VARIABLES)
    ended = play.run(spec)
    assert ended.outcome == "failed"


@pytest.mark.parametrize("limit", ["step", "tool"])
def test_result_after_the_deadline_is_discarded(limit):
    async def blocks(state):
        time.sleep(0.3)  # noqa: ASYNC251 - it blocks
        return {"words": 7}

    play = FlowPlay()
    work = tool(timeout=0.05)(blocks) if limit == "tool" else blocks
    rest = {"timeout_seconds": 0.05} if limit == "step" else {}
    ended = play.run(play.spec(step("work", play.function(work), **rest), variables=VARIABLES))
    assert (ended.outcome, ended.variables["words"]) == ("failed", 0)


def test_reply_after_the_deadline_is_discarded():
    async def blocks(request):
        time.sleep(0.3)  # noqa: ASYNC251 - it blocks
        return "7"

    play = FlowPlay(agents=["A"], model=FunctionModel(blocks))
    work = {"kind": "agent", "agent": "A", "prompt": "count", "output": "seen"}
    spec = play.spec(step("work", work, timeout_seconds=0.05), variables={"seen": "str"})
    ended = play.run(spec)
    assert (ended.outcome, ended.variables["seen"]) == ("failed", None)
    assert ended.reason == "work did not finish within 0.05 s"


@pytest.mark.parametrize("is_async", [True, False])
def test_generator_exit_in_a_step_fails_the_step(is_async):
    async def waits(state):
        raise GeneratorExit

    def works(state):
        raise GeneratorExit

    play, ended = ran(waits if is_async else works)
    assert ended.outcome == "failed"
    assert play.failures()[0].error.endswith("raised GeneratorExit and gave no result")


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit])
def test_validator_of_a_state_that_exits_fails_the_step(error):
    class Strict(BaseModel):
        words: int = 0

        @field_validator("words")
        @classmethod
        def not_seven(cls, words: int) -> int:
            if words == 7:
                raise error
            return words

    def count(state: Strict) -> dict[str, int]:
        return {"words": 7}

    flow = Workflow.create("Count", Strict).start_with(count)
    result = run_workflow(flow, Strict(), model="sample")
    assert result.outcome == "failed"
    assert "the code " in result.reason


# -- steps of agents


class Verdict(BaseModel):
    summary: str
    confidence: float


class Summarise(AgentStep[Doc]):
    def system_prompt(self) -> str:
        return "You summarise."

    def user_prompt(self, state: Doc) -> str:
        return f"Summarise: {state.text}"

    def apply(self, state: Doc, response: Response, assembly):
        return {"text": response.text}


def agent_run(agent_step, *replies, state=Doc, retry=None, **values):
    """Run a flow of one agent's step."""
    play = FlowPlay(agents=["Writer"], model=ScriptedModel(list(replies)))
    work = play.agent("Writer", agent_step)
    rest = {"retry": retry} if retry else {}
    spec = play.spec(step("write", work, **rest), state=state, variables=VARIABLES)
    return play, play.run(spec, **values)


def sent(play) -> list[dict]:
    return [message for request in play.model.requests for message in request.messages]


def test_the_step_of_an_agent_writes_the_prompts_and_applies_the_reply():
    play, ended = agent_run(Summarise, "Short.", text="Long.")
    assert ended.outcome == "completed"
    assert ended.variables["text"] == "Short."
    assert sent(play) == [
        {"role": "system", "content": "You summarise."},
        {"role": "user", "content": "Summarise: Long."},
    ]


def test_an_object_may_be_given_in_place_of_a_class():
    class Told(Summarise):
        def __init__(self, who):
            self.who = who

        def system_prompt(self):
            return f"You are {self.who}."

    play, _ = agent_run(Told("Ada"), "Short.")
    assert sent(play)[0]["content"] == "You are Ada."


def test_messages_may_be_built_by_hand_also_as_a_generator_or_async():
    class ByHand(Summarise):
        def build_messages(self, state, assembly, context) -> Iterator:
            assert assembly.is_empty
            yield {"role": "system", "content": context.step}
            yield {"role": "assistant", "content": "Yes?"}
            yield {"role": "user", "content": "Go."}

    class Async(Summarise):
        async def build_messages(self, state, assembly, context):
            return ({"role": "user", "content": "Go."},)

    play, _ = agent_run(ByHand, "Short.")
    assert [message["content"] for message in sent(play)] == ["write", "Yes?", "Go."]
    play, _ = agent_run(Async, "Short.")
    assert [message["content"] for message in sent(play)] == ["Go."]


def test_a_reply_may_be_applied_async_and_returns_what_functions_do():
    class Async(Summarise):
        async def apply(self, state, response, assembly):
            used = response.usage.output_tokens
            return StepResult(Doc(text=f"{response.text} {used is None or used >= 0}"), 0.5)

    play, ended = agent_run(Async, "Short.")
    assert ended.variables["text"] == "Short. True"
    (returned,) = play.returned()
    assert returned["confidence"] == 0.5


@pytest.mark.parametrize(
    "built",
    [
        None,
        [],
        "text",
        {"role": "user"},
        [1],
        [{"role": "tool", "content": "x"}],
        [{"role": "user", "content": None}],
        ({"role": "user", "content": "x"} for _ in range(2000)),
    ],
)
def test_messages_that_are_none_fail_the_attempt(built):
    class Odd(Summarise):
        def build_messages(self, state, assembly, context):
            return built

    play, ended = agent_run(Odd, "never asked")
    assert ended.outcome == "failed"
    (fault,) = play.faults()
    assert fault.startswith("Odd.build_messages returned")
    assert not play.model.requests


def test_prompts_that_raise_fail_the_attempt():
    class Broken(Summarise):
        def user_prompt(self, state):
            raise LookupError("no prompt")

    play, ended = agent_run(Broken, "never asked")
    assert play.faults() == ["Broken.build_messages failed: LookupError: no prompt"]
    assert "no prompt" in ended.reason


def test_exception_in_apply_fails_the_attempt():
    class Broken(Summarise):
        def apply(self, state, response, assembly):
            raise LookupError("cannot be applied")

    play, ended = agent_run(Broken, "Short.")
    assert ended.outcome == "failed"
    (failed,) = play.failures()
    assert failed.error == "Broken.apply failed: LookupError: cannot be applied"
    assert failed.exception["type"] == "LookupError"


def test_object_that_is_not_an_agent_step_is_refused():
    class Half(AgentStep[Doc]):
        def system_prompt(self):
            return ""

    with pytest.raises(LinkError, match="does not define apply, user_prompt"):
        agent_run(Half)
    with pytest.raises(LinkError, match="is not an AgentStep"):
        agent_run(Verdict(summary="", confidence=1))


def test_structured_replies_are_objects_of_their_class_and_say_how_sure_they_are():
    class Judge(Summarise):
        output_type = Verdict

        def apply(self, state, response, assembly):
            assert isinstance(response.output, Verdict)
            return {"text": response.output.summary}

    play = FlowPlay(
        agents=["Writer"],
        model=ScriptedModel(['{"summary": "S", "confidence": 0.4}']),
        models=[
            {
                "name": "Verdict",
                "fields": {"summary": {"type": "str"}, "confidence": {"type": "float"}},
            }
        ],
        registry=[{"agent": "Writer", "model": "Verdict"}],
    )
    work = play.agent("Writer", Judge)
    ended = play.run(play.spec(step("write", work), state=Doc, variables=VARIABLES))
    assert ended.variables["text"] == "S", play.failures()
    (returned,) = play.returned()
    assert returned["confidence"] == 0.4
