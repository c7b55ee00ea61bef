"""What must hold of lists: everything in a scope is found, in order and in pages, nothing else."""

from itertools import product
from typing import Final

from weft.engine.rows import RequestClosed, RequestRow, RunRow
from weft.ports.scope import Scope
from weft.ports.store import Store
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

#: Tenants with users of the same names; names that contain or resemble one another.
APPS: Final = ("shop", "sho", "SHOP", "", "%")
USERS: Final = ("ann", "an", "Ann", "", "%")


async def rows_are_the_latest(store: Store) -> None:
    """The row of a run is that of its last batch, in every field."""
    run = SampleRun("r1", name="c1")
    for number, status in enumerate(("running", "running", "waiting", "running", "ended")):
        batch = run.batch(status=status, at=3000 + number, due_at=9000)
        await store.append(batch, owner=ME)
        wanted = batch.row if status == "ended" else batch.row._replace(due_at=9000)
        found = [
            await store.run(SCOPE, "r1"), await store.named(APP, "c1"), *await store.runs(SCOPE),
        ]  # fmt: skip
        expect(found, [wanted] * 3, f"row after batch {number}")
    expect(await store.run(SCOPE, "r2"), None, "an unknown run")
    expect(await store.named(APP, "c2"), None, "an unknown name")
    expect(await store.named(APP, ""), None, "no name")


async def runs_newest_first(store: Store) -> None:
    """Runs come newest first and in pages, by status, by workflow and by both."""
    kinds = list(product(("running", "waiting", "ended"), ("Support", "Sales"), (0, 1, 0)))
    for number, (status, workflow, at) in enumerate(kinds):
        run = SampleRun(f"r{number:02}", workflow=workflow, started_at=number // 4 + at)
        await store.append(run.batch(status=status), owner=ME)
    rows = sorted(await store.runs(OPERATOR), key=lambda row: (row.started_at, row.run))[::-1]
    expect(len(rows), len(kinds), "how many runs there are")
    for status, workflow, scope, limit in product(
        (None, "running", "waiting", "ended", "lost"),
        (None, "Support", "Sales", "support"),
        (OPERATOR, SCOPE),
        (1, 2, 7, 50),
    ):
        wanted = [
            row for row in rows if status in (None, row.status) and workflow in (None, row.workflow)
        ]
        found: list[RunRow] = []
        while page := await store.runs(
            scope,
            status=status,
            workflow=workflow,
            limit=limit,
            before=found[-1].run if found else None,
        ):
            expect(len(page), min(limit, len(wanted) - len(found)), f"runs in a page of {limit}")
            found += page
        expect(found, wanted, f"runs that are {status} of {workflow}")
    expect(await store.runs(SCOPE, before="r99"), [], "runs before one that is not there")
    expect(await store.runs(SCOPE, limit=0), [], "no runs at all")


async def requests_oldest_first(store: Store) -> None:
    """Open requests come oldest first and in pages, until they are closed."""
    first, second = SampleRun("r1"), SampleRun("r2")
    late, soon = first.request("q1", opened_at=30), first.request("q2", opened_at=10)
    other = second.request("q1", opened_at=20, payload={"fields": ["name", 1, None]})
    same = second.request("q2", opened_at=20, addressee=f"user:{SCOPE.user}")
    await store.append(first.batch(changes=[late, soon], status="waiting"), owner=ME)
    await store.append(second.batch(changes=[same, other], status="waiting"), owner=ME)
    for scope, limit in product((SCOPE, OPERATOR), (1, 2, 3, None)):
        found: list[RequestRow] = []
        for _ in range(5):  # One more than there are.
            found += await store.requests(scope, after=_place(found), limit=limit)
        expect(found, [soon, other, same, late], f"open requests in pages of {limit}")
    expect(await store.requests(SCOPE, run="r1"), [soon, late], "open requests of a run")
    expect(await store.requests(SCOPE, run="r3"), [], "open requests of an unknown run")
    await store.append(first.batch(changes=[RequestClosed("q1"), RequestClosed("q9")]), owner=ME)
    expect(await store.requests(SCOPE), [soon, other, same], "open requests after one was closed")
    await store.append(first.batch(changes=[RequestClosed("q2"), late]), owner=ME)
    expect(await store.requests(SCOPE, run="r1"), [late], "a request that was opened again")


def _place(found: list[RequestRow]) -> tuple[int, str, str] | None:
    return (found[-1].opened_at, found[-1].run, found[-1].id) if found else None


async def requests_find_their_people(store: Store) -> None:
    """A request is for the user of its run, or for the addressee, within the tenant."""
    run, other = SampleRun("r1"), SampleRun("r2", app="other")
    whom = ("", "role:boss", "role:BOSS", "group:desk", "user:bob", "user:ann")
    asked = [
        run.request(f"q{at}", opened_at=at, addressee=addressee)
        for at, addressee in enumerate(whom)
    ]
    await store.append(run.batch(changes=asked, status="waiting"), owner=ME)
    away = other.request("q9", addressee="role:boss")
    await store.append(other.batch(changes=[away], status="waiting"), owner=ME)
    for scope, wanted in (
        (OPERATOR, asked),
        (SCOPE, [asked[0], asked[5]]),
        (Scope(APP, "bob"), [asked[4]]),
        (Scope(APP, "carl"), []),
        (Scope(APP, "carl", roles=("boss",)), [asked[1]]),
        (Scope(APP, "carl", roles=("desk", "clerk"), groups=("boss",)), []),
        (Scope(APP, "bob", roles=("boss", "x"), groups=("desk",)), [asked[1], asked[3], asked[4]]),
        (Scope("other", "carl", roles=("boss",)), [away]),
    ):
        expect(await store.requests(scope), wanted, f"requests for {scope}")
        own = asked if scope.covers(APP, "ann") else [row for row in wanted if row.run == "r1"]
        expect(await store.requests(scope, run="r1"), own, f"requests of a run for {scope}")


async def values_wait_for_later_runs(store: Store) -> None:
    """What a run leaves is found by user and workflow: the latest value, also after a prune."""
    run = SampleRun("r1")
    expect(await store.carried(SCOPE, "Support"), {}, "values where no run has left any")
    changes = [run.carried("plan", "gold"), run.carried("seen", [1, {"a": None}])]
    await store.append(run.batch(changes=changes), owner=ME)
    await store.append(run.batch(changes=[run.carried("plan", "tin")]), owner=ME)
    sales = SampleRun("r2", workflow="Sales")
    await store.append(sales.batch(changes=[run.carried("seen", None)]), owner=ME)
    bob, other = SampleRun("r3", user="bob"), SampleRun("r3", app="other")
    await store.append(bob.batch(changes=[bob.carried("plan", "silver")]), owner=ME)
    await store.append(other.batch(changes=[other.carried("plan", "none")]), owner=ME)
    await write(store, run, ended_at=2000)
    await store.prune(SCOPE, ended_before=10_000, dry_run=False)
    for scope, workflow, wanted in (
        (SCOPE, "Support", {"plan": "tin", "seen": None}),
        (SCOPE, "Sales", {}),
        (SCOPE, "support", {}),
        (Scope(APP, "bob"), "Support", {"plan": "silver"}),
        (Scope("other", "ann"), "Support", {"plan": "none"}),
        (OPERATOR, "Support", {}),
    ):
        expect(await store.carried(scope, workflow), wanted, f"values of {workflow} for {scope}")


async def completed_workflows(store: Store) -> None:
    """A workflow is completed for a user with the first run that is, until the last is removed."""
    asked = ("Support", "Sales", "support")
    await store.append(SampleRun("r1").batch(status="waiting"), owner=ME)
    fork = SampleRun("r3").batch(status="ended")
    await store.append(fork._replace(row=fork.row._replace(parent="r1")), owner=ME)
    failed = SampleRun("r4").batch(status="ended")
    await store.append(failed._replace(row=failed.row._replace(outcome="failed")), owner=ME)
    others = SampleRun("r2", user="bob"), SampleRun("r5", app="other")
    await write(store, *others, ended_at=2000)
    expect(await store.completed(SCOPE, asked), set[str](), "what is not completed yet")
    await write(store, SampleRun("r6"), SampleRun("r7", workflow="Sales"), ended_at=2000)
    await write(store, SampleRun("r8"), ended_at=3000)
    for scope, names_, wanted in (
        (SCOPE, asked, {"Support", "Sales"}),
        (Scope(APP, "bob"), asked, {"Support"}),
        (OPERATOR, asked, {"Support", "Sales"}),
        (SCOPE, ("Sales",), {"Sales"}),
    ):
        expect(await store.completed(scope, names_), wanted, f"completed for {scope}")
    for before, wanted in ((2500, {"Support"}), (3500, set[str]())):
        await store.prune(SCOPE, ended_before=before, dry_run=False)
        expect(await store.completed(SCOPE, asked), wanted, f"completed after a prune to {before}")


async def scopes_do_not_leak(store: Store) -> None:
    """Nothing outside the scope is ever returned, and everything inside it is."""
    owners = list(product(APPS, USERS))
    for number, (app, user) in enumerate(owners):
        run = SampleRun(f"r{number:02}", app=app, user=user)
        await store.append(run.batch(changes=[run.request("q1")]), owner=ME)
    users = [Scope(app, user) for app, user in product((*APPS, "x"), (*USERS, "x"))]
    for scope in [*users, *(Scope.operator(app) for app in (*APPS, "x"))]:
        inside = [f"r{number:02}" for number, own in enumerate(owners) if scope.covers(*own)]
        await _expect_only(store, scope, inside, len(owners))
    expect(sorted(await store.apps()), sorted(APPS), "all tenants")


async def _expect_only(store: Store, scope: Scope, inside: list[str], count: int) -> None:
    expect(sorted(names(await store.runs(scope, limit=99))), inside, f"runs in {scope}")
    asking = [request.run for request in await store.requests(scope)]
    expect(sorted(asking), inside, f"open requests in {scope}")
    for name in (f"r{number:02}" for number in range(count)):
        found = (
            await store.run(scope, name) is not None,
            bool(await store.read(scope, name)),
            bool(await store.requests(scope, run=name)),
            name in inside or bool(await store.runs(scope, before=name)),
        )
        there = name in inside
        expect(found, (there,) * 4, f"row, events, requests and page of {name} in {scope}")


INDEX_CHECKS: Final[tuple[Check, ...]] = (
    rows_are_the_latest,
    runs_newest_first,
    requests_oldest_first,
    requests_find_their_people,
    values_wait_for_later_runs,
    completed_workflows,
    scopes_do_not_leak,
)
