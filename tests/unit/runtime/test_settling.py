"""What counts as settled: runs whose retry is due later, and runs that are being recovered."""

import asyncio
from collections import Counter

from behaviour.test_flow_failures import FailsFirst
from support.flow_options import SCOPE, OptionPlay, waits
from support.run_play import ADA
from support.stopping_store import StoppingStore, work_until_stopped
from unit.runtime.test_two_processes import chat
from weft.adapters.sql import SqliteStore
from weft.testing import FunctionModel, host_for

#: Milliseconds without a heartbeat after which owners are dead here.
DEAD_AFTER = 1_500


def test_settled_waits_for_a_retry_and_asks_nothing_meanwhile():
    """S15: a run that waits for its next attempt only is not settled."""

    async def whole():
        play = OptionPlay()
        step = play.step("a", FailsFirst(1, {"n": 7}), retry={"attempts": 2, "delay_seconds": 30})
        async with play.begun(play.spec(step, variables={"n": "int"})) as begun:
            asked = Counter()
            find = play.journal.run

            def counted(*given):
                asked["run"] += 1
                return find(*given)

            play.journal.run = counted
            settled = asyncio.create_task(begun.host.settled(begun.run, scope=SCOPE))
            for _ in range(200):
                await asyncio.sleep(0)
            was_settled, looks = settled.done(), asked["run"]
            await play.clock.advance(30)
            return was_settled, looks, await asyncio.wait_for(settled, 10)

    was_settled, looks, row = waits(whole)
    assert (was_settled, row.status, row.outcome) == (False, "ended", "completed")
    assert looks < 5


async def test_quiet_counts_runs_of_a_process_that_may_have_died(tmp_path):
    """U18: a host that recovers is not quiet before it has the runs of those who died just now."""

    async def never(_):
        asked.set()
        await asyncio.Event().wait()

    async def begin():
        await host.start("W", scope=ADA, message="hi", run="left")
        await asked.wait()
        stopping.stopped.set()
        await asyncio.Event().wait()

    asked, path = asyncio.Event(), tmp_path / "store.db"
    first, second = [await SqliteStore.open(path, dead_after=DEAD_AFTER) for _ in range(2)]
    stopping = StoppingStore(first, 1_000, after=False)
    host = host_for(chat(), FunctionModel(never), store=stopping)
    assert await work_until_stopped(host, stopping, begin())
    async with host_for(chat(), FunctionModel(lambda _: "And now?"), store=second) as host:
        assert await host.recover() == [], "its process may be alive"
        assert host.busy
        await asyncio.wait_for(host.quiet(), 30)
        row = await host.run("left", scope=ADA)
        (question,) = await host.requests(scope=ADA)
        assert (row.status, row.preview, question.run) == ("waiting", "hi", "left")
        assert (await host.settled("left", scope=ADA)).status == "waiting"
