"""The suite that every store must pass.

    @pytest.mark.parametrize("name", STORE_CHECKS)
    def test_my_store(name, tmp_path):
        asyncio.run(run_check(name, partial(MyStore.open, tmp_path / "store")))

Each check needs an empty store. A check that fails raises AssertionError saying what was expected
and what was found.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from weft.engine.rows import MailTaken, OutgoingEvent, Snapshot
from weft.errors import StoreError
from weft.ports.store import Store
from weft.testing.store.board import BOARD_CHECKS
from weft.testing.store.board_samples import ANN, BOARD, BoardRun, find, published, query
from weft.testing.store.index import INDEX_CHECKS
from weft.testing.store.log import LOG_CHECKS, attempts
from weft.testing.store.mail import MAIL_CHECKS, no_mail_is_left_behind
from weft.testing.store.pruning import PRUNING_CHECKS
from weft.testing.store.records import RECORD_CHECKS
from weft.testing.store.samples import (
    APP,
    ME,
    SCOPE,
    Check,
    OpenStore,
    SampleRun,
    SharedCheck,
    expect,
    expect_error,
    mail,
    write,
)
from weft.testing.store.work import (
    WORK_CHECKS,
    dead_owners_lose_their_runs,
    late_owners_keep_what_is_left,
    paused_writers_are_refused,
)


async def closing_writes_what_is_under_way(store: Store) -> None:
    """A batch that is being appended when the store is closed is written."""
    runs = [SampleRun(f"r{number}") for number in range(30)]
    under_way = [asyncio.create_task(store.append(run.batch(), owner=ME)) for run in runs]
    await asyncio.sleep(0)
    await store.close()
    expect(await asyncio.gather(*under_way), [False] * 30, "what became of the batches")


async def closed_is_closed(store: Store) -> None:
    """A closed store refuses everything but being closed again."""
    await write(store, SampleRun("r1"))
    await store.close()
    await store.close()
    outgoing = OutgoingEvent(APP, "r1", 1, "hook-1", 1)
    attempted: dict[str, Callable[[], Awaitable[object]]] = {
        "append": lambda: store.append(SampleRun("r2").batch(), owner=ME),
        "read": lambda: store.read(SCOPE, "r1"),
        "follow": lambda: anext(store.follow(SCOPE, "r1")),
        "snapshot": lambda: store.snapshot(APP, "r1"),
        "save_snapshot": lambda: store.save_snapshot(APP, "r1", Snapshot(1, "1", "d", b"")),
        "package": lambda: store.package(APP, "d"),
        "prune": lambda: store.prune(SCOPE, ended_before=0, dry_run=False),
        "prune, dry": lambda: store.prune(SCOPE, ended_before=0, dry_run=True),
        "claim": lambda: store.claim(ME),
        "take": lambda: store.take(ME, APP, "r1"),
        "beat": lambda: store.beat(ME),
        "rename": lambda: store.rename(ME, "worker-2"),
        "release": lambda: store.release(ME, [(APP, "r1")]),
        "next_due": store.next_due,
        "workload": store.workload,
        "wait": lambda: store.wait(0),
        "put": lambda: store.put(mail("r1", "m1")),
        "pending": lambda: store.pending(APP, "r1"),
        "run": lambda: store.run(SCOPE, "r1"),
        "named": lambda: store.named(APP, "c1"),
        "open_run": lambda: store.open_run(APP, "c1"),
        "runs": lambda: store.runs(SCOPE),
        "requests": lambda: store.requests(SCOPE),
        "carried": lambda: store.carried(SCOPE, "Support"),
        "apps": store.apps,
        "completed": lambda: store.completed(SCOPE, ("Support",)),
        "artifacts": lambda: store.artifacts(query()),
        "consumed": lambda: store.consumed(APP, BOARD, owners=None),
        "take_outgoing": lambda: store.take_outgoing(limit=1, hold=0),
        "postpone_outgoing": lambda: store.postpone_outgoing([outgoing], hold=0),
        "remove_outgoing": lambda: store.remove_outgoing([outgoing]),
        "record": lambda: store.record(APP, "key", "k1"),
        "records": lambda: store.records(APP, "key"),
        "add_record": lambda: store.add_record(APP, "key", "k1", {}),
        "put_record": lambda: store.put_record(APP, "key", "k1", {}),
        "delete_record": lambda: store.delete_record(APP, "key", "k1"),
    }
    for name, attempt in attempted.items():
        await expect_error(StoreError, attempt(), f"{name} of a closed store")


async def everything_is_there_again(open_store: OpenStore) -> None:
    """What was written before closing is found after opening again."""
    store = await open_store()
    run, board = SampleRun("r1", name="c1"), BoardRun("r2")
    asked = run.request("q1", addressee="role:manager", payload={"sum": 3})
    changes = [asked, run.carried("plan", "gold")]
    batch = run.batch(changes=changes, package=b"content", due_at=900)
    await store.append(batch, owner=ME)
    await store.append(board.writing(published(tags=("t",))), owner=ME)
    await store.put(mail("c1", "m1", named=True))
    await store.save_snapshot(APP, "r1", Snapshot(1, "1", "d", b"state"))
    await store.put_record(APP, "key", "k1", {"name": "a"})
    await store.close()
    store = await open_store()
    expect(await store.read(SCOPE, "r1"), list(batch.events), "events after opening again")
    expect(await store.named(APP, "c1"), batch.row._replace(due_at=900), "row")
    expect(await store.requests(SCOPE, run="r1"), [asked], "open requests after opening again")
    expect(await store.carried(SCOPE, run.workflow), {"plan": "gold"}, "carried values")
    expect(await store.package(APP, run.digest), b"content", "package after opening again")
    expect(await store.snapshot(APP, "r1"), Snapshot(1, "1", "d", b"state"), "snapshot")
    expect((await find(store, query(ANN, tags=("t",)))).ids, ["r2.1"], "artifacts")
    expect(await store.put(mail("c1", "m1", named=True)), "r1", "mail that was put already")
    expect(len(await store.pending(APP, "r1")), 1, "mail after opening again")
    record = await store.record(APP, "key", "k1")
    expect(record and record.value, {"name": "a"}, "a record after opening again")
    expect((await store.claim("w1")).runs, [(APP, "r1")], "runs that are due")
    expect(await store.append(batch, owner=ME), False, "the same batch after opening again")
    await store.append(run.batch(changes=[MailTaken("m1")]), owner="w1")
    await store.close()


async def writers_share_a_store(open_store: OpenStore) -> None:
    """Of two stores over one database that append to one run, exactly one wins each round."""
    stores = [await open_store(), await open_store()]
    for round_ in range(25):
        rivals = [SampleRun("r1", seq=round_).batch() for _ in stores]
        won = await asyncio.gather(
            *(attempts(*pair) for pair in zip(stores, [[batch] for batch in rivals], strict=True))
        )
        expect(sorted(won), [[False], [True]], f"winners of round {round_}")
    for store in stores:
        events = await store.read(SCOPE, "r1")
        expect([event.seq for event in events], list(range(1, 26)), "events that each reads")
        await store.close()


async def others_are_heard(open_store: OpenStore) -> None:
    """A follower gets the events of another process, and a waiting worker continues, both soon."""
    here, there = await open_store(), await open_store()
    run = SampleRun("r1")
    await there.append(run.batch(), owner=ME)
    events = here.follow(SCOPE, "r1")
    for number in range(1, 9):
        event = await asyncio.wait_for(anext(events), 10)
        expect(event.seq, number, "the next event that a follower gets")
        await there.append(run.batch(), owner=ME)
    await events.aclose()
    await here.beat("worker-2")  # Only a living worker is woken.
    waiting = asyncio.create_task(_wait(here))
    await asyncio.sleep(0.3)
    await there.put(mail("r1", "m1"))
    expect(await asyncio.wait_for(waiting, 10), True, "a worker that waits for other processes")
    for store in (here, there):
        await store.close()


async def _wait(store: Store) -> bool:
    """Wait until another process has written; what was written before may end a wait early."""
    while not (await store.pending(APP, "r1")):
        if await store.wait(5):
            continue
        return False
    return True


_CHECKS: Final[tuple[Check, ...]] = (
    *LOG_CHECKS,
    *INDEX_CHECKS,
    *MAIL_CHECKS,
    *WORK_CHECKS,
    *PRUNING_CHECKS,
    *BOARD_CHECKS,
    *RECORD_CHECKS,
    closing_writes_what_is_under_way,
    closed_is_closed,
)

_SHARED_CHECKS: Final[tuple[SharedCheck, ...]] = (
    everything_is_there_again,
    writers_share_a_store,
    others_are_heard,
    no_mail_is_left_behind,
    dead_owners_lose_their_runs,
    late_owners_keep_what_is_left,
    paused_writers_are_refused,
)

#: For every store; it is opened once in each.
STORE_CHECKS: Final = {check.__name__: check for check in _CHECKS}

#: For stores that outlive their process: each is opened several times, also at the same time.
SHARED_STORE_CHECKS: Final = {check.__name__: check for check in _SHARED_CHECKS}


async def run_check(name: str, open_store: OpenStore) -> None:
    """Run one of the checks over a new store."""
    if name in SHARED_STORE_CHECKS:
        await SHARED_STORE_CHECKS[name](open_store)
        return
    store = await open_store()
    await STORE_CHECKS[name](store)
    await store.close()
