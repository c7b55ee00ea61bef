"""What is published twice, late or wrongly on a board: it counts once, and others go on."""

import asyncio

from pydantic import BaseModel

from support.board_cascade import NAME, handled, host_of, spec
from support.run_play import ADA
from weft.adapters.memory import MemoryJournal
from weft.board import Board, FunctionEngine, artifact
from weft.ports.board import ArtifactQuery
from weft.ports.scope import Scope
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
