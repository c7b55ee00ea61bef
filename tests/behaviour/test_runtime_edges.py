"""The edges of the runtime: what seldom happens is told as plainly as what happens every day."""

import asyncio
import logging
import sys
from contextvars import ContextVar
from dataclasses import replace

import pytest

from weft.adapters.memory import MemoryJournal
from weft.engine.events import (
    Event,
    ModelFailed,
    ModelReplied,
    RequestExpired,
    ToolFailed,
    ToolReturned,
)
from weft.errors import RunError, StoreError, UsageError
from weft.ports.scope import Scope
from weft.runtime.runs.effects import AT_ONCE
from weft.runtime.runs.live_stream import TextDelta
from weft.runtime.signals import Answer, Stop
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

ADA = Scope("app", "ada")
CODE = {
    "tools/desk.py": b'''
from weft import Ask, use_ui_tool


def unfit() -> str:
    """Ask something that is no JSON."""
    raise Ask(object())


def late() -> str:
    """Ask with no time at all."""
    raise Ask("?", timeout=-1)


def pick(context_variables) -> str:
    """Ask for a size, for a minute."""
    if not context_variables.answers:
        raise Ask({"size": 1}, timeout=60, otherwise=7)
    return str(context_variables.answers[0])
'''
}


def spec(**changes):
    tool = {"agent": "A", "file": "desk.py"}
    shown = {"ui": {"component": "Pick", "mode": "inline"}}
    tools = [
        {"tool_type": "Agent_Tool", "function": "unfit", **tool},
        {"tool_type": "Agent_Tool", "function": "late", **tool},
        {"tool_type": "UI_Tool", "function": "pick", **shown, **tool, **changes.pop("pick", {})},
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {"n": {"type": "int", "source": {"type": "static", "value": 1}}},
            "tools": tools,
            "handoffs": [{"source_agent": "A", "target_agent": "terminate"}],
            **changes,
        }
    )


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 30))


async def events_of(host, run):
    return [it.data async for it in host.events(run, scope=ADA)]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("unfit", "unfit asked a question that cannot be: a value of type object that is no JSON"),
        ("late", "late asked a question that cannot be: the timeout of a question is a number"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_call(tool, said):
    async def scenario():
        model = ScriptedModel([call(tool), "Done."])
        async with host_for(spec(), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [it for it in play(scenario) if isinstance(it, ToolFailed)]
    assert failed.error.startswith(said)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "https://example.com/size.json"}, "refers to https://example.com/size.json"),
        ({"type": "string"}, "what holds if nobody answers pick does not fit: 7 is not of type"),
    ],
)
def test_what_holds_if_nobody_answers_must_be_an_answer(schema, said):
    async def scenario():
        model = ScriptedModel([call("pick"), "Done."])
        async with host_for(spec(pick={"response_schema": schema}), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [it for it in play(scenario) if isinstance(it, ToolFailed)]
    assert said in failed.error


def test_an_answer_is_for_the_question_it_was_given_to():
    code = {
        "tools/pay.py": b"""
from pathlib import Path

from weft import use_ui_tool

PRICE = [5]


async def pay() -> str:
    price = PRICE[0]
    answer = await use_ui_tool("pay", {"question": f"pay {price}?"})
    return f"{answer} to {price}"
"""
    }
    declared = spec(
        tools=[
            {
                "tool_type": "UI_Tool",
                "agent": "A",
                "file": "pay.py",
                "function": "pay",
                "ui": {"component": "Pay", "mode": "inline"},
            }
        ]
    )

    async def scenario():
        model = ScriptedModel([call("pay"), "Done."])
        async with host_for(declared, model, code=code) as host:
            host._worker._performer.holding.seconds = 0.01
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            await asyncio.sleep(0.05)
            assert not host._worker, "the tool was let go"
            (first,) = await host.requests(scope=ADA, run=run)
            module = next(it for name, it in sys.modules.items() if name.endswith("tools.pay"))
            module.PRICE[0] = 5000
            await host.deliver(run, Answer(first.id, "yes"), scope=ADA)
            await host.settled(run, scope=ADA)
            (second,) = await host.requests(scope=ADA, run=run)
            await host.deliver(run, Answer(second.id, "no"), scope=ADA)
            await host.settled(run, scope=ADA)
            returned = [it for it in await events_of(host, run) if isinstance(it, ToolReturned)]
            return first, second, returned[0].value

    first, second, value = play(scenario)
    assert first.payload == {"question": "pay 5?"}
    assert second.payload == {"question": "pay 5000?"}
    assert value == "no to 5000"


def test_a_fork_may_ask_what_if_but_not_hold_secrets():
    steps = [{"from": "new", "to": "open"}]
    variables = {
        "stage": {
            "type": "str",
            "source": {"type": "derived", "default": "new", "transitions": steps},
        },
        "key": {"type": "str", "secret": True, "source": {"type": "environment", "env_var": "K"}},
    }

    async def scenario():
        model = FunctionModel(lambda _: "Done.")
        async with host_for(spec(variables=variables), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, values={"stage": "closed"})
            await host.settled(child, scope=ADA)
            with pytest.raises(UsageError, match="key is secret and cannot be given"):
                await host.fork(run, scope=ADA, turn=1, values={"key": "sk-very-secret"})
            return await host.state(child, scope=ADA)

    assert play(scenario).variables["stage"] == "closed"


def test_an_adapter_that_fails_in_its_own_way_is_recorded(caplog):
    class Broken:
        def validation_error(self, _tool, _arguments):
            return None

        async def call(self, _):
            raise LookupError("a bug of the adapter")

    async def scenario():
        model = ScriptedModel([call("pick"), "Done."])
        async with host_for(spec(), model, code=CODE) as host:
            whole = await host._workflows.named("W")
            broken = replace(whole, digest="other", tools=Broken())

            async def find(_name):
                return broken

            host._workflows._find = find
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [it for it in play(scenario) if isinstance(it, ToolFailed)]
    assert failed.error == "a bug of the adapter"
    assert "the tool pick failed unexpectedly" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (asyncio.CancelledError(), "the code raised CancelledError itself"),
        (SystemExit(3), "the code called sys.exit(); a run cannot end the process"),
    ],
)
def test_model_that_cancels_or_exits_has_failed(error, reason):
    async def stop(_):
        raise error

    async def scenario():
        async with host_for(spec(), FunctionModel(stop), code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [it for it in play(scenario) if isinstance(it, ModelFailed)]
    assert failed.error == f"UserCodeStopped: {reason}"


def test_model_that_cancels_the_task_of_its_run_stops_only_that_run():
    async def cancel(_):
        asyncio.current_task().cancel()
        await asyncio.sleep(5)

    async def scenario():
        async with host_for(spec(), FunctionModel(cancel), code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            with pytest.raises(RunError, match="an effect ended without a result: cancelled"):
                await host.settled(run, scope=ADA)
            assert not host._worker

    play(scenario)


def test_whoever_delivers_to_a_host_that_closes_at_once_is_told():
    async def scenario():
        async with host_for(spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE) as host:
            starts = [host.start("W", scope=ADA, message="hi") for _ in range(3 * AT_ONCE)]
            started = [asyncio.create_task(it) for it in starts]
            await asyncio.sleep(0)
            await host._worker.close()  # Some are in, the others wait for the next round.
            outcomes = await asyncio.gather(*started, return_exceptions=True)
            runs = {it for it in outcomes if isinstance(it, str)}
            assert runs == {it.run for it in await host.runs(scope=ADA, limit=100)}
            assert 0 < len(runs) < len(started)
            assert len(host._worker) == 0
            return [str(it) for it in outcomes if it not in runs]

    assert set(play(scenario)) == {"the host was closed; nothing was written"}


def test_closing_while_a_model_speaks_leaves_the_run_to_be_taken_up():
    journal = MemoryJournal()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.

    async def scenario():
        host = host_for(
            spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE, journal=journal
        )
        run = await host.start("W", scope=ADA, message="hi")
        waiting = asyncio.create_task(host.settled(run, scope=ADA))
        await asyncio.sleep(0.01)
        await host.close()
        assert len(host._worker) == 0
        waiting.cancel()
        async with host_for(spec(), ScriptedModel(["Done."]), code=CODE, journal=journal) as second:
            assert await second.recover() == [run]
            return await second.settled(run, scope=ADA)

    assert play(scenario).outcome == "completed"


def test_tools_of_one_reply_begin_in_the_order_they_were_asked_for():
    code = {
        "tools/desk.py": b"""
from itertools import count

begun = count(1)


async def work(name: str) -> str:
    return f"{name}{next(begun)}"
"""
    }
    tool = {"agent": "A", "file": "desk.py", "function": "work", "tool_type": "Agent_Tool"}

    async def scenario():
        model = ScriptedModel([[call("work", name=it) for it in "abcd"], "Done."])
        async with host_for(spec(tools=[tool]), model, code=code) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    returned = {it.value for it in play(scenario) if isinstance(it, ToolReturned)}
    assert returned == {"a1", "b2", "c3", "d4"}


def test_missing_package_of_a_run_is_a_damaged_store():
    journal = MemoryJournal()
    journal.close = lambda: asyncio.sleep(0)

    async def scenario():
        async with host_for(spec(), ScriptedModel(["x"]), code=CODE, journal=journal) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
        journal._packages.clear()
        async with host_for(spec(), ScriptedModel([]), code=CODE, journal=journal) as host:
            with pytest.raises(StoreError, match="the journal has no copy of the package"):
                await host.state(run, scope=ADA)

    play(scenario)


class Stumbling(MemoryJournal):
    """Cannot tell what is due next, the first time it is asked."""

    stumbled = False

    async def next_due(self, after):
        if not self.stumbled:
            self.stumbled = True
            raise StoreError("the disk hiccups")
        return await super().next_due(after)


def test_expiry_goes_on_after_the_journal_could_not_be_read(caplog):
    caplog.set_level(logging.CRITICAL, logger="weft.runtime")

    async def scenario():
        clock = ManualClock()
        model = ScriptedModel([call("pick"), "Done."])
        journal = Stumbling()
        async with host_for(spec(), model, code=CODE, journal=journal, clock=clock) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            for _ in range(8):
                await clock.advance(10)
            async for _ in host.events(run, scope=ADA, follow=True):
                pass
            assert journal.stumbled
            return await events_of(host, run)

    assert sum(isinstance(it, RequestExpired) for it in play(scenario)) == 1


def test_the_first_words_of_a_fork_are_streamed():
    async def scenario():
        model = FunctionModel(lambda _: "Done.")
        async with host_for(spec(), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, streamed=True)
            return [it async for it in host.events(child, scope=ADA, follow=True)]

    assert any(isinstance(it, TextDelta) for it in play(scenario))


def test_no_piece_of_a_reply_comes_after_it():
    handoffs = [{"source_agent": "A", "target_agent": "user"}]

    async def scenario():
        model = FunctionModel(lambda _: "Done.")
        async with host_for(spec(handoffs=handoffs), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            heard = []
            async for it in host.events(run, scope=ADA, follow=True):
                heard.append(it)
                if isinstance(it, Event) and isinstance(it.data, ModelReplied):
                    say = host._stream.text_sender
                    say((ADA.app, run), it.cause)("late")
                    say((ADA.app, run), it.cause + 1)("next")
                if isinstance(it, TextDelta):
                    await host.deliver(run, Stop(), scope=ADA)
            return [it.text for it in heard if isinstance(it, TextDelta)]

    assert play(scenario) == ["next"]


def test_the_first_words_of_a_run_that_is_taken_up_are_streamed():
    journal = MemoryJournal()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.

    async def scenario():
        silent = FunctionModel(lambda _: asyncio.sleep(60))
        async with host_for(spec(), silent, code=CODE, journal=journal) as host:
            run = await host.start("W", scope=ADA, message="hi")
        async with host_for(spec(), ScriptedModel(["Done."]), code=CODE, journal=journal) as host:
            await host.resume(run, scope=ADA, streamed=True)
            before = [it async for it in host.events(run, scope=ADA)]  # takes nothing away
            assert not any(isinstance(it, TextDelta) for it in before)
            return [it async for it in host.events(run, scope=ADA, follow=True)]

    assert any(isinstance(it, TextDelta) for it in play(scenario))


def test_words_that_are_kept_twice_are_kept_once_and_not_for_ever():
    async def scenario():
        gate = asyncio.Event()

        async def reply(_):
            await gate.wait()
            return "Done."

        async with host_for(spec(), FunctionModel(reply), code=CODE) as host:
            runs = [await host.start("W", scope=ADA, message="hi", streamed=True) for _ in "ab"]
            for run in runs:
                await host.resume(run, scope=ADA, streamed=True)
            gate.set()
            heard = [it async for it in host.events(runs[0], scope=ADA, follow=True)]
            await host.settled(runs[1], scope=ADA)
            await asyncio.sleep(0.01)
            return [it.text for it in heard if isinstance(it, TextDelta)], host._stream._queues

    assert play(scenario) == (["Done."], {})


def test_a_run_does_not_go_on_in_the_context_of_whoever_began_it_or_answers_or_asks():
    said = ContextVar("said", default="by nobody")
    seen = []
    code = {
        "tools/desk.py": b"""
from contextvars import copy_context

from weft import use_ui_tool


async def pick() -> str:
    for variable in copy_context():
        if variable.name == "said":
            variable.set("by a tool")
    return str(await use_ui_tool("pick", "?"))
"""
    }
    tool = {"tool_type": "UI_Tool", "function": "pick", "agent": "A", "file": "desk.py"}
    declared = spec(
        tools=[{**tool, "ui": {"component": "Pick", "mode": "inline"}}],
        handoffs=[{"source_agent": "A", "target_agent": "user"}],
    )

    def reply(request):
        seen.append(said.get())
        return call("pick") if request.call == 1 else "Done."

    async def scenario():
        said.set("by the program")
        async with host_for(declared, FunctionModel(reply), code=code) as host:
            said.set("by a caller")
            run = await host.start("W", scope=ADA, message="hi")
            for answer in ("a", "b"):
                await host.settled(run, scope=ADA)
                (question,) = await host.requests(scope=ADA, run=run)
                await host.deliver(run, Answer(question.id, answer), scope=ADA)
            await host.settled(run, scope=ADA)

    play(scenario)
    assert set(seen) == {"by the program"}
    assert len(seen) >= 3


def test_a_host_that_is_closed_looks_for_nothing_any_more(caplog):
    async def scenario():
        async with host_for(spec(), ScriptedModel(["Done."]), code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
        with pytest.raises(StoreError, match="closed"):
            await anext(host.events(run, scope=ADA, follow=True))
        await asyncio.sleep(0.01)
        return len(asyncio.all_tasks())

    assert play(scenario) == 2, "the test itself, and what bounds its time"
    assert caplog.records == []


def test_a_program_that_forgets_its_host_is_told_in_one_line(caplog):
    async def scenario():
        host = host_for(spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE)
        await host.start("W", scope=ADA, message="hi")
        await asyncio.sleep(0.01)

    asyncio.run(scenario())
    (said,) = [it for it in caplog.records if it.name == "weft.runtime"]
    assert "an effect ended without a result: cancelled" in said.getMessage()
    assert not said.exc_info


def test_what_cannot_be_given_at_the_start_is_named():
    async def scenario():
        async with host_for(spec(), ScriptedModel([]), code=CODE) as host:
            for values, said in (
                ({"n": 2}, "n comes from static and cannot be given at the start"),
                ({"m": 2}, "there is no variable m"),
            ):
                with pytest.raises(UsageError, match=said) as refused:
                    await host.start("W", scope=ADA, values=values)
                assert (refused.value.hint or "").startswith(
                    ("these can be given: none", "available: n")
                )
            assert await host.requests(scope=ADA, run="\ud800") == []

    play(scenario)
