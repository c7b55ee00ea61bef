"""Writing a run without any task: decide, append, catch up, and find out what became of a write."""

import asyncio

import pytest

from support.journal_play import play
from support.run_play import linked
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.engine.commands import CallModel
from weft.engine.events import (
    ModelReplied,
    RequestAnswered,
    RunStarted,
    StopAsked,
    VariableSet,
)
from weft.engine.rows import batch
from weft.engine.state import State
from weft.errors import StoreConflict, StoreError, UsageError
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.runs.writer import MAX_CONFLICTS, PAUSES, Batches, RunWriter
from weft.runtime.signals import is_open
from weft.spec.workflow import WorkflowSpec

ADA = Scope("app", "ada")
SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
        "variables": {"n": {"type": "int", "source": {"type": "derived", "default": 0}}},
        "handoffs": [{"source_agent": "A", "target_agent": "user"}],
    }
)


class Hours:
    """A clock that notes how long it was slept, and does not sleep."""

    def __init__(self) -> None:
        self.time = 1000
        self.slept: list[int] = []

    def now(self) -> int:
        return self.time

    def new_id(self) -> str:
        return "id"

    async def sleep_until(self, at: int) -> None:
        self.slept.append(at - self.time)
        self.time = at


class Troubled(MemoryJournal):
    """A journal that notes what is read, and whose appends go wrong as they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int | None]] = []
        self.appended: list[str] = []
        #: What happens at the next appends: an error before or after it was written, or a rival.
        self.troubles: list[object] = []

    async def append(self, batch):
        self.appended.append(batch.id)
        trouble = self.troubles.pop(0) if self.troubles else None
        if callable(trouble):
            trouble = await trouble(batch)
        if isinstance(trouble, StoreError):
            raise trouble
        await super().append(batch)

    async def read(self, scope, run, *, after=0, limit=None):
        self.reads.append((after, limit))
        return await super().read(scope, run, after=after, limit=limit)

    def lose_the_answer(self, *, then=None):
        """Write the next batch, let something follow it, and say that nobody knows."""

        async def written(batch):
            await MemoryJournal.append(self, batch)
            if then is not None:
                await then()
            return lost()

        self.troubles.append(written)


def lost() -> StoreError:
    return StoreError("the connection broke", retryable=True, uncertain=True)


def busy() -> StoreError:
    return StoreError("try again", retryable=True)


def writer(journal, clock=None, owner="me", state=None) -> RunWriter:
    return RunWriter(
        scope=ADA,
        workflow=linked(SPEC, {}),
        state=state or State("r"),
        journal=journal,
        clock=clock or Hours(),
        batches=Batches(owner),
    )


def started() -> tuple[NewEvent, ...]:
    begun = RunStarted("W", "d", "app", "ada", {}, with_message=True)
    return NewEvent("user:ada", begun), NewEvent("user:ada", RequestAnswered("r:1", "hi", "ada"))


def replied(run: RunWriter, text="well") -> tuple[NewEvent, ...]:
    turn = run.state.turn
    assert turn is not None
    return (NewEvent("agent:A", ModelReplied(turn.call, text), turn.seq, turn.number),)


def is_new(state: State) -> bool:
    return not state.seq


async def begun(journal, clock=None) -> RunWriter:
    it = writer(journal, clock)
    assert await it.write(started(), is_new) is not None
    return it


def rival_of(run: RunWriter, journal) -> RunWriter:
    """Return another process's view of the same run."""
    return writer(journal, owner="rival", state=run.state)


def said(run: RunWriter) -> list[str]:
    return [it.text for it in run.state.messages]


def test_a_write_is_decided_appended_and_then_known():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        assert run.key == ("app", "r")
        assert run.row == await journal.run(ADA, "r")
        assert (run.row.owner, run.row.batch, run.row.status) == ("me", "me.1", "running")
        assert await journal.package("app", "d") == run.workflow.package
        decision = await run.write(replied(run))
        assert decision is not None
        assert run.state is decision.state
        assert (run.row.batch, run.row.owner, run.row.status) == ("me.2", "", "waiting")
        assert journal.reads == []

    play(story())


def test_what_is_not_wanted_any_more_is_not_written():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        late = replied(run)
        await run.write(late)
        assert await run.write(late) is None
        assert journal.appended == ["me.1", "me.2"]

    play(story())


def test_a_conflict_reads_only_what_is_new_and_decides_again():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        rival = rival_of(run, journal)
        await rival.write((NewEvent("tool:t", VariableSet("n", 7, "tool:t"), turn=1),))
        known = run.state.seq
        journal.reads.clear()
        await run.write(replied(run))
        assert journal.reads == [(known, None)]
        assert run.state.variables == {"n": 7}
        assert said(run) == ["hi", "well"]
        events = await journal.read(ADA, "r")
        assert [it.seq for it in events] == list(range(1, len(events) + 1))

    play(story())


def test_of_two_who_bring_the_same_result_the_second_writes_nothing():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        rival = rival_of(run, journal)
        await rival.write(replied(rival, "mine"))
        assert await run.write(replied(run, "too late")) is None
        assert said(run) == ["hi", "mine"]
        assert run.row is None, "what is known of the row was written by another"

    play(story())


def test_what_a_check_refuses_is_allowed_if_another_has_written_what_allows_it():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        behind = rival_of(run, journal)
        await run.write(replied(run))
        (chat,) = run.state.requests
        answer = NewEvent("user:ada", RequestAnswered(chat, "more", "ada"))
        assert await behind.write((answer,), is_open(chat)) is not None
        assert said(behind) == ["hi", "well", "more"]
        reads = len(journal.reads)
        with pytest.raises(UsageError, match="is not open"):
            await behind.write((answer,), is_open(chat))
        assert journal.reads[reads:] == [(behind.state.seq, None)]

    play(story())


def test_a_run_that_has_not_begun_looks_nowhere():
    """What is there under its name is another run, perhaps of another user."""

    async def story():
        journal = Troubled()
        await begun(journal)
        journal.reads.clear()
        with pytest.raises(StoreConflict):
            await writer(journal).write(started(), is_new)
        with pytest.raises(UsageError, match="is not open"):
            await writer(journal).write(started(), is_open("nothing"))
        assert journal.reads == []

    play(story())


def test_endless_conflicts_are_given_up():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        journal.troubles = [StoreConflict("always")] * 100
        with pytest.raises(StoreConflict, match="is written by another process"):
            await run.write(replied(run))
        assert len(journal.appended) == 1 + MAX_CONFLICTS + 1

    play(story())


def test_a_write_that_failed_is_tried_again_after_longer_and_longer_pauses():
    async def story():
        journal, clock = Troubled(), Hours()
        journal.troubles = [busy()] * len(PAUSES)
        await begun(journal, clock)
        assert clock.slept == list(PAUSES)
        assert len(set(journal.appended)) == 1, "it is the same batch every time"
        run = await begun(Troubled())
        assert run.state.seq == len(await journal.read(ADA, "r"))

    play(story())


@pytest.mark.parametrize(
    ("troubles", "times"),
    [([busy()] * (len(PAUSES) + 1), len(PAUSES) + 1), ([StoreError("no such disk")], 1)],
)
def test_a_write_that_cannot_succeed_changes_nothing(troubles, times):
    async def story():
        journal = Troubled()
        run = await begun(journal)
        before = run.state
        journal.troubles = list(troubles)
        with pytest.raises(StoreError):
            await run.write(replied(run))
        assert run.state is before
        assert len(journal.appended) == 1 + times
        await run.write(replied(run))
        assert said(run) == ["hi", "well"]

    play(story())


def test_a_write_whose_answer_was_lost_is_recognised_by_its_name():
    async def story():
        journal = Troubled()
        journal.lose_the_answer()
        run = await begun(journal)
        assert (run.row.batch, journal.reads) == ("me.1", [])
        journal.lose_the_answer()
        decision = await run.write(replied(run))
        assert decision is not None
        assert run.state.seq == len(await journal.read(ADA, "r")) == decision.events[-1].seq
        assert journal.appended == ["me.1", "me.1", "me.2", "me.2"]

    play(story())


def test_it_is_recognised_when_another_batch_came_after_it():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        before = run.state

        async def overtake():
            rival = rival_of(run, journal)
            await rival.catch_up()
            await rival.write((NewEvent("user:bo", StopAsked("now", "bo")),))

        journal.lose_the_answer(then=overtake)
        journal.reads.clear()
        decision = await run.write(replied(run))
        assert decision is not None
        assert (before.seq, len(decision.events)) in journal.reads
        assert said(run) == ["hi", "well"]
        await run.catch_up()
        assert run.state.outcome == "cancelled"
        events = await journal.read(ADA, "r")
        assert sum(isinstance(it.data, ModelReplied) for it in events) == 1

    play(story())


def test_another_batch_in_its_place_is_not_taken_for_it():
    async def story():
        journal = Troubled()
        run = await begun(journal)

        async def rival_is_quicker(_):
            rival = rival_of(run, journal)
            await rival.write((NewEvent("tool:t", VariableSet("n", 7, "tool:t"), turn=1),))
            return lost()

        journal.troubles.append(rival_is_quicker)
        await run.write(replied(run))
        assert run.state.variables == {"n": 7}
        assert said(run) == ["hi", "well"]

    play(story())


def test_a_conflict_after_a_failure_that_is_certain_is_a_conflict():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        rival = rival_of(run, journal)

        async def rival_is_quicker(_):
            await rival.write(replied(rival, "mine"))
            return busy()

        journal.troubles.append(rival_is_quicker)
        assert await run.write(replied(run, "mine")) is None

    play(story())


def test_a_first_batch_that_is_lost_and_was_not_written_is_written():
    async def story():
        journal = Troubled()
        journal.troubles.append(lost())
        run = await begun(journal)
        assert run.row == await journal.run(ADA, "r")

    play(story())


def test_a_lost_batch_of_a_run_that_is_not_there_is_not_written():
    class Gone(Troubled):
        async def run(self, *_):
            return None

    async def story():
        journal = Gone()
        run = await begun(journal)
        journal.troubles = [lost(), StoreConflict("it was removed")] * (MAX_CONFLICTS + 1)
        with pytest.raises(StoreConflict):
            await run.write(replied(run))

    play(story())


def test_a_file_recognises_a_lost_batch_with_others_after_it(tmp_path):
    """What was written and what is read from a file are the same events."""

    class Losing(SqliteJournal):
        async def append(self, batch):
            await super().append(batch)
            if any(isinstance(it.data, ModelReplied) for it in batch.events):
                rival = writer(self, owner="rival")
                await rival.catch_up()
                self.append = super().append
                await rival.write((NewEvent("user:bo", StopAsked("now", "bo")),))
                raise lost()

    async def story():
        journal = await Losing.open(tmp_path / "j.db")
        run = await begun(journal)
        assert await run.write(replied(run)) is not None
        events = await journal.read(ADA, "r")
        assert sum(isinstance(it.data, ModelReplied) for it in events) == 1
        await journal.close()

    play(story())


def test_going_on_catches_up_and_returns_what_is_to_be_done():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        behind = writer(journal)
        decision = await behind.continue_run()
        assert decision is not None
        assert decision.events == []
        assert decision.effects == [CallModel("A", 1, 1, run.state.seq)]
        assert behind.state == run.state
        await run.write(replied(run))
        waiting = await behind.continue_run()
        assert waiting is not None
        assert (waiting.events, waiting.effects) == ([], [])

    play(story())


def test_a_run_may_begin_with_many_events_at_once():
    async def story():
        journal = Troubled()
        run = writer(journal)
        decision = decide(run.workflow, State("r"), started(), 5)
        written = batch(State("r"), decision.state, decision.events, id="b", owner="me")
        await run.begin(written, decision.state)
        assert (run.state, run.row) == (decision.state, written.row)
        with pytest.raises(StoreConflict, match="run r was begun before"):
            await writer(journal).begin(written, decision.state)

    play(story())


def test_catching_up_tells_whether_there_was_anything():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        row, before = run.row, run.state
        assert not await run.catch_up()
        assert (run.row, run.state) == (row, before)
        rival = rival_of(run, journal)
        await rival.write(replied(rival))
        assert await run.catch_up()
        assert run.state == rival.state
        assert before.status == "running", "what others hold is not changed"

    play(story())


def test_names_of_batches_are_never_used_again():
    one, two = Batches("one"), Batches("two")
    names = [it.new_id() for it in (one, two, one, two)]
    assert names == ["one.1", "two.1", "one.2", "two.2"]


def test_many_at_once_all_get_their_events_in():
    async def story():
        journal = Troubled()
        run = await begun(journal)
        rivals = [rival_of(run, journal) for _ in range(5)]

        async def write(number, rival):
            new = NewEvent("tool:t", VariableSet("n", number + 1, "tool:t"), turn=1)
            await rival.write((new,))

        await asyncio.gather(*(write(*it) for it in enumerate(rivals)))
        await run.catch_up()
        events = await journal.read(ADA, "r")
        values = [it.data.value for it in events if isinstance(it.data, VariableSet)]
        assert sorted(values) == [1, 2, 3, 4, 5]
        assert run.state.variables["n"] == values[-1]

    play(story())
