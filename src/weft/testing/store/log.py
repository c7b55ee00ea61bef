"""What must hold of events: they are written whole, once and in order, and read as written."""

import asyncio
from collections.abc import Iterable
from itertools import product
from typing import Final

from weft.engine.events import Event, MessageShown, RunEnded, ToolReturned, VariableSet
from weft.engine.events.codec import encode
from weft.engine.rows import Batch, RequestClosed, Snapshot
from weft.errors import StoreConflict
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.testing.store.kinds import EVERY_KIND
from weft.testing.store.samples import (
    APP,
    ME,
    SCOPE,
    Check,
    SampleRun,
    expect,
    expect_error,
    write,
)

#: Where event data begins to be large.
LARGE: Final = 8 * 1024

TEXTS: Final = (
    "",
    " ",
    "\n\r\t\u2028\u2029\u0085",
    "\"quotes\" 'and' \\ backslashes",
    "\ufeff\uffff\U0010ffff",
    "Größe, данные, 数据, بيانات",
    "\N{SLIGHTLY SMILING FACE} \N{WOMAN}\N{ZERO WIDTH JOINER}\N{WOMAN}",
    "'; DROP TABLE events; --",
)


async def events_come_back(store: Store) -> None:
    """Every kind and size of event is read unchanged, at once and in parts."""
    frame = len(encode(ToolReturned("c", "")))
    sizes = (LARGE - 1, LARGE, LARGE + 1, 1_000_000)
    large = [ToolReturned("c", "ä" + "x" * (size - frame - 2)) for size in sizes]
    expect(tuple(len(encode(data)) for data in large), sizes, "sizes of the samples")
    for name in ("r1", "r2"):
        run = SampleRun(name)
        written: list[Event] = []
        for data in (EVERY_KIND, (MessageShown("\x00"),), (*large, *large), EVERY_KIND):
            batch = run.batch(*data)
            await store.append(batch, owner=ME)
            written += batch.events
        expect(await store.read(SCOPE, name), written, f"events of {name}")
        for after, limit in product((0, 1, 50, run.seq - 1, run.seq, 999), (None, 0, 1, 7, 999)):
            found = await store.read(SCOPE, name, after=after, limit=limit)
            expect(found, written[after:][:limit], f"events after {after}, at most {limit}")
    expect(await store.read(SCOPE, "r3"), [], "events of an unknown run")


async def conflict_writes_nothing(store: Store) -> None:
    """A batch for a run that is elsewhere is refused; the same batch again changes nothing."""
    run = SampleRun("r1")
    asked = run.request("q1")
    first = run.batch(changes=[asked])
    for attempt in ("first", "second"):
        expect(await store.append(first, owner=ME), False, f"mail after the {attempt} attempt")
    late = (RequestClosed("q1"), run.request("q2"), run.carried("plan", "late"))
    for batch, what in (
        (SampleRun("r1").batch(MessageShown("a"), MessageShown("b"), changes=late), "a known run"),
        (SampleRun("r1", seq=2).batch(), "a batch with a gap before it"),
        (SampleRun("r2", seq=1).batch(), "a batch for a run that is not there"),
    ):
        await expect_error(StoreConflict, store.append(batch, owner=ME), what)
    expect(await store.read(SCOPE, "r1"), list(first.events), "events after refusals")
    expect(await store.requests(SCOPE), [asked], "open requests after refusals")
    expect(await store.carried(SCOPE, run.workflow), {}, "carried values after refusals")
    expect(await store.run(SCOPE, "r2"), None, "a run of which only refused batches are known")
    last = run.batch(status="ended")
    for _ in range(2):
        expect(await store.append(last, owner=ME), False, "the end, and once more")
    await expect_error(StoreConflict, store.append(run.batch(), owner=ME), "a batch after the end")
    expect(len(await store.read(SCOPE, "r1")), 2, "number of events at the end")


async def one_writer_wins(store: Store) -> None:
    """Of many that append to one run at the same time one wins; refusals spoil no other run."""
    runs = [SampleRun(f"r{number:03}") for number in range(60)]
    for round_ in range(5):
        rivals = [
            SampleRun(run.run, seq=round_).batch(MessageShown(f"{number}"))
            for run in runs
            for number in range(3)
        ]
        outcomes = await attempts(store, rivals)
        expect(outcomes, [True, False, False] * 60, f"winners of round {round_}")
    for run in runs:
        texts = [event.data for event in await store.read(SCOPE, run.run)]
        expect(texts, [MessageShown("0")] * 5, f"events of {run.run}")


async def attempts(store: Store, batches: Iterable[Batch], owner: str = ME) -> list[bool]:
    """Append all at the same time, and return which were accepted."""

    async def attempt(batch: Batch) -> bool:
        try:
            await store.append(batch, owner=owner)
        except StoreConflict:
            return False
        return True

    return await asyncio.gather(*(attempt(batch) for batch in batches))


async def batches_of_one_run_queue(store: Store) -> None:
    """Batches of one run that are sent without waiting are written in order."""
    run = SampleRun("r1")
    batches = [run.batch(changes=[run.request("q1")], status="waiting")]
    batches += [run.batch(changes=[RequestClosed("q1")]), run.batch(status="waiting"), run.batch()]
    batches += [run.batch(status="ended")]
    await asyncio.gather(*(store.append(batch, owner=ME) for batch in batches))
    expect(await store.run(SCOPE, "r1"), batches[-1].row, "row after the last batch")
    expect(await store.requests(SCOPE), [], "requests that a later batch closed")
    expect(len(await store.read(SCOPE, "r1")), 5, "number of events")


async def text_comes_back(store: Store) -> None:
    """Text of every script is kept, in events, in rows and in requests."""
    for number, text in enumerate(TEXTS):
        run = SampleRun(f"r{number}{text}", user=f"u{text}", workflow=text, name=f"{number}{text}")
        asked = run.request("q" + text, payload={text: [text, "\x00"]})
        batch = run.batch(ToolReturned("c", {text: text}), changes=[asked])
        await store.append(batch, owner=ME)
        expect(await store.read(run.scope, run.run), list(batch.events), f"text {text!r}")
        expect(await store.run(run.scope, run.run), batch.row, f"row with text {text!r}")
        expect(await store.named(APP, run.name), batch.row, f"row of the name {text!r}")
        expect(await store.requests(run.scope), [asked], f"request with text {text!r}")
        await store.append(run.batch(changes=[RequestClosed(asked.id)]), owner=ME)
        expect(await store.requests(run.scope), [], f"closed request with text {text!r}")


async def long_runs_come_back(store: Store) -> None:
    """Ten thousand events are read in order, at once and in pages."""
    run = SampleRun("r1")
    written: list[Event] = []
    for start in range(0, 10_000, 100):
        batch = run.batch(*(MessageShown(f"{number}") for number in range(start, start + 100)))
        await store.append(batch, owner=ME)
        written += batch.events
    expect(await store.read(SCOPE, "r1"), written, "ten thousand events")
    paged: list[Event] = []
    for _ in range(12):
        paged += await store.read(SCOPE, "r1", after=len(paged), limit=999)
    expect(paged, written, "ten thousand events in pages")


async def packages_and_snapshots_are_kept(store: Store) -> None:
    """A package is kept byte for byte; the last snapshot of a run replaces an earlier one."""
    for digest, content in (("d1", b""), ("d2", bytes(range(256)) * 500)):
        expect(await store.package(APP, digest), None, f"package {digest} before it is kept")
        for number in range(2):
            run = SampleRun(f"{digest}-{number}", digest=digest)
            await store.append(run.batch(package=content), owner=ME)
        expect(await store.package(APP, digest), content, f"package {digest}")
    run = SampleRun("d1-0", digest="d1", seq=1)
    await store.append(run.batch(*(VariableSet("n", number, "a") for number in range(3))), owner=ME)
    for seq, wanted in ((1, 1), (3, 3), (2, 3), (run.seq + 1, 3)):
        await store.save_snapshot(APP, "d1-0", Snapshot(seq, "1", "d1", bytes([0, seq])))
        snapshot = Snapshot(wanted, "1", "d1", bytes([0, wanted]))
        expect(await store.snapshot(APP, "d1-0"), snapshot, f"the snapshot after that of {seq}")
    for app, name in ((APP, "d1-1"), ("other", "d1-0"), (APP, "unknown")):
        expect(await store.snapshot(app, name), None, f"the snapshot of {name} in {app}")
    await store.save_snapshot(APP, "unknown", Snapshot(1, "1", "d1", b""))
    expect(await store.snapshot(APP, "unknown"), None, "the snapshot of a run that is not there")
    ended = SampleRun("ended", digest="d1")
    await store.append(ended.batch(status="ended"), owner=ME)
    await store.save_snapshot(APP, "ended", Snapshot(1, "1", "d1", b""))
    expect(await store.snapshot(APP, "ended"), None, "the snapshot of a run that has ended")


async def followers_get_events(store: Store) -> None:
    """A follower gets what is there and then what is written, in order, until the run has ended."""
    run = SampleRun("r1")
    first = run.batch()
    await store.append(first, owner=ME)
    for scope in (Scope(APP, "bob"), Scope("other", "ann")):
        found = await anext(store.follow(scope, "r1"), None)
        expect(found, None, f"the first event followed in {scope}")
    followers = [asyncio.create_task(_followed(store, after)) for after in (0, 1)]
    await asyncio.sleep(0)
    written = [*first.events]
    for _ in range(500):
        batch = run.batch()
        await store.append(batch, owner=ME)
        written += batch.events
    last = run.batch(RunEnded("completed", "all is said"), status="ended")
    await store.append(last, owner=ME)
    written += last.events
    found = await asyncio.wait_for(asyncio.gather(*followers), 30)
    expect(found, [written, written[1:]], "what followers get")
    for after in (500, len(written), len(written) + 1):
        late = await asyncio.wait_for(_followed(store, after), 30)
        expect(late, written[after:], "what a late follower gets")


async def _followed(store: Store, after: int) -> list[Event]:
    return [event async for event in store.follow(SCOPE, "r1", after=after)]


async def same_digest_other_tenant(store: Store) -> None:
    """Runs, packages and large data of two tenants are separate, also with equal names."""
    runs = [SampleRun("r1", app=app) for app in ("a", "b")]
    large = [ToolReturned("c", run.app * 40_000) for run in runs]
    for run, data in zip(runs, large, strict=True):
        await store.append(run.batch(data, package=run.app.encode()), owner=ME)
    await write(store, runs[0], ended_at=5)
    for run, data, length in zip(runs, large, (2, 1), strict=True):
        events = await store.read(run.scope, "r1")
        expect((len(events), events[0].data), (length, data), f"events of {run.app}")
        expect(await store.package(run.app, run.digest), run.app.encode(), "its package")
    await store.prune(runs[0].scope, ended_before=10, dry_run=False)
    expect(await store.read(runs[0].scope, "r1"), [], "events of a run that was removed")
    expect(len(await store.read(runs[1].scope, "r1")), 1, "events of its namesake")


LOG_CHECKS: Final[tuple[Check, ...]] = (
    events_come_back,
    conflict_writes_nothing,
    one_writer_wins,
    batches_of_one_run_queue,
    text_comes_back,
    long_runs_come_back,
    packages_and_snapshots_are_kept,
    followers_get_events,
    same_digest_other_tenant,
)
