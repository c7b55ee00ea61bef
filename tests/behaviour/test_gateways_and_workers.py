"""A gateway and a worker as two processes on one store: one lets in, the other performs."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from behaviour.bad_run_play import ADA, finished, play
from support.group_play import CODE, MEMBERS, team
from support.postgres_stores import store_place
from unit.runtime.test_two_processes import CountingStore, chat
from weft.adapters.sql import SqliteStore
from weft.engine.events import RequestExpired, TurnStarted
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.ports.live import TextDelta
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call


def refuse(request):
    raise AssertionError(f"the gateway asks the model of {request.agent}")


@asynccontextmanager
async def two_hosts(spec, model, path, *, code=CODE):
    """Open a gateway and a worker on one file; only the worker may perform anything."""
    here, there = [await SqliteStore.open(path / "j.db") for _ in range(2)]
    asks = FunctionModel(refuse)
    gateway = host_for(spec, asks, code=code, store=here, works=False)
    worker = host_for(spec, model, code=code, store=there)
    async with gateway, worker:
        await worker.recover()
        yield gateway, worker
        assert len(gateway._worker) == 0, "a gateway holds no run"


SCRIPT = {
    "Lead": ["go", "go on"],
    "Ann": [call("ask", what="tea"), "thanks", "more"],
    "Ben": [call("count"), "counted", "more"],
    "Cas": ["done", "more"],
    "Editor": ["printed", "printed again"],
}


def test_gateway_writes_and_worker_performs(tmp_path):
    async def scenario():
        async with two_hosts(team(), ScriptedModel(SCRIPT), tmp_path) as (gateway, worker):
            run = await gateway.start("Side", scope=ADA, message="write")
            assert (await gateway.settled(run, scope=ADA)).status == "waiting"
            (asked,) = await gateway.requests(scope=ADA, run=run)
            await gateway.deliver(run, Answer(asked.id, "green"), scope=ADA)
            with pytest.raises(UsageError, match="is not open"):
                await gateway.deliver(run, Answer(asked.id, "black"), scope=ADA)
            await gateway.settled(run, scope=ADA)
            told = await finished(gateway, run)
            assert await finished(worker, run) == told
            return told, await gateway.workflow(run, scope=ADA)

    told, workflow = play(scenario)
    assert told.row.outcome == "completed"
    started = [event.data for event in told.events if isinstance(event.data, TurnStarted)]
    assert [data.agent for data in started] == ["Lead", *MEMBERS, "Editor"]
    assert "tea: green" in [message.text for message in told.state.messages]
    assert check_replay(workflow, told.row.run, told.events) == []


def test_answer_reaches_its_tool_while_other_members_still_speak(tmp_path):
    async def scenario():
        speaking = asyncio.Event()

        async def reply(request):
            if request.agent == "Ann":
                asked = any(message["role"] == "tool" for message in request.messages)
                return "thanks" if asked else call("ask", what="tea")
            if request.agent == "Cas":
                await speaking.wait()
            return f"I am {request.agent}"

        model = FunctionModel(reply)
        async with two_hosts(team(), model, tmp_path) as (gateway, _):
            run = await gateway.start("Side", scope=ADA, message="write")
            while not (asked := await gateway.requests(scope=ADA, run=run)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await gateway.deliver(run, Answer(asked[0].id, "green"), scope=ADA)
            while not any("tea: green" in str(request.messages) for request in model.requests):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            speaking.set()
            await gateway.settled(run, scope=ADA)
            calls = [(request.agent, request.call) for request in model.requests]
            return calls, await finished(gateway, run)

    calls, told = play(scenario)
    assert told.row.outcome == "completed"
    assert len(calls) == len(set(calls)), "no model is asked twice"


def test_messages_stops_and_forks_go_through_the_gateway(tmp_path):
    chat = team({"parallel": []}).model_dump()
    to_user = [{"source_agent": "Lead", "target_agent": "user"}]
    spec = team().model_validate({**chat, "handoffs": to_user})

    async def scenario():
        model = FunctionModel(lambda request: f"{len(request.messages)}")
        async with two_hosts(spec, model, tmp_path) as (gateway, _):
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


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """The address of a store: a file, or a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "j.db")
    return request.getfixturevalue("postgres_database")


@asynccontextmanager
async def two_stores(database):
    """Open a store as two processes would."""
    if "://" not in database:
        yield [await SqliteStore.open(database) for _ in range(2)]
        return
    async with store_place(database) as place:
        yield [await place.open() for _ in range(2)]


def test_mail_of_a_megabyte_arrives_whole(database):
    text = "All of it: ä. " * 80_000
    assert len(text.encode()) > 1_000_000

    async def scenario():
        async with two_stores(database) as (here, there):
            store = CountingStore(here)
            model = FunctionModel(lambda request: f"{len(request.messages[-1]['content'])}")
            gateway = host_for(chat(), FunctionModel(refuse), store=store, works=False)
            worker = host_for(chat(), model, store=there)
            async with gateway, worker:
                await worker.recover()
                run = await gateway.start("W", scope=ADA, message=text)
                await gateway.settled(run, scope=ADA)
                store.calls.clear()
                await gateway.deliver(run, UserMessage(text), scope=ADA)
                assert (store.calls["put"], store.calls["append"]) == (1, 0), "it is mail"
                await gateway.settled(run, scope=ADA)
                told = await finished(gateway, run)
                return [message.text for message in told.state.messages]

    assert play(scenario) == [text, f"{len(text)}", text, f"{len(text)}"]


def test_stop_at_the_gateway_cancels_what_the_worker_does(tmp_path):
    async def scenario():
        begun, broken_off = asyncio.Event(), asyncio.Event()

        async def reply(_request):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                broken_off.set()

        async with two_hosts(team(), FunctionModel(reply), tmp_path) as (gateway, worker):
            run = await gateway.start("Side", scope=ADA, message="write")
            await begun.wait()
            row = await gateway.run(run, scope=ADA)
            assert row.owner == worker._worker.ownership.owner, "it is known who works on it"
            await gateway.deliver(run, Stop(), scope=ADA)
            await asyncio.wait_for(broken_off.wait(), 5)
            return await gateway.settled(run, scope=ADA)

    assert play(scenario).outcome == "cancelled"


def test_timer_set_through_a_gateway_fires_at_the_worker(tmp_path):
    """S2: the worker looks at every run that is due, whichever process wrote the time."""
    code = {
        "tools/work.py": CODE["tools/work.py"].replace(
            b"'ask', what)", b"'ask', what, timeout=0.3)"
        )
    }

    async def scenario():
        spec = team(members=["Ann", "Ben"], on_failure="continue")
        script = {"Lead": "go", "Ann": [call("ask", what="tea"), "x"], "Ben": "b", "Editor": "p"}
        async with two_hosts(spec, ScriptedModel(script), tmp_path, code=code) as (gateway, _):
            run = await gateway.start("Side", scope=ADA, message="write")

            async def follow():
                return [event async for event in gateway.events(run, scope=ADA, follow=True)]

            seen = await asyncio.wait_for(follow(), 10)
            told = await finished(gateway, run)
            assert [event for event in seen if not isinstance(event, TextDelta)] == told.events
            return told

    told = play(scenario)
    assert told.row.outcome == "completed"
    told.only(RequestExpired)
