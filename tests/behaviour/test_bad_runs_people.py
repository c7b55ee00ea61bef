"""Questions that cross: several at once, refused answers, answers while other tools work."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, play, spec
from weft.engine.events import ToolFailed, ToolReturned
from weft.errors import UsageError
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.models import FunctionModel, ScriptedModel, call

CODE = b'''
import asyncio
import time

from weft import Ask, tool, use_ui_tool


async def ask(what: str) -> str:
    """Ask, and wait."""
    return f"{what}: {await use_ui_tool('ask', what)}"


def ask_first(what: str, context_variables) -> str:
    """Ask, and be called again."""
    if not context_variables.answers:
        raise Ask(what)
    return f"{what}: {context_variables.answers[0]}"


async def ask_both() -> list:
    """Ask two questions at once."""
    return await asyncio.gather(use_ui_tool("ask", "a"), use_ui_tool("ask", "b"))


async def ask_thrice() -> list:
    """Ask one question after the other."""
    return [await use_ui_tool("ask", number) for number in range(3)]


def ask_then_work(context_variables) -> str:
    """Ask, and work for a while when there is an answer."""
    if not context_variables.answers:
        raise Ask("may I?")
    time.sleep(0.3)
    return "worked"


async def slow() -> str:
    """Take a moment."""
    await asyncio.sleep(0.05)
    return "slow"


attempts: list[int] = []


@tool(effect="read", retries=2)
async def ask_and_stumble() -> list:
    """Ask the same twice, but fail after the first answer, and after the second."""
    attempts.append(1)
    found = []
    for number in (1, 2):
        found.append(await use_ui_tool("ask", "tea?"))
        if len(attempts) == number:
            raise ValueError("not yet")
    return found


async def ask_by(name: str) -> str:
    """Ask with the component of another tool."""
    return str(await use_ui_tool(name, "tea?"))
'''
SPEC = spec(
    "slow",
    "ask_by",
    ui=("ask", "ask_first", "ask_both", "ask_thrice", "ask_then_work", "ask_and_stumble"),
)
CHAT = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])


def asking(path, *calls):
    return open_host(path, SPEC, ScriptedModel([list(calls), "Done."]), CODE)


@pytest.mark.parametrize("tool", ["ask", "ask_first"])
@pytest.mark.parametrize("first", [True, False])
async def test_a_question_beside_a_tool_that_works_lets_the_run_wait(tmp_path, tool, first):
    calls = (call(tool, what="tea"), call("slow"))
    async with await asking(tmp_path / "j.db", *(calls if first else calls[::-1])) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        told = await finished(host, run)
        assert told.row.status == "waiting"
        assert [event.data.value for event in told.events if isinstance(event.data, ToolReturned)]
        (question,) = told.state.requests
        await host.deliver(run, Answer(question, "green"), scope=ADA)
        told = await finished(host, run)
    assert told.row.outcome == "completed"
    assert "tea: green" in [message.text for message in told.state.messages]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "tools", [("ask", "ask"), ("ask_first", "ask_first"), ("ask", "ask_first")]
)
def test_two_tools_that_ask_get_their_own_answers(tmp_path, tools, backwards, again):
    path = tmp_path / "j.db"

    async def answer(host, run, at):
        found = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(found[at].id, f"for {found[at].payload}"), scope=ADA)
        return await finished(host, run)

    async def scenario():
        calls = [call(tool, what=what) for tool, what in zip(tools, ("tea", "ale"), strict=True)]
        async with await asking(path, *calls) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            assert (await finished(host, run)).row.status == "waiting"
            told = await answer(host, run, -1 if backwards else 0)
            assert told.row.status == "waiting"
            if not again:
                return await answer(host, run, 0)
        async with await open_host(path, SPEC, ScriptedModel(["Done."]), CODE) as host:
            assert await host.recover() == [], "a run that waits has nothing to do"
            return await answer(host, run, 0)

    told = play(scenario)
    assert told.row.outcome == "completed"
    texts = [message.text for message in told.state.messages if message.role == "tool"]
    assert sorted(texts) == ["ale: for ale", "tea: for tea"]
    assert len(told.questions) == 2


async def test_concurrent_questions_of_a_tool_are_refused(tmp_path):
    async with await asking(tmp_path / "j.db", call("ask_both")) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        told = await finished(host, run)
        while told.row.status != "ended":  # The first question is open for a moment.
            await asyncio.sleep(0.01)
            told = await finished(host, run)
    assert told.row.outcome == "completed"
    assert "a second question before the first is answered" in told.only(ToolFailed).error
    assert told.state.requests == {}


async def test_refused_start_leaves_nothing_in_memory(tmp_path):
    async with await asking(tmp_path / "j.db", call("ask_first", what="tea")) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        told = await finished(host, run)
        (question,) = told.state.requests
        for signal in (Answer(question, float("nan")), Answer("x", 1), UserMessage("hm")):
            with pytest.raises(UsageError):
                await host.deliver(run, signal, scope=ADA)
        assert not host._worker
        assert await finished(host, run) == told


def test_a_run_that_is_to_stop_does_not_ask_the_user(tmp_path):
    begun, held = asyncio.Event(), asyncio.Event()

    async def reply(_request):
        begun.set()
        await held.wait()
        return "What else?"

    async def scenario():
        async with await open_host(tmp_path / "j.db", CHAT, FunctionModel(reply)) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            await begun.wait()
            await host.deliver(run, Stop("after_turn"), scope=ADA)
            held.set()
            return await finished(host, run)

    told = play(scenario)
    assert (told.row.status, told.row.outcome) == ("ended", "cancelled")
    assert [message.text for message in told.state.messages][-1] == "What else?"
    assert told.state.requests == {}


def test_a_question_that_is_answered_elsewhere_lets_go_of_its_tool(tmp_path):
    path, held = tmp_path / "j.db", asyncio.Event()

    async def reply(request):
        if request.messages[-1]["role"] != "tool":
            return call("ask", what="tea")
        await held.wait()
        return "Done."

    async def scenario():
        here = await open_host(path, SPEC, FunctionModel(reply), CODE)
        there = await open_host(path, SPEC, FunctionModel(reply), CODE)
        async with here, there:
            run = await here.start("Desk", scope=ADA, message="hi")
            (question,) = (await finished(here, run)).state.requests
            await there.deliver(run, Answer(question, "green"), scope=ADA)
            with pytest.raises(UsageError, match="is not open"):
                await here.deliver(run, Answer(question, "black"), scope=ADA)
            held.set()
            told = await finished(there, run)
            assert await asyncio.wait_for(finished(here, run), 10) == told
            assert not here._worker
            return told

    told = play(scenario)
    assert told.row.outcome == "completed"
    assert "tea: green" in [message.text for message in told.state.messages]


async def test_answers_through_two_hosts_reach_the_questions_they_belong_to(tmp_path):
    path = tmp_path / "j.db"

    def reply(request):
        return "Done." if request.messages[-1]["role"] == "tool" else call("ask_thrice")

    hosts = [await open_host(path, SPEC, FunctionModel(reply), CODE) for _ in range(2)]
    async with hosts[0], hosts[1]:
        run = await hosts[0].start("Desk", scope=ADA, message="hi")
        for number in range(3):
            host = hosts[(number + 1) % 2]
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            (asked,) = await host.requests(scope=ADA, run=run)
            assert asked.payload == number
            await host.deliver(run, Answer(asked.id, f"answer {number}"), scope=ADA)
        (first, second) = [await asyncio.wait_for(finished(host, run), 10) for host in hosts]
    assert first == second
    assert first.row.outcome == "completed"
    assert first.only(ToolReturned).value == ["answer 0", "answer 1", "answer 2"]


async def test_a_host_that_only_holds_a_tool_does_not_wait_for_itself(tmp_path):
    path = tmp_path / "j.db"
    script = [[call("ask", what="tea"), call("ask_then_work")], "Done."]
    here = await open_host(path, SPEC, ScriptedModel(script), CODE)
    there = await open_host(path, SPEC, ScriptedModel(["Done."]), CODE)
    async with here, there:
        run = await here.start("Desk", scope=ADA, message="hi")
        asked = (await finished(here, run)).state.requests.values()
        (work,) = [call.id for call in asked if call.tool == "ask_then_work"]
        await there.deliver(run, Answer(work, "go"), scope=ADA)
        with pytest.raises(UsageError, match="is not open"):
            await here.deliver(run, Answer(work, "go"), scope=ADA)
        row = await asyncio.wait_for(here.settled(run, scope=ADA), 10)
        assert row.status == "waiting"
        (question,) = await here.requests(scope=ADA, run=run)
        await here.deliver(run, Answer(question.id, "green"), scope=ADA)
        told = await asyncio.wait_for(finished(here, run), 10)
    assert told.row.outcome == "completed"
    texts = sorted(message.text for message in told.state.messages if message.role == "tool")
    assert texts == ["tea: green", "worked"]


@pytest.mark.parametrize("hold", [True, False])
def test_retried_tool_asks_no_question_twice(tmp_path, hold):
    """An answer holds for all attempts, and for one question of each of them."""
    path = tmp_path / "j.db"

    async def answer(host, run, value):
        (question,) = (await finished(host, run)).state.requests
        await host.deliver(run, Answer(question, value), scope=ADA)
        return await finished(host, run)

    async def scenario():
        async with await asking(path, call("ask_and_stumble")) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            told = await answer(host, run, "green")
            if hold:
                return await answer(host, run, "black")
        assert told.row.status == "waiting"
        # A new process counts the attempts from the first again, and has all answers at hand.
        async with await open_host(path, SPEC, ScriptedModel(["Done."]), CODE) as host:
            return await answer(host, run, "black")

    told = play(scenario)
    assert told.only(ToolReturned).value == ["green", "black"]
    assert len(told.questions) == 2


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("ask_frist", "did you mean ask_first?"),
        ("slow", "declare it in tools.json as UI_Tool"),
        ("Card", "declare it in tools.json as UI_Tool"),
    ],
)
async def test_question_without_a_ui_tool_is_refused(tmp_path, name, remedy):
    async with await asking(tmp_path / "j.db", call("ask_by", name=name)) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
    assert told.only(ToolFailed).error == f"the package has no UI tool {name}; {remedy}"
    assert told.row.outcome == "completed"
    assert not told.questions


async def test_any_tool_may_ask_with_the_component_of_another_one(tmp_path):
    async with await asking(tmp_path / "j.db", call("ask_by", name="ask")) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        (question,) = (await finished(host, run)).state.requests
        await host.deliver(run, Answer(question, "green"), scope=ADA)
        assert (await finished(host, run)).only(ToolReturned).value == "green"
