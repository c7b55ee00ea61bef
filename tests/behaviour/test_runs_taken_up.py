"""Runs that are taken up: from where they stand, with what is theirs, whatever else goes on."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, play, spec
from weft.adapters.memory import MemoryJournal
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel


async def interrupted(journal):
    """Leave a run behind whose model has not answered."""
    asked = asyncio.Event()

    async def never(_):
        asked.set()
        await asyncio.Event().wait()

    async with host_for(spec(), FunctionModel(never), journal=Open(journal)) as host:
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
def test_whoever_takes_up_a_run_that_has_gone_on_meanwhile_repeats_nothing(rounds):
    """The second comes so many rounds of the loop later; the run is over in a few."""
    model = FunctionModel(lambda _: "Done.")

    async def later(host):
        for _ in range(rounds):
            await asyncio.sleep(0)
        await host.resume("left", scope=ADA)

    async def scenario():
        journal = MemoryJournal()
        await interrupted(journal)
        async with host_for(spec(), model, journal=journal) as host:
            await asyncio.gather(host.resume("left", scope=ADA), later(host))
            return await host.settled("left", scope=ADA)

    assert play(scenario).outcome == "completed"
    assert len(model.requests) == 1
