"""What must hold when something is appended to a journal."""

import asyncio
from typing import Final

from weft.engine.events import Event, MessageShown, ToolReturned
from weft.engine.events.codec import encode
from weft.engine.rows import Batch, RequestClosed
from weft.errors import StoreConflict, StoreError
from weft.ports.journal import Journal
from weft.testing.journal.kinds import EVERY_KIND
from weft.testing.journal.lossy import LossyJournal
from weft.testing.journal.samples import SCOPE, Check, OpenJournal, SampleRun, expect, expect_error

#: Where event data begins to be large.
LARGE: Final = 32 * 1024

TEXTS: Final = (
    "",
    " ",
    "\x00",
    "\n\r\t\u2028\u2029\u0085",
    "\"quotes\" 'and' \\ backslashes",
    "\ufeff\uffff\U0010ffff",
    "Größe, данные, 数据, بيانات",
    "\N{SLIGHTLY SMILING FACE} \N{WOMAN}\N{ZERO WIDTH JOINER}\N{WOMAN}",
    "'; DROP TABLE events; --",
)


async def events_come_back(open_journal: OpenJournal) -> None:
    """Every kind of event is read as it was written, with its number, time, actor and cause."""
    journal = await open_journal()
    run = SampleRun("r1")
    batches = [run.batch(*EVERY_KIND), run.batch(), run.batch(*EVERY_KIND)]
    for batch in batches:
        await journal.append(batch)
    written = [event for batch in batches for event in batch.events]
    expect(await journal.read(SCOPE, "r1"), written, "events of a run")
    await journal.close()


async def conflict_writes_nothing(open_journal: OpenJournal) -> None:
    """A batch for a run that stands elsewhere is refused, and nothing of it is written."""
    journal = await open_journal()
    run = SampleRun("r1")
    asked = run.request("q1")
    first = run.batch(sides=(asked,))
    await journal.append(first)
    stale = SampleRun("r1", seq=0)
    await expect_error(StoreConflict, journal.append(first), "the same batch again")
    other = stale.request("q2")
    batch = stale.batch(MessageShown("late"), status="ended", sides=(RequestClosed("q1"), other))
    await expect_error(StoreConflict, journal.append(batch), "a new run of a known name")
    ahead = SampleRun("r1", seq=2).batch()
    await expect_error(StoreConflict, journal.append(ahead), "a batch with a gap before it")
    missing = SampleRun("r2", seq=1).batch()
    await expect_error(
        StoreConflict, journal.append(missing), "a batch for a run that is not there"
    )
    expect(await journal.read(SCOPE, "r1"), list(first.events), "events after refusals")
    expect(await journal.run(SCOPE, "r1"), first.row, "row after refusals")
    expect(await journal.requests(SCOPE), [asked], "open questions after refusals")
    expect(await journal.run(SCOPE, "r2"), None, "a run of which only refused batches are known")
    await journal.append(run.batch())
    expect(len(await journal.read(SCOPE, "r1")), 2, "number of events after going on")
    await journal.close()


async def one_writer_wins(open_journal: OpenJournal) -> None:
    """Of many who append to one run at the same time, exactly one wins each round."""
    journal = await open_journal()
    won: list[Event] = []
    for round_ in range(20):
        rivals = [SampleRun("r1", seq=round_).batch(MessageShown(f"{it}")) for it in range(10)]
        outcomes = await _attempts(journal, rivals)
        winners = [it for it, won in zip(rivals, outcomes, strict=True) if won]
        expect(len(winners), 1, f"winners of round {round_}")
        won.extend(winners[0].events)
    expect(await journal.read(SCOPE, "r1"), won, "events of the winners")
    await journal.close()


async def writers_do_not_disturb(open_journal: OpenJournal) -> None:
    """Runs grow side by side; batches that are refused spoil none of the others."""
    journal = await open_journal()
    runs = [SampleRun(f"r{number:03}") for number in range(60)]
    for _ in range(6):
        right = [run.batch(*(MessageShown(run.run),) * 3) for run in runs]
        wrong = [batch._replace(expected=batch.expected + 1) for batch in right]
        mixed = [it for pair in zip(wrong, right, strict=True) for it in pair]
        outcomes = await _attempts(journal, mixed)
        expect(outcomes, [False, True] * len(runs), "which batches were taken")
    for run in runs:
        events = await journal.read(SCOPE, run.run)
        expect([it.seq for it in events], list(range(1, 19)), f"numbers of {run.run}")
        expect({it.data for it in events}, {MessageShown(run.run)}, f"what {run.run} says")
    await journal.close()


async def batches_of_one_run_queue(open_journal: OpenJournal) -> None:
    """Batches of one run that are sent without waiting are written in order."""
    journal = await open_journal()
    run = SampleRun("r1")
    asked = run.request("q1")
    batches = [run.batch(sides=(asked,), status="waiting"), run.batch(sides=(RequestClosed("q1"),))]
    batches += [run.batch(status="waiting"), run.batch(), run.batch(status="ended")]
    await asyncio.gather(*(journal.append(batch) for batch in batches))
    expect(await journal.run(SCOPE, "r1"), batches[-1].row, "row after the last batch")
    expect(await journal.requests(SCOPE), [], "questions that a later batch closed")
    expect(len(await journal.read(SCOPE, "r1")), 5, "number of events")
    await journal.close()


async def large_data_comes_back(open_journal: OpenJournal) -> None:
    """Data of every size is kept, around the size where it begins to be large, and shared."""
    journal = await open_journal()
    frame = len(encode(ToolReturned("c", "")))
    sizes = (LARGE - 1, LARGE, LARGE + 1, 1_000_000)
    data = [ToolReturned("c", "ä" + "x" * (size - frame - 2)) for size in sizes]
    expect(tuple(len(encode(it)) for it in data), sizes, "sizes of the samples")
    for name in ("r1", "r2"):
        batch = SampleRun(name).batch(*data, *data)
        await journal.append(batch)
        expect(await journal.read(SCOPE, name), list(batch.events), f"large events of {name}")
    await journal.close()


async def text_comes_back(open_journal: OpenJournal) -> None:
    """Text of every script is kept, in events, in rows and in questions."""
    journal = await open_journal()
    for number, text in enumerate(TEXTS):
        run = SampleRun(f"r{number}{text}", user=f"u{text}", workflow=text)
        asked = run.request("q" + text, payload={text: [text]})
        batch = run.batch(MessageShown(text), ToolReturned("c", {text: text}), sides=(asked,))
        await journal.append(batch)
        expect(await journal.read(run.scope, run.run), list(batch.events), f"text {text!r}")
        expect(await journal.run(run.scope, run.run), batch.row, f"row with text {text!r}")
        expect(await journal.requests(run.scope), [asked], f"question with text {text!r}")
        await journal.append(run.batch(sides=(RequestClosed(asked.id),)))
        expect(await journal.requests(run.scope), [], f"closed question with text {text!r}")
    await journal.close()


async def lost_acknowledgements_are_found(open_journal: OpenJournal) -> None:
    """Whoever does not know whether a batch was written finds out, and cannot write it twice."""
    journal = LossyJournal(await open_journal(), lambda _: True)
    run = SampleRun("r1")
    for number in range(3):
        batch = run.batch(MessageShown("a"), MessageShown("b"))
        await expect_error(StoreError, journal.append(batch), f"batch {number}, unacknowledged")
        await expect_error(StoreConflict, journal.append(batch), f"batch {number} once more")
        row = await journal.run(SCOPE, "r1")
        expect(row and row.batch, batch.id, "the batch that was written last")
        there = await journal.read(SCOPE, "r1", after=batch.expected, limit=2)
        expect(there, list(batch.events), f"the events of batch {number}")
    await journal.close()


async def long_runs_come_back(open_journal: OpenJournal) -> None:
    """Ten thousand events are read in order, at once and in pages."""
    journal = await open_journal()
    run = SampleRun("r1")
    written: list[Event] = []
    for start in range(0, 10_000, 100):
        texts = (MessageShown(f"{number}") for number in range(start, start + 100))
        batch = run.batch(*texts)
        await journal.append(batch)
        written.extend(batch.events)
    expect(await journal.read(SCOPE, "r1"), written, "ten thousand events")
    paged: list[Event] = []
    while page := await journal.read(SCOPE, "r1", after=len(paged), limit=999):
        paged.extend(page)
    expect(paged, written, "ten thousand events in pages")
    await journal.close()


async def _attempts(journal: Journal, batches: list[Batch]) -> list[bool]:
    """Append all at the same time, and return which were taken."""

    async def attempt(batch: Batch) -> bool:
        try:
            await journal.append(batch)
        except StoreConflict:
            return False
        return True

    return await asyncio.gather(*(attempt(batch) for batch in batches))


WRITING_CHECKS: Final[tuple[Check, ...]] = (
    events_come_back,
    conflict_writes_nothing,
    one_writer_wins,
    writers_do_not_disturb,
    batches_of_one_run_queue,
    large_data_comes_back,
    text_comes_back,
    lost_acknowledgements_are_found,
    long_runs_come_back,
)
