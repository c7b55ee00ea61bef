"""What a host does when things do not go as planned: stops, late answers, full disks, two hosts."""

import asyncio

import pytest

from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.events import (
    Event,
    RequestExpired,
    RequestOpened,
    RunForked,
    StopRequested,
    ToolFailed,
    VariableRefused,
    VariableSet,
)
from weft.errors import RunError, StoreError, UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

ADA = Scope("app", "ada")

CODE = {
    "tools/refunds.py": b'''
import asyncio

from weft import Ask, use_ui_tool


def refund(amount: int, context_variables) -> str:
    """Give money back, if a person agrees."""
    if not context_variables.answers:
        raise Ask({"question": f"Refund {amount}?"}, timeout=60, otherwise={"agreed": False})
    agreed = context_variables.answers[0]["agreed"]
    context_variables.set("refunded", agreed)
    return "refunded" if agreed else "not refunded"


async def hang() -> str:
    """Never come back."""
    await asyncio.Event().wait()


async def decide(question: str) -> str:
    """Ask within a minute."""
    answer = await use_ui_tool("decide", {"question": question}, timeout=60)
    return str(answer)
'''
}


def spec():
    tool = {"agent": "Clerk", "file": "refunds.py"}
    agreed = {
        "type": "object",
        "properties": {"agreed": {"type": "boolean"}},
        "required": ["agreed"],
    }
    shown = {"component": "Decide", "mode": "inline"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Refunds",
                "initial_agent": "Clerk",
                "initial_message": "Hello",
                "startup_mode": "AgentDriven",
            },
            "agents": [{"agent_name": "Clerk", "model": "declared"}],
            "variables": {
                "refunded": {"type": "bool", "source": {"type": "derived", "default": False}},
                "limit": {"type": "int", "source": {"type": "derived", "default": 10}},
            },
            "tools": [
                {
                    "tool_type": "UI_Tool",
                    "function": "refund",
                    "response_schema": agreed,
                    "ui": shown,
                    **tool,
                },
                {"tool_type": "Agent_Tool", "function": "hang", **tool},
                {"tool_type": "UI_Tool", "function": "decide", "ui": shown, **tool},
            ],
            "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate"}],
        }
    )


class ManualTime:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.time = 1_000
        self.ids = 0
        self.moved = asyncio.Event()

    def now(self):
        return self.time

    def new_id(self):
        self.ids += 1
        return f"run{self.ids}"

    async def sleep_until(self, at):
        while self.time < at:
            self.moved.clear()
            await self.moved.wait()

    def advance(self, milliseconds):
        self.time += milliseconds
        self.moved.set()

    async def run(self):
        """Let time go by."""
        while True:
            await asyncio.sleep(0.01)
            self.advance(1_000)


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 30))


def host_of(model, **options):
    return host_for(spec(), model, code=CODE, **options)


async def all_events(host, run):
    return [event async for event in host.events(run, scope=ADA)]


def kinds(events):
    return [type(event.data) for event in events]


def test_a_tool_that_raises_ask_is_called_again_with_the_answer():
    model = ScriptedModel({"Clerk": [call("refund", amount=5), "Done."]})

    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Refunds", scope=ADA)
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            assert not host._worker, "a run that waits for a person leaves memory"
            (request,) = await host.requests(scope=ADA)
            assert request.payload == {"question": "Refund 5?"}
            with pytest.raises(UsageError, match="'agreed' is a required property"):
                await host.deliver(run, Answer(request.id, {}), scope=ADA)
            with pytest.raises(UsageError, match="does not wait for a message"):
                await host.deliver(run, UserMessage("yes"), scope=ADA)
            await host.deliver(run, Answer(request.id, {"agreed": True}), scope=ADA)
            row = await host.settled(run, scope=ADA)
            return row, await host.state(run, scope=ADA)

    row, state = play(scenario)
    assert row.outcome == "completed"
    assert state.variables["refunded"] is True


def test_a_question_expires_with_its_declared_outcome_or_fails_its_tool():
    model = ScriptedModel(
        {"Clerk": [call("refund", amount=5), call("decide", question="and now?"), "Done."]}
    )

    async def scenario():
        clock = ManualTime()
        async with host_of(model, clock=clock) as host:
            run = await host.start("Refunds", scope=ADA)
            await host.settled(run, scope=ADA)
            clock.advance(59_000)
            await asyncio.sleep(0.01)
            assert await host.requests(scope=ADA)
            clock.advance(1_000)
            async for event in host.events(run, scope=ADA, follow=True):
                data = event.data if isinstance(event, Event) else None
                if isinstance(data, RequestOpened) and data.tool == "decide":
                    break
            clock.advance(60_000)
            async for _ in host.events(run, scope=ADA, follow=True):
                pass
            events = await all_events(host, run)
            return await host.run(run, scope=ADA), events, await host.state(run, scope=ADA)

    row, events, state = play(scenario)
    assert row.outcome == "completed"
    assert state.variables["refunded"] is False
    assert kinds(events).count(RequestExpired) == 2
    (failed,) = [event.data for event in events if isinstance(event.data, ToolFailed)]
    assert (failed.kind, failed.error) == ("timeout", "no answer in time")


def test_late_answer_is_refused(tmp_path):
    """Nobody was there when the time was over: what was declared for that holds all the same."""
    path = tmp_path / "journal.db"

    async def scenario():
        clock = ManualTime()
        model = ScriptedModel({"Clerk": [call("refund", amount=5)]})
        async with host_of(
            model, clock=clock, store=await SqliteStore.open(path, clock=clock)
        ) as host:
            run = await host.start("Refunds", scope=ADA)
            await host.settled(run, scope=ADA)
            (request,) = await host.requests(scope=ADA)
        clock.advance(60_000)
        model = ScriptedModel({"Clerk": ["Done."]})
        async with host_of(
            model, clock=clock, store=await SqliteStore.open(path, clock=clock)
        ) as host:
            with pytest.raises(UsageError, match="has expired"):
                await host.deliver(run, Answer(request.id, {"agreed": True}), scope=ADA)
            await host.settled(run, scope=ADA)
            return await host.state(run, scope=ADA)

    state = play(scenario)
    assert state.outcome == "completed"
    assert state.variables["refunded"] is False


def test_expiry_survives_a_restart(tmp_path):
    path = tmp_path / "journal.db"

    async def scenario():
        clock = ManualTime()
        model = ScriptedModel({"Clerk": [call("refund", amount=5)]})
        async with host_of(
            model, clock=clock, store=await SqliteStore.open(path, clock=clock)
        ) as host:
            run = await host.start("Refunds", scope=ADA)
            await host.settled(run, scope=ADA)
        clock.advance(3_600_000)
        model = ScriptedModel({"Clerk": ["Done."]})
        async with host_of(
            model, clock=clock, store=await SqliteStore.open(path, clock=clock)
        ) as host:
            assert await host.recover() == []
            async for _ in host.events(run, scope=ADA, follow=True):
                pass
            return await host.run(run, scope=ADA)

    assert play(scenario).outcome == "completed"


@pytest.mark.parametrize("mode", ["now", "after_turn"])
def test_a_run_is_stopped_while_a_tool_hangs(mode):
    model = ScriptedModel({"Clerk": [call("hang"), "Done."]})

    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Refunds", scope=ADA)
            await asyncio.sleep(0.05)
            await host.deliver(run, Stop(mode), scope=ADA)
            if mode == "after_turn":
                assert (await host.run(run, scope=ADA)).status == "running"
                await host.deliver(run, Stop("now"), scope=ADA)
            row = await host.settled(run, scope=ADA)
            await asyncio.sleep(0.01)
            assert not host._worker
            return row, kinds(await all_events(host, run))

    row, seen = play(scenario)
    assert row.outcome == "cancelled"
    assert StopRequested in seen


def test_a_run_identity_is_used_once():
    async def scenario():
        async with host_of(FunctionModel(lambda _: "Done.")) as host:
            first = await host.start("Refunds", scope=ADA, run="mine")
            with pytest.raises(UsageError, match="was started before"):
                await host.start("Refunds", scope=ADA, run="mine")
            await host.settled(first, scope=ADA)
            with pytest.raises(UsageError, match="was started before"):
                await host.start("Refunds", scope=ADA, run="mine")
            return await all_events(host, first)

    assert sum(event.seq == 1 for event in play(scenario)) == 1


class FullDisk(MemoryStore):
    """Cannot be written while `full`."""

    full = False

    async def append(self, batch, *, owner):
        if self.full:
            raise StoreError("the disk is full", retryable=True)
        return await super().append(batch, owner=owner)


def test_unwritable_run_is_released_and_continues_later():
    journal = FullDisk()

    async def fill(request):
        journal.full = len(request.messages) == 1
        return "Done."

    async def scenario():
        clock = ManualTime()
        async with host_of(FunctionModel(fill), clock=clock, store=journal) as host:
            run = await host.start("Refunds", scope=ADA)
            hours = asyncio.create_task(clock.run())
            with pytest.raises(RunError, match=rf"the disk is full.*weft runs resume {run}"):
                await host.settled(run, scope=ADA)
            with pytest.raises(StoreError, match="disk is full"):
                await host.start("Refunds", scope=ADA)
            journal.full = False
            other = await host.start("Refunds", scope=ADA, message="second")
            journal.full = False
            assert (await host.settled(other, scope=ADA)).outcome == "completed"
            journal.full = False
            host._models._model = FunctionModel(lambda _: "Done.")
            await host.resume(run, scope=ADA)
            hours.cancel()
            return await host.settled(run, scope=ADA)

    assert play(scenario).outcome == "completed"


def test_a_disk_that_is_full_for_a_moment_stops_nothing():
    journal = FullDisk()

    async def scenario():
        clock = ManualTime()

        async def fill(_):
            journal.full = True
            return "Done."

        async with host_of(FunctionModel(fill), clock=clock, store=journal) as host:
            run = await host.start("Refunds", scope=ADA)
            waiting = asyncio.create_task(host.settled(run, scope=ADA))
            await asyncio.sleep(0.01)
            journal.full = False
            clock.advance(100)
            return await waiting

    assert play(scenario).outcome == "completed"


def test_a_fork_goes_its_own_way():
    asked = []

    def answer(request):
        asked.append(request.model)
        return "Done."

    async def scenario():
        async with host_of(FunctionModel(answer)) as host:
            run = await host.start("Refunds", scope=ADA, model="first")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, values={"limit": 7}, model="second")
            row = await host.settled(child, scope=ADA)
            for wrong, said in (({"limit": "x"}, "limit: "), ({"none": 1}, "no variable none")):
                with pytest.raises(UsageError, match=said):
                    await host.fork(run, scope=ADA, turn=1, values=wrong)
            with pytest.raises(UsageError, match="has no turn 9"):
                await host.fork(run, scope=ADA, turn=9)
            with pytest.raises(UsageError, match="turn 1 was not begun by a message"):
                await host.fork(run, scope=ADA, turn=1, message="Hello")
            return row, await all_events(host, run), await all_events(host, child)

    row, events, forked = play(scenario)
    assert asked == ["first", "second"]
    assert (row.outcome, row.calls) == ("completed", 1)
    assert row.parent
    at = next(number for number, event in enumerate(forked) if isinstance(event.data, RunForked))
    assert forked[:at] == events[:at]
    edited = forked[at + 1].data
    assert isinstance(edited, VariableSet)
    assert (edited.name, edited.value, edited.writer) == ("limit", 7, "edit")


def test_invalid_run_names_and_stop_modes_are_refused():
    async def scenario():
        async with host_of(ScriptedModel({"Clerk": [call("refund", amount=5)]})) as host:
            for name in (5, "\ud800"):
                with pytest.raises(UsageError, match="cannot be the identity of a run"):
                    await host.start("Refunds", scope=ADA, run=name)
            run = await host.start("Refunds", scope=ADA, run="mine")
            await host.settled(run, scope=ADA)
            with pytest.raises(UsageError, match="now or after_turn, not later"):
                await host.deliver(run, Stop("later"), scope=ADA)
            return [run.run for run in await host.runs(scope=ADA)], await host.run(run, scope=ADA)

    names, row = play(scenario)
    assert names == ["mine"]
    assert row.status == "waiting"


def test_a_fork_of_a_fork_keeps_its_model_and_its_edits():
    asked = []

    def answer(request):
        asked.append(request.model)
        return "Done."

    async def scenario():
        async with host_of(FunctionModel(answer)) as host:
            run = await host.start("Refunds", scope=ADA, model="first")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, values={"limit": 7}, model="second")
            await host.settled(child, scope=ADA)
            again = await host.fork(child, scope=ADA, turn=1)
            await host.settled(again, scope=ADA)
            other = await host.fork(again, scope=ADA, turn=1, values={"limit": 8}, model="third")
            await host.settled(other, scope=ADA)
            states = [await host.state(item, scope=ADA) for item in (again, other)]
            return [(state.model, state.variables["limit"]) for state in states]

    assert play(scenario) == [("second", 7), ("third", 8)]
    assert asked == ["first", "second", "second", "third"]


def test_the_model_of_the_package_answers_unless_another_is_named():
    asked = []

    def answer(request):
        asked.append(request.model)
        return "Done."

    async def scenario():
        async with host_of(FunctionModel(answer)) as host:
            for model in (None, "other"):
                run = await host.start("Refunds", scope=ADA, model=model)
                await host.settled(run, scope=ADA)

    play(scenario)
    assert asked == ["declared", "other"]


def test_closing_a_host_leaves_a_waiting_tool_to_be_called_again():
    model = ScriptedModel({"Clerk": [call("decide", question="?"), "Done."]})
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.

    async def scenario():
        async with host_of(model, store=journal) as host:
            run = await host.start("Refunds", scope=ADA)
            assert (await host.settled(run, scope=ADA)).status == "waiting"
        async with host_of(model, store=journal) as host:
            (request,) = await host.requests(scope=ADA, run=run)
            await host.deliver(run, Answer(request.id, {"yes": 1}), scope=ADA)
            row = await host.settled(run, scope=ADA)
            return row, await all_events(host, run)

    row, events = play(scenario)
    assert row.outcome == "completed"
    assert kinds(events).count(RequestOpened) == 1
    assert all(isinstance(event, Event) for event in events)


def test_of_two_tools_that_change_a_state_at_once_one_is_refused():
    code = {
        "tools/states.py": b"def to(state: str, context_variables) -> str:\n"
        b"    context_variables.set('phase', state)\n    return state\n"
    }
    declared = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "States", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {
                "phase": {
                    "type": "str",
                    "source": {
                        "type": "derived",
                        "default": "new",
                        "transitions": [
                            {"from": "new", "to": "won"},
                            {"from": "new", "to": "lost"},
                        ],
                    },
                }
            },
            "tools": [
                {"tool_type": "Agent_Tool", "agent": "A", "file": "states.py", "function": "to"}
            ],
            "handoffs": [{"source_agent": "A", "target_agent": "terminate"}],
        }
    )
    model = ScriptedModel({"A": [[call("to", state="won"), call("to", state="lost")], "Done."]})

    async def scenario():
        async with host_for(declared, model, code=code) as host:
            run = await host.start("States", scope=ADA, message="go")
            await host.settled(run, scope=ADA)
            return await all_events(host, run), await host.state(run, scope=ADA)

    events, state = play(scenario)
    (kept,) = [event.data.value for event in events if isinstance(event.data, VariableSet)]
    (refused,) = [event.data for event in events if isinstance(event.data, VariableRefused)]
    assert state.variables["phase"] == kept
    assert refused.error.startswith(f"phase may not change from '{kept}'")


@pytest.mark.parametrize(("mode", "calls"), [("after_turn", 1), ("now", 1)])
def test_stopping_a_run_of_another_process_does_not_perform_it(mode, calls, tmp_path):
    path = tmp_path / "journal.db"

    async def scenario():
        gate, begun = asyncio.Event(), asyncio.Event()

        async def slowly(_):
            begun.set()
            await gate.wait()
            return "Done."

        worker = FunctionModel(slowly)
        idle = FunctionModel(lambda _: "I should not have been asked.")
        async with (
            host_of(worker, store=await SqliteStore.open(path)) as first,
            host_of(idle, store=await SqliteStore.open(path)) as second,
        ):
            run = await first.start("Refunds", scope=ADA)
            await begun.wait()
            await second.deliver(run, Stop(mode), scope=ADA)
            gate.set()
            row = await second.settled(run, scope=ADA)
            assert (await first.settled(run, scope=ADA)).outcome == row.outcome
            return row, len(worker.requests), len(idle.requests)

    row, asked, others = play(scenario)
    assert (row.outcome, asked, others) == ("cancelled", calls, 0)
