"""What is published twice, late or wrongly on a board: it counts once, and others go on."""

import asyncio
from collections import Counter

import pytest
from pydantic import BaseModel

from support.board_cascade import NAME, handled, host_of, spec
from support.killed_store import KilledStore
from support.run_play import ADA
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.board import Board, ContextSlice, FunctionEngine, artifact
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
from weft.testing.clock import ManualClock


@artifact
class Note(BaseModel):
    text: str


@artifact
class Reply(BaseModel):
    text: str


def test_concurrent_publications_of_one_id_are_stored_once():
    async def scenario():
        clock = ManualClock()
        journal = MemoryStore(clock)
        async with host_of(spec(), journal, clock=clock) as host:
            await host.publish(NAME, "Left", {"label": "c1-0"}, scope=ADA, correlation="c1")
            one = {"scope": ADA, "correlation": "c1", "id": "one"}
            several = [host.publish(NAME, "Seed", {"label": "c1-1"}, **one) for _ in range(5)]
            made = await asyncio.gather(*several)
            await host.quiet()
            page = await journal.artifacts(ArtifactQuery("app", NAME, None, 0, None, ids=("one",)))
            events = {
                row.run: [event async for event in host.events(row.run, scope=ADA)]
                for row in await host.runs(scope=Scope.operator("app"))
            }
            return made, page.items, events

    made, found, events = asyncio.run(scenario())
    assert {item.id for item in made} == {"one"}
    assert len(found) == 1
    (run,) = {publication.run for publication in made}
    assert handled(events.pop(run), "c1")["Scout", ("c1-1",)] == 1
    collected = [handled(found, "Board~Reader.0") for found in events.values()]
    assert {("Reader", ("c1-1",)): 1} in collected


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
            return [(artifact.type, artifact.payload["text"]) for artifact in found], missed

    found, missed = asyncio.run(scenario())
    assert ("Reply", "good") in found
    assert ("Reply", "bad") not in found
    assert [(delivery.why, "cannot be used" in delivery.detail) for delivery in missed] == [
        ("failed", True)
    ]


@pytest.mark.parametrize("publishes", [False, True], ids=["only waits", "publishes"])
def test_run_of_a_killed_process_is_recovered_when_it_counts_as_dead(publishes, tmp_path):
    """U18: `quiet` waits for it, also if the same correlation got another artifact meanwhile."""

    async def scenario():
        killed = KilledStore(await SqliteStore.open(tmp_path / "runs.db", dead_after=1_500))
        declared = spec(("Scout",))
        first = host_of(declared, killed)
        made = await first.publish(NAME, "Seed", {"label": "1"}, scope=ADA, correlation="c1")
        killed.kill()
        await first.close()
        async with host_of(
            declared, await SqliteStore.open(tmp_path / "runs.db", dead_after=1_500)
        ) as second:
            assert await second.recover() == [], "the first may be alive"
            if publishes:
                await second.publish(NAME, "Seed", {"label": "2"}, scope=ADA, correlation="c1")
            assert (await second.run(made.run, scope=ADA)).status == "running"
            await second.quiet()
            assert (await second.run(made.run, scope=ADA)).status == "waiting"
            return [event async for event in second.events(made.run, scope=ADA)]

    done = handled(asyncio.run(asyncio.wait_for(scenario(), 20)), "c1")
    assert done == Counter({("Scout", (letter,)): 1 for letter in ("12" if publishes else "1")})


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
def test_provider_with_an_invalid_result_fails_only_its_turn(given, told):
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
    assert [told in delivery.detail for delivery in missed] == ([True] if told else [])
    assert seen == ([] if told else [[]])
