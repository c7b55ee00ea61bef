"""Agents that take their turns side by side: what they hear, what becomes of what they say."""

import asyncio
from itertools import permutations

import pytest

from support.group_play import CODE, MEMBERS, team
from support.run_play import ADA, play, read
from weft.adapters.memory import MemoryStore
from weft.engine.events import (
    ContextAssembled,
    Event,
    Forked,
    HandedOff,
    Joined,
    ModelReplied,
    RunEnded,
    TimerFired,
    TimerSet,
    ToolReturned,
    TurnFailed,
    TurnStarted,
)
from weft.errors import ModelError
from weft.inspect.replay import check_replay
from weft.packages.workspace import shipped_folder
from weft.ports.live import TextDelta
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for, read_package
from weft.testing.models import FunctionModel, ScriptedModel, call


def texts(request):
    return [message["content"] for message in request.messages if message["role"] != "system"]


def script(ann="a", ben="bb", cas="c", **more):
    """What each says; a list stands for several lines."""
    said = {"Lead": "go", "Ann": ann, "Ben": ben, "Cas": cas, "Editor": "printed", **more}
    return ScriptedModel(
        {who: value if isinstance(value, list) else [value] for who, value in said.items()}
    )


def run_team(model, spec=None, after=None):
    played = play(spec or team(), model, code=CODE, message="write", after=after)
    assert check_replay(played.workflow, played.run, played.events) == []
    return played


def kinds(played, kind):
    return [event.data for event in played.events if isinstance(event.data, kind)]


def what_the_editor_hears(model):
    (request,) = [request for request in model.requests if request.agent == "Editor"]
    return texts(request)


def ended(played):
    return played.events[-1].data


def test_members_of_parallel_hear_the_conversation_and_not_each_other():
    model = script()
    played = run_team(model)
    for request in model.requests:
        if request.agent in MEMBERS:
            assert texts(request) == ["write", "Lead: go"]
    (forked,) = kinds(played, Forked)
    assert (forked.name, forked.members) == ("Team", MEMBERS)
    fork = played.at(Forked).seq
    started = [event for event in played.events if isinstance(event.data, TurnStarted)]
    assert [(event.data.agent, event.turn, event.data.fork) for event in started] == [
        ("Lead", 1, 0),
        ("Ann", 2, fork),
        ("Ben", 3, fork),
        ("Cas", 4, fork),
        ("Editor", 5, 0),
    ]
    assert ended(played).outcome == "completed"


def test_a_handoff_to_the_name_of_a_group_starts_its_members_and_next_is_who_follows():
    spec = team(name="Team", members=["Cas", "Ann"], next="terminate")
    model = script()
    played = run_team(model, spec)
    assert [kind.agent for kind in kinds(played, TurnStarted)] == ["Lead", "Cas", "Ann"]
    handed = [(kind.source, kind.target, kind.why) for kind in kinds(played, HandedOff)]
    assert handed == [("Lead", "Team", "fallback"), ("Team", "terminate", "joined")]


@pytest.mark.parametrize(
    ("orchestrator", "target"),
    [
        ({}, "user"),
        ({"default_target": "Editor"}, "Editor"),
        ({"human_in_the_loop": False}, "terminate"),
    ],
)
def test_group_without_next_uses_the_default_route(orchestrator, target):
    played = run_team(script(), team(orchestrator, next=None))
    assert [kind.target for kind in kinds(played, HandedOff) if kind.why == "joined"] == [target]


@pytest.mark.parametrize(
    ("merge", "heard"),
    [
        ({"merge": "concatenate"}, ["Ann: a", "Ben: bb", "Cas: a"]),
        ({"merge": "majority"}, ["Ann: a"]),
        ({"merge": "collect"}, ['Team: {"Ann": "a", "Ben": "bb", "Cas": "a"}']),
        ({"merge": "custom", "function": "tools.merging:pick"}, ["Team: Ben wins"]),
    ],
    ids=lambda item: item.get("merge") if isinstance(item, dict) else "",
)
def test_merge_and_function_say_what_the_conversation_gets(merge, heard):
    model = script(cas="a")
    played = run_team(model, team(**merge))
    assert what_the_editor_hears(model) == ["write", "Lead: go", *heard]
    assert ended(played).outcome == "completed"
    assert len(kinds(played, Joined)) == 1


def waiting_for(order):
    """A model whose members answer one after the other, in an order."""
    gates = {name: asyncio.Event() for name in order}
    gates[order[0]].set()

    async def reply(request):
        if request.agent in gates:
            await gates[request.agent].wait()
            following = order[order.index(request.agent) + 1 :][:1]
            for name in following:
                gates[name].set()
            return f"I am {request.agent}"
        return "go"

    return FunctionModel(reply)


@pytest.mark.parametrize("order", list(permutations(MEMBERS)), ids="".join)
def test_conversation_does_not_depend_on_the_speed_of_members(order):
    model = waiting_for(order)
    played = run_team(model)
    replied = [event.turn for event in played.events if isinstance(event.data, ModelReplied)]
    assert [MEMBERS[turn - 2] for turn in replied[1:4]] == list(order)
    heard = [f"{member}: I am {member}" for member in MEMBERS]
    assert what_the_editor_hears(model) == ["write", "Lead: go", *heard]


def test_merge_first_takes_the_fastest_and_breaks_the_others_off():
    begun, broken_off, slow_ones = [], [], asyncio.Event()

    async def reply(request):
        if request.agent in ("Ann", "Cas"):
            begun.append(request.agent)
            if len(begun) == 2:
                slow_ones.set()
            try:
                await asyncio.Event().wait()
            finally:
                broken_off.append(request.agent)
        if request.agent == "Ben":
            await slow_ones.wait()
        return f"I am {request.agent}"

    model = FunctionModel(reply)
    played = run_team(model, team(merge="first"))
    assert sorted(broken_off) == ["Ann", "Cas"]
    assert what_the_editor_hears(model) == ["write", "Lead: I am Lead", "Ben: I am Ben"]
    assert played.at(Joined).data.turns == (3,)
    assert ended(played).outcome == "completed"


def test_merge_first_breaks_off_a_member_that_waits_for_a_person():
    async def reply(request):
        if request.agent == "Ann":
            return call("ask", what="tea")
        if request.agent in MEMBERS:
            await asyncio.sleep(0.05)
        return f"I am {request.agent}"

    async def scenario():
        async with host_for(team(merge="first"), FunctionModel(reply), code=CODE) as host:
            run = await host.start("Side", scope=ADA, message="write")
            row = await host.settled(run, scope=ADA)
            return row, await host.requests(scope=ADA), len(host._worker)

    row, open_, held = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert (row.outcome, open_, held) == ("completed", [], 0)


BAD = ModelError("out of order")


def test_on_failure_fail_ends_the_run_with_the_member():
    played = run_team(script(ben=[BAD]), team(on_failure="fail"))
    (failed,) = kinds(played, TurnFailed)
    assert (failed.agent, failed.kind) == ("Ben", "model")
    assert ended(played).outcome == "failed"
    assert ended(played).reason == f"{failed.error} (in the group Team)"


@pytest.mark.parametrize(
    ("merge", "heard"),
    [
        ({"merge": "concatenate"}, ["Ann: a", "Cas: c"]),
        ({"merge": "collect"}, ['Team: {"Ann": "a", "Cas": "c"}']),
        ({"merge": "custom", "function": "tools.merging:pick"}, ["Team: Ann wins"]),
    ],
    ids=lambda item: item.get("merge") if isinstance(item, dict) else "",
)
def test_on_failure_continue_lets_the_others_count(merge, heard):
    model = script(ben=[BAD])
    played = run_team(model, team(on_failure="continue", **merge))
    assert [kind.agent for kind in kinds(played, TurnFailed)] == ["Ben"]
    assert what_the_editor_hears(model) == ["write", "Lead: go", *heard]
    assert ended(played).outcome == "completed"


def test_group_without_remaining_members_ends_the_run():
    played = run_team(script([BAD], [BAD], [BAD]), team(on_failure="continue"))
    assert len(kinds(played, TurnFailed)) == 3
    assert ended(played).outcome == "failed"
    assert "every member of the group Team failed" in ended(played).reason


def test_a_function_that_fails_to_merge_ends_the_run():
    spec = team(merge="custom", function="tools.merging:fail", on_failure="continue")
    played = run_team(script(), spec)
    assert ended(played).outcome == "failed"
    assert "they cannot be merged" in ended(played).reason
    assert not kinds(played, Joined)


async def until(holds):
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    assert holds()


@pytest.mark.parametrize("on_failure", ["fail", "continue"])
def test_members_that_are_not_done_after_deadline_seconds_have_failed(on_failure):
    spec = team(deadline_seconds=60, on_failure=on_failure)

    async def reply(request):
        if request.agent == "Cas":
            await asyncio.Event().wait()
        return f"I am {request.agent}"

    async def scenario():
        clock, model = ManualClock(), FunctionModel(reply)
        async with host_for(spec, model, code=CODE, clock=clock) as host:
            run = await host.start("Side", scope=ADA, message="write")
            await until(lambda: len(model.requests) == 4)
            await clock.advance(59)
            assert (await host.run(run, scope=ADA)).status == "running"
            await clock.advance(1)
            row = await asyncio.wait_for(host.settled(run, scope=ADA), 10)
            return row, await read(host, run), model, await host._store.next_due()

    row, played, model, due = asyncio.run(asyncio.wait_for(scenario(), 30))
    (failed,) = kinds(played, TurnFailed)
    assert (failed.agent, failed.kind) == ("Cas", "deadline")
    assert failed.error == "Cas did not finish within 60 s"
    assert due is None
    assert check_replay(played.workflow, played.run, played.events) == []
    if on_failure == "fail":
        assert (row.outcome, "Cas did not finish" in row.reason) == ("failed", True)
    else:
        assert row.outcome == "completed"
        said = ["Ann: I am Ann", "Ben: I am Ben"]
        assert what_the_editor_hears(model) == ["write", "Lead: I am Lead", *said]


def test_a_group_that_is_done_in_time_takes_its_deadline_along():
    played = run_team(script(), team(deadline_seconds=60))
    assert len(kinds(played, TimerSet)) == 1
    assert kinds(played, TimerFired) == []
    assert ended(played).outcome == "completed"


def test_the_deadline_holds_though_the_process_has_changed():
    spec, clock = team(deadline_seconds=60, on_failure="continue"), ManualClock()
    journal = Kept(clock)

    async def reply(request):
        if request.agent == "Cas":
            await asyncio.Event().wait()
        return f"I am {request.agent}"

    async def scenario():
        first = FunctionModel(reply)
        async with host_for(spec, first, code=CODE, clock=clock, store=journal) as host:
            run = await host.start("Side", scope=ADA, message="write")
            await until(lambda: len(first.requests) == 4)
        second = FunctionModel(reply)
        async with host_for(spec, second, code=CODE, clock=clock, store=journal) as host:
            assert await host.recover() == [run]
            await until(lambda: [request.agent for request in second.requests] == ["Cas"])
            await clock.advance(60)
            return await asyncio.wait_for(host.settled(run, scope=ADA), 10), await read(host, run)

    row, played = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert row.outcome == "completed"
    assert [kind.agent for kind in kinds(played, TurnFailed)] == ["Cas"]


class Kept(MemoryStore):
    """Outlives its host."""

    async def close(self):
        pass


def test_members_use_tools_and_have_the_variables_for_themselves_until_they_join():
    counting = [call("count", by=2), call("count", by=3), "done"]
    model = script(ann=counting, ben=[call("count"), "done"])
    played = run_team(model)
    returned = [event for event in played.events if isinstance(event.data, ToolReturned)]
    assert sorted((event.turn, event.data.value) for event in returned) == [(2, 2), (2, 5), (3, 1)]
    joined = played.at(Joined)
    assert ended(played).outcome == "completed"

    async def before_and_after(host, run):
        before = await host.state(run, scope=ADA, at=joined.seq - 1)
        after = await host.state(run, scope=ADA, at=joined.seq)
        values.append((before.variables["total"], after.variables["total"]))

    values = []
    model = script(ann=counting, ben=[call("count"), "done"])
    run_team(model, after=before_and_after)
    assert values == [(0, 5)], "of two that set it, the one that began first counts"


@pytest.mark.parametrize("closed", [False, True], ids=["waiting", "host closed meanwhile"])
def test_members_ask_people_and_each_gets_its_own_answer(closed):
    model = script(ann=[call("ask", what="tea"), "thanks"], cas=[call("ask", what="ale"), "cheers"])
    journal = Kept()

    async def answer(host, run, what, value):
        asked = {request.payload: request.id for request in await host.requests(scope=ADA, run=run)}
        await host.deliver(run, Answer(asked[what], value), scope=ADA)
        return await host.settled(run, scope=ADA)

    async def scenario():
        async with host_for(team(), model, code=CODE, store=journal) as host:
            run = await host.start("Side", scope=ADA, message="write")
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            if not closed:
                assert (await answer(host, run, "ale", "dark")).status == "waiting"
                return await answer(host, run, "tea", "green"), await read(host, run)
        async with host_for(team(), model, code=CODE, store=journal) as host:
            assert await host.recover() == []
            assert (await answer(host, run, "ale", "dark")).status == "waiting"
            return await answer(host, run, "tea", "green"), await read(host, run)

    row, played = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert row.outcome == "completed"
    assert {kind.value for kind in kinds(played, ToolReturned)} == {"tea: green", "ale: dark"}
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_question_that_another_process_answers_while_a_member_still_speaks():
    speaking, journal = asyncio.Event(), Kept()

    async def reply(request):
        if request.agent == "Ann":
            done = any(message["role"] == "tool" for message in request.messages)
            return "thanks" if done else call("ask", what="tea")
        if request.agent == "Cas":
            await speaking.wait()
        return f"I am {request.agent}"

    async def scenario():
        here, there = (
            host_for(team(), FunctionModel(reply), code=CODE, store=journal) for _ in range(2)
        )
        async with here, there:
            run = await here.start("Side", scope=ADA, message="write")
            while not (asked := await here.requests(scope=ADA, run=run)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await there.deliver(run, Answer(asked[0].id, "green"), scope=ADA)
            await asyncio.sleep(0.05)
            speaking.set()
            rows = [
                await asyncio.wait_for(item.settled(run, scope=ADA), 20) for item in (here, there)
            ]
            return rows, await read(here, run)

    rows, played = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert [row.outcome for row in rows] == ["completed", "completed"]
    assert [kind.value for kind in kinds(played, ToolReturned)] == ["tea: green"]


async def test_replies_of_members_are_streamed_by_call():
    said = {name: f"{name} says so" for name in MEMBERS}
    model = script(*said.values())
    async with host_for(team(), model, code=CODE) as host:
        run = await host.start("Side", scope=ADA, message="write", streamed=True)
        seen = [event async for event in host.events(run, scope=ADA, follow=True)]
    events = [item for item in seen if isinstance(item, Event)]
    calls = {
        event.seq: event.data.agent for event in events if isinstance(event.data, ContextAssembled)
    }
    heard = dict.fromkeys(MEMBERS, "")
    known: set[int] = set()
    for event in seen:
        if isinstance(event, Event):
            known.add(event.seq)
        elif isinstance(event, TextDelta) and calls[event.call] in MEMBERS:
            assert event.call in known, "a piece comes after the event that allowed it"
            assert event.offset == len(heard[calls[event.call]])
            heard[calls[event.call]] += event.text
    assert heard == said


@pytest.mark.parametrize("turn", [2, 3, 4])
def test_a_fork_of_a_turn_inside_a_group_begins_the_whole_group_anew(turn):
    model = script(["a", "x"], ["b", "y"], ["c", "z"], Editor=["printed", "again"])

    async def fork(host, run):
        return await host.fork(run, scope=ADA, turn=turn, values={"total": 7})

    played = run_team(model, team(deadline_seconds=600), after=fork)
    started = [
        (event.data.agent, event.turn)
        for event in played.events
        if isinstance(event.data, TurnStarted)
    ]
    assert started == [("Lead", 1), ("Ann", 2), ("Ben", 3), ("Cas", 4), ("Editor", 5)]
    assert len(kinds(played, Forked)) == 1
    assert [kind.text for kind in kinds(played, ModelReplied)] == ["go", "x", "y", "z", "again"]
    assert len(kinds(played, TimerSet)) == 1, "it has all of its time again"
    assert ended(played).outcome == "completed"


def test_a_fork_of_a_group_has_a_deadline_of_its_own():
    spec = team(deadline_seconds=60, on_failure="continue")
    slow = False

    async def reply(request):
        if request.agent == "Cas" and slow:
            await asyncio.Event().wait()
        return f"I am {request.agent}"

    async def scenario():
        nonlocal slow
        clock, model = ManualClock(), FunctionModel(reply)
        async with host_for(spec, model, code=CODE, clock=clock) as host:
            run = await host.start("Side", scope=ADA, message="write")
            await host.settled(run, scope=ADA)
            await clock.advance(3600)
            slow = True
            child = await host.fork(run, scope=ADA, turn=3)
            await until(lambda: len(model.requests) == 8)
            await clock.advance(59)
            assert (await host.run(child, scope=ADA)).status == "running"
            await clock.advance(1)
            return await asyncio.wait_for(host.settled(child, scope=ADA), 10), await read(
                host, child
            )

    row, played = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert row.outcome == "completed"
    assert [kind.kind for kind in kinds(played, TurnFailed)] == ["deadline"]
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_run_that_is_to_stop_after_the_turn_stops_when_the_group_has_joined():
    gate = asyncio.Event()

    async def reply(request):
        if request.agent == "Cas":
            await gate.wait()
        return f"I am {request.agent}"

    async def scenario():
        model = FunctionModel(reply)
        async with host_for(team(), model, code=CODE) as host:
            run = await host.start("Side", scope=ADA, message="write")
            await until(lambda: len(model.requests) == 4)
            await host.deliver(run, Stop("after_turn"), scope=ADA)
            gate.set()
            row = await host.settled(run, scope=ADA)
            return row, await read(host, run)

    row, played = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert row.outcome == "cancelled"
    assert [type(event.data) for event in played.events[-2:]] == [Joined, RunEnded]


def test_the_pattern_redundant_runs_its_agents_side_by_side():
    package = read_package(shipped_folder() / "Redundant")
    answering = ("FirstPrinciplesAgent", "PrecedentAgent", "SkepticAgent")
    all_asked = asyncio.Event()
    asked = []

    async def reply(request):
        if request.agent in answering:
            asked.append(request.agent)
            if len(asked) == len(answering):
                all_asked.set()
            await all_asked.wait()  # None answers before all are asked.
            return f"I am {request.agent}"
        if any(message["role"] == "tool" for message in request.messages):
            return "The first it is."
        return call("choose_best", first=[5, 5, 5], second=[1, 1, 1], third=[2, 2, 2])

    async def scenario():
        model = FunctionModel(reply)
        async with host_for(package.spec, model, code=package.code) as host:
            run = await host.start("Redundant", scope=ADA)
            await host.settled(run, scope=ADA)
            await host.deliver(run, UserMessage("Why is the sky blue?"), scope=ADA)
            row = await asyncio.wait_for(host.settled(run, scope=ADA), 10)
            return row, await read(host, run), model

    row, played, model = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert row.outcome == "completed"
    assert kinds(played, Forked)[0].members == answering
    for request in model.requests[:3]:
        assert texts(request) == ["Why is the sky blue?"]
    judged = next(request for request in model.requests if request.agent == "EvaluatorAgent")
    heard = [f"{item}: I am {item}" for item in answering]
    assert texts(judged) == ["Why is the sky blue?", *heard]
