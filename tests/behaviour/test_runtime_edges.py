"""The edges of the runtime: what seldom happens is told as plainly as what happens every day."""

import asyncio
import logging
import sys
from contextvars import ContextVar
from dataclasses import replace

import pytest

from weft.adapters.memory import MemoryStore
from weft.engine.events import (
    Event,
    ModelFailed,
    ModelReplied,
    RequestExpired,
    ToolFailed,
    ToolReturned,
)
from weft.errors import RunError, StoreError, UsageError
from weft.ports.live import TextDelta
from weft.ports.scope import Scope
from weft.runtime.runs.effects import AT_ONCE
from weft.runtime.runs.live_stream import text_sender
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
    """Ask something that is not JSON."""
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
    return [event.data async for event in host.events(run, scope=ADA)]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("unfit", "unfit asked an invalid question: a value of type object that is not JSON"),
        ("late", "late asked an invalid question: the timeout of a question is a number"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_call(tool, said):
    async def scenario():
        model = ScriptedModel([call(tool), "Done."])
        async with host_for(spec(), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [item for item in play(scenario) if isinstance(item, ToolFailed)]
    assert failed.error.startswith(said)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "https://example.com/size.json"}, "refers to https://example.com/size.json"),
        ({"type": "string"}, "the default answer of pick is invalid: 7 is not of type"),
    ],
)
def test_default_answer_must_be_valid(schema, said):
    async def scenario():
        model = ScriptedModel([call("pick"), "Done."])
        async with host_for(spec(pick={"response_schema": schema}), model, code=CODE) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [item for item in play(scenario) if isinstance(item, ToolFailed)]
    assert said in failed.error


async def test_an_answer_is_for_the_question_it_was_given_to():
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
    model = ScriptedModel([call("pay"), "Done."])
    async with host_for(declared, model, code=code) as host:
        host._worker._performer.holding.seconds = 0.01
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        await asyncio.sleep(0.05)
        assert not host._worker, "the tool was let go"
        (first,) = await host.requests(scope=ADA, run=run)
        module = next(module for name, module in sys.modules.items() if name.endswith("tools.pay"))
        module.PRICE[0] = 5000
        await host.deliver(run, Answer(first.id, "yes"), scope=ADA)
        await host.settled(run, scope=ADA)
        (second,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(second.id, "no"), scope=ADA)
        await host.settled(run, scope=ADA)
        returned = [
            event for event in await events_of(host, run) if isinstance(event, ToolReturned)
        ]
        value = returned[0].value
    assert first.payload == {"question": "pay 5?"}
    assert second.payload == {"question": "pay 5000?"}
    assert value == "no to 5000"


async def test_a_fork_may_ask_what_if_but_not_hold_secrets():
    steps = [{"from": "new", "to": "open"}]
    variables = {
        "stage": {
            "type": "str",
            "source": {"type": "derived", "default": "new", "transitions": steps},
        },
        "key": {"type": "str", "secret": True, "source": {"type": "environment", "env_var": "K"}},
    }
    model = FunctionModel(lambda _: "Done.")
    async with host_for(spec(variables=variables), model, code=CODE) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        child = await host.fork(run, scope=ADA, turn=1, values={"stage": "closed"})
        await host.settled(child, scope=ADA)
        with pytest.raises(UsageError, match="key is secret and cannot be given"):
            await host.fork(run, scope=ADA, turn=1, values={"key": "sk-very-secret"})
        assert (await host.state(child, scope=ADA)).variables["stage"] == "closed"


def test_an_adapter_that_fails_in_its_own_way_is_recorded(caplog):
    class Broken:
        def validation_error(self, _tool, _arguments):
            return None

        async def call(self, _):
            raise LookupError("a bug of the adapter")

    async def scenario():
        model = ScriptedModel([call("pick"), "Done."])
        async with host_for(spec(), model, code=CODE) as host:
            whole = await host._workflows.named("app", "W")
            broken = replace(whole, digest="other", tools=Broken())

            async def find(_app, _name):
                return broken

            host._workflows.find = find
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    (failed,) = [item for item in play(scenario) if isinstance(item, ToolFailed)]
    assert failed.error == "a bug of the adapter"
    assert "the tool pick failed unexpectedly" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (asyncio.CancelledError(), "the code raised CancelledError itself"),
        (GeneratorExit(), "the code raised GeneratorExit itself"),
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

    (failed,) = [item for item in play(scenario) if isinstance(item, ModelFailed)]
    assert failed.error == reason


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


async def test_delivery_to_a_closing_host_is_refused():
    async with host_for(spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE) as host:
        starts = [host.start("W", scope=ADA, message="hi") for _ in range(3 * AT_ONCE)]
        started = [asyncio.create_task(start) for start in starts]
        await asyncio.sleep(0)
        await host._worker.close()  # Some are in, the others wait for the next round.
        outcomes = await asyncio.gather(*started, return_exceptions=True)
        runs = {outcome for outcome in outcomes if isinstance(outcome, str)}
        assert runs == {run.run for run in await host.runs(scope=ADA, limit=100)}
        assert 0 < len(runs) < len(started)
        assert len(host._worker) == 0
        outcome = [str(outcome) for outcome in outcomes if outcome not in runs]
    assert set(outcome) == {"the host was closed; nothing was written"}


async def test_run_closed_during_a_model_call_can_be_resumed():
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.
    host = host_for(spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE, store=journal)
    run = await host.start("W", scope=ADA, message="hi")
    waiting = asyncio.create_task(host.settled(run, scope=ADA))
    await asyncio.sleep(0.01)
    await host.close()
    assert len(host._worker) == 0
    waiting.cancel()
    async with host_for(spec(), ScriptedModel(["Done."]), code=CODE, store=journal) as second:
        assert await second.recover() == [run]
        assert (await second.settled(run, scope=ADA)).outcome == "completed"


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
        model = ScriptedModel([[call("work", name=letter) for letter in "abcd"], "Done."])
        async with host_for(spec(tools=[tool]), model, code=code) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            return await events_of(host, run)

    returned = {entry.value for entry in play(scenario) if isinstance(entry, ToolReturned)}
    assert returned == {"a1", "b2", "c3", "d4"}


async def test_missing_package_of_a_run_is_a_damaged_store():
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)
    async with host_for(spec(), ScriptedModel(["x"]), code=CODE, store=journal) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
    journal._all.packages.clear()
    async with host_for(spec(), ScriptedModel([]), code=CODE, store=journal) as host:
        with pytest.raises(StoreError, match="the store has no copy of the package"):
            await host.state(run, scope=ADA)


class Stumbling(MemoryStore):
    """Cannot take a run, the first time it is asked."""

    stumbled = False

    async def take(self, *given, **named):
        if not self.stumbled:
            self.stumbled = True
            raise StoreError("the disk hiccups", retryable=True)
        return await super().take(*given, **named)


async def test_expiry_continues_after_an_outage_of_the_store(caplog):
    caplog.set_level(logging.CRITICAL, logger="weft.runtime")
    clock = ManualClock()
    model = ScriptedModel([call("pick"), "Done."])
    journal = Stumbling(clock)
    async with host_for(spec(), model, code=CODE, store=journal, clock=clock) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        for _ in range(8):
            await clock.advance(10)
        async for _ in host.events(run, scope=ADA, follow=True):
            pass
        assert journal.stumbled
        outcome = await events_of(host, run)
    assert sum(isinstance(item, RequestExpired) for item in outcome) == 1


async def test_the_first_words_of_a_fork_are_streamed():
    model = FunctionModel(lambda _: "Done.")
    async with host_for(spec(), model, code=CODE) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        child = await host.fork(run, scope=ADA, turn=1, streamed=True)
        outcome = [event async for event in host.events(child, scope=ADA, follow=True)]
    assert any(isinstance(item, TextDelta) for item in outcome)


async def test_no_piece_of_a_reply_comes_after_it():
    handoffs = [{"source_agent": "A", "target_agent": "user"}]
    model = FunctionModel(lambda _: "Done.")
    async with host_for(spec(handoffs=handoffs), model, code=CODE) as host:
        run = await host.start("W", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        heard = []
        async for event in host.events(run, scope=ADA, follow=True):
            heard.append(event)
            if isinstance(event, Event) and isinstance(event.data, ModelReplied):
                text_sender(host._live, (ADA.app, run), event.cause)("late")
                text_sender(host._live, (ADA.app, run), event.cause + 1)("next")
            if isinstance(event, TextDelta):
                await host.deliver(run, Stop(), scope=ADA)
        assert ([item.text for item in heard if isinstance(item, TextDelta)]) == ["next"]


async def test_first_text_of_a_resumed_run_is_streamed():
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.
    silent = FunctionModel(lambda _: asyncio.sleep(60))
    async with host_for(spec(), silent, code=CODE, store=journal) as host:
        run = await host.start("W", scope=ADA, message="hi")
    async with host_for(spec(), ScriptedModel(["Done."]), code=CODE, store=journal) as host:
        await host.resume(run, scope=ADA, streamed=True)
        before = [event async for event in host.events(run, scope=ADA)]  # takes nothing away
        assert not any(isinstance(item, TextDelta) for item in before)
        outcome = [event async for event in host.events(run, scope=ADA, follow=True)]
    assert any(isinstance(item, TextDelta) for item in outcome)


async def test_words_that_are_kept_twice_are_kept_once_and_not_for_ever():
    gate = asyncio.Event()

    async def reply(_):
        await gate.wait()
        return "Done."

    async with host_for(spec(), FunctionModel(reply), code=CODE) as host:
        runs = [await host.start("W", scope=ADA, message="hi", streamed=True) for _ in "ab"]
        for run in runs:
            await host.resume(run, scope=ADA, streamed=True)
        gate.set()
        heard = [event async for event in host.events(runs[0], scope=ADA, follow=True)]
        await host.settled(runs[1], scope=ADA)
        await asyncio.sleep(0.01)
        outcome = (
            [item.text for item in heard if isinstance(item, TextDelta)],
            host._followers,
        )
    assert outcome == (["Done."], {})


async def test_run_uses_the_context_of_its_host_not_of_callers():
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

    said.set("by the program")
    async with host_for(declared, FunctionModel(reply), code=code) as host:
        said.set("by a caller")
        run = await host.start("W", scope=ADA, message="hi")
        for answer in ("a", "b"):
            await host.settled(run, scope=ADA)
            (question,) = await host.requests(scope=ADA, run=run)
            await host.deliver(run, Answer(question.id, answer), scope=ADA)
        await host.settled(run, scope=ADA)
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


def test_unclosed_host_is_reported_in_one_line(caplog):
    async def scenario():
        host = host_for(spec(), FunctionModel(lambda _: asyncio.sleep(60)), code=CODE)
        await host.start("W", scope=ADA, message="hi")
        await asyncio.sleep(0.01)

    asyncio.run(scenario())
    (said,) = [record for record in caplog.records if record.name == "weft.runtime"]
    assert "an effect ended without a result: cancelled" in said.getMessage()
    assert not said.exc_info


async def test_ungivable_start_values_are_named():
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
