"""What must hold of the artifacts that a journal keeps."""

from itertools import product
from typing import Any, Final

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.engine.events import MessageShown, TurnStarted
from weft.engine.rows import ArtifactRow, Batch
from weft.findings import Json
from weft.ports.board import StoredArtifact
from weft.testing.journal.board_samples import (
    ANN,
    BOARD,
    INBOX,
    QUERY,
    SOME_WAYS,
    BoardRun,
    Found,
    find,
    published,
    query,
)
from weft.testing.journal.kinds import ANYTHING
from weft.testing.journal.samples import APP, Check, OpenJournal, expect


async def artifacts_come_back(open_journal: OpenJournal) -> None:
    """An artifact is found with all that was said of it, whatever its size."""
    journal = await open_journal()
    run = BoardRun("r1", correlation="c7")
    private: dict[str, Json] = {"kind": "private", "agents": ["Ann", "B\x00"]}
    small = published(ANYTHING, tags=("a", "b", "a"), partition="north", version=3)
    large = published("ä" * 40_000, id="x.y", visibility=private, by="user:ann")
    await journal.append(run.writing(small, MessageShown("between"), large, at=500))
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
    page = await journal.artifacts(query(order="created_at"), count=True)
    expect(page.items, [head, tail], "artifacts in order")
    expect(page.total, 2, "how many there are")
    await journal.close()


async def artifacts_fit_what_is_asked(open_journal: OpenJournal) -> None:
    """Every condition narrows, several of them together, and each value of one widens."""
    journal = await open_journal()
    one, two = BoardRun("r1"), BoardRun("r2", correlation="c2")
    for run, at, data in (
        (one, 10, published(id="a", tags=("x",))),
        (one, 20, published(id="b", tags=("x", "y"), by="Ben", partition="p")),
        (two, 30, published(id="c", type="Plan", tags=("y", "z"))),
        (two, 40, published(id="d", type="Plan", by="Cas", partition="p")),
        (two, 50, published(id="e", type="idea", tags=("X",), by="Ben", partition="q")),
    ):
        await journal.append(run.writing(data, at=at))
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
        ({"types": ("Plan", *(f"T{it}" for it in range(50)))}, "cd"),
    ]
    for given, ids in wanted:
        found = await find(journal, query(order="created_at", **given))
        expect(found, Found(list(ids), len(ids)), f"artifacts with {given}")
    await journal.append(one.writing(published(), at=60))
    found = await find(journal, query(ids=("r1.3", "r1.x", "a", "r1.03", ".", "r1.3")))
    expect(found.ids, ["r1.3", "a"], "artifacts by a name that follows from their place")
    await journal.close()


async def text_is_found_in_any_case(open_journal: OpenJournal) -> None:
    """A text is found as it stands in the payload, in any case; no sign in it means another."""
    journal = await open_journal()
    run = BoardRun("r1")
    payloads: list[Json] = [
        {"title": "Über 50% of it", "n": 7},
        {"title": "a_b", "list": [1, 2]},
        'He said "no"',
        None,
        "x" * 40_000 + "END",
    ]
    for number, payload in enumerate(payloads):
        await journal.append(run.writing(published(payload, id=str(number), tags=("Über", "%"))))
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
        found = await find(journal, query(text=text, order="created_at"))
        expect(found, Found(list(wanted), len(wanted)), f"artifacts with the text {text!r}")
    await journal.close()


async def artifacts_come_in_order_and_pages(open_journal: OpenJournal) -> None:
    """Artifacts come by time, run and number, or backwards; pages have no gaps."""
    journal = await open_journal()
    two, one = BoardRun("r2"), BoardRun("r1")
    await journal.append(two.writing(published(tags=("t",)), published(type="Plan"), at=20))
    await journal.append(one.writing(*[published(tags=("t", "u"))] * 9, published(), at=20))
    await journal.append(one.writing(published(tags=("u",)), at=10))
    await journal.append(two.writing(published(type="Plan", tags=("t", "u")), at=15))
    ordered = ["r1.11", "r2.3", *(f"r1.{it}" for it in range(1, 11)), "r2.1", "r2.2"]
    subsets: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ordered),
        ({"correlation": "c1"}, ordered),
        ({"types": ("Plan", "Idea")}, ordered),
        ({"tags": ("t", "u")}, [it for it in ordered if it not in ("r1.10", "r2.2")]),
        ({"ids": tuple(reversed(ordered))}, ordered),
    ]
    for given, ids in subsets:
        for order, wanted in (("created_at", ids), ("-created_at", ids[::-1])):
            for limit, offset in product((None, 0, 1, 3, 50), (0, 1, 5, 50)):
                asked = query(order=order, limit=limit, offset=offset, **given)
                page = wanted[offset:][:limit]
                expect(await find(journal, asked), Found(page, len(ids)), f"the page {asked}")
    await journal.close()


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


async def only_readers_who_may_see(open_journal: OpenJournal) -> None:
    """An artifact is found by those its policy lets see it, from its time on, and by operators."""
    journal = await open_journal()
    run = BoardRun("r1")
    for name, policy, _ in POLICIES:
        await journal.append(run.writing(published(id=name, visibility=policy), at=2000))
    await journal.append(_of_later_version(run.writing(published(id="newer"), at=2000)))
    for letter, reader in (("a", ANN), ("b", BEN), ("n", NOBODY)):
        wanted = [name for name, _, seen_by in POLICIES if letter in seen_by]
        for given in ({}, {"ids": (*(name for name, _, _ in POLICIES), "newer")}):
            asked = query(reader, now=3000, order="created_at", **given)
            expect(await find(journal, asked), Found(wanted, len(wanted)), f"seen by {reader}")
    everything = [*(name for name, _, _ in POLICIES), "newer"]
    found = await find(journal, query(order="created_at"))
    expect(found, Found(everything, len(everything)), "what an operator sees")
    for now, wanted in ((2999, 0), (3000, 0), (3001, 1), (6999, 1), (7000, 2)):
        found = await find(journal, query(NOBODY, now=now, ids=("later", "nested later")))
        expect(found.total, wanted, f"artifacts that are seen at {now}")
    await journal.close()


def _of_later_version(batch: Batch) -> Batch:
    """Return a batch whose artifact has a policy that this version does not know."""
    sides = [it._replace(policy="new") if isinstance(it, ArtifactRow) else it for it in batch.sides]
    return batch._replace(sides=tuple(sides))


async def hidden_is_as_missing(open_journal: OpenJournal) -> None:
    """Whoever may not see an artifact gets what they would get if it were not there."""
    journal = await open_journal()
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
            await journal.append(run.writing(shown, at=number))
    for given in (
        {},
        {"types": ("Idea",)},
        {"tags": ("t",)},
        {"tags": ("t",), "types": ("Idea",)},
        {"producers": ("Ann",)},
        {"correlation": "c1"},
        {"partition": "p"},
        {"text": "same"},
        {"ids": tuple(f"i{it}" for it in range(12))},
        {"since": 1, "until": 11},
    ):
        for limit, offset, order in product((None, 2), (0, 1, 3), ("created_at", "-created_at")):
            asked = query(ANN, limit=limit, offset=offset, order=order, **given)
            found = [await find(journal, asked._replace(board=it)) for it in ("With", "Without")]
            expect(found[0], found[1], f"what is found beside what is hidden, {asked}")
    await journal.close()


async def boards_and_tenants_are_apart(open_journal: OpenJournal) -> None:
    """Artifacts, consumption and letters of another board or tenant are not found."""
    journal = await open_journal()
    places = list(product((APP, "sho", "SHOP", "%"), (BOARD, "board", "%")))
    for number, (app, board) in enumerate(places):
        run = BoardRun(f"r{number}", app=app, workflow=board)
        data = published(number, id="same", tags=("t",), letters={INBOX: "s"}, wakes={"s": ""})
        await journal.append(run.writing(data, TurnStarted("Ann", inputs=("same",))))
    for number, (app, board) in enumerate(places):
        for given in SOME_WAYS:
            page = await journal.artifacts(QUERY._replace(app=app, board=board, **given))
            found = [it.artifact.payload for it in page.items]
            expect(found, [number], f"artifacts of {board} in {app} with {given}")
        woken = await journal.consumed(app, board)
        expect([it.run for it in woken], [f"r{number}"], f"who was woken in {board} of {app}")
    for app in {app for app, _ in places}:
        wanted = [number for number, place in enumerate(places) if place[0] == app]
        letters = await journal.letters(app, INBOX)
        expect([it.data.payload for it in letters], wanted, f"letters in {app}")
    expect((await find(journal, query(app="x"))).ids, [], "artifacts of an unknown tenant")
    await journal.close()


BOARD_CHECKS: Final[tuple[Check, ...]] = (
    artifacts_come_back,
    artifacts_fit_what_is_asked,
    text_is_found_in_any_case,
    artifacts_come_in_order_and_pages,
    only_readers_who_may_see,
    hidden_is_as_missing,
    boards_and_tenants_are_apart,
)
