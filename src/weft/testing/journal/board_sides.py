"""What must hold of consumption and letters, and of all that a batch says of a board."""

from itertools import product
from typing import Final

from weft.engine.events import ArtifactArrived, ArtifactPublished, TurnStarted
from weft.errors import StoreConflict, StoreError
from weft.findings import Json
from weft.ports.board import Consumption
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
from weft.testing.journal.lossy import LossyJournal
from weft.testing.journal.samples import APP, SCOPE, Check, OpenJournal, expect, expect_error


async def consumption_newest_first(open_journal: OpenJournal) -> None:
    """Who was woken by what is found by agent, by artifact and by both, newest first."""
    journal = await open_journal()
    one, two = BoardRun("r1"), BoardRun("r2")
    for run, at, agent, inputs in (
        (one, 30, "Ann", ("x", "y")),
        (two, 10, "Ben", ("x",)),
        (one, 20, "Ben", ("z", "z")),
        (two, 30, "Ann", ("x",)),
        (two, 40, "Ann", ()),
    ):
        await journal.append(run.writing(TurnStarted(agent, inputs=inputs), at=at))
    rows = [
        Consumption("Ann", "x", "r2", 1, 30),
        Consumption("Ann", "y", "r1", 1, 30),
        Consumption("Ann", "x", "r1", 1, 30),
        Consumption("Ben", "z", "r1", 1, 20),
        Consumption("Ben", "x", "r2", 1, 10),
    ]
    for agent, artifact in product((None, "Ann", "Ben", "ann"), (None, "x", "z", "X")):
        wanted = [
            it for it in rows if agent in (None, it.agent) and artifact in (None, it.artifact)
        ]
        found = await journal.consumed(APP, BOARD, agent=agent, artifact=artifact)
        expect(found, wanted, f"consumption of {artifact} by {agent}")
    expect(await journal.consumed(APP, BOARD, limit=2), rows[:2], "the newest two")
    expect(await journal.consumed(APP, BOARD, limit=0), [], "none of them")
    await journal.close()


def sent(payload: Json, *to: str) -> ArtifactPublished:
    """Return an artifact that goes to runs which collect it."""
    return published(
        payload,
        tags=("t",),
        partition="p",
        letters={it: f"sub {it}" for it in to},
        wakes={f"sub {it}": "key" for it in to},
    )


async def letters_wait_until_they_are_taken(open_journal: OpenJournal) -> None:
    """Letters are read in the order they were written, until a batch of the receiver has them."""
    journal = await open_journal()
    one, two = BoardRun("r2"), BoardRun("r1", user="bob", digest="digest-2", correlation="c2")
    expect(await journal.unread(), [], "places with letters before there are any")
    first = one.writing(sent(ANYTHING, "In/1", "In/2"), sent("b" * 40_000, "In/1"))
    await journal.append(first)
    await journal.append(two.writing(sent("c", "In/1")))
    other = BoardRun("r1", app="other")
    await journal.append(other.writing(sent("d", "In/1")))
    letters = await journal.letters(APP, "In/1")
    expect([it.data.payload for it in letters], [ANYTHING, "b" * 40_000, "c"], "letters in order")
    written = [it for it in first.sides if it == letters[0]]
    expect(written, letters[:1], "a letter with all that stands in it")
    expect((letters[2].user, letters[2].digest), ("bob", "digest-2"), "whose letter it is")
    expect(await journal.letters(APP, "In/1", limit=1), letters[:1], "the first letter")
    expect(await journal.letters(APP, "In"), [], "letters to nobody")
    places = [("other", "In/1"), (APP, "In/1"), (APP, "In/2")]
    expect(await journal.unread(), places, "places with letters")
    receiver = BoardRun("In/1/1")
    taken = receiver.writing(*(it.data for it in letters[:2]))
    await journal.append(taken)
    expect(await journal.letters(APP, "In/1"), letters[2:], "letters that are left")
    expect(len(await journal.letters("other", "In/1")), 1, "letters of another tenant")
    read = [it.data for it in await journal.read(SCOPE, "In/1/1")]
    expect(read, [it.data for it in letters[:2]], "letters as events of the receiver")
    await journal.append(receiver.writing(letters[2].data))
    expect(await journal.unread(), [places[0], places[2]], "places where letters are left")
    await journal.close()


async def boards_are_written_with_their_batch(open_journal: OpenJournal) -> None:
    """What a batch says of a board is there once, and not at all if the batch is refused."""
    journal = LossyJournal(await open_journal(), lambda number: number < 3)
    run, receiver = BoardRun("r1"), BoardRun("r2")
    batch = run.writing(sent("a", INBOX), TurnStarted("Ann", inputs=("r1.1",)), at=10)
    await expect_error(StoreError, journal.append(batch), "a batch, unacknowledged")
    (letter,) = await journal.letters(APP, INBOX)
    taking = receiver.writing(letter.data)
    await expect_error(StoreError, journal.append(taking), "taking a letter, unacknowledged")
    for it in (batch, taking):
        await expect_error(StoreConflict, journal.append(it), "the same batch once more")
    stale = BoardRun("r1").writing(sent("b", INBOX), TurnStarted("Ben", inputs=("x",)))
    await expect_error(StoreConflict, journal.append(stale), "another batch in its place")
    expect(await find(journal, query()), Found(["r1.1"], 1), "artifacts afterwards")
    woken = [it.agent for it in await journal.consumed(APP, BOARD)]
    expect(woken, ["Ann"], "who was woken, afterwards")
    expect(await journal.letters(APP, INBOX), [], "letters afterwards")
    await journal.close()


async def artifacts_go_with_their_runs(open_journal: OpenJournal) -> None:
    """A run that is removed takes along its artifacts, tags, consumption and unread letters."""
    journal = await open_journal()
    for name, app, at in (("r1", APP, 10), ("r2", APP, 90), ("r1", "other", 10)):
        run = BoardRun(name, app=app)
        data = sent(name, INBOX)
        large = published("x" * 40_000, id=f"{name} large", tags=("t", "u"))
        turn = TurnStarted("Ann", inputs=(f"{name}.1",))
        await journal.append(run.writing(data, large, turn, at=at, status="ended"))
    await journal.prune(SCOPE, ended_before=50, dry_run=True)
    expect((await find(journal, query())).total, 4, "artifacts after a dry run")
    await journal.prune(SCOPE, ended_before=50, dry_run=False)
    for app, name in ((APP, "r2"), ("other", "r1")):
        wanted = Found([f"{name} large", f"{name}.1"], 2)
        for given in SOME_WAYS[:-1]:
            found = await find(journal, QUERY._replace(app=app, **given))
            expect(found, wanted, f"artifacts in {app} with {given}")
        woken = [it.run for it in await journal.consumed(app, BOARD)]
        expect(woken, [name], f"consumption in {app}")
        letters = [it.data.payload for it in await journal.letters(app, INBOX)]
        expect(letters, [name], f"letters in {app}")
    expect((await find(journal, query(ids=("r1.1", "r1 large")))).ids, [], "artifacts by id")
    again = BoardRun("r1")
    await journal.append(again.writing(published("new"), at=99))
    expect((await find(journal, query(ids=("r1.1",)))).ids, ["r1.1"], "one in the place of another")
    await journal.close()


async def boards_are_there_again(open_journal: OpenJournal) -> None:
    """Artifacts, consumption and letters are found after opening again; delays have gone on."""
    journal = await open_journal()
    run = BoardRun("r1")
    later: dict[str, Json] = {"kind": "after", "seconds": 5, "then": {"kind": "public"}}
    data = published(ANYTHING, id="later", visibility=later, tags=("t",))
    turn = TurnStarted("Ann", inputs=("later",))
    await journal.append(run.writing(data, sent("a", INBOX), turn, at=1000))
    letters = await journal.letters(APP, INBOX)
    await journal.close()
    journal = await open_journal()
    for now, total in ((5999, 1), (6000, 2)):
        found = await find(journal, query(ANN, now=now, tags=("t",)))
        expect(found.total, total, f"artifacts that are seen at {now} after opening again")
    expect(len(await journal.consumed(APP, BOARD)), 1, "consumption after opening again")
    expect(await journal.letters(APP, INBOX), letters, "letters after opening again")
    expect(await journal.unread(), [(APP, INBOX)], "places with letters after opening again")
    arrived: ArtifactArrived = letters[0].data
    await journal.append(BoardRun("r2").writing(arrived))
    expect(await journal.unread(), [], "places with letters when they were read")
    await journal.close()


BOARD_SIDE_CHECKS: Final[tuple[Check, ...]] = (
    consumption_newest_first,
    letters_wait_until_they_are_taken,
    boards_are_written_with_their_batch,
    artifacts_go_with_their_runs,
)
