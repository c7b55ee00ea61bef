"""Runs that are taken up: from where they stand, with what is theirs, whatever else goes on."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, open_host, play, spec
from weft.adapters.memory import MemoryStore
from weft.errors import RunError, UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Stop, UserMessage
from weft.runtime.workflow import link
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

TO_USER = [{"source_agent": "Clerk", "target_agent": "user"}]
EVE = Scope("app", "eve")


async def interrupted(journal):
    """Leave a run behind whose model has not answered."""
    asked = asyncio.Event()

    async def never(_):
        asked.set()
        await asyncio.Event().wait()

    async with host_for(spec(), FunctionModel(never), store=Open(journal)) as host:
        await host.start("Desk", scope=ADA, message="hi", run="left")
        await asked.wait()


class Open:
    """A journal that outlives its host."""

    def __init__(self, journal):
        self._journal = journal

    def __getattr__(self, name):
        return getattr(self._journal, name)

    async def close(self):
        pass


@pytest.mark.parametrize("rounds", range(10))
def test_resuming_a_run_that_has_continued_repeats_nothing(rounds):
    """The second comes so many rounds of the loop later; the run is over in a few."""
    model = FunctionModel(lambda _: "Done.")

    async def later(host):
        for _ in range(rounds):
            await asyncio.sleep(0)
        await host.resume("left", scope=ADA)

    async def scenario():
        journal = MemoryStore()
        await interrupted(journal)
        async with host_for(spec(), model, store=journal) as host:
            await asyncio.gather(host.resume("left", scope=ADA), later(host))
            return await host.settled("left", scope=ADA)

    assert play(scenario).outcome == "completed"
    assert len(model.requests) == 1


@pytest.mark.parametrize("scope", [ADA, EVE])
@pytest.mark.parametrize("signal", [UserMessage("more"), Stop()])
def test_a_start_under_a_name_that_is_taken_is_not_in_the_way_of_the_run(tmp_path, scope, signal):
    """Whoever has the name, and though the package has changed: the run goes on with its own."""
    new = [{"agent_name": "Clerk", "prompt_sections": [{"id": "new", "content": "Say no."}]}]
    model = FunctionModel(lambda _: "I see.")

    async def scenario():
        async with await open_host(tmp_path / "j.db", spec(handoffs=TO_USER), model) as host:
            run = await host.start("Desk", scope=ADA, message="hi", run="order-1")
            await host.settled(run, scope=ADA)
            changed = link(spec(handoffs=TO_USER, agents=new), {}, host._loader)

            async def find(_app, _name):
                return changed

            host._workflows.find = find
            again = asyncio.create_task(host.start("Desk", scope=scope, message="hi", run=run))
            await asyncio.sleep(0)
            await host.deliver(run, signal, scope=ADA)
            with pytest.raises(UsageError, match="run order-1 was started before"):
                await again
            return await host.settled(run, scope=ADA)

    row = play(scenario)
    assert (row.status, row.turns) == (("ended", 1) if signal == Stop() else ("waiting", 2))
    assert "Say no." not in str([request.messages for request in model.requests])


def test_closing_host_starts_nothing():
    """Its result could not be written any more."""
    model = FunctionModel(lambda _: "Done.")

    async def scenario():
        reading, closing = asyncio.Event(), asyncio.Event()

        class SlowToRead(MemoryStore):
            async def read(self, *what, **limits):
                reading.set()
                await closing.wait()
                return await super().read(*what, **limits)

        async def close_models():
            closing.set()
            await asyncio.sleep(0.01)

        journal = SlowToRead()
        await interrupted(journal)
        host = host_for(spec(), model, store=journal)
        host._models.close = close_models
        resumed = asyncio.create_task(host.resume("left", scope=ADA))
        await reading.wait()
        await host.close()
        with pytest.raises(RunError, match="the host is closed"):
            await resumed
        return len(host._worker)

    assert play(scenario) == 0
    assert model.requests == []


def test_written_fork_continues_without_a_waiter():
    async def scenario():
        begun = asyncio.Event()

        class SlowToWrite(MemoryStore):
            async def append(self, batch, *, owner):
                left = await super().append(batch, owner=owner)
                begun.set()
                await asyncio.sleep(0.01)
                return left

        journal = SlowToWrite()
        async with host_for(spec(), FunctionModel(lambda _: "Done."), store=journal) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            begun.clear()
            forking = asyncio.create_task(host.fork(run, scope=ADA, turn=1))
            await begun.wait()
            forking.cancel()
            (child,) = [
                each_run.run for each_run in await host.runs(scope=ADA) if each_run.run != run
            ]
            return await asyncio.wait_for(host.settled(child, scope=ADA), 5)

    assert play(scenario).outcome == "completed"
