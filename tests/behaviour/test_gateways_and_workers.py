"""A gateway and a worker as two processes on one store: one lets in, the other performs."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from behaviour.bad_run_play import ADA, finished, play
from support.group_play import CODE, MEMBERS, team
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import RequestExpired, TurnStarted
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.runtime.runs.live_stream import TextDelta
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call


class WorkerEnd:
    """Leads from gateways to the worker."""

    def __init__(self):
        self.work = None
        self.woken = []
        self.tasks = set()

    def mine(self, _run):
        return True

    async def wake(self, run):
        self.woken.append(run)
        task = asyncio.create_task(self.work(run))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def serve(self, work):
        self.work = work

    async def close(self):
        await asyncio.gather(*self.tasks, return_exceptions=True)


class GatewayEnd:
    """Wakes the worker at the other end."""

    def __init__(self, line):
        self.line = line

    def mine(self, _run):
        return False

    async def wake(self, run):
        await self.line.wake(run)

    async def close(self):
        pass


class Shared(MemoryJournal):
    """Stays open for the other host."""

    async def close(self):
        pass


def nobody(request):
    raise AssertionError(f"the gateway asks the model of {request.agent}")


@asynccontextmanager
async def two_hosts(spec, model, *, journals=None, clock=None, code=CODE):
    """Open a gateway and a worker; only the worker may perform anything."""
    line = WorkerEnd()
    here, there = journals or (Shared(),) * 2
    asks = FunctionModel(nobody)
    end = GatewayEnd(line)
    gateway = host_for(spec, asks, code=code, journal=here, clock=clock, dispatcher=end)
    worker = host_for(spec, model, code=code, journal=there, clock=clock, dispatcher=line)
    async with gateway, worker:
        await worker.serve()
        yield gateway, worker, line
        assert len(gateway._worker) == 0, "a gateway holds no run"


SCRIPT = {
    "Lead": ["go", "go on"],
    "Ann": [call("ask", what="tea"), "thanks", "more"],
    "Ben": [call("count"), "counted", "more"],
    "Cas": ["done", "more"],
    "Editor": ["printed", "printed again"],
}


@pytest.mark.parametrize("lasting", [False, True], ids=["memory", "sqlite"])
def test_a_gateway_lets_in_and_the_worker_performs(tmp_path, lasting):
    async def journals():
        if not lasting:
            return (Shared(),) * 2
        return [await SqliteJournal.open(tmp_path / "j.db") for _ in range(2)]

    async def scenario():
        model = ScriptedModel(SCRIPT)
        async with two_hosts(team(), model, journals=await journals()) as (gateway, worker, line):
            run = await gateway.start("Side", scope=ADA, message="write")
            assert (await gateway.settled(run, scope=ADA)).status == "waiting"
            (asked,) = await gateway.requests(scope=ADA, run=run)
            await gateway.deliver(run, Answer(asked.id, "green"), scope=ADA)
            with pytest.raises(UsageError, match="is not open"):
                await gateway.deliver(run, Answer(asked.id, "black"), scope=ADA)
            await gateway.settled(run, scope=ADA)
            told = await finished(gateway, run)
            assert await finished(worker, run) == told
            return told, line.woken, await gateway.workflow(run, scope=ADA)

    told, woken, workflow = play(scenario)
    assert told.row.outcome == "completed"
    assert [it.data.agent for it in told.events if isinstance(it.data, TurnStarted)] == [
        "Lead",
        *MEMBERS,
        "Editor",
    ]
    assert "tea: green" in [it.text for it in told.state.messages]
    assert woken == [("app", told.row.run)] * 2
    assert check_replay(workflow, told.row.run, told.events) == []


def test_an_answer_reaches_its_tool_while_other_members_still_speak():
    async def scenario():
        speaking = asyncio.Event()

        async def reply(request):
            if request.agent == "Ann":
                asked = any(it["role"] == "tool" for it in request.messages)
                return "thanks" if asked else call("ask", what="tea")
            if request.agent == "Cas":
                await speaking.wait()
            return f"I am {request.agent}"

        model = FunctionModel(reply)
        async with two_hosts(team(), model) as (gateway, _, _line):
            run = await gateway.start("Side", scope=ADA, message="write")
            while not (asked := await gateway.requests(scope=ADA, run=run)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await gateway.deliver(run, Answer(asked[0].id, "green"), scope=ADA)
            while not any("tea: green" in str(it.messages) for it in model.requests):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            speaking.set()
            await gateway.settled(run, scope=ADA)
            calls = [(it.agent, it.call) for it in model.requests]
            return calls, await finished(gateway, run)

    calls, told = play(scenario)
    assert told.row.outcome == "completed"
    assert len(calls) == len(set(calls)), "no model is asked twice"


def test_messages_stops_and_forks_go_through_the_gateway():
    chat = team({"parallel": []}).model_dump()
    to_user = [{"source_agent": "Lead", "target_agent": "user"}]
    spec = team().model_validate({**chat, "handoffs": to_user})

    async def scenario():
        model = FunctionModel(lambda request: f"{len(request.messages)}")
        async with two_hosts(spec, model) as (gateway, _, _line):
            run = await gateway.start("Side", scope=ADA, message="write")
            await gateway.settled(run, scope=ADA)
            await gateway.deliver(run, UserMessage("more", id="m1"), scope=ADA)
            await gateway.deliver(run, UserMessage("more", id="m1"), scope=ADA)
            await gateway.settled(run, scope=ADA)
            child = await gateway.fork(run, scope=ADA, turn=2)
            forked = await gateway.settled(child, scope=ADA)
            await gateway.deliver(run, Stop(), scope=ADA)
            return await gateway.settled(run, scope=ADA), forked

    row, forked = play(scenario)
    assert (row.outcome, row.turns) == ("cancelled", 2)
    assert (forked.status, forked.turns) == ("waiting", 2)


def test_a_stop_at_the_gateway_breaks_off_what_the_worker_does():
    async def scenario():
        begun, broken_off = asyncio.Event(), asyncio.Event()

        async def reply(_request):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                broken_off.set()

        async with two_hosts(team(), FunctionModel(reply)) as (gateway, worker, _):
            run = await gateway.start("Side", scope=ADA, message="write")
            await begun.wait()
            row = await gateway.run(run, scope=ADA)
            assert row.owner == worker._batches.owner, "it is known who works on it"
            await gateway.deliver(run, Stop(), scope=ADA)
            await asyncio.wait_for(broken_off.wait(), 5)
            return await gateway.settled(run, scope=ADA)

    assert play(scenario).outcome == "cancelled"


def test_whoever_follows_at_the_gateway_gets_all_events_and_lets_nothing_expire_there():
    code = {
        "tools/work.py": CODE["tools/work.py"].replace(b"'ask', what)", b"'ask', what, timeout=60)")
    }

    async def scenario():
        clock = ManualClock()
        spec = team(members=["Ann", "Ben"], on_failure="continue")
        script = {"Lead": "go", "Ann": [call("ask", what="tea"), "x"], "Ben": "b", "Editor": "p"}
        model = ScriptedModel(script)
        async with two_hosts(spec, model, clock=clock, code=code) as (gateway, _, _line):
            run = await gateway.start("Side", scope=ADA, message="write")

            async def follow():
                return [it async for it in gateway.events(run, scope=ADA, follow=True)]

            following = asyncio.create_task(follow())
            assert (await gateway.settled(run, scope=ADA)).status == "waiting"
            assert gateway._worker._due._task is None
            await clock.advance(60)
            seen = await asyncio.wait_for(following, 10)
            told = await finished(gateway, run)
            assert [it for it in seen if not isinstance(it, TextDelta)] == told.events
            return told

    told = play(scenario)
    assert told.row.outcome == "completed"
    told.only(RequestExpired)
