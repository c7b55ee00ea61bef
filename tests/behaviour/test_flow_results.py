"""What a program gets of a run of its flow, and what is made only once for all runs."""

import asyncio

from pydantic import BaseModel

from weft.app.flows import open_flow, run_flow
from weft.app.places import LOCAL
from weft.flow import Workflow


class Doc(BaseModel):
    text: str = ""
    words: int = 0


def count(state: Doc):
    return {"words": len(state.text.split())}


async def double(state: Doc):
    return {"words": state.words * 2}


class Counted(Workflow[Doc]):
    """A flow that knows how often it was built."""

    builds = 0

    def build(self):
        self.builds += 1
        return super().build()


def flow():
    return Counted("Count", Doc).start_with(count).then(double)


def test_a_run_comes_to_the_state_after_its_last_step():
    result = asyncio.run(run_flow(flow(), Doc(text="one two")))
    assert result.outcome == "completed"
    assert result.output == Doc(text="one two", words=4)


def test_the_state_of_a_run_that_has_just_ended_is_the_one_in_the_journal(tmp_path):
    async def play():
        async with open_flow(flow(), journal=tmp_path / "journal.db") as host:
            run = await host.start("Count", scope=LOCAL, values={"text": "one"})
            ended = await host.settled_state(run, scope=LOCAL)
            later = await host.settled_state(run, scope=LOCAL)  # It is in memory no more.
            return ended, later, await host.state(run, scope=LOCAL)

    ended, later, read = asyncio.run(play())
    assert ended.status == "ended"
    assert ended.variables["words"] == 2
    assert vars(ended) == vars(later) == vars(read)


def test_a_flow_is_built_when_its_host_opens_and_not_for_every_run():
    counted = flow()

    async def play():
        async with open_flow(counted) as host:
            for text in ("one", "one two"):
                run = await host.start("Count", scope=LOCAL, values={"text": text})
                assert (await host.settled(run, scope=LOCAL)).outcome == "completed"

    asyncio.run(play())
    assert counted.builds == 1
