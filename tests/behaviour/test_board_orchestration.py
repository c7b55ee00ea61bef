"""Orchestration of a board: components, deferral, schedules, conditions, applications."""

import asyncio
from datetime import UTC, datetime, time, timedelta

import pytest

from support.boards import Note, Order, Receipt, Seen, play
from weft.board import (
    BLOCK,
    CONTINUE,
    DEFER,
    SKIP,
    Board,
    Component,
    EvalInputs,
    FilterConfig,
    FunctionEngine,
    Verdict,
)
from weft.errors import UsageError


class Noting(Component):
    """Notes which hooks were called, in order."""

    def __init__(self, notes: list[str], name: str = "", priority: int = 0) -> None:
        self._notes = notes
        self._name = name
        self.priority = priority

    async def before_schedule(self, ctx, inputs):
        self._notes.append(f"{self._name}before_schedule")
        return CONTINUE

    def pre_consume(self, ctx, inputs):
        self._notes.append(f"{self._name}pre_consume")

    async def pre_evaluate(self, ctx, inputs):
        self._notes.append(f"{self._name}pre_evaluate")

    def post_evaluate(self, ctx, result):
        self._notes.append(f"{self._name}post_evaluate {len(result.artifacts)}")

    def artifact_published(self, artifact):
        self._notes.append(f"{self._name}artifact_published {artifact.type}")

    def post_publish(self, ctx, artifacts):
        self._notes.append(f"{self._name}post_publish {len(artifacts)}")

    def error(self, ctx, error):
        self._notes.append(f"{self._name}error {error}")


def working(board: Board, engine, *components):
    made = board.agent("worker").consumes(Order).publishes(Note)
    return made.with_utilities(*components).with_engines(FunctionEngine(engine))


def test_hooks_in_their_order():
    notes: list[str] = []

    async def test(board, clock):
        working(board, lambda inputs: Note(text="x"), Noting(notes))
        await board.publish(Order(number=1))
        await board.run_until_idle()

    play(test)
    assert notes == [
        "before_schedule",
        "pre_consume",
        "pre_evaluate",
        "post_evaluate 1",
        "artifact_published Note",
        "post_publish 1",
    ]


def test_hooks_by_priority():
    notes: list[str] = []

    async def test(board, clock):
        low, high = Noting(notes, "low ", -5), Noting(notes, "high ", 5)
        working(board, lambda inputs: Note(text="x"), low, high)
        await board.publish(Order(number=1))
        await board.run_until_idle()

    play(test)
    assert notes[:2] == ["high before_schedule", "low before_schedule"]
    assert notes[-2:] == ["high post_publish 1", "low post_publish 1"]


def test_error_hook_receives_the_failure():
    notes: list[str] = []

    async def test(board, clock):
        def work(inputs):
            raise ValueError("no")

        working(board, work, Noting(notes))
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert [delivery.why for delivery in await board.missed()] == ["failed"]

    play(test)
    assert notes[-1].startswith("error")
    assert "ValueError" in notes[-1]


class Changing(Component):
    def pre_consume(self, ctx, inputs):
        changed = [artifact for artifact in inputs.artifacts if artifact.payload["number"] != 2]
        return EvalInputs(tuple(changed))

    def post_evaluate(self, ctx, result):
        return [
            Note(text=f"{artifact.artifact.payload['text']}, checked")
            for artifact in result.artifacts
        ]

    def artifact_published(self, artifact):
        return Note(text=f"{artifact.payload['text']}, stamped")


async def test_hooks_may_change_inputs_results_and_artifacts(board):
    def count(inputs):
        return Note(text=f"{len(inputs.artifacts)} inputs")

    made = board.agent("worker").consumes(Order, Order).publishes(Note)
    made.with_utilities(Changing()).with_engines(FunctionEngine(count))
    async with board.traced_run():
        await board.publish(Order(number=1))
        await board.publish(Order(number=2))
    await board.run_until_idle()
    assert await board.missed() == []
    (note,), _ = await board.query_artifacts(FilterConfig(types={"Note"}))
    assert note.payload["text"] == "1 inputs, checked, stamped"


class Deciding(Component):
    def __init__(self, *verdicts) -> None:
        self._verdicts = list(verdicts)

    def before_schedule(self, ctx, inputs):
        return self._verdicts.pop(0) if self._verdicts else None


@pytest.mark.parametrize(
    ("verdict", "why"), [(SKIP, "skipped"), (BLOCK, "blocked"), ("skip", "skipped")]
)
async def test_skip_and_block_are_visible_and_the_next_works(verdict, why, board):
    seen = Seen()
    board.agent("worker").consumes(Order).with_utilities(Deciding(verdict)).with_engines(
        seen.engine
    )
    await board.publish(Order(number=1))
    await board.run_until_idle()
    (missed,) = await board.missed()
    assert (missed.why, missed.detail) == (why, "by Deciding.before_schedule")
    await board.publish(Order(number=2))
    await board.run_until_idle()
    assert seen.calls == [(2,)]


async def test_defer_is_tried_again_and_nothing_is_lost(board, clock):
    seen = Seen()
    later = Verdict("defer", seconds=30)
    board.agent("worker").consumes(Order).with_utilities(Deciding(later, DEFER)).with_engines(
        seen.engine
    )
    await board.publish(Order(number=1))
    await board.run_until_idle()
    await clock.advance(29)
    await board.run_until_idle()
    assert seen.calls == []
    for _ in range(3):
        await clock.advance(1)
        await board.run_until_idle()
    assert seen.calls == [(1,)]
    assert await board.missed() == []


async def test_a_hook_that_returns_nonsense_or_raises_is_a_recorded_error(board):
    class Raising(Component):
        def pre_evaluate(self, ctx, inputs):
            raise KeyError("gone")

    for name, component in (("a", Deciding("maybe")), ("b", Raising())):
        board.agent(name).consumes(Order).with_utilities(component).with_engines(
            FunctionEngine(lambda inputs: None)
        )
    await board.publish(Order(number=1))
    await board.run_until_idle()
    told = " ".join(delivery.detail for delivery in await board.missed())
    assert "return CONTINUE, SKIP, DEFER or BLOCK" in told
    assert "KeyError" in told


class Guard(Component):
    def artifact_published(self, artifact):
        return BLOCK if artifact.payload.get("text") == "bad" else None


async def test_a_component_of_the_board_blocks_what_comes_from_outside_and_from_agents(board):
    board.with_components(Guard())
    working(board, lambda inputs: Note(text="bad"))
    with pytest.raises(UsageError, match=r"Note was not published: blocked by Guard"):
        await board.publish(Note(text="bad"))
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert (await board.query_artifacts(FilterConfig(types={"Note"})))[1] == 0
    (missed,) = await board.missed()
    assert (missed.why, missed.detail) == ("blocked", "Note by Guard.artifact_published")


def test_a_component_without_hooks_is_refused():
    with pytest.raises(UsageError, match="Component has no hook"):
        Board().agent("a").with_utilities(Component())
    with pytest.raises(UsageError, match="not a hook of the board"):
        Board().with_components(Changing())


def ticking(board: Board, **when) -> Seen:
    seen = Seen(lambda inputs, ctx: Note(text="tick"))
    board.agent("clock").publishes(Note).schedule(**when).with_engines(seen.engine)
    return seen


async def times(board: Board, clock, steps: int, seconds: float) -> int:
    await board.start()
    await clock.advance(0)
    await board.run_until_idle()
    for _ in range(steps):
        await clock.advance(seconds)
        await board.run_until_idle()
    return (await board.query_artifacts(FilterConfig(types={"Note"})))[1]


@pytest.mark.parametrize(
    ("when", "steps", "seconds", "fired"),
    [
        ({"every": 10}, 3, 10, 4),
        ({"every": timedelta(seconds=10), "delay": 25}, 3, 10, 1),
        ({"every": 1, "max_repeats": 2}, 10, 1, 2),
        ({"daily": "06:00"}, 2, 86_400, 2),
        ({"daily": time(6, 0)}, 1, 3600, 0),
        ({"at": datetime(2025, 1, 1, 0, 1, tzinfo=UTC)}, 5, 60, 1),
        ({"cron": "*/15 * * * *"}, 4, 900, 4),
    ],
)
async def test_a_schedule_wakes_by_the_clock(when, steps, seconds, fired, board, clock):
    ticking(board, **when)
    assert await times(board, clock, steps, seconds) == fired


async def test_a_tick_says_how_often_and_when(board, clock):
    ticking(board, every=5, max_repeats=2)
    await times(board, clock, 3, 5)
    found, _ = await board.query_artifacts(FilterConfig(types={"Tick"}, order="created_at"))
    assert [artifact.payload["iteration"] for artifact in found] == [1, 2]
    assert found[0].produced_by == "schedule:clock"


def test_schedule_continues_after_a_restart_and_begins_once(tmp_path):
    from weft.testing.clock import ManualClock

    async def both():
        clock, counts = ManualClock(), []
        for _ in range(2):
            async with Board(journal=tmp_path / "runs.db", clock=clock) as board:
                ticking(board, every=60)
                await board.start()
                counts.append(await times(board, clock, 1, 60))
        return counts

    assert asyncio.run(both()) == [2, 3]


async def test_run_until_a_condition_holds(board):
    working(board, lambda inputs: Note(text="x"))

    async def three(board: Board) -> bool:
        return (await board.query_artifacts(FilterConfig(types={"Note"})))[1] >= 3

    assert not await board.run_until(three)
    for number in range(3):
        await board.publish(Order(number=number))
    assert await board.run_until(three, timeout=10)
    assert not await board.run_until(lambda _: False, timeout=0.05)


async def test_an_application_gives_outputs_or_says_why_not(board):
    async def slow(inputs):
        await asyncio.sleep(30)

    def work(inputs):
        number = inputs.first_as(Order).number
        if number == 2:
            raise ValueError("no stock")
        return Note(text="done")

    working(board, work)
    board.agent("slow").consumes(Receipt).publishes(Note).with_engines(FunctionEngine(slow))
    app = board.application(Order, [Note], deadline=10)
    good = await app.run(Order(number=1))
    assert (good.status, [output.payload["text"] for output in good.outputs]) == (
        "succeeded",
        ["done"],
    )
    bad = await app.run(Order(number=2))
    assert bad.status == "failed"
    assert "no Note was published" in bad.reason
    assert "no stock" in bad.reason
    late = await board.application(Receipt, [Note], deadline=0.05).run(Receipt(text="x"))
    assert (late.status, late.outputs) == ("timed_out", [])
    host = await board.host()
    late_run = await host.run_of(board.name, late.correlation_id, scope=board.scope)
    row = await host.run(late_run, scope=board.scope)
    assert (row.status, row.outcome) == ("ended", "cancelled")
    with pytest.raises(UsageError, match="the application takes Order"):
        await app.run(Receipt(text="x"))


async def test_an_application_whose_request_is_cancelled_stops_its_run(board):
    async def slow(inputs):
        await asyncio.sleep(30)

    working(board, slow)
    app = board.application(Order, [Note])
    task = asyncio.create_task(app.run(Order(number=1)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    host = await board.host()
    (row,) = await host.runs(scope=board.scope)
    assert (row.status, row.outcome) == ("ended", "cancelled")


async def test_a_traced_run_tells_what_took_how_long(board):
    working(board, lambda inputs: Note(text="x"))
    async with board.traced_run("launch") as trace:
        await board.publish(Order(number=1))
        await board.publish(Order(number=2))
    await board.run_until_idle()
    spans = await trace.spans()
    assert [span.kind for span in spans].count("turn") == 2
    provider = next(span for span in spans if span.kind == "provider")
    assert (provider.name, provider.parent) == ("DefaultCorrelationProvider", "worker")


def test_two_agents_of_one_name_and_other_mistakes_are_refused():
    board = Board()
    board.agent("a")
    with pytest.raises(UsageError, match="there is an agent a already"):
        board.agent("a")
    with pytest.raises(UsageError, match="is not an engine"):
        board.agent("b").with_engines(17)
    with pytest.raises(UsageError, match="is not a provider"):
        board.agent("c").with_context(17)
    with pytest.raises(UsageError, match="cannot be a type of artifacts"):
        board.agent("d").consumes(int)
    with pytest.raises(UsageError, match="best of: n"):
        board.agent("e").best_of(1, len)


async def test_a_fork_has_a_correlation_of_its_own(board):
    working(board, lambda inputs: Note(text="x"))
    collected = Seen()
    board.agent("all").consumes(Note, scope="all").with_engines(collected.engine)
    made = await board.publish(Order(number=1))
    await board.run_until_idle()
    host = await board.host()
    child = await host.fork(made.run, scope=board.scope, turn=1)
    await board.run_until_idle()
    for correlation in (made.correlation_id, child):
        found, _ = await board.query_artifacts(FilterConfig(correlation_id=correlation))
        assert sorted(item.type for item in found) == ["Note", "Order"]
    assert len(collected.calls) == 1


def test_a_schedule_that_is_over_is_not_begun_again_and_a_changed_one_is(tmp_path):
    from weft.testing.clock import ManualClock

    async def played():
        clock, counts = ManualClock(), []
        for when in (
            {"every": 60, "max_repeats": 1},
            {"every": 60, "max_repeats": 1},
            {"every": 5},
        ):
            async with Board(journal=tmp_path / "runs.db", clock=clock) as board:
                ticking(board, **when)
                counts.append(await times(board, clock, 1, 60))
        return counts

    one, again, changed = asyncio.run(played())
    assert (one, again) == (1, 1)
    assert changed > 1


def test_a_batch_that_is_not_due_keeps_its_correlation_open():
    async def test(board, clock):
        seen = Seen()
        board.agent("worker").consumes(Order, batch={"timeout": 120}).with_engines(seen.engine)
        await board.publish(Order(number=1))
        await board.run_until_idle()
        for _ in range(4):
            await clock.advance(40)
            await board.run_until_idle()
        assert seen.calls == [(1,)]
        assert await board.missed() == []

    play(test, idle_seconds=60)


def test_verdicts_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="is not a verdict"):
        Verdict("stop")
    with pytest.raises(UsageError, match="cannot defer by"):
        Verdict("defer", seconds=1e30)
