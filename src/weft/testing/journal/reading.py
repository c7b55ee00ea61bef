"""What must hold when something is looked up in a journal."""

import asyncio
from itertools import product
from typing import Final

from weft.engine.events import Event, RunEnded, ToolReturned
from weft.engine.rows import DueRow, RequestClosed, RunRow, TimerGone
from weft.errors import StoreConflict
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.testing.journal.samples import (
    APP,
    SCOPE,
    Check,
    OpenJournal,
    SampleRun,
    expect,
    expect_error,
    names,
    write,
)

#: Two tenants with users of the same names; names that contain or resemble one another.
APPS: Final = ("shop", "sho", "SHOP", "", "%")
USERS: Final = ("ann", "an", "Ann", "", "%")


async def events_after_a_number(open_journal: OpenJournal) -> None:
    """`after` and `limit` cut out a part of a run; what is not there is empty."""
    journal = await open_journal()
    run = SampleRun("r1")
    for _ in range(5):
        await write(journal, run)
    for after, limit in product(range(7), (None, 0, 1, 2, 10)):
        numbers = [it.seq for it in await journal.read(SCOPE, "r1", after=after, limit=limit)]
        wanted = [1, 2, 3, 4, 5][after:][:limit]
        expect(numbers, wanted, f"events after {after}, at most {limit}")
    expect(await journal.read(SCOPE, "r2"), [], "events of an unknown run")
    expect(await journal.run(SCOPE, "r2"), None, "an unknown run")
    await journal.close()


async def rows_are_the_latest(open_journal: OpenJournal) -> None:
    """The row of a run is that of its last batch, in every field."""
    journal = await open_journal()
    run = SampleRun("r1")
    for number, status in enumerate(("running", "running", "waiting", "running", "ended")):
        batch = run.batch(status=status, at=3000 + number)
        await journal.append(batch)
        expect(await journal.run(SCOPE, "r1"), batch.row, f"row after batch {number}")
        expect(await journal.runs(SCOPE), [batch.row], f"list after batch {number}")
    await journal.close()


async def runs_newest_first(open_journal: OpenJournal) -> None:
    """Runs come newest first and in pages, also where several began at the same time."""
    journal = await open_journal()
    started = (1000, 3000, 2000, 2000, 2000, 4000, 1000)
    runs = [SampleRun(f"r{it}", started_at=at) for it, at in enumerate(started)]
    await write(journal, *runs)
    ordered = ["r5", "r1", "r4", "r3", "r2", "r6", "r0"]
    expect(names(await journal.runs(SCOPE)), ordered, "runs, newest first")
    for limit in (1, 2, 3, 7, 50):
        found: list[RunRow] = []
        while page := await journal.runs(
            SCOPE, limit=limit, before=found[-1].run if found else None
        ):
            expect(len(page), min(limit, 7 - len(found)), f"runs in a page of {limit}")
            found.extend(page)
        expect(names(found), ordered, f"runs in pages of {limit}")
    expect(await journal.runs(SCOPE, before="r9"), [], "runs before one that is not there")
    expect(await journal.runs(SCOPE, limit=0), [], "no runs at all")
    await journal.close()


async def runs_by_status_and_workflow(open_journal: OpenJournal) -> None:
    """Runs are found by status, by workflow, by both, in pages as well."""
    journal = await open_journal()
    kinds = list(product(("running", "waiting", "ended"), ("Support", "Sales"), range(2)))
    for number, (status, workflow, _) in enumerate(kinds):
        run = SampleRun(f"r{number:02}", workflow=workflow, started_at=number)
        await journal.append(run.batch(status=status))
    rows = await journal.runs(Scope(APP))
    for status, workflow, scope in product(
        (None, "running", "waiting", "ended", "lost"),
        (None, "Support", "Sales", "support"),
        (Scope(APP), SCOPE),
    ):
        wanted = [
            it.run for it in rows if status in (None, it.status) and workflow in (None, it.workflow)
        ]
        found = await journal.runs(scope, status=status, workflow=workflow)
        expect(names(found), wanted, f"runs that are {status} of {workflow}")
        rest = await journal.runs(scope, status=status, workflow=workflow, before="r06")
        later = [it for it in wanted if it < "r06"]
        expect(names(rest), later, f"runs that are {status} of {workflow}, second page")
    await journal.close()


async def questions_oldest_first(open_journal: OpenJournal) -> None:
    """Open questions come oldest first, until they are closed; a run's questions are its own."""
    journal = await open_journal()
    first, second = SampleRun("r1"), SampleRun("r2")
    late, soon = first.request("q1", opened_at=30), first.request("q2", opened_at=10)
    other = second.request("q1", opened_at=20, payload={"fields": ["name", 1, None]})
    await journal.append(first.batch(sides=(late, soon), status="waiting"))
    await journal.append(second.batch(sides=(other,), status="waiting"))
    expect(await journal.requests(SCOPE), [soon, other, late], "open questions, oldest first")
    expect(await journal.requests(SCOPE, run="r1"), [soon, late], "open questions of a run")
    expect(await journal.requests(SCOPE, run="r3"), [], "open questions of an unknown run")
    await journal.append(first.batch(sides=(RequestClosed("q1"), RequestClosed("q9"))))
    expect(await journal.requests(SCOPE), [soon, other], "open questions after one was closed")
    await journal.append(first.batch(sides=(RequestClosed("q2"), late)))
    expect(await journal.requests(SCOPE, run="r1"), [late], "a question that was opened again")
    await journal.close()


async def questions_find_their_people(open_journal: OpenJournal) -> None:
    """A question is for the user of its run, or for whom it names, within the tenant."""
    journal = await open_journal()
    run, other = SampleRun("r1"), SampleRun("r2", app="other")
    whom = ("", "role:boss", "role:BOSS", "group:desk", "user:bob", "user:ann")
    asked = [run.request(f"q{at}", opened_at=at, addressee=it) for at, it in enumerate(whom)]
    await journal.append(run.batch(sides=tuple(asked), status="waiting"))
    away = other.request("q9", addressee="role:boss")
    await journal.append(other.batch(sides=(away,), status="waiting"))
    for scope, wanted in (
        (Scope(APP), asked),
        (SCOPE, [asked[0], asked[5]]),
        (Scope(APP, "bob"), [asked[4]]),
        (Scope(APP, "carl"), []),
        (Scope(APP, "carl", roles=("boss",)), [asked[1]]),
        (Scope(APP, "carl", roles=("desk", "clerk"), groups=("boss",)), []),
        (Scope(APP, "bob", roles=("boss", "x"), groups=("desk",)), [asked[1], asked[3], asked[4]]),
        (Scope("other", "carl", roles=("boss",)), [away]),
    ):
        expect(await journal.requests(scope), wanted, f"questions for {scope}")
        own = asked if scope.covers(APP, "ann") else [it for it in wanted if it.run == "r1"]
        expect(await journal.requests(scope, run="r1"), own, f"questions of a run for {scope}")
    await journal.close()


async def values_wait_for_later_runs(open_journal: OpenJournal) -> None:
    """What a run leaves is found by user and workflow: the latest value, also when it is gone."""
    journal = await open_journal()
    run = SampleRun("r1")
    expect(await journal.kept(SCOPE, "Support"), {}, "values where no run has left any")
    sides = (run.kept("plan", "gold"), run.kept("seen", [1, {"a": None}]), run.kept("plan", "tin"))
    await journal.append(run.batch(sides=sides))
    await journal.append(SampleRun("r2", workflow="Sales").batch(sides=(run.kept("seen", None),)))
    bob, other = SampleRun("r3", user="bob"), SampleRun("r3", app="other")
    await journal.append(bob.batch(sides=(bob.kept("plan", "silver"),)))
    await journal.append(other.batch(sides=(other.kept("plan", "none"),)))
    refused = SampleRun("r1").batch(sides=(run.kept("plan", "late"),))
    await expect_error(StoreConflict, journal.append(refused), "a batch that comes too late")
    await journal.append(run.batch(status="ended"))
    await journal.prune(SCOPE, ended_before=10_000, dry_run=False)
    for scope, workflow, wanted in (
        (SCOPE, "Support", {"plan": "tin", "seen": None}),
        (SCOPE, "Sales", {}),
        (SCOPE, "support", {}),
        (Scope(APP, "bob"), "Support", {"plan": "silver"}),
        (Scope("other", "ann"), "Support", {"plan": "none"}),
        (Scope(APP), "Support", {}),
    ):
        expect(await journal.kept(scope, workflow), wanted, f"values of {workflow} for {scope}")
    await journal.close()


async def unfinished_runs(open_journal: OpenJournal) -> None:
    """Runs with something to do are found for all tenants; those that wait or ended are not."""
    journal = await open_journal()
    runs = [SampleRun(f"r{it}", app=f"app{it}", user=f"user{it}") for it in range(4)]
    await write(journal, *runs)
    await journal.append(runs[1].batch(status="waiting"))
    await journal.append(runs[2].batch(status="ended"))
    expect(sorted(names(await journal.unfinished())), ["r0", "r3"], "unfinished runs")
    await journal.append(runs[1].batch())
    expect(sorted(names(await journal.unfinished())), ["r0", "r1", "r3"], "after one goes on")
    await journal.close()


async def what_is_due(open_journal: OpenJournal) -> None:
    """Questions that expire and timers are found when their time has come, of all tenants."""
    journal = await open_journal()
    expect(await journal.next_due(0), None, "what is due next where nothing is")
    one, two = SampleRun("r1"), SampleRun("r2", app="other", user="bob")
    asked = (one.request("q0"), one.request("q1", expires_at=500))
    await journal.append(one.batch(sides=asked, status="waiting"))
    expect(await journal.next_due(0), 500, "what is due next")
    timers = (two.timer("t1", 400), two.timer("t2", 600))
    await journal.append(two.batch(sides=timers))
    expect(await journal.next_due(0), 400, "what is due next, of all tenants")
    expect(await journal.next_due(400), 500, "what is due after that")
    first = DueRow("timer", "t1", "r2", "other", "bob", 400)
    second = DueRow("request", "q1", "r1", APP, "ann", 500)
    third = DueRow("timer", "t2", "r2", "other", "bob", 600)
    expect(await journal.due(399), [], "what is due too early")
    expect(await journal.due(400), [first], "what is due on time")
    expect(await journal.due(10_000), [first, second, third], "what is due at last")
    expect(await journal.due(10_000, limit=2), [first, second], "the first page of it")
    expect(await journal.due(10_000, after=second), [third], "the page after that")
    await journal.append(two.batch(sides=(TimerGone("t1"),)))
    await journal.append(one.batch(sides=(RequestClosed("q1"),)))
    expect(await journal.next_due(0), 600, "what is due next when others are gone")
    expect(await journal.due(10_000), [third], "what is due when others are gone")
    await journal.close()


async def signs_of_life(open_journal: OpenJournal) -> None:
    """A run shows when whoever works on it was last alive."""
    journal = await open_journal()
    run = SampleRun("r1")
    await write(journal, run)
    row = await journal.run(SCOPE, "r1")
    expect(row and (row.owner, row.heartbeat), ("worker-1", 0), "before the first sign of life")
    for at in (3000, 4000):
        await journal.beat("worker-1", at)
    await journal.beat("worker-2", 9000)
    for found in (
        [await journal.run(SCOPE, "r1")],
        await journal.runs(SCOPE),
        await journal.unfinished(),
    ):
        expect([it and it.heartbeat for it in found], [4000], "the last sign of life")
    await journal.close()


async def owners_change(open_journal: OpenJournal) -> None:
    """A running run is handed from owner to owner, or to none, by whoever is the first to ask."""
    journal = await open_journal()
    run = SampleRun("r1")
    await write(journal, run, SampleRun("r1", app="other"))
    await journal.beat("worker-2", 4000)

    async def claim(owner: str, before: str, name: str = "r1") -> str:
        taken = await journal.claim(APP, name, owner=owner, before=before)
        return "taken" if taken else "refused"

    async def owner(scope: Scope = SCOPE) -> tuple[str, int] | None:
        row = await journal.run(scope, "r1")
        return row and (row.owner, row.heartbeat)

    expect(await claim("worker-2", "worker-3"), "refused", "a claim on the run of another owner")
    expect(await owner(), ("worker-1", 0), "the owner after a claim that came to nothing")
    rivals = [claim(it, "worker-1") for it in ("worker-2", "worker-2")]
    expect(sorted(await asyncio.gather(*rivals)), ["refused", "taken"], "rivals that claim a run")
    expect(await owner(), ("worker-2", 4000), "the new owner, and its sign of life")
    expect(await owner(Scope("other")), ("worker-1", 0), "the owner of a namesake")
    expect(await claim("", "worker-2"), "taken", "a run that is released")
    expect(await owner(), ("", 0), "the owner of a run that was released")
    expect(await claim("worker-3", ""), "taken", "a claim on a run that was released")
    expect(await claim("worker-3", "", name="r2"), "refused", "a claim on an unknown run")
    await journal.append(run.batch(status="waiting"))
    expect(await claim("worker-3", ""), "refused", "a claim on a run that waits")
    await journal.close()


async def followers_get_events(open_journal: OpenJournal) -> None:
    """A follower gets what is there and then what is written, in order, until the run has ended."""
    journal = await open_journal()
    run = SampleRun("r1")
    first = run.batch()
    await journal.append(first)
    for scope in (Scope(APP, "bob"), Scope("other", "ann")):
        found = await anext(journal.follow(scope, "r1"), None)
        expect(found, None, f"the first event followed in {scope}")
    followers = [asyncio.create_task(_followed(journal, after)) for after in (0, 1)]
    await asyncio.sleep(0)
    written = [*first.events]
    for _ in range(500):
        batch = run.batch()
        await journal.append(batch)
        written += batch.events
    last = run.batch(RunEnded("completed", "all is said"), status="ended")
    await journal.append(last)
    written += last.events
    found = await asyncio.wait_for(asyncio.gather(*followers), 30)
    expect(found, [written, written[1:]], "what followers get")
    for after in (500, len(written), len(written) + 1):
        late = await asyncio.wait_for(_followed(journal, after), 30)
        expect(late, written[after:], "what a late follower gets")
    await journal.close()


async def _followed(journal: Journal, after: int) -> list[Event]:
    return [it async for it in journal.follow(SCOPE, "r1", after=after)]


async def tenants_may_name_alike(open_journal: OpenJournal) -> None:
    """Runs, questions and packages of two tenants are two, whatever they are called."""
    journal = await open_journal()
    runs = [SampleRun("r1", app=app, started_at=at) for app, at in (("a", 1), ("b", 2))]
    large = [ToolReturned("c", run.app * 40_000) for run in runs]
    for run, data in zip(runs, large, strict=True):
        sides = (run.request("q1"), run.timer("t1", 10))
        await journal.append(run.batch(data, sides=sides, package=run.app.encode()))
    await journal.append(runs[0].batch(status="ended", at=5))
    for run, data, length in zip(runs, large, (2, 1), strict=True):
        events = await journal.read(run.scope, "r1")
        expect((len(events), events[0].data), (length, data), f"events of {run.app}")
        expect(await journal.package(run.app, run.digest), run.app.encode(), "its package")
        expect([it.app for it in await journal.requests(run.scope)], [run.app], "its questions")
    await journal.prune(runs[0].scope, ended_before=10, dry_run=False)
    expect(await journal.read(runs[0].scope, "r1"), [], "events of a run that was removed")
    expect(len(await journal.read(runs[1].scope, "r1")), 1, "events of its namesake")
    expect([it.app for it in await journal.due(100)], ["b"], "what is due for its namesake")
    await journal.close()


async def scopes_do_not_leak(open_journal: OpenJournal) -> None:
    """Nothing outside the scope is ever returned, and everything inside it is."""
    journal = await open_journal()
    owners = list(product(APPS, USERS))
    for number, (app, user) in enumerate(owners):
        run = SampleRun(f"r{number:02}", app=app, user=user)
        await journal.append(run.batch(sides=(run.request("q1"),)))
    for scope in [Scope(*it) for it in product((*APPS, "x"), (*USERS, "x", None))]:
        seen = [it for it, owner in enumerate(owners) if scope.covers(*owner)]
        await _expect_only(journal, scope, [f"r{it:02}" for it in seen], len(owners))
    await journal.close()


async def _expect_only(journal: Journal, scope: Scope, inside: list[str], count: int) -> None:
    listed = names(await journal.runs(scope, limit=1000))
    expect(sorted(listed), inside, f"runs in {scope}")
    asking = [it.run for it in await journal.requests(scope)]
    expect(sorted(asking), inside, f"open questions in {scope}")
    for name in (f"r{number:02}" for number in range(count)):
        there = name in inside
        expect(await journal.run(scope, name) is not None, there, f"{name} in {scope}")
        expect(bool(await journal.read(scope, name)), there, f"events of {name} in {scope}")
        asks = bool(await journal.requests(scope, run=name))
        expect(asks, there, f"questions of {name} in {scope}")
        if not there:
            page = await journal.runs(scope, before=name)
            expect(page, [], f"page after {name}, which is outside {scope}")


async def packages_are_kept(open_journal: OpenJournal) -> None:
    """A package is kept byte for byte with the first events; once more changes nothing."""
    journal = await open_journal()
    for digest, content in (("d1", b""), ("d2", bytes(range(256)) * 500)):
        expect(await journal.package(APP, digest), None, f"package {digest} before it is kept")
        for number in range(2):
            run = SampleRun(f"{digest}-{number}", digest=digest)
            await journal.append(run.batch(package=content))
            await journal.append(run.batch())
        expect(await journal.package(APP, digest), content, f"package {digest}")
    await journal.close()


async def completed_workflows(open_journal: OpenJournal) -> None:
    """A workflow is completed for a user with the first run that is, until the last is removed."""
    journal = await open_journal()
    asked = ("Support", "Sales", "support")
    await journal.append(SampleRun("r1").batch(status="waiting"))
    await journal.append(SampleRun("r2", user="bob").batch(status="ended"))
    fork = SampleRun("r3").batch(status="ended")
    await journal.append(fork._replace(row=fork.row._replace(parent="r1")))
    failed = SampleRun("r4").batch(status="ended")
    await journal.append(failed._replace(row=failed.row._replace(outcome="failed")))
    await write(journal, SampleRun("r5", app="other"), ended_at=2000)
    expect(await journal.completed(SCOPE, asked), set[str](), "what is not completed yet")
    await write(journal, SampleRun("r6"), SampleRun("r7", workflow="Sales"), ended_at=2000)
    await write(journal, SampleRun("r8"), ended_at=3000)
    for scope, wanted in ((SCOPE, {"Support", "Sales"}), (Scope(APP, "bob"), {"Support"})):
        expect(await journal.completed(scope, asked), wanted, f"completed for {scope}")
    expect(await journal.completed(Scope(APP), asked), {"Support", "Sales"}, "of the tenant")
    expect(await journal.completed(SCOPE, ("Sales",)), {"Sales"}, "only what is asked for")
    await journal.prune(SCOPE, ended_before=2500, dry_run=False)
    expect(await journal.completed(SCOPE, asked), {"Support"}, "completed when runs are gone")
    await journal.prune(SCOPE, ended_before=3500, dry_run=False)
    expect(await journal.completed(SCOPE, asked), set[str](), "completed when all are gone")
    await journal.close()


READING_CHECKS: Final[tuple[Check, ...]] = (
    events_after_a_number,
    rows_are_the_latest,
    runs_newest_first,
    runs_by_status_and_workflow,
    questions_oldest_first,
    questions_find_their_people,
    values_wait_for_later_runs,
    completed_workflows,
    unfinished_runs,
    what_is_due,
    signs_of_life,
    owners_change,
    followers_get_events,
    tenants_may_name_alike,
    scopes_do_not_leak,
    packages_are_kept,
)
