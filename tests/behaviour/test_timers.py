"""Timers: set when a run starts, due whoever is there then, and gone with their run."""

import asyncio

import pytest

from support.boundary_play import END, Kept, declared, derived, of
from support.run_play import ADA, read
from weft.engine.events import Event, TimerFired, TimerSet, VariableSet
from weft.inspect.replay import check_replay
from weft.runtime.signals import UserMessage
from weft.testing.clock import START, ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel


def timed(seconds=60, **rest):
    trigger = {"type": "timer_expired", "after_seconds": seconds, "value": "late", **rest}
    to_user = [{"source_agent": "A", "target_agent": "user"}]
    size = {"size": derived("optional[str]", None, trigger)}
    return declared(variables=size, exposure={"A": ["size"]}, handoffs=to_user)


def values(played):
    return [event.value for event in of(played, VariableSet)]


async def settled(host, run):
    return await asyncio.wait_for(host.settled(run, scope=ADA), 10)


async def fired(host, run):
    """Wait until a timer of a run has fired; a host that has just been opened loads it first."""
    async for event in host.events(run, scope=ADA, follow=True):
        if isinstance(event, Event) and isinstance(event.data, TimerFired):
            return


def test_a_timer_fires_when_its_time_has_come_and_the_next_reply_sees_it():
    clock, model = ManualClock(), ScriptedModel(["one", "two"])

    async def story():
        async with host_for(timed(60), model, clock=clock) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await settled(host, run)
            await clock.advance(59)
            assert (await host.state(run, scope=ADA)).variables["size"] is None
            await clock.advance(2)
            assert (await host.state(run, scope=ADA)).variables["size"] == "late"
            await host.deliver(run, UserMessage("and now?"), scope=ADA)
            await settled(host, run)
            return await read(host, run)

    played = asyncio.run(story())
    assert of(played, TimerSet) == [TimerSet("trigger:size:0", START + 60_000, "trigger")]
    assert of(played, TimerFired) == [TimerFired("trigger:size:0")]
    assert [request.messages[0]["content"][-4:] for request in model.requests] == ["null", "late"]
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize("away", [10, 600], ids=["due later", "due while nobody was there"])
def test_a_timer_survives_a_restart(away):
    clock = ManualClock()
    journal = Kept(clock)

    async def story():
        async with host_for(timed(60), ScriptedModel(["one"]), clock=clock, store=journal) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await settled(host, run)
        await clock.advance(away)
        assert clock.sleepers == 0, "nobody waits while no host is open"
        async with host_for(timed(60), ScriptedModel([]), clock=clock, store=journal) as host:
            await host.recover()
            await clock.advance(max(60 - away, 0))
            await asyncio.wait_for(fired(host, run), 10)
            return await read(host, run)

    played = asyncio.run(story())
    assert played.at(TimerFired).at == START + max(away, 60) * 1000
    assert values(played) == ["late"]


def test_a_clock_that_goes_back_makes_a_timer_late_and_never_early_or_twice():
    clock = ManualClock()

    async def story():
        async with host_for(timed(60), ScriptedModel(["one"]), clock=clock) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await settled(host, run)
            await clock.advance(50)
            await clock.advance(-3600)
            await clock.advance(600)
            assert (await host.state(run, scope=ADA)).variables["size"] is None
            await clock.advance(3600)
            await clock.advance(-3600)
            await clock.advance(7200)
            return await read(host, run)

    played = asyncio.run(story())
    assert values(played) == ["late"]
    assert len(of(played, TimerFired)) == 1
    assert played.at(TimerFired).at >= START + 60_000


def test_timers_go_with_their_run():
    clock = ManualClock()
    journal = Kept(clock)

    async def story():
        trigger = {"type": "timer_expired", "after_seconds": 60}
        spec = declared(variables={"late": derived("bool", False, trigger)}, handoffs=END)
        async with host_for(spec, ScriptedModel(["one"]), clock=clock, store=journal) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await settled(host, run)
            await clock.advance(120)
            assert await journal.next_due() is None
            return await read(host, run)

    assert of(asyncio.run(story()), TimerFired) == []
