"""What must hold when runs are removed from a journal."""

from typing import Final

from weft.engine.events import ToolReturned
from weft.ports.journal import Pruned
from weft.ports.scope import Scope
from weft.testing.journal.samples import (
    APP,
    SCOPE,
    Check,
    OpenJournal,
    SampleRun,
    expect,
    names,
    write,
)

NOTHING: Final = Pruned(0, 0, 0)


async def ended_runs_go(open_journal: OpenJournal) -> None:
    """Runs that ended before the time go with all they have; all others stay whole."""
    journal = await open_journal()
    runs = [SampleRun(f"r{it}", digest=f"d{it}") for it in range(5)]
    await write(journal, *runs)
    left_open = runs[0].request("q0", expires_at=10)
    await journal.append(runs[0].batch(status="ended", at=4000, sides=(left_open,)))
    await write(journal, runs[1], ended_at=4999)
    await write(journal, runs[2], ended_at=5000)
    asked = runs[3].request("q1")
    await journal.append(runs[3].batch(status="waiting", sides=(asked,)))
    gone = await journal.prune(SCOPE, ended_before=5000, dry_run=False)
    expect((gone.runs, gone.events, gone.bytes > 0), (2, 4, True), "what was removed")
    expect(names(await journal.runs(SCOPE)), ["r4", "r3", "r2"], "runs that stay")
    for run, there in zip(runs, (False, False, True, True, True), strict=True):
        events = await journal.read(SCOPE, run.run)
        expect(len(events), run.seq if there else 0, f"events of {run.run}")
        expect(await journal.run(SCOPE, run.run) is not None, there, f"row of {run.run}")
    expect(await journal.requests(SCOPE), [asked], "open questions that stay")
    expect(await journal.next_due(0), None, "next expiry when its question is gone")
    again = await journal.prune(SCOPE, ended_before=5000, dry_run=False)
    expect(again, NOTHING, "what a second time removes")
    await journal.append(SampleRun("r0").batch())
    expect(len(await journal.read(SCOPE, "r0")), 1, "events of a new run of an old name")
    await journal.close()


async def dry_run_only_counts(open_journal: OpenJournal) -> None:
    """A dry run removes nothing and foretells exactly what would be removed."""
    journal = await open_journal()
    shared, own = ToolReturned("c", "s" * 40_000), ToolReturned("c", "o" * 40_000)
    for number in range(150):
        run = SampleRun(f"r{number:03}", digest="old" if number % 2 else "both")
        data = [ToolReturned("c", "ä" * number), *([shared, own] if number == 7 else ())]
        package = b"old package" if number % 2 else b"package of all"
        await journal.append(run.batch(*data, *data, at=number, status="ended", package=package))
    last = SampleRun("r999", digest="both").batch(shared, package=b"package of all")
    await journal.append(last)
    told = await journal.prune(SCOPE, ended_before=1000, dry_run=True)
    expect((told.runs, told.events), (150, 304), "what would be removed")
    expect(len(await journal.runs(SCOPE, limit=1000)), 151, "runs after a dry run")
    expect(len(await journal.read(SCOPE, "r007")), 6, "events after a dry run")
    expect(await journal.package(APP, "old"), b"old package", "package after a dry run")
    done = await journal.prune(SCOPE, ended_before=1000, dry_run=False)
    expect(done, told, "what was removed, against what was foretold")
    expect((await journal.read(SCOPE, "r999"))[0].data, shared, "large data that is still used")
    kept = (await journal.package(APP, "old"), await journal.package(APP, "both"))
    expect(kept, (None, b"package of all"), "packages afterwards")
    told = await journal.prune(SCOPE, ended_before=1000, dry_run=True)
    expect(told, NOTHING, "what would be removed when all is gone")
    await journal.close()


async def only_the_scope_is_pruned(open_journal: OpenJournal) -> None:
    """Runs outside the scope stay, whatever their age."""
    journal = await open_journal()
    owners = ((APP, "ann"), (APP, "bob"), ("other", "ann"))
    runs = [SampleRun(f"r{it}", app, user) for it, (app, user) in enumerate(owners)]
    await write(journal, *runs, ended_at=100)
    for scope, wanted in (
        (Scope("nobody"), 0),
        (Scope(APP, "carl"), 0),
        (Scope(APP, "ann"), 1),
        (Scope(APP), 1),
        (Scope(APP), 0),
        (Scope("other"), 1),
    ):
        told = await journal.prune(scope, ended_before=1000, dry_run=True)
        done = await journal.prune(scope, ended_before=1000, dry_run=False)
        expect((told.runs, done.runs), (wanted, wanted), f"runs removed within {scope}")
    await journal.close()


async def packages_go_with_their_runs(open_journal: OpenJournal) -> None:
    """A package goes with the last run of its tenant that was started with it."""
    journal = await open_journal()
    for run in (
        SampleRun("r1", digest="d1"),
        SampleRun("r2", digest="d2"),
        SampleRun("r3", digest="d2"),
        SampleRun("r4", app="other", digest="d1"),
    ):
        package = f"{run.app} {run.digest}".encode()
        at = 2000 if run.run == "r3" else 100
        await journal.append(run.batch(status="ended", at=at, package=package))
    await journal.prune(SCOPE, ended_before=1000, dry_run=False)
    kept = [await journal.package(APP, it) for it in ("d1", "d2")]
    expect(kept, [None, b"shop d2"], "packages while a run needs one")
    other = await journal.package("other", "d1")
    expect(other, b"other d1", "the package of another tenant's run")
    await journal.prune(SCOPE, ended_before=3000, dry_run=False)
    expect(await journal.package(APP, "d2"), None, "a package when no run needs it")
    await journal.close()


PRUNING_CHECKS: Final[tuple[Check, ...]] = (
    ended_runs_go,
    dry_run_only_counts,
    only_the_scope_is_pruned,
    packages_go_with_their_runs,
)
