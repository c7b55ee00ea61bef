"""The journals that come with Weft, against the suite every journal must pass."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import broken_journals as broken
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import KIND_NAMES, KINDS
from weft.errors import StoreError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.testing.journal import board, board_sides, conformance, pruning, reading, writing
from weft.testing.journal.conformance import JOURNAL_CHECKS, LASTING_JOURNAL_CHECKS
from weft.testing.journal.kinds import EVERY_KIND
from weft.testing.journal.samples import OpenJournal, SampleRun

NOTICED = {
    writing.events_come_back: [broken.ReadsBackwards],
    writing.conflict_writes_nothing: [broken.WritesHalfOfAConflict],
    writing.one_writer_wins: [broken.LetsEveryoneWin],
    writing.writers_do_not_disturb: [broken.SpoilsNeighbours],
    writing.batches_of_one_run_queue: [broken.NeverCloses],
    writing.large_data_comes_back: [broken.CutsLargeData],
    writing.text_comes_back: [broken.StripsText],
    writing.lost_acknowledgements_are_found: [
        broken.ForgetsTheBatch,
        broken.TakesTheSameBatchTwice,
    ],
    writing.long_runs_come_back: [broken.ForgetsOldEvents],
    reading.events_after_a_number: [broken.StartsTooEarly],
    reading.rows_are_the_latest: [broken.KeepsTheFirstRow],
    reading.runs_newest_first: [broken.SortsByName],
    reading.runs_by_status_and_workflow: [broken.IgnoresTheStatus],
    reading.questions_oldest_first: [broken.ListsQuestionsAsTheyCome],
    reading.questions_find_their_people: [broken.AsksNobodyElse, broken.AsksTheUserInstead],
    reading.values_wait_for_later_runs: [
        broken.KeepsForEveryWorkflow,
        broken.KeepsTheFirstValue,
        broken.ForgetsValuesWithTheirRun,
    ],
    reading.completed_workflows: [
        broken.CompletesForEverybody,
        broken.CountsWhateverEnded,
        broken.CountsForks,
        broken.RemembersWhatIsGone,
    ],
    reading.unfinished_runs: [broken.WakesWaitingRuns],
    reading.what_is_due: [broken.ExpiresTooLate, broken.ForgetsTimers, broken.IgnoresThePage],
    reading.signs_of_life: [broken.ForgetsWhoLives],
    reading.owners_change: [broken.LetsEveryoneClaim],
    reading.followers_get_events: [broken.FollowsNothing, broken.LetsAnyoneFollow],
    reading.tenants_may_name_alike: [broken.MixesTenants],
    reading.scopes_do_not_leak: [
        broken.ShowsOtherUsers,
        broken.ListsOtherUsers,
        broken.ReadsOtherUsers,
        broken.AsksOtherUsers,
    ],
    reading.packages_are_kept: [broken.KeepsOnePackage],
    pruning.ended_runs_go: [broken.PrunesTooMuch],
    pruning.dry_run_only_counts: [broken.PrunesForReal, broken.GuessesWhatItWouldPrune],
    pruning.only_the_scope_is_pruned: [broken.PrunesOtherUsers],
    pruning.packages_go_with_their_runs: [
        broken.NeverForgetsPackages,
    ],
    board.artifacts_come_back: [broken.ForgetsTheVersion, broken.CutsNames],
    board.artifacts_fit_what_is_asked: [
        broken.WantsEveryTag,
        broken.IgnoresUnwantedTags,
        broken.TakesTheEndAsWell,
        broken.MixesPartitions,
        broken.NeverFindsByPlace,
    ],
    board.text_is_found_in_any_case: [broken.MindsTheCase, broken.KnowsWildcards],
    board.artifacts_come_in_order_and_pages: [
        broken.OldestFirst,
        broken.SortsByTimeOnly,
        broken.CountsThePage,
    ],
    board.only_readers_who_may_see: [
        broken.ShowsHiddenArtifacts,
        broken.ShowsTooEarly,
        broken.TrustsUnknownPolicies,
    ],
    board.hidden_is_as_missing: [broken.CountsHiddenArtifacts, broken.LimitsBeforeItHides],
    board.boards_and_tenants_are_apart: [broken.MixesBoards, broken.MixesLettersOfTenants],
    board_sides.consumption_newest_first: [
        broken.ListsConsumptionAsItComes,
        broken.IgnoresTheConsumed,
    ],
    board_sides.letters_wait_until_they_are_taken: [
        broken.NeverTakesLetters,
        broken.ReadsLettersBackwards,
        broken.KeepsNoUser,
    ],
    board_sides.boards_are_written_with_their_batch: [broken.PublishesInAConflict],
    board_sides.artifacts_go_with_their_runs: [broken.KeepsTheBoard, broken.ClearsTheBoard],
    board_sides.boards_are_there_again: [MemoryJournal],
    conformance.closing_writes_what_is_under_way: [broken.CutsOffWriters],
    conformance.closed_is_closed: [broken.NeverQuiteCloses],
    conformance.everything_is_there_again: [MemoryJournal],
    conformance.writers_share_a_store: [MemoryJournal],
    conformance.followers_see_other_writers: [MemoryJournal],
}


def play(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


def memory(kind: type[MemoryJournal] = MemoryJournal) -> OpenJournal:
    async def open_journal() -> Journal:
        return kind()

    return open_journal


def sqlite(folder: Path, **options: Any) -> OpenJournal:
    return lambda: SqliteJournal.open(folder / "journal.db", **options)


@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda it: it.__name__)
def test_memory(check):
    play(check(memory()))


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize(
    "check", [*JOURNAL_CHECKS, *LASTING_JOURNAL_CHECKS], ids=lambda it: it.__name__
)
def test_sqlite(check, durability, tmp_path):
    play(check(sqlite(tmp_path, durability=durability)))


@pytest.mark.parametrize(
    ("check", "kind"),
    [(check, kind) for check, kinds in NOTICED.items() for kind in kinds],
    ids=lambda it: it.__name__,
)
def test_the_suite_notices(check, kind):
    with pytest.raises((AssertionError, StoreError, StopAsyncIteration)):
        play(check(memory(kind)))


def test_every_check_has_something_to_notice():
    assert set(NOTICED) == {*JOURNAL_CHECKS, *LASTING_JOURNAL_CHECKS}


def test_the_samples_hold_every_kind_of_event():
    assert {KIND_NAMES[type(it)] for it in EVERY_KIND} == set(KINDS)


def test_long_values_are_shortened_in_messages():
    with pytest.raises(AssertionError) as caught:
        conformance.expect("x" * 1000, "y", "a text")
    assert len(str(caught.value)) < 600
    assert str(caught.value).startswith("a text: expected 'y', found 'xxx")


NAMES = st.text(max_size=3)
OWNERS = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(owners=OWNERS, asked=st.tuples(NAMES, st.none() | NAMES), pick=st.integers(0, 5))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_no_scope_sees_what_is_outside(kind, owners, asked, pick):
    # Half of the time the scope asked for is one that exists.
    app, user = owners[pick] if pick < len(owners) else asked
    with TemporaryDirectory() as folder:
        opened = memory() if kind == "memory" else sqlite(Path(folder), durability="normal")
        play(_sees_exactly(opened, owners, Scope(app, user)))


async def _sees_exactly(open_journal: OpenJournal, owners: list[tuple[str, str]], scope: Scope):
    journal = await open_journal()
    for number, (app, user) in enumerate(owners):
        run = SampleRun(f"r{number}", app=app, user=user)
        await journal.append(run.batch(sides=(run.request("q"),)))
    inside = {f"r{it}" for it, owner in enumerate(owners) if scope.covers(*owner)}
    everything = [f"r{it}" for it in range(len(owners))]
    assert {it.run for it in await journal.runs(scope)} == inside
    assert {it.run for it in await journal.requests(scope)} == inside
    assert {it for it in everything if await journal.run(scope, it)} == inside
    assert {it for it in everything if await journal.read(scope, it)} == inside
    await journal.close()
