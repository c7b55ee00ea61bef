"""What must hold of ownership: one owner per run, dead owners lose theirs, nothing is forgotten."""

import asyncio
from dataclasses import replace
from typing import Final, cast

from weft.engine.rows import RequestClosed
from weft.errors import RunOwned, StoreConflict, StoreError
from weft.ports.store import Store
from weft.testing.store.lossy import LossyStore
from weft.testing.store.samples import (
    APP,
    ME,
    SCOPE,
    Check,
    OpenStore,
    SampleRun,
    expect,
    expect_error,
    mail,
    write,
)

#: Milliseconds without a heartbeat after which owners are dead in these checks.
DEAD_AFTER: Final = 200

#: Milliseconds that no check takes.
LATER: Final = 900_000

#: Seconds after which something is missing that should come soon; a machine may be busy.
PATIENCE: Final = 20.0


async def runs_are_claimed_when_due(store: Store) -> None:
    """A free run is claimed once, when it is due; a claim whose answer was lost is repeated."""
    now = (await store.claim("w1")).now
    expect(await store.next_due(), None, "what is due where nothing is")
    for name, due_at in (("later", now + LATER), ("past", now - 10), ("now", now), ("held", now)):
        batch = SampleRun(name).batch(due_at=due_at, held=name == "held")
        await store.append(batch, owner="w0")
    await store.append(SampleRun("never").batch(), owner="w0")
    await store.append(SampleRun("ended").batch(status="ended", due_at=now), owner="w0")
    expect(await store.next_due(), now - 10, "when the next run is due")
    expect((await store.claim("w1", limit=1)).runs, [(APP, "past")], "the first that is due")
    expect(await _claim(store, "w2"), ["now"], "the others that are due")
    for owner, wanted in (("w1", ["past"]), ("w2", ["now"]), ("w3", [])):
        expect(await _claim(store, owner), wanted, f"the claim of {owner} once more")
        expect((await store.claim(owner, limit=0)).runs, [(APP, name) for name in wanted], "mine")
    expect(await store.next_due(), now + LATER, "when the next free run is due")
    soon = (await store.claim("w1", limit=0)).now + 50
    await store.append(SampleRun("soon").batch(due_at=soon), owner="w0")
    await _wait_until(store, soon)
    expect(await _claim(store, "w1"), ["past", "soon"], "what has become due")
    await store.append(SampleRun("past", seq=1).batch(held=True), owner="w1")
    await store.append(SampleRun("soon", seq=1).batch(due_at=now + LATER), owner="w1")
    expect(await _claim(store, "w1"), [], "what is mine and due after an append")
    await store.put(mail("past", "m1"))
    expect(await _claim(store, "w1"), ["past"], "a run of mine that mail came for")
    expect(await _claim(store, "w2"), ["now"], "runs of another owner")


async def _wait_until(store: Store, at: int) -> None:
    """Wait as a worker does, until the clock of the store has reached a time."""
    while (now := (await store.claim("waiting", limit=0)).now) < at:
        await store.wait((at - now) / 1000)


async def _claim(store: Store, owner: str) -> list[str]:
    return sorted(run for _, run in (await store.claim(owner)).runs)


async def owners_are_fenced(store: Store) -> None:
    """Only the owner of a run writes to it; the first writer of a free run becomes its owner."""
    run = SampleRun("r1")
    await store.append(run.batch(held=True), owner="w1")
    row = await store.run(SCOPE, "r1")
    expect(row and (row.owner, row.heartbeat > 0), ("w1", True), "the owner of a run in work")
    stale = replace(run).batch()
    await expect_error(RunOwned, store.append(stale, owner="w2"), "a batch of another owner")
    expect(await store.take("w2", APP, "r1"), False, "taking the run of another owner")
    expect(await store.take("w1", APP, "r1"), True, "taking the own run")
    expect(await store.take("w2", APP, "r1", force=True), True, "taking a run by force")
    await expect_error(RunOwned, store.append(stale, owner="w1"), "a batch of the owner before")
    await store.append(run.batch(), owner="w2")
    row = await store.run(SCOPE, "r1")
    expect(row and row.owner, "", "the owner of a run that was let go")
    expect(await store.take("w3", APP, "r1"), True, "taking a free run")
    await store.release("w2", [(APP, "r1")])
    expect(await _claim(store, "w2"), [], "a run that another owner has released")
    now = (await store.claim("w3")).now
    await store.release("w3", [(APP, "r1")], due_at=now + LATER)
    expect(await store.next_due(), now + LATER, "when a run is due that was released for later")
    await store.take("w3", APP, "r1")
    await store.release("w3", [(APP, "r1"), (APP, "unknown")])
    expect(await _claim(store, "w4"), ["r1"], "a run that was released")
    await store.append(run.batch(status="ended"), owner="w4")
    for name in ("r1", "unknown"):
        expect(await store.take("w5", APP, name, force=True), False, f"taking {name}")


async def dead_owners_lose_their_runs(open_store: OpenStore) -> None:
    """Runs of an owner without a heartbeat are freed; its late batches and beats are refused."""
    patient, store = await open_store(dead_after=60_000), await open_store(dead_after=DEAD_AFTER)
    held, idle = SampleRun("held"), SampleRun("idle")
    first = await patient.beat("w1")
    expect(first.alive, True, "the first heartbeat")
    await patient.append(idle.batch(), owner="w1")
    await _wait_until(store, first.now + DEAD_AFTER + 1)
    while True:  # Until the heartbeats follow each other soon enough: the machine may be busy.
        await patient.append(held.batch(held=True), owner="w1")
        beaten = (await patient.beat("w1")).now
        again, other = await store.beat("w1"), await store.beat("w2")
        if other.now - beaten < DEAD_AFTER:
            break
    expect(again.alive, True, "a heartbeat in time")
    expect(set(other.others), {"w1"}, "the other living owners")
    expect(await _claim(store, "w2"), [], "runs of an owner that is alive")
    await _wait_until(store, other.now + DEAD_AFTER + 1)
    beat = await store.beat("w3")
    expect((beat.alive, len(beat.others)), (True, 0), "the owners that are left")
    expect(await _claim(store, "w3"), ["held"], "the runs of the dead owner")
    late = replace(held).batch(held=True)
    await expect_error(RunOwned, store.append(late, owner="w1"), "a batch of the dead owner")
    # A free run may be written, but that does not bring the owner back to life.
    await store.append(idle.batch(held=True), owner="w1")
    expect((await store.beat("w1")).alive, False, "a late heartbeat")
    expect((await store.beat("w1b")).alive, True, "the heartbeat of a new id")
    for each in (patient, store):
        await each.close()


async def late_owners_keep_what_is_left(open_store: OpenStore) -> None:
    """An owner whose heartbeat is late keeps, under its next id, the runs that no other has."""
    store, other = await open_store(dead_after=DEAD_AFTER), await open_store(dead_after=DEAD_AFTER)
    kept, taken = SampleRun("kept"), SampleRun("taken")
    await store.beat("w1")
    for run in (kept, taken, SampleRun("free")):
        await store.append(run.batch(held=run.run != "free"), owner="w1")
    await asyncio.sleep(DEAD_AFTER / 1000 + 0.1)
    expect((await store.beat("w1")).alive, False, "a late heartbeat")
    expect(await other.take("w2", APP, "taken", force=True), True, "taking a run of a late owner")
    for attempt in ("first", "second"):
        found = await store.rename("w1", "w1b")
        expect(found, [(APP, "kept")], f"the runs of its next id at the {attempt} attempt")
    old = replace(kept).batch()
    await expect_error(RunOwned, store.append(old, owner="w1"), "a batch of the old id")
    await store.append(kept.batch(held=True), owner="w1b")
    await expect_error(
        RunOwned, store.append(replace(taken).batch(), owner="w1b"), "a batch of a run that is lost"
    )
    await asyncio.sleep(DEAD_AFTER / 1000 + 0.1)
    await other.beat("w3")
    expect(await store.rename("w1b", "w1c"), [], "runs that the heartbeat of another has freed")
    expect(await store.rename("unknown", "w9"), [], "runs of an unknown owner")
    for each in (store, other):
        await each.close()


async def owners_without_heartbeat_are_dead(store: Store) -> None:
    """Runs of an owner that has never sent a heartbeat are freed by that of another."""
    await store.append(SampleRun("r1").batch(due_at=1), owner=ME)
    expect(await _claim(store, "w1"), ["r1"], "a claim before the first heartbeat")
    expect((await store.beat("w2")).alive, True, "the heartbeat of another owner")
    expect(await _claim(store, "w2"), ["r1"], "runs of an owner without a heartbeat")


async def paused_writers_are_refused(open_store: OpenStore) -> None:
    """A writer that was paused cannot write what its successor has decided otherwise."""
    one, two = await open_store(), await open_store()
    run = SampleRun("r1")
    await one.append(run.batch(held=True), owner="w1")
    paused = replace(run)
    expect(await two.take("w2", APP, "r1", force=True), True, "the successor")
    early = replace(run).batch()
    await expect_error(RunOwned, one.append(early, owner="w1"), "a writer that lost its run")
    await two.append(run.batch(), owner="w2")
    await expect_error(StoreConflict, one.append(paused.batch(), owner="w1"), "a paused writer")
    expect(len(await one.read(SCOPE, "r1")), 2, "events of the successor")
    for store in (one, two):
        await store.close()


async def lost_answers_are_repeated(store: Store) -> None:
    """What is repeated after its answer was lost is there once, and answers as the first time."""
    store = cast("Store", LossyStore(store, lambda _: True))
    run = SampleRun("r1")
    asked = run.request("q1")
    batches = [
        run.batch(changes=[asked], held=True),
        run.batch(changes=[RequestClosed("q1"), mail("c1", "m1", named=True)]),
        run.batch(status="ended"),
    ]
    for batch in batches:
        await expect_error(StoreError, store.append(batch, owner=ME), "a batch, unanswered")
        expect(await store.append(batch, owner=ME), False, "the same batch again")
    expect(len(await store.read(SCOPE, "r1")), 3, "events")
    await expect_error(StoreError, store.put(mail("c1", "m2", named=True)), "mail, unanswered")
    named = await store.put(mail("c1", "m2", named=True))
    expect([each.id for each in await store.pending(APP, named)], ["m1", "m2"], "mail")
    await expect_error(StoreError, store.claim("w1"), "a claim, unanswered")
    expect((await store.claim("w1")).runs, [(APP, named)], "the same claim again")
    await expect_error(StoreError, store.beat("w1"), "a heartbeat, unanswered")
    expect((await store.beat("w1")).alive, True, "the same heartbeat again")


async def workload_is_counted(store: Store) -> None:
    """Runs that wait for a worker are counted, and workers with the runs that they hold."""
    now = (await store.beat("idle")).now
    for name, due_at in (("due", now - 10), ("later", now + LATER), ("held", now)):
        batch = SampleRun(name).batch(due_at=due_at, held=name == "held")
        await store.append(batch, owner="w1")
    await store.take("unknown", APP, "later", force=True)
    found = await store.workload()
    expect(found.waiting, 1, "how many runs wait")
    held = {each.owner: (each.runs, each.seen_at > 0) for each in found.owners}
    expect(held, {"idle": (0, True), "unknown": (1, False), "w1": (1, True)}, "the workers")


async def waiting_ends_by_itself(store: Store) -> None:
    """A waiting worker continues after the time, whether or not this process has written."""
    await write(store, SampleRun("r1"))
    await asyncio.wait_for(store.wait(0.05), PATIENCE)


WORK_CHECKS: Final[tuple[Check, ...]] = (
    runs_are_claimed_when_due,
    owners_are_fenced,
    owners_without_heartbeat_are_dead,
    lost_answers_are_repeated,
    workload_is_counted,
    waiting_ends_by_itself,
)
