"""Writing a run without any task: decide, append, take mail, catch up, and repeat lost writes."""

import asyncio
import logging
from itertools import count

import pytest

from support.run_play import linked
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.adapters.system_clock import SystemClock
from weft.engine.commands import CallModel
from weft.engine.events import (
    MessageShown,
    ModelReplied,
    RequestAnswered,
    RunStarted,
    StopRequested,
)
from weft.engine.rows import Mail, batch
from weft.engine.snapshot import restore
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.errors import RunOwned, StoreConflict, StoreError, UsageError
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.runs.outgoing import Webhooks
from weft.runtime.runs.ownership import Ownership, StoreClock
from weft.runtime.runs.writer import MAX_CONFLICTS, PAUSES, SNAPSHOT_EVENTS, RunWriter
from weft.runtime.signals import is_open
from weft.spec.workflow import WorkflowSpec

ADA = Scope("app", "ada")
KEY = ("app", "r")


def spec(target="user", triggers=()):
    source = {"type": "derived", "default": False, "triggers": list(triggers)}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {"late": {"type": "bool", "source": source}},
            "handoffs": [{"source_agent": "A", "target_agent": target}],
        }
    )


SPEC = spec()
STOP = StopRequested("now", "ada")


class Hours:
    """A clock that notes how long it was slept, and does not sleep."""

    def __init__(self):
        self.time = 1000
        self.slept = []
        self._ids = count(1)

    def now(self):
        return self.time

    def new_id(self):
        return f"id{next(self._ids)}"

    async def sleep_until(self, at):
        self.slept.append(at - self.time)
        self.time = at


class TroubledStore(MemoryStore):
    """A store that notes reads and batches, and whose appends fail as they are asked to."""

    def __init__(self):
        self.clock = Hours()
        super().__init__(self.clock)
        self.reads = []
        self.batches = []
        #: What happens at the next appends: an error, or a function that returns one.
        self.troubles = []

    async def append(self, batch, *, owner):
        self.batches.append(batch)
        trouble = self.troubles.pop(0) if self.troubles else None
        if callable(trouble):
            trouble = await trouble(batch, owner)
        if isinstance(trouble, StoreError):
            raise trouble
        return await super().append(batch, owner=owner)

    async def read(self, scope, run, *, after=0, limit=None):
        self.reads.append((after, limit))
        return await super().read(scope, run, after=after, limit=limit)

    def lose_the_answer(self, *, then=None):
        """Write the next batch, let something follow it, and lose the answer."""

        async def write(batch, owner):
            await MemoryStore.append(self, batch, owner=owner)
            if then is not None:
                await then()
            return lost()

        self.troubles.append(write)

    @property
    def ids(self):
        return [batch.id for batch in self.batches]


@pytest.fixture
def store():
    return TroubledStore()


def lost():
    return StoreError("the connection broke", retryable=True, uncertain=True)


def busy():
    return StoreError("try again", retryable=True)


#: Several owners of one name stand for one process.
NUMBERS = count(1)


def owner_named(store, name="me"):
    clock = StoreClock(SystemClock())
    owner = Ownership(
        store, clock, is_needed=lambda: True, on_renamed=lambda _: None, on_freed=lambda: None
    )
    owner.owner, owner._numbers = name, NUMBERS
    return owner


def writer(store, owner="me", state=None, declared=SPEC, **options):
    return RunWriter(
        scope=ADA,
        workflow=linked(declared, {}),
        state=state or State("r"),
        store=store,
        clock=store.clock,
        ownership=owner_named(store, owner),
        webhooks=Webhooks(store),
        **options,
    )


def started():
    begun = RunStarted("W", "d", "app", "ada", {}, with_message=True)
    return NewEvent("user:ada", begun), NewEvent("user:ada", RequestAnswered("r:1", "hi", "ada"))


def replied(run, text="well"):
    turn = run.state.turn
    assert turn is not None
    return (NewEvent("agent:A", ModelReplied(turn.call, text), turn.seq, turn.number),)


def answered(run, text="more"):
    (chat,) = run.state.requests
    return NewEvent("user:ada", RequestAnswered(chat, text, "ada")), is_open(chat)


def stop_mail(id_="m1"):
    return Mail("app", "r", id_, "user:ada", STOP)


def note_mail(number):
    return Mail("app", "r", f"m{number}", "user:ada", MessageShown(f"{number}"))


def is_new(state):
    return not state.seq


async def begun(store, declared=SPEC):
    run = writer(store, declared=declared)
    await run.write(started(), is_new)
    return run


async def waiting(store, declared=SPEC):
    """Return a run that waits for its user and is free."""
    run = await begun(store, declared)
    await run.write(replied(run))
    await run.let_go()
    return run


async def rival_of(run, store):
    """Return another process's view of the same run, which it has taken over."""
    await store.take("rival", *KEY, force=True)
    return writer(store, "rival", run.state)


def said(run):
    return [message.text for message in run.state.messages]


def taken(run):
    """Take the decisions that were written since the last call."""
    decisions, run.decisions = run.decisions, []
    return decisions


async def work_row(store):
    row = await store.run(ADA, "r")
    return row.owner, row.due_at


# -- one writer


async def test_a_write_is_decided_appended_and_then_known(store):
    run = await begun(store)
    assert (run.key, run.held_by, run.has_mail) == (KEY, "me", False)
    assert run.row == (await store.run(ADA, "r"))._replace(owner="", heartbeat=0, due_at=NEVER)
    assert (run.row.batch, run.row.status) == (store.ids[0], "running")
    assert await work_row(store) == ("me", NEVER)
    assert await store.package("app", "d") == run.workflow.package
    (first,) = taken(run)
    assert first.effects == [CallModel("A", 1, 1, run.state.seq)]
    await run.write(replied(run))
    (second,) = taken(run)
    assert run.state is second.state
    assert (run.row.batch, run.row.status, run.held_by) == (store.ids[1], "waiting", "")
    assert await work_row(store) == ("", NEVER)
    assert taken(run) == store.reads == []


async def test_a_busy_writer_holds_a_run_that_waits(store):
    run = await begun(store)
    await run.write(replied(run), busy=True)
    assert (run.state.status, run.held_by) == ("waiting", "me")
    assert await work_row(store) == ("me", NEVER)
    await run.let_go()
    assert (run.held_by, run.row.status) == ("", "waiting")
    assert await work_row(store) == ("", NEVER)
    assert store.batches[-1].events == []
    written = len(store.batches)
    await run.let_go()
    assert len(store.batches) == written, "a run that is free need not be freed"


async def test_unwanted_result_is_not_written(store):
    run = await begun(store)
    late = replied(run)
    await run.write(late)
    await run.write(late)
    assert len(store.ids) == 2


async def test_a_writer_that_does_not_work_leaves_the_effects_to_another(store):
    run = writer(store, works=False)
    await run.write(started(), is_new)
    assert (run.state.status, run.held_by) == ("running", "")
    assert await work_row(store) == ("", store.clock.time), "it is due now"


async def test_a_run_may_begin_with_many_events_at_once(store):
    run = writer(store)
    decision = decide(run.workflow, State("r"), started(), 5)
    written = batch(State("r"), decision.state, decision.events, id="b", held=True)
    await run.begin(written, decision.state)
    assert (run.state, run.row, run.held_by) == (decision.state, written.row, "me")
    other = batch(State("r"), decision.state, decision.events, id="c")
    with pytest.raises(StoreConflict):
        await writer(store).begin(other, decision.state)


async def test_continuing_returns_the_effects_that_are_still_to_be_performed(store):
    run = await begun(store)
    decision = await run.continue_run()
    assert (decision.events, decision.effects) == ([], [CallModel("A", 1, 1, run.state.seq)])
    await run.write(replied(run))
    decision = await run.continue_run()
    assert (decision.events, decision.effects) == ([], [])
    assert len(store.batches) == 2


async def test_keeping_a_run_tells_the_store_that_it_is_not_due(store):
    run = writer(store, works=False)
    await run.write(started(), is_new)
    (claimed,) = (await store.claim("me")).runs
    assert claimed == KEY
    taken_up = writer(store, state=run.state)
    taken_up.held_by = "me"
    assert (await store.claim("me", limit=0)).runs == [KEY], "it is still due"
    await taken_up.keep()
    assert (await store.claim("me", limit=0)).runs == []
    assert await work_row(store) == ("me", NEVER)


def test_ids_of_batches_are_unique(store):
    owners = [
        Ownership(store, StoreClock(SystemClock()), is_needed=bool, on_renamed=len, on_freed=bool)
        for _ in range(2)
    ]
    ids = [owner.new_batch() for owner in (*owners, *owners)]
    assert len(set(ids)) == 4
    assert [id_.partition(".")[0] for id_ in ids[:2]] == [owner.owner for owner in owners]


# -- other processes


async def test_a_conflict_reads_only_what_is_new_and_decides_again(store):
    run = await waiting(store)
    behind = writer(store, "other", run.state)
    await run.write((NewEvent("user:ada", MessageShown("seen")),), lambda _: True)
    await run.let_go()
    known = behind.state.seq
    store.reads.clear()
    new, check = answered(behind)
    await behind.write((new,), check)
    assert store.reads == [(known, None)]
    assert said(behind) == ["hi", "well", "more"]
    events = await store.read(ADA, "r")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_run_of_another_process_is_not_written(store):
    """S9: a stalled owner cannot append."""
    run = await begun(store)
    rival = await rival_of(run, store)
    with pytest.raises(RunOwned):
        await run.write(replied(run))
    await rival.write(replied(rival, "mine"))
    assert said(rival) == ["hi", "mine"]
    with pytest.raises(StoreConflict):
        await run.keep()
    assert said(run) == ["hi"]
    await run.let_go()
    assert (run.held_by, said(run)) == ("", ["hi", "mine"]), "it is the other's"


async def test_a_result_that_another_has_brought_is_not_written_again(store):
    run = await begun(store)
    rival = await rival_of(run, store)
    await rival.write(replied(rival, "mine"))
    taken(run)
    await run.write(replied(run, "too late"))
    assert said(run) == ["hi", "mine"]
    assert taken(run) == []
    assert run.row is None, "the row was written by another"


async def test_a_refused_check_is_repeated_if_another_has_written_what_allows_it(store):
    run = await begun(store)
    behind = writer(store, "other", run.state)
    await run.write(replied(run))
    await run.let_go()
    new, check = answered(run)
    await behind.write((new,), check)
    assert said(behind) == ["hi", "well", "more"]
    assert behind.held_by == "other"
    reads = len(store.reads)
    with pytest.raises(UsageError, match="is not open"):
        await behind.write((new,), check)
    assert len(store.reads) == reads, "the owner of a run knows all of it"


async def test_a_run_that_has_not_begun_is_not_read(store):
    """A run that is there with its id is another one, perhaps of another user."""
    await begun(store)
    store.reads.clear()
    with pytest.raises(StoreConflict):
        await writer(store).write(started(), is_new)
    with pytest.raises(UsageError, match="is not open"):
        await writer(store).write(started(), is_open("nothing"))
    assert store.reads == []


async def test_endless_conflicts_are_given_up(store):
    run = await begun(store)
    store.troubles = [StoreConflict("always")] * 100
    with pytest.raises(StoreConflict, match="is written by another process"):
        await run.write(replied(run))
    assert len(store.batches) == 1 + MAX_CONFLICTS
    await store.put(stop_mail())
    with pytest.raises(StoreConflict, match="is written by another process"):
        await run.take_mail()
    assert len(store.batches) == 1 + 2 * MAX_CONFLICTS


async def test_many_writers_at_once_all_get_their_events_in(store):
    run = await waiting(store)
    writers = [writer(store, f"w{number}", run.state) for number in range(5)]

    async def write(number, rival):
        new = NewEvent("user:ada", MessageShown(f"{number}"))
        await rival.write((new,), lambda _: True)

    await asyncio.gather(*(write(*pair) for pair in enumerate(writers)))
    events = await store.read(ADA, "r")
    shown = [event.data.text for event in events if isinstance(event.data, MessageShown)]
    assert sorted(shown) == ["0", "1", "2", "3", "4"]


async def test_catching_up_tells_whether_there_was_anything(store):
    run = await begun(store)
    row, before = run.row, run.state
    assert not await run.catch_up()
    assert (run.row, run.state) == (row, before)
    rival = await rival_of(run, store)
    await rival.write(replied(rival))
    assert await run.catch_up()
    assert run.state == rival.state
    assert before.status == "running", "a state that others use is not changed"


# -- failures and lost answers


async def test_a_write_that_failed_is_repeated_after_longer_and_longer_pauses(store):
    store.troubles = [busy()] * len(PAUSES)
    run = await begun(store)
    assert store.clock.slept == list(PAUSES)
    assert len(set(store.ids)) == 1, "it is the same batch every time"
    assert run.state.seq == len(await store.read(ADA, "r"))


@pytest.mark.parametrize(
    ("troubles", "times"),
    [([busy()] * (len(PAUSES) + 1), len(PAUSES) + 1), ([StoreError("no such disk")], 1)],
)
async def test_a_write_that_cannot_succeed_changes_nothing(store, troubles, times):
    run = await begun(store)
    before = run.state
    store.troubles = list(troubles)
    with pytest.raises(StoreError):
        await run.write(replied(run))
    assert run.state is before
    assert len(store.batches) == 1 + times
    await run.write(replied(run))
    assert said(run) == ["hi", "well"]


async def test_a_batch_whose_answer_was_lost_is_recognised_by_its_id(store):
    store.lose_the_answer()
    run = await begun(store)
    assert (run.row.batch, store.reads) == (store.ids[0], [])
    store.lose_the_answer()
    await run.write(replied(run))
    assert run.state.seq == len(await store.read(ADA, "r"))
    first, again, second, repeated = store.ids
    assert (first, second) == (again, repeated)
    store.lose_the_answer()
    await store.put(note_mail(1))
    await run.take_mail()
    shown = [event for event in await store.read(ADA, "r") if isinstance(event.data, MessageShown)]
    assert len(shown) == 1


async def test_a_lost_batch_is_recognised_when_another_came_after_it(store):
    run = await begun(store)
    before = run.state

    async def overtake():
        rival = await rival_of(run, store)
        await rival.catch_up()
        await rival.write((NewEvent("user:bo", StopRequested("now", "bo")),), lambda _: True)

    store.lose_the_answer(then=overtake)
    store.reads.clear()
    await run.write(replied(run))
    decision = taken(run)[-1]
    assert (before.seq, len(decision.events)) in store.reads
    assert said(run) == ["hi", "well"]
    await run.catch_up()
    assert run.state.outcome == "cancelled"
    events = await store.read(ADA, "r")
    assert sum(isinstance(event.data, ModelReplied) for event in events) == 1


async def test_another_batch_in_the_place_of_a_lost_one_is_not_taken_for_it(store):
    run = await waiting(store)

    async def rival_is_quicker(_batch, _owner):
        rival = writer(store, "rival", run.state)
        await rival.write((NewEvent("user:bo", MessageShown("first")),), lambda _: True)
        return lost()

    store.troubles.append(rival_is_quicker)
    new, check = answered(run)
    await run.write((new,), check)
    shown = [type(event.data) for event in await store.read(ADA, "r")]
    assert shown.index(MessageShown) < len(shown) - 1 - shown[::-1].index(RequestAnswered)
    assert said(run) == ["hi", "well", "more"]


async def test_a_conflict_after_a_failure_that_is_certain_is_a_conflict(store):
    run = await waiting(store)
    new, check = answered(run)

    async def rival_is_quicker(_batch, _owner):
        rival = writer(store, "rival", run.state)
        await rival.write((new,), check)
        await store.release("rival", [KEY])
        return busy()

    store.troubles.append(rival_is_quicker)
    with pytest.raises(UsageError, match="is not open"):
        await run.write((new,), check)
    events = await store.read(ADA, "r")
    assert sum(isinstance(event.data, RequestAnswered) for event in events) == 2


async def test_a_first_batch_that_is_lost_and_was_not_written_is_written(store):
    store.troubles.append(lost())
    run = await begun(store)
    assert run.row.batch == (await store.run(ADA, "r")).batch


async def test_a_lost_batch_of_a_run_that_was_removed_is_not_written(store):
    run = await begun(store)
    store.troubles = [lost(), StoreConflict("it was removed")] * (MAX_CONFLICTS + 1)
    with pytest.raises(StoreConflict):
        await run.write(replied(run))


async def test_a_file_recognises_a_lost_batch_with_others_after_it(tmp_path):
    """The events that were written and those that are read from a file are equal."""

    class LossyFile(SqliteStore):
        clock = Hours()
        is_lossy = True

        async def append(self, batch, *, owner):
            left = await super().append(batch, owner=owner)
            is_reply = any(isinstance(event.data, ModelReplied) for event in batch.events)
            if self.is_lossy and is_reply:
                self.is_lossy = False
                await self.take("rival", *KEY, force=True)
                rival = writer(self, "rival")
                await rival.catch_up()
                stop = NewEvent("user:bo", StopRequested("now", "bo"))
                await rival.write((stop,), lambda _: True)
                raise lost()
            return left

    store = await LossyFile.open(tmp_path / "store.db", clock=LossyFile.clock)
    run = await begun(store)
    await run.write(replied(run))
    events = await store.read(ADA, "r")
    assert sum(isinstance(event.data, ModelReplied) for event in events) == 1
    assert said(run) == ["hi", "well"]
    await run._ownership.close()
    await store.close()


async def test_a_run_is_free_if_another_writes_after_the_lost_answer_of_letting_it_go(store):
    run = await begun(store)
    await run.write(replied(run), busy=True)

    async def overtake():
        rival = writer(store, "rival", run.state)
        await rival.write((NewEvent("user:bo", MessageShown("x")),), lambda _: True)

    store.lose_the_answer(then=overtake)
    await run.let_go()
    assert run.held_by == ""


# -- mail


async def test_mail_is_taken_before_a_direct_write(store):
    """A signal that came as mail comes before one that came later, whichever process has it."""
    run = await waiting(store)
    await store.put(note_mail(1))
    await store.release("me", [KEY])
    new, check = answered(run)
    await run.write((new,), check)
    kinds = [type(event.data) for event in await store.read(ADA, "r")]
    assert kinds.index(MessageShown) < len(kinds) - 1 - kinds[::-1].index(RequestAnswered)
    assert await store.pending(*KEY) == []
    assert [len(decision.events) > 0 for decision in taken(run)[-2:]] == [True, True]


async def test_mail_may_take_what_a_direct_write_was_for(store):
    run = await waiting(store)
    await store.put(stop_mail())
    new, check = answered(run)
    with pytest.raises(UsageError, match="is not open"):
        await run.write((new,), check)
    assert run.state.outcome == "cancelled"
    assert await store.pending(*KEY) == []


async def test_results_of_effects_do_not_wait_for_mail(store):
    run = await begun(store)
    await store.put(note_mail(1))
    await run.write(replied(run))
    assert said(run) == ["hi", "well"]
    assert (run.has_mail, run.held_by) == (True, "me")
    assert len(await store.pending(*KEY)) == 1


async def test_a_run_that_is_let_go_with_mail_left_stays_with_its_owner(store):
    run = await begun(store)
    await run.write(replied(run), busy=True)
    await store.put(note_mail(1))
    await run.let_go()
    assert (run.has_mail, run.held_by) == (True, "me")
    assert await work_row(store) == ("me", NEVER)
    await run.take_mail()
    assert (run.has_mail, run.held_by) == (False, "")
    assert await work_row(store) == ("", NEVER)


async def test_taking_mail_writes_what_is_due(store):
    timer = {"type": "timer_expired", "after_seconds": 4}
    run = await waiting(store, spec(triggers=[timer]))
    assert await work_row(store) == ("", 5000)
    written = len(store.batches)
    await run.take_mail()
    assert len(store.batches) == written, "nothing is due"
    store.clock.time = 5000
    await run.take_mail()
    event = store.batches[-1].events[0]
    assert (type(event.data).__name__, event.actor) == ("TimerFired", "clock")
    assert (run.state.timers, run.state.variables["late"]) == ({}, True)
    assert await work_row(store) == ("", NEVER)


async def test_the_end_of_a_run_waits_for_mail(store):
    """The result of an effect would end the run: mail that came before is taken before."""
    run = await begun(store, spec(target="terminate"))
    await store.put(note_mail(1))
    await run.write(replied(run))
    assert run.state.status == "ended"
    kinds = [type(event.data).__name__ for event in await store.read(ADA, "r")]
    assert kinds.index("MessageShown") < kinds.index("RunEnded")
    assert await store.pending(*KEY) == []


@pytest.mark.parametrize("number", [99, 100, 101, 1001])
async def test_a_run_that_ends_takes_all_of_its_mail(store, number):
    run = await waiting(store)
    await asyncio.gather(*(store.put(note_mail(each)) for each in range(number)))
    await store.put(stop_mail("stop"))
    await run.take_mail()
    assert run.state.outcome == "cancelled"
    assert await store.pending(*KEY) == []
    events = await store.read(ADA, "r")
    shown = [event.data.text for event in events if isinstance(event.data, MessageShown)]
    assert shown == [f"{each}" for each in range(number)]
    assert len(events) == len({event.seq for event in events})


@pytest.mark.parametrize("number", [100, 1500])
async def test_mail_after_the_end_is_dropped_with_it(store, number):
    run = await waiting(store)
    await store.put(stop_mail("stop"))
    await asyncio.gather(*(store.put(note_mail(each)) for each in range(number)))
    await run.take_mail()
    assert run.state.outcome == "cancelled"
    assert await store.pending(*KEY) == []
    events = await store.read(ADA, "r")
    assert not any(isinstance(event.data, MessageShown) for event in events)
    written = [written for written in store.batches if written.row.status == "ended"]
    assert len(written[-1].changes) > number, "one batch has taken all"


async def test_an_answer_that_is_dropped_opens_its_request_again(store):
    """The run does not want it, but the request stays open for another answer."""
    run = await waiting(store)
    (chat,) = run.state.requests
    heard = RequestAnswered(chat, "again", "ada", message_id="known")
    run.state.message_ids = run.state.message_ids.added("known")
    await store.put(Mail("app", "r", "m1", "user:ada", heard, request=chat))
    assert await store.requests(ADA) == []
    seq = run.state.seq
    await run.take_mail()
    assert run.state.seq == seq, "no event was written"
    assert [request.id for request in await store.requests(ADA)] == [chat]
    assert await store.pending(*KEY) == []


async def test_a_run_is_begun_by_mail(store):
    start = RunStarted("W", "d", "app", "ada", {}, name="c1")
    sent = [
        Mail("app", "c1", f"m{number}", "user:ada", MessageShown(f"{number}"), start)
        for number in range(2)
    ]
    name = {await store.put(each, package=b"package") for each in sent}
    (id_,) = name
    run = writer(store, state=State(id_), start=NewEvent("user:ada", start))
    await run.take_mail()
    events = await store.read(ADA, id_)
    kinds = [type(event.data) for event in events]
    assert (kinds[0], kinds.count(MessageShown), run.state.name) == (RunStarted, 2, "c1")
    assert await store.pending("app", id_) == []
    assert (await store.named("app", "c1")).run == id_


async def test_mail_of_a_run_of_another_process_is_not_taken(store):
    run = await waiting(store)
    await store.put(note_mail(1))
    await store.take("rival", *KEY, force=True)
    with pytest.raises(RunOwned):
        await run.take_mail()
    assert len(await store.pending(*KEY)) == 1


async def test_two_that_take_the_same_mail_write_it_once(store):
    run = await waiting(store)
    await store.put(note_mail(1))
    twins = [writer(store, "me", run.state) for _ in range(2)]
    results = await asyncio.gather(*(twin.take_mail() for twin in twins), return_exceptions=True)
    assert [result for result in results if result is not None] == []
    events = await store.read(ADA, "r")
    assert sum(isinstance(event.data, MessageShown) for event in events) == 1


# -- snapshots


async def long_run(store, events):
    run = await waiting(store)
    notes = tuple(NewEvent("user:ada", MessageShown("x")) for _ in range(events))
    await run.write(notes, lambda _: True)
    return run


async def test_a_snapshot_is_saved_after_many_events(store):
    run = await waiting(store)
    assert run.state.seq < run.snapshot_at == SNAPSHOT_EVENTS
    notes = tuple(NewEvent("user:ada", MessageShown("x")) for _ in range(SNAPSHOT_EVENTS))
    await run.write(notes, lambda _: True)
    assert run.state.seq >= run.snapshot_at
    await run.save_snapshot()
    saved = await store.snapshot(*KEY)
    assert saved.seq == run.state.seq
    assert restore(saved, run.state.digest) == run.state
    assert run.snapshot_at == saved.seq + SNAPSHOT_EVENTS


async def test_a_run_that_has_ended_or_was_restored_needs_no_snapshot(store):
    run = await long_run(store, SNAPSHOT_EVENTS)
    restored = writer(store, state=run.state, snapshot=run.state.seq)
    assert restored.state.seq < restored.snapshot_at
    await run.write((NewEvent("user:ada", STOP),), lambda _: True)
    await run.save_snapshot()
    assert await store.snapshot(*KEY) is None


async def test_a_snapshot_that_cannot_be_saved_is_only_logged(store, caplog):
    run = await long_run(store, SNAPSHOT_EVENTS)

    async def fail(*_):
        raise busy()

    store.save_snapshot = fail
    with caplog.at_level(logging.WARNING):
        await run.save_snapshot()
    assert "no snapshot of run r was saved: try again" in caplog.text
