"""What must hold of the artifacts of boards."""

from itertools import product
from typing import Any, Final, cast

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.engine.events import MessageShown, TurnStarted
from weft.engine.rows import ArtifactRow, Batch
from weft.errors import StoreConflict
from weft.findings import Json
from weft.ports.board import Consumption, StoredArtifact
from weft.ports.store import Store
from weft.testing.store.board_samples import (
    ANN,
    BOARD,
    QUERY,
    SOME_WAYS,
    BoardRun,
    Found,
    find,
    published,
    query,
)
from weft.testing.store.kinds import ANYTHING
from weft.testing.store.samples import (
    APP,
    ME,
    SCOPE,
    Check,
    expect,
    expect_error,
)


async def artifacts_come_back(store: Store) -> None:
    """An artifact of any size is found with all its fields."""
    run = BoardRun("r1", correlation="c7")
    private: dict[str, Json] = {"kind": "private", "agents": ["Ann", "B\x00"]}
    small = published(ANYTHING, tags=("a", "b", "a"), partition="north", version=3)
    large = published("ä" * 40_000, id="x.y", visibility=private, by="user:ann")
    await store.append(run.writing(small, MessageShown("between"), large, at=500), owner=ME)
    head = StoredArtifact(
        Artifact("r1.1", "Idea", ANYTHING, "Ann", ("a", "b", "a"), "north", "c7", 500),
        Audience(500, "public"),
        "r1",
        1,
        3,
    )
    tail = StoredArtifact(
        Artifact("x.y", "Idea", "ä" * 40_000, "user:ann", (), "", "c7", 500),
        Audience(500, "private", ("Ann", "B\x00")),
        "r1",
        3,
    )
    page = await store.artifacts(query(order="created_at"), count=True)
    expect(page.items, [head, tail], "artifacts in order")
    expect(page.total, 2, "how many there are")


async def artifacts_fit_what_is_asked(store: Store) -> None:
    """Every condition narrows, several of them together, and each value of one widens."""
    one, two = BoardRun("r1"), BoardRun("r2", correlation="c2")
    for run, at, data in (
        (one, 10, published(id="a", tags=("x",))),
        (one, 20, published(id="b", tags=("x", "y"), by="Ben", partition="p")),
        (two, 30, published(id="c", type="Plan", tags=("y", "z"))),
        (two, 40, published(id="d", type="Plan", by="Cas", partition="p")),
        (two, 50, published(id="e", type="idea", tags=("X",), by="Ben", partition="q")),
    ):
        await store.append(run.writing(data, at=at), owner=ME)
    wanted: list[tuple[dict[str, Any], str]] = [
        ({}, "abcde"),
        ({"types": ("Idea",)}, "ab"),
        ({"types": ("idea", "Plan", "idea", "Gone")}, "cde"),
        ({"tags": ("x",)}, "ab"),
        ({"tags": ("x", "y", "x")}, "abc"),
        ({"tags": ("x", "z"), "types": ("Idea", "Plan")}, "abc"),
        ({"tags": ("y",), "types": ("Plan",)}, "c"),
        ({"all_tags": ("x", "y")}, "b"),
        ({"all_tags": ("y",), "tags": ("x", "z")}, "bc"),
        ({"without_tags": ("x", "z")}, "de"),
        ({"tags": ("x",), "without_tags": ("y",)}, "a"),
        ({"producers": ("Ben", "Cas", "Ben")}, "bde"),
        ({"producers": ("Ben",), "types": ("Idea",)}, "b"),
        ({"correlation": "c2"}, "cde"),
        ({"correlation": "c2", "types": ("Idea",)}, ""),
        ({"correlation": "c1", "tags": ("y",), "producers": ("Ben",)}, "b"),
        ({"partition": "p"}, "bd"),
        ({"partition": ""}, "ac"),
        ({"partition": "p", "correlation": "c2"}, "d"),
        ({"since": 20}, "bcde"),
        ({"until": 40}, "abc"),
        ({"since": 20, "until": 40, "tags": ("y",)}, "bc"),
        ({"ids": ("d", "a", "d", "gone")}, "ad"),
        ({"ids": ()}, ""),
        ({"ids": ("a", "c"), "types": ("Plan",)}, "c"),
        ({"ids": ("r1.1",)}, ""),
        ({"types": ("Plan", *(f"T{number}" for number in range(50)))}, "cd"),
    ]
    for given, ids in wanted:
        found = await find(store, query(order="created_at", **given))
        expect(found, Found(list(ids), len(ids)), f"artifacts with {given}")
    await store.append(one.writing(published(), at=60), owner=ME)
    found = await find(store, query(ids=("r1.3", "r1.x", "a", "r1.03", ".", "r1.3")))
    expect(found.ids, ["r1.3", "a"], "artifacts by a name that follows from their place")


async def text_is_found_in_any_case(store: Store) -> None:
    """A text is found as it stands in the payload, in any case; no sign in it means another."""
    run = BoardRun("r1")
    payloads: list[Json] = [
        {"title": "Über 50% of it", "n": 7},
        {"title": "a_b", "list": [1, 2]},
        'He said "no"',
        None,
        "x" * 40_000 + "END",
    ]
    for number, payload in enumerate(payloads):
        data = published(payload, id=str(number), tags=("Über", "%"))
        await store.append(run.writing(data), owner=ME)
    for text, wanted in {
        "über": "0",
        "ÜBER 50%": "0",
        "%": "0",
        "_": "1",
        '"title":"': "01",
        "[1,2]": "1",
        "[1, 2]": "",
        'say "NO"': "",
        'said \\"NO': "2",
        "null": "3",
        "xend": "4",
        "": "01234",
        "Idea": "",
        "50*": "",
    }.items():
        found = await find(store, query(text=text, order="created_at"))
        expect(found, Found(list(wanted), len(wanted)), f"artifacts with the text {text!r}")


async def artifacts_come_in_order_and_pages(store: Store) -> None:
    """Artifacts come by time, run and number, or backwards; pages have no gaps."""
    two, one = BoardRun("r2"), BoardRun("r1")
    await store.append(two.writing(published(tags=("t",)), published(type="Plan"), at=20), owner=ME)
    await store.append(one.writing(*[published(tags=("t", "u"))] * 9, published(), at=20), owner=ME)
    await store.append(one.writing(published(tags=("u",)), at=10), owner=ME)
    await store.append(two.writing(published(type="Plan", tags=("t", "u")), at=15), owner=ME)
    ordered = ["r1.11", "r2.3", *(f"r1.{seq}" for seq in range(1, 11)), "r2.1", "r2.2"]
    subsets: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ordered),
        ({"correlation": "c1"}, ordered),
        ({"types": ("Plan", "Idea")}, ordered),
        ({"tags": ("t", "u")}, [name for name in ordered if name not in ("r1.10", "r2.2")]),
        ({"ids": tuple(reversed(ordered))}, ordered),
    ]
    for given, ids in subsets:
        for order, wanted in (("created_at", ids), ("-created_at", ids[::-1])):
            for limit, offset in product((None, 0, 1, 3, 50), (0, 1, 5, 50)):
                asked = query(order=order, limit=limit, offset=offset, **given)
                page = wanted[offset:][:limit]
                expect(await find(store, asked), Found(page, len(ids)), f"the page {asked}")


#: Who else reads, in the checks of who may see what.
BEN: Final = Identity("Ben", frozenset({"red", "blue"}), "other")
NOBODY: Final = Identity("", frozenset(), "")

#: What artifacts are called, who may see them, and who does: Ann, Ben, somebody else.
POLICIES: Final[tuple[tuple[str, dict[str, Json], str], ...]] = (
    ("public", {"kind": "public"}, "abn"),
    ("private", {"kind": "private", "agents": ["Ann", "Cas"]}, "a"),
    ("quoted", {"kind": "private", "agents": ['","', "%", "Ann\x00", "ann"]}, ""),
    ("one label", {"kind": "labelled", "labels": ["red"]}, "ab"),
    ("all labels", {"kind": "labelled", "labels": ["blue", "red"]}, "b"),
    ("lacking", {"kind": "labelled", "labels": ["red\x00"]}, ""),
    ("own tenant", {"kind": "tenant", "tenant": None}, "a"),
    ("other tenant", {"kind": "tenant", "tenant": "other"}, "b"),
    ("later", {"kind": "after", "seconds": 5, "then": {"kind": "public"}}, ""),
    ("nested", {"kind": "after", "seconds": 0.5, "then": {
        "kind": "after", "seconds": 0.5, "then": {"kind": "private", "agents": ["Ben"]}}}, "b"),
    ("nested later", {"kind": "after", "seconds": 1, "then": {
        "kind": "after", "seconds": 0.001, "then": {"kind": "public"}}}, ""),
    ("unknown", {"kind": "secret"}, ""),
    ("nothing", {}, ""),
    ("nameless", {"kind": "private", "agents": []}, ""),
    ("malformed", {"kind": "labelled", "labels": "red"}, ""),
    ("too late", {"kind": "after", "seconds": 1e300, "then": {"kind": "public"}}, ""),
)  # fmt: skip


async def artifacts_appear_in_order(store: Store) -> None:
    """In order of appearance, artifacts come when they become visible; pages continue there."""
    after: dict[str, Json] = {"kind": "after", "seconds": 0.03, "then": {"kind": "public"}}
    private: dict[str, Json] = {"kind": "private", "agents": ["Cas"]}
    one, two = BoardRun("r1"), BoardRun("r2", owner="user:x")
    for run, at, data in (
        (one, 10, published(id="late", visibility=after)),
        (two, 15, published(id="later", visibility=after)),
        (one, 20, published(id="a")),
        (two, 20, published(id="b")),
        (one, 30, published(id="private", visibility=private)),
        (one, 50, published(id="c")),
        (one, 60, published(id="future", visibility=after)),
    ):
        await store.append(run.writing(data, at=at), owner=ME)
    everything = ["a", "b", "private", "late", "later", "c"]
    for reader, owners, wanted in (
        (None, None, everything),
        (None, ("", "user:x"), everything),
        (None, ("user:x",), ["b", "later"]),
        (ANN, ("",), ["a", "late", "c"]),
    ):
        asked = query(reader, order="appeared_at", owners=owners)._replace(now=70)
        expect((await find(store, asked)).ids, wanted, f"what appears to {reader} of {owners}")
        for number, _ in enumerate(wanted, 1):
            page = (await store.artifacts(asked._replace(limit=number))).items
            last = page[-1].appeared_at, page[-1].run, page[-1].seq
            found = await find(store, asked._replace(after=last))
            expect(found.ids, wanted[number:], f"what appears after {last}")
    for now, wanted in (
        (9, []),
        (20, ["a", "b"]),
        (40, everything[:4]),
        (90, [*everything, "future"]),
    ):
        asked = query(order="appeared_at", owners=None)._replace(now=now)
        expect((await find(store, asked)).ids, wanted, f"what has appeared at {now}")


async def pages_go_on_at_a_place(store: Store) -> None:
    """A page that continues after a place equals a page with an offset."""
    one, two = BoardRun("r1"), BoardRun("r2", owner="user:x")
    for at, run in ((10, one), (10, two), (20, two), (20, one), (20, one), (30, two)):
        await store.append(run.writing(published(tags=("t",)), at=at), owner=ME)
    ways: list[dict[str, Any]] = [*SOME_WAYS[:-1], {"text": "null"}]
    for order, given in product(("created_at", "-created_at"), ways):
        asked = query(order=order, owners=("", "user:x"), **given)
        whole = (await store.artifacts(asked)).items
        expect(len(whole), 6, "all of them")
        for number, last in enumerate(whole, 1):
            place = last.artifact.created_at, last.run, last.seq
            found = (await store.artifacts(asked._replace(after=place, limit=2))).items
            expect(found, whole[number : number + 2], f"after {place} with {given}, {order}")


async def only_readers_who_may_see(store: Store) -> None:
    """An artifact is found by those its policy lets see it, from its time on, and by operators."""
    run = BoardRun("r1")
    for name, policy, _ in POLICIES:
        await store.append(run.writing(published(id=name, visibility=policy), at=2000), owner=ME)
    await store.append(_of_later_version(run.writing(published(id="newer"), at=2000)), owner=ME)
    for letter, reader in (("a", ANN), ("b", BEN), ("n", NOBODY)):
        wanted = [name for name, _, seen_by in POLICIES if letter in seen_by]
        for given in ({}, {"ids": (*(name for name, _, _ in POLICIES), "newer")}):
            asked = query(reader, now=3000, order="created_at", **given)
            expect(await find(store, asked), Found(wanted, len(wanted)), f"seen by {reader}")
    everything = [*(name for name, _, _ in POLICIES), "newer"]
    found = await find(store, query(order="created_at"))
    expect(found, Found(everything, len(everything)), "what an operator sees")
    for now, wanted in ((2999, 0), (3000, 0), (3001, 1), (6999, 1), (7000, 2)):
        found = await find(store, query(NOBODY, now=now, ids=("later", "nested later")))
        expect(found.total, wanted, f"artifacts that are seen at {now}")


def _of_later_version(batch: Batch) -> Batch:
    """Return a batch whose artifact has a policy that this version does not know."""
    changes = [
        change._replace(visibility="new") if isinstance(change, ArtifactRow) else change
        for change in batch.changes
    ]
    return batch._replace(changes=tuple(changes))


async def hidden_is_as_missing(store: Store) -> None:
    """A reader who may not see an artifact gets the same answer as if it did not exist."""
    private: dict[str, Json] = {"kind": "private", "agents": ["Cas"]}
    for board, with_hidden in (("With", True), ("Without", False)):
        run = BoardRun(f"r {board}", workflow=board)
        for number in range(12):
            hidden = number % 3 > 0
            data = published(
                {"text": "same"},
                id=f"i{number}",
                tags=("t",),
                partition="p",
                visibility=private if hidden else {"kind": "public"},
            )
            shown = MessageShown("nothing") if hidden and not with_hidden else data
            await store.append(run.writing(shown, at=number), owner=ME)
    for given in (
        {},
        {"types": ("Idea",)},
        {"tags": ("t",)},
        {"tags": ("t",), "types": ("Idea",)},
        {"producers": ("Ann",)},
        {"correlation": "c1"},
        {"partition": "p"},
        {"text": "same"},
        {"ids": tuple(f"i{number}" for number in range(12))},
        {"since": 1, "until": 11},
    ):
        for limit, offset, order in product((None, 2), (0, 1, 3), ("created_at", "-created_at")):
            asked = query(ANN, limit=limit, offset=offset, order=order, **given)
            found = [await find(store, asked._replace(board=name)) for name in ("With", "Without")]
            expect(found[0], found[1], f"what is found beside what is hidden, {asked}")


async def boards_and_tenants_are_apart(store: Store) -> None:
    """Artifacts and consumption of another board or tenant are not found."""
    places = list(product((APP, "sho", "SHOP", "%"), (BOARD, "board", "%")))
    for number, (app, board) in enumerate(places):
        run = BoardRun(f"r{number}", app=app, workflow=board)
        data = published(number, id="same", tags=("t",))
        await store.append(run.writing(data, TurnStarted("Ann", inputs=("same",))), owner=ME)
    for number, (app, board) in enumerate(places):
        for given in SOME_WAYS:
            page = await store.artifacts(QUERY._replace(app=app, board=board, **given))
            found = [item.artifact.payload for item in page.items]
            expect(found, [number], f"artifacts of {board} in {app} with {given}")
        woken = await store.consumed(app, board, owners=None)
        expect([row.run for row in woken], [f"r{number}"], f"agents woken in {board} of {app}")
    expect((await find(store, query(app="x"))).ids, [], "artifacts of an unknown tenant")


async def owners_are_apart(store: Store) -> None:
    """What belongs to a user is found for that user and an operator; what is shared for all."""
    owners = ("", "user:ann", "user:Ann", "user:", "user:%")
    for number, owner in enumerate(owners):
        run = BoardRun(f"r{number}", owner=owner)
        data = published(number, id="same", tags=("t",), partition="p")
        await store.append(run.writing(data, TurnStarted("Ann", inputs=("same",))), owner=ME)
    asked = [None, *((owner,) for owner in owners), ("", "user:ann"), ("user:ann", "user:bob")]
    ways: list[dict[str, Any]] = [{"correlation": "c1"}, {"partition": "p"}, {"text": ""}]
    for wanted in asked:
        inside = [place for place, owner in enumerate(owners) if wanted is None or owner in wanted]
        for given in (*SOME_WAYS, *ways):
            page = await store.artifacts(query(owners=wanted, **given), count=True)
            found = sorted(cast("int", item.artifact.payload) for item in page.items)
            expect(found, inside, f"artifacts of {wanted} with {given}")
            expect(page.total, len(inside), f"how many artifacts {wanted} have with {given}")
        for agent, artifact in product((None, "Ann"), (None, "same")):
            woken = await store.consumed(APP, BOARD, owners=wanted, agent=agent, artifact=artifact)
            runs = sorted(row.run for row in woken)
            expect(runs, [f"r{place}" for place in inside], f"agents woken for {wanted}")


async def consumption_newest_first(store: Store) -> None:
    """Who was woken by what is found by agent, by artifact and by both, newest first."""
    one, two = BoardRun("r1"), BoardRun("r2")
    for run, at, agent, inputs in (
        (one, 30, "Ann", ("x", "y")),
        (two, 10, "Ben", ("x",)),
        (one, 20, "Ben", ("z", "z")),
        (two, 30, "Ann", ("x",)),
        (two, 40, "Ann", ()),
    ):
        await store.append(run.writing(TurnStarted(agent, inputs=inputs), at=at), owner=ME)
    rows = [
        Consumption("Ann", "x", "r2", 1, 30),
        Consumption("Ann", "y", "r1", 1, 30),
        Consumption("Ann", "x", "r1", 1, 30),
        Consumption("Ben", "z", "r1", 1, 20),
        Consumption("Ben", "x", "r2", 1, 10),
    ]
    for agent, artifact in product((None, "Ann", "Ben", "ann"), (None, "x", "z", "X")):
        wanted = [
            row for row in rows if agent in (None, row.agent) and artifact in (None, row.artifact)
        ]
        found = await store.consumed(APP, BOARD, owners=None, agent=agent, artifact=artifact)
        expect(found, wanted, f"consumption of {artifact} by {agent}")
    expect(await store.consumed(APP, BOARD, owners=None, limit=2), rows[:2], "the newest two")
    expect(await store.consumed(APP, BOARD, owners=None, limit=0), [], "none of them")


async def artifacts_are_those_of_batches(store: Store) -> None:
    """What a batch says of a board is there once; it goes when the run is removed."""
    for name, app, at in (("r1", APP, 10), ("r2", APP, 90), ("r1", "other", 10)):
        run = BoardRun(name, app=app)
        large = published("x" * 40_000, id=f"{name} large", tags=("t", "u"))
        turn = TurnStarted("Ann", inputs=(f"{name}.1",))
        batch = run.writing(published(tags=("t",)), large, turn, at=at, status="ended")
        await store.append(batch, owner=ME)
        await store.append(batch, owner=ME)
        stale = BoardRun(name, app=app).writing(published("b"), TurnStarted("Ben", inputs=("x",)))
        await expect_error(StoreConflict, store.append(stale, owner=ME), "another batch")
    await store.prune(SCOPE, ended_before=50, dry_run=True)
    expect((await find(store, query())).total, 4, "artifacts after a dry run")
    await store.prune(SCOPE, ended_before=50, dry_run=False)
    for app, name in ((APP, "r2"), ("other", "r1")):
        for given in SOME_WAYS[:-1]:
            found = await find(store, QUERY._replace(app=app, **given))
            expect(found, Found([f"{name} large", f"{name}.1"], 2), f"in {app} with {given}")
        woken = [(row.run, row.agent) for row in await store.consumed(app, BOARD, owners=None)]
        expect(woken, [(name, "Ann")], f"consumption in {app}")
    expect((await find(store, query(ids=("r1.1", "r1 large")))).ids, [], "artifacts by id")
    await store.append(BoardRun("r1").writing(published("new"), at=99), owner=ME)
    expect((await find(store, query(ids=("r1.1",)))).ids, ["r1.1"], "one in the place of another")


BOARD_CHECKS: Final[tuple[Check, ...]] = (
    artifacts_come_back,
    artifacts_fit_what_is_asked,
    text_is_found_in_any_case,
    artifacts_come_in_order_and_pages,
    artifacts_appear_in_order,
    pages_go_on_at_a_place,
    only_readers_who_may_see,
    hidden_is_as_missing,
    boards_and_tenants_are_apart,
    owners_are_apart,
    consumption_newest_first,
    artifacts_are_those_of_batches,
)
