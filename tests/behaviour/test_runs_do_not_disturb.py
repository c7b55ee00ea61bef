"""What is idle costs nothing, what is slow holds up nobody, what is broken is alone in it."""

import asyncio
import time
from collections import Counter

import pytest

from behaviour.bad_run_play import ADA, finished, play, spec
from support.desk_play import make_desk
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.sqlite import journal as sqlite_journal
from weft.app.hosts import LOCAL, open_host
from weft.engine.events import RequestExpired
from weft.runtime.signals import Stop
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.journal.samples import SCOPE, SampleRun
from weft.testing.models import FunctionModel, call

CHAT = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])
FOLLOWERS = 1000


async def until(holds):
    """Wait for what is about to be."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    assert holds()


async def asked_of(journal, monkeypatch):
    """Count whatever reaches a store from now on."""
    asked = []

    def count(where, name):
        method = getattr(where, name)

        async def counted(*given, **named):
            asked.append(name)
            return await method(*given, **named)

        monkeypatch.setattr(where, name, counted)

    if isinstance(journal, SqliteJournal):
        count(journal._readers, "ask")
        count(journal._writer, "perform")
    else:
        for name in ("read", "run", "runs", "requests", "unfinished", "next_due", "due", "beat"):
            count(journal, name)
    return asked


@pytest.mark.parametrize("lasting", [False, True], ids=["memory", "sqlite"])
def test_followers_of_an_idle_run_ask_the_store_nothing(tmp_path, monkeypatch, lasting):
    monkeypatch.setattr(sqlite_journal, "LOOKS_AFTER_CHANGE", 2)

    async def scenario():
        journal = await SqliteJournal.open(tmp_path / "j.db") if lasting else MemoryJournal()
        async with host_for(CHAT, FunctionModel(lambda _: "And?"), journal=journal) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            row = await host.settled(run, scope=ADA)
            seen = Counter()

            async def follow():
                async for it in host.events(run, scope=ADA, follow=True):
                    seen[it.seq] += 1

            following = [asyncio.create_task(follow()) for _ in range(FOLLOWERS)]
            await until(lambda: seen[row.seq] == FOLLOWERS)
            await asyncio.sleep(0.8)  # The watch for other processes has had its looks.
            asked = await asked_of(journal, monkeypatch)
            await asyncio.sleep(1)
            assert asked == []
            seen.clear()
            await host.deliver(run, Stop(), scope=ADA)
            await asyncio.gather(*following)
            return asked, seen, row.seq

    asked, seen, before = play(scenario)
    assert seen == {before + 1: FOLLOWERS, before + 2: FOLLOWERS}, "each gets the last events"
    assert len(asked) < 10, "and reads nothing for them"


def test_a_follower_misses_nothing_that_is_written_the_moment_it_looks(tmp_path, monkeypatch):
    """What is in the log of the file may not be there yet for whoever reads."""
    looks = sqlite_journal.LOOKS_AFTER_CHANGE * sqlite_journal.LOOK_SECONDS
    monkeypatch.setattr(sqlite_journal, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(sqlite_journal, "LOOKS_AFTER_CHANGE", round(looks / 0.001))

    async def scenario():
        here, there = [await SqliteJournal.open(tmp_path / "j.db") for _ in range(2)]
        run = SampleRun("r1")
        await there.append(run.batch())
        events = here.follow(SCOPE, "r1")
        for number in range(1, 400):
            assert (await asyncio.wait_for(anext(events), 2)).seq == number
            await there.append(run.batch())
        await events.aclose()
        for journal in (here, there):
            await journal.close()

    play(scenario)


async def lag_while(work):
    """Return by how much the loop was late at most while two seconds' work was done, in seconds."""
    started, late = time.monotonic(), 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        begun = time.monotonic()
        await asyncio.sleep(0.005)
        late = max(late, time.monotonic() - begun - 0.005)
    await task
    assert time.monotonic() - started > 2, "it did take that long"
    return late


SLOW = "import time\n\ntime.sleep(2)\n"


@pytest.mark.parametrize("by", ["name", "digest"])
def test_a_package_whose_import_takes_long_holds_up_nobody(tmp_path, by):
    """Of a few attempts the best counts: a machine that is busy is late by itself."""
    tool = make_desk(tmp_path) / "tools" / "desk.py"
    text = tool.read_text(encoding="utf-8")

    async def began(number):
        """Start a run with a package that nobody has loaded yet, and look how late others are."""
        tool.write_text(f"{SLOW}{text}\n\nATTEMPT = {number}\n", encoding="utf-8")
        async with await open_host(tmp_path) as host:
            late = await lag_while(
                host.start("Desk", scope=LOCAL, message="hi", run=f"r{number}", model="sample")
            )
            await host.settled(f"r{number}", scope=LOCAL)
        if by == "name":
            return late
        async with await open_host(tmp_path) as host:
            return await lag_while(host.state(f"r{number}", scope=LOCAL))

    async def scenario():
        best = 1.0
        for number in range(5):
            best = min(best, await began(number))
            if best < 0.05:
                break
        return best

    assert play(scenario) < 0.05


EXPIRING = {
    "tools/work.py": b'''
from weft import Ask


def ask(context_variables) -> str:
    """Ask somebody who does not answer."""
    if not context_variables.answers:
        raise Ask("now?", timeout=60, otherwise="never")
    return context_variables.answers[0]
'''
}


class PartlyBroken(MemoryJournal):
    """Cannot read some of its runs, for a reason nobody has thought of."""

    broken: frozenset[str] = frozenset()
    attempts = 0

    async def read(self, scope, run, *, after=0, limit=None):
        if run in self.broken:
            self.attempts += 1
            raise ValueError("bad page")
        return await super().read(scope, run, after=after, limit=limit)

    async def close(self):
        pass


def test_what_is_due_in_a_run_that_cannot_be_loaded_keeps_no_other_from_expiring(caplog):
    declared = spec(ui=("ask",))

    def reply(request):
        return "Done." if request.messages[-1]["role"] == "tool" else call("ask")

    async def scenario():
        journal, clock = PartlyBroken(), ManualClock()
        good = [f"good-{number}" for number in range(150)]  # more than a page

        def host():
            return host_for(
                declared, FunctionModel(reply), code=EXPIRING, journal=journal, clock=clock
            )

        async with host() as first:
            for run in ("bad", *good):
                await first.start("Desk", scope=ADA, message="hi", run=run)
                assert (await first.settled(run, scope=ADA)).status == "waiting"
        journal.broken = frozenset({"bad"})
        await clock.advance(60)
        async with host() as second:
            await second.recover()
            for run in good:
                await until(lambda run=run: journal._rows["app", run].status == "ended")
            assert journal.attempts == 1
            await clock.advance(4)
            assert journal.attempts == 1, "it is not tried again at once"
            await clock.advance(1)
            assert journal.attempts == 2
            await clock.advance(9)
            assert journal.attempts == 2, "and later the next time"
            journal.broken = frozenset()
            await clock.advance(1)
            await until(lambda: journal._rows["app", "bad"].status == "ended")
            return await finished(second, "bad"), await finished(second, good[-1])

    for told in play(scenario, 60):
        assert told.row.outcome == "completed"
        told.only(RequestExpired)
    assert "of run bad is due and could not be closed; it is tried again in 5 s" in caplog.text
