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
from weft.engine.events import KINDS
from weft.errors import StoreError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.testing import journal_conformance, journal_pruning, journal_reading, journal_writing
from weft.testing.journal_conformance import JOURNAL_CHECKS, LASTING_JOURNAL_CHECKS
from weft.testing.journal_kinds import EVERY_KIND
from weft.testing.journal_samples import OpenJournal, SampleRun

NOTICED = {
    journal_writing.events_come_back: [broken.ReadsBackwards],
    journal_writing.conflict_writes_nothing: [broken.WritesHalfOfAConflict],
    journal_writing.one_writer_wins: [broken.LetsEveryoneWin],
    journal_writing.writers_do_not_disturb: [broken.SpoilsNeighbours],
    journal_writing.batches_of_one_run_queue: [broken.NeverCloses],
    journal_writing.large_data_comes_back: [broken.CutsLargeData],
    journal_writing.text_comes_back: [broken.StripsText],
    journal_writing.long_runs_come_back: [broken.ForgetsOldEvents],
    journal_reading.events_after_a_number: [broken.StartsTooEarly],
    journal_reading.rows_are_the_latest: [broken.KeepsTheFirstRow],
    journal_reading.runs_newest_first: [broken.SortsByName],
    journal_reading.runs_by_status_and_workflow: [broken.IgnoresTheStatus],
    journal_reading.questions_oldest_first: [broken.ListsQuestionsAsTheyCome],
    journal_reading.unfinished_runs: [broken.WakesWaitingRuns],
    journal_reading.questions_expire: [broken.ExpiresTooLate],
    journal_reading.scopes_do_not_leak: [
        broken.ShowsOtherUsers,
        broken.ListsOtherUsers,
        broken.ReadsOtherUsers,
        broken.AsksOtherUsers,
    ],
    journal_reading.packages_are_kept: [broken.KeepsOnePackage],
    journal_pruning.ended_runs_go: [broken.PrunesTooMuch],
    journal_pruning.dry_run_only_counts: [broken.PrunesForReal, broken.GuessesWhatItWouldPrune],
    journal_pruning.only_the_scope_is_pruned: [broken.PrunesOtherUsers],
    journal_pruning.packages_go_with_their_runs: [
        broken.NeverForgetsPackages,
    ],
    journal_conformance.closing_writes_what_is_under_way: [broken.CutsOffWriters],
    journal_conformance.closed_is_closed: [broken.NeverQuiteCloses],
    journal_conformance.everything_is_there_again: [MemoryJournal],
    journal_conformance.writers_share_a_store: [MemoryJournal],
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
    with pytest.raises((AssertionError, StoreError)):
        play(check(memory(kind)))


def test_every_check_has_something_to_notice():
    assert set(NOTICED) == {*JOURNAL_CHECKS, *LASTING_JOURNAL_CHECKS}


def test_the_samples_hold_every_kind_of_event():
    assert {type(it).__name__ for it in EVERY_KIND} == set(KINDS)


def test_long_values_are_shortened_in_messages():
    with pytest.raises(AssertionError) as caught:
        journal_conformance.expect("x" * 1000, "y", "a text")
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
        await journal.append(run.batch(opened=(run.request("q"),)))
    inside = {f"r{it}" for it, owner in enumerate(owners) if scope.covers(*owner)}
    everything = [f"r{it}" for it in range(len(owners))]
    assert {it.run for it in await journal.runs(scope)} == inside
    assert {it.run for it in await journal.requests(scope)} == inside
    assert {it for it in everything if await journal.run(scope, it)} == inside
    assert {it for it in everything if await journal.read(scope, it)} == inside
    await journal.close()
