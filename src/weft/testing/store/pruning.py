"""What must hold when runs are removed from a store."""

from typing import Final

from weft.engine.events import ToolReturned
from weft.engine.rows import Snapshot
from weft.ports.scope import Scope
from weft.ports.store import Pruned, Store
from weft.testing.store.samples import (
    APP,
    ME,
    OPERATOR,
    SCOPE,
    Check,
    SampleRun,
    expect,
    names,
    write,
)

NOTHING: Final = Pruned(0, 0, 0)


async def ended_runs_go(store: Store) -> None:
    """Runs that ended before the time go with all they have; all others stay whole."""
    runs = [SampleRun(f"r{number}", digest=f"d{number}") for number in range(5)]
    await write(store, *runs)
    left_open = runs[0].request("q0")
    await store.save_snapshot(APP, "r0", Snapshot(1, "1", "d0", b"state"))
    await store.append(runs[0].batch(status="ended", at=4000, changes=[left_open]), owner=ME)
    await write(store, runs[1], ended_at=4999)
    await write(store, runs[2], ended_at=5000)
    asked = runs[3].request("q1")
    await store.append(runs[3].batch(status="waiting", changes=[asked]), owner=ME)
    gone = await store.prune(SCOPE, ended_before=5000, dry_run=False)
    expect((gone.runs, gone.events, gone.bytes > 0), (2, 4, True), "what was removed")
    expect(names(await store.runs(SCOPE)), ["r4", "r3", "r2"], "runs that stay")
    for run, there in zip(runs, (False, False, True, True, True), strict=True):
        events = await store.read(SCOPE, run.run)
        expect(len(events), run.seq if there else 0, f"events of {run.run}")
    expect(await store.requests(SCOPE), [asked], "open requests that stay")
    expect(await store.snapshot(APP, "r0"), None, "the snapshot of a run that is gone")
    again = await store.prune(SCOPE, ended_before=5000, dry_run=False)
    expect(again, NOTHING, "what a second time removes")
    await store.append(SampleRun("r0").batch(), owner=ME)
    expect(len(await store.read(SCOPE, "r0")), 1, "events of a new run of an old id")


async def dry_run_only_counts(store: Store) -> None:
    """A dry run removes nothing and foretells exactly what would be removed."""
    shared, own = ToolReturned("c", "s" * 40_000), ToolReturned("c", "o" * 40_000)
    for number in range(150):
        run = SampleRun(f"r{number:03}", digest="old" if number % 2 else "both")
        data = [ToolReturned("c", "ä" * number), *([shared, own] if number == 7 else ())]
        package = b"old package" if number % 2 else b"package of all"
        batch = run.batch(*data, *data, at=number, status="ended", package=package)
        await store.append(batch, owner=ME)
    last = SampleRun("r999", digest="both").batch(shared, package=b"package of all")
    await store.append(last, owner=ME)
    told = await store.prune(SCOPE, ended_before=1000, dry_run=True)
    expect((told.runs, told.events), (150, 304), "what would be removed")
    expect(len(await store.runs(SCOPE, limit=1000)), 151, "runs after a dry run")
    expect(len(await store.read(SCOPE, "r007")), 6, "events after a dry run")
    expect(await store.package(APP, "old"), b"old package", "package after a dry run")
    done = await store.prune(SCOPE, ended_before=1000, dry_run=False)
    expect(done, told, "what was removed, against what was foretold")
    expect((await store.read(SCOPE, "r999"))[0].data, shared, "large data that is still used")
    kept = (await store.package(APP, "old"), await store.package(APP, "both"))
    expect(kept, (None, b"package of all"), "packages afterwards")
    told = await store.prune(SCOPE, ended_before=1000, dry_run=True)
    expect(told, NOTHING, "what would be removed when all is gone")


async def only_the_scope_is_pruned(store: Store) -> None:
    """Runs outside the scope stay, and the packages that they need."""
    owners = ((APP, "ann"), (APP, "bob"), ("other", "ann"))
    for number, (app, user) in enumerate(owners):
        run = SampleRun(f"r{number}", app, user)
        await store.append(run.batch(status="ended", at=100, package=app.encode()), owner=ME)
    for scope, wanted, left in (
        (Scope.operator("no-such-app"), 0, (b"shop", b"other")),
        (Scope(APP, "carl"), 0, (b"shop", b"other")),
        (Scope(APP, "ann"), 1, (b"shop", b"other")),
        (OPERATOR, 1, (None, b"other")),
        (OPERATOR, 0, (None, b"other")),
        (Scope.operator("other"), 1, (None, None)),
    ):
        told = await store.prune(scope, ended_before=1000, dry_run=True)
        done = await store.prune(scope, ended_before=1000, dry_run=False)
        expect((told, done.runs), (done, wanted), f"runs removed within {scope}")
        packages = [await store.package(app, "digest-1") for app in (APP, "other")]
        expect(packages, [*left], f"packages after that of {scope}")


PRUNING_CHECKS: Final[tuple[Check, ...]] = (
    ended_runs_go,
    dry_run_only_counts,
    only_the_scope_is_pruned,
)
