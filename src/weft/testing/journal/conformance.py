"""The suite every journal must pass.

    @pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda it: it.__name__)
    def test_my_journal(check, tmp_path):
        asyncio.run(check(lambda: MyJournal.open(tmp_path / "store")))

Each check is given a function that opens the store, and needs an empty one. A check that fails
raises AssertionError saying what was expected and what was found.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from weft.engine.rows import Batch, RequestClosed
from weft.errors import StoreConflict, StoreError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.testing.journal.board import BOARD_CHECKS
from weft.testing.journal.board_samples import query
from weft.testing.journal.board_sides import BOARD_SIDE_CHECKS, boards_are_there_again
from weft.testing.journal.pruning import PRUNING_CHECKS
from weft.testing.journal.reading import READING_CHECKS
from weft.testing.journal.samples import (
    APP,
    SCOPE,
    Check,
    OpenJournal,
    SampleRun,
    expect,
    expect_error,
    write,
)
from weft.testing.journal.writing import WRITING_CHECKS


async def closing_writes_what_is_under_way(open_journal: OpenJournal) -> None:
    """Whoever is appending when the journal is closed is not cut off."""
    journal = await open_journal()
    runs = [SampleRun(f"r{number}") for number in range(30)]
    under_way = [asyncio.create_task(journal.append(run.batch())) for run in runs]
    await asyncio.sleep(0)
    await journal.close()
    expect(await asyncio.gather(*under_way), [None] * 30, "what became of the batches")


async def closed_is_closed(open_journal: OpenJournal) -> None:
    """A closed journal refuses everything but being closed again."""
    journal = await open_journal()
    await write(journal, SampleRun("r1"))
    await journal.close()
    await journal.close()
    attempts: dict[str, Callable[[], Awaitable[object]]] = {
        "append": lambda: journal.append(SampleRun("r2").batch()),
        "read": lambda: journal.read(SCOPE, "r1"),
        "run": lambda: journal.run(SCOPE, "r1"),
        "runs": lambda: journal.runs(SCOPE),
        "requests": lambda: journal.requests(SCOPE),
        "kept": lambda: journal.kept(SCOPE, "Support"),
        "completed": lambda: journal.completed(SCOPE, ("Support",)),
        "artifacts": lambda: journal.artifacts(query()),
        "consumed": lambda: journal.consumed(APP, "Board"),
        "letters": lambda: journal.letters(APP, "Board/Closer.1"),
        "unread": journal.unread,
        "unfinished": journal.unfinished,
        "next_due": lambda: journal.next_due(0),
        "due": lambda: journal.due(0),
        "beat": lambda: journal.beat("worker", 0),
        "claim": lambda: journal.claim(APP, "r1", owner="worker", before="worker-1"),
        "follow": lambda: anext(journal.follow(SCOPE, "r1")),
        "package": lambda: journal.package("shop", "d"),
        "prune": lambda: journal.prune(SCOPE, ended_before=0, dry_run=False),
        "prune, dry": lambda: journal.prune(SCOPE, ended_before=0, dry_run=True),
    }
    for name, attempt in attempts.items():
        await expect_error(StoreError, attempt(), f"{name} of a closed journal")


async def everything_is_there_again(open_journal: OpenJournal) -> None:
    """What was written before closing is found after opening again."""
    journal = await open_journal()
    run = SampleRun("r1")
    asked = run.request("q1", expires_at=900, addressee="role:manager", payload={"sum": 3})
    batch = run.batch(sides=(asked, run.kept("plan", "gold")), package=b"content")
    await journal.append(batch)
    await journal.close()
    journal = await open_journal()
    expect(await journal.read(SCOPE, "r1"), list(batch.events), "events after opening again")
    expect(await journal.run(SCOPE, "r1"), batch.row, "row after opening again")
    expect(await journal.unfinished(), [batch.row], "unfinished runs after opening again")
    expect(await journal.requests(Scope(APP)), [asked], "open questions after opening again")
    left = await journal.kept(SCOPE, run.workflow)
    expect(left, {"plan": "gold"}, "values for later runs after opening again")
    expect(await journal.next_due(0), 900, "next expiry after opening again")
    expect(await journal.package(APP, run.digest), b"content", "package after opening again")
    await expect_error(StoreConflict, journal.append(batch), "the same batch after opening again")
    await journal.append(run.batch(sides=(RequestClosed("q1"),)))
    await journal.close()


async def writers_share_a_store(open_journal: OpenJournal) -> None:
    """Of two journals over one store that append to one run, exactly one wins each round."""
    journals = [await open_journal(), await open_journal()]
    for round_ in range(25):
        rivals = [SampleRun("r1", seq=round_).batch() for _ in journals]
        attempts = map(_won, journals, rivals)
        expect(sum(await asyncio.gather(*attempts)), 1, f"winners of round {round_}")
    for journal in journals:
        events = await journal.read(SCOPE, "r1")
        expect([it.seq for it in events], list(range(1, 26)), "numbers that each journal reads")
        await journal.close()


async def followers_see_other_writers(open_journal: OpenJournal) -> None:
    """A follower gets what another journal over the same store writes, and soon."""
    here, there = await open_journal(), await open_journal()
    run = SampleRun("r1")
    await there.append(run.batch())
    events = here.follow(SCOPE, "r1")
    for number in range(1, 9):
        event = await asyncio.wait_for(anext(events), 10)
        expect(event.seq, number, "the next event that a follower gets")
        await there.append(run.batch(status="running" if number < 8 else "waiting"))
    await events.aclose()
    for journal in (here, there):
        await journal.close()


async def _won(journal: Journal, batch: Batch) -> bool:
    try:
        await journal.append(batch)
    except StoreConflict:
        return False
    return True


#: For every journal; the store is opened once in each.
JOURNAL_CHECKS: Final[tuple[Check, ...]] = (
    *WRITING_CHECKS,
    *READING_CHECKS,
    *PRUNING_CHECKS,
    *BOARD_CHECKS,
    *BOARD_SIDE_CHECKS,
    closing_writes_what_is_under_way,
    closed_is_closed,
)

#: For journals whose store outlives them: it is opened several times, also at the same time.
LASTING_JOURNAL_CHECKS: Final[tuple[Check, ...]] = (
    everything_is_there_again,
    boards_are_there_again,
    writers_share_a_store,
    followers_see_other_writers,
)
