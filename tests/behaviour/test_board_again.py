"""What is published twice, late or wrongly on a board: it counts once, and others go on."""

import asyncio
from collections import Counter

import pytest
from pydantic import BaseModel

from support.board_cascade import NAME, handled, host_of, spec
from support.run_play import ADA
from weft.adapters.memory import MemoryJournal
from weft.board import Board, ContextSlice, FunctionEngine, artifact
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
from weft.runtime.worker import LEASE
from weft.testing.clock import ManualClock


@artifact
class Note(BaseModel):
    text: str


@artifact
class Reply(BaseModel):
    text: str


def test_what_is_published_at_once_under_one_name_is_there_once():
    async def scenario():
        journal = MemoryJournal()
        async with host_of(spec(), journal, clock=ManualClock()) as host:
            await host.publish(NAME, "Left", {"label": "c1-0"}, scope=ADA, correlation="c1")
            one = {"scope": ADA, "correlation": "c1", "id": "one"}
            several = [host.publish(NAME, "Seed", {"label": "c1-1"}, **one) for _ in range(5)]
            made = await asyncio.gather(*several)
            await host.quiet()
            page = await journal.artifacts(ArtifactQuery("app", NAME, None, 0, ids=("one",)))
            events = {
                row.run: [it async for it in host.events(row.run, scope=ADA)]
                for row in await host.runs(scope=Scope("app"))
            }
            return made, page.items, events

    made, found, events = asyncio.run(scenario())
    assert {it.id for it in made} == {"one"}
    assert len(found) == 1
    assert handled(events["c1"], "c1")["Scout", ("c1-1",)] == 1
    assert handled(events["Board~Reader.0"], "Board~Reader.0") == {("Reader", ("c1-1",)): 1}


def test_an_agent_whose_visibility_is_malformed_fails_alone():
    async def reply(inputs):
        return Reply(text=inputs.first_as(Note).text)

    def seen(payload):
        return {"kind": "nobody"} if payload["text"] == "bad" else {"kind": "public"}

    async def scenario():
        async with Board() as board:
            board.agent("Clerk").consumes(Note).publishes(Reply, visibility=seen).with_engines(
                FunctionEngine(reply)
            )
            for text in ("bad", "good"):
                await board.publish(Note(text=text), correlation_id="c")
            await board.run_until_idle()
            (found, _), missed = await board.query_artifacts(), await board.missed()
            return [(it.type, it.payload["text"]) for it in found], missed

    found, missed = asyncio.run(scenario())
    assert ("Reply", "good") in found
    assert ("Reply", "bad") not in found
    assert [(it.why, "cannot be used" in it.detail) for it in missed] == [("failed", True)]


class Abandoned:
    """The store of a process that is killed: it writes nothing more and releases nothing."""

    def __init__(self, journal):
        self._journal = journal
        self.dead = False

    def __getattr__(self, name):
        return getattr(self._journal, name)

    async def append(self, batch):
        if self.dead:
            await asyncio.Event().wait()
        await self._journal.append(batch)

    async def claim(self, *_args, **_options):
        return True

    async def close(self):
        pass


@pytest.mark.parametrize("publishes", [False, True], ids=["only waits", "publishes"])
def test_what_a_killed_process_was_working_on_is_taken_up_when_its_lease_is_over(publishes):
    """Even where another has come at once, and works on the same correlation."""

    async def scenario():
        clock, journal = ManualClock(), MemoryJournal()
        killed = Abandoned(journal)
        declared = spec(("Scout",))
        first = host_of(declared, killed, clock=clock)
        await first.publish(NAME, "Seed", {"label": "1"}, scope=ADA, correlation="c1")
        killed.dead = True
        await first.close()
        async with host_of(declared, journal, clock=clock) as second:
            assert await second.recover() == [], "the first may be alive"
            if publishes:
                await second.publish(NAME, "Seed", {"label": "2"}, scope=ADA, correlation="c1")
                await second.quiet()
            assert (await second.run("c1", scope=ADA)).status == "running"
            for _ in range(4):
                await clock.advance(LEASE / 1000)
            await second.quiet()
            assert (await second.run("c1", scope=ADA)).status == "waiting"
            return [it async for it in second.events("c1", scope=ADA)]

    done = handled(asyncio.run(asyncio.wait_for(scenario(), 20)), "c1")
    assert done == Counter({("Scout", (it,)): 1 for it in ("12" if publishes else "1")})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (ContextSlice("abc"), "not a list of objects"),
        (ContextSlice([1, 2]), "not a list of objects"),
        (ContextSlice([], None), "metadata is not an object"),
        (ContextSlice([{"id": ["x"], "payload": 1}]), ""),
        (ContextSlice([{"id": 5, "payload": 1}]), ""),
    ],
)
def test_a_provider_that_gives_what_is_no_slice_fails_its_turn_alone(given, told):
    """What is none of the board's artifacts is let go; what cannot be read at all is a fault."""
    seen = []

    async def odd(request):
        return given

    async def note(inputs, ctx):
        seen.append(await ctx.context())

    async def scenario():
        async with Board() as board:
            agent = board.agent("Clerk").consumes(Note).with_engines(FunctionEngine(note))
            agent.with_context(odd)
            await board.publish(Note(text="x"), correlation_id="c")
            await board.run_until_idle()
            return await board.missed()

    missed = asyncio.run(scenario())
    assert [told in it.detail for it in missed] == ([True] if told else [])
    assert seen == ([] if told else [[]])
