"""When steps of a flow fail: retries, deadlines, failure paths, compensation, confidence."""

import asyncio

import pytest

from support.flow_hosts import SCOPE, derived
from support.flow_options import FailsFirst, OptionPlay, waits
from weft.adapters.sql import SqliteStore
from weft.context.agent_step import StepResult
from weft.engine.events import Branched, TimerSet, TurnFailed, TurnStarted
from weft.runtime.signals import Stop
from weft.testing import ManualClock

N = {"n": derived("int", 0), "seen": derived("list[str]", [], "append")}


# -- attempts


def test_retry_makes_so_many_attempts_in_all_with_the_same_input():
    async def whole():
        play = OptionPlay()
        work = FailsFirst(2, {"n": 7})
        retry = {"attempts": 3, "delay_seconds": 1}
        async with play.begun(play.spec(play.step("a", work, retry=retry), variables=N)) as begun:
            await begun.after(1)
            ended = await begun.after(2)
        return ended, work, play

    ended, work, play = waits(whole)
    assert (ended.outcome, ended.variables["n"]) == ("completed", 7)
    assert [(n, attempt) for n, attempt, _ in work.states] == [(0, 1), (0, 2), (0, 3)]
    keys = [key for _, _, key in work.states]
    assert len(set(keys)) == 3, "each attempt may have done something, and has a key of its own"
    assert [event.attempt for event in play.of(TurnStarted)] == [1, 2, 3]


def test_after_the_last_attempt_the_step_has_failed():
    async def whole():
        play = OptionPlay()
        retry = {"attempts": 2, "delay_seconds": 0}
        async with play.begun(play.spec(play.step("a", OSError("x"), retry=retry))) as begun:
            return begun.state.outcome, play.calls

    assert waits(whole) == ("failed", ["a", "a"])


def test_delay_seconds_is_doubled_each_time_and_at_most_a_minute():
    async def whole():
        play = OptionPlay()
        retry = {"attempts": 8, "delay_seconds": 2}
        async with play.begun(play.spec(play.step("a", OSError("x"), retry=retry))) as begun:
            for _ in range(8):
                await begun.after(60)
            assert begun.state.outcome == "failed"
        return play

    play = waits(whole)
    pauses = [event.data.at - event.at for event in play.events if isinstance(event.data, TimerSet)]
    assert len(pauses) == 7
    for pause, whole_one in zip(pauses, (2, 4, 8, 16, 32, 60, 60), strict=True):
        assert whole_one * 500 <= pause <= whole_one * 1000


def test_a_step_is_not_tried_again_before_its_time():
    async def whole():
        play = OptionPlay()
        retry = {"attempts": 2, "delay_seconds": 10}
        async with play.begun(play.spec(play.step("a", OSError("x"), retry=retry))) as begun:
            await begun.after(4)
            early = list(play.calls)
            await begun.after(6)
        return early, play.calls

    assert waits(whole) == (["a"], ["a", "a"])


# -- deadlines


def test_timeout_seconds_is_for_all_attempts_together():
    async def whole():
        play = OptionPlay()
        retry = {"attempts": 100, "delay_seconds": 10}
        node = play.step("a", OSError("x"), retry=retry, timeout_seconds=25)
        async with play.begun(play.spec(node, on_failure=play.path("tell"))) as begun:
            for _ in range(30):
                await begun.after(1)
        return begun.state, play

    ended, play = waits(whole)
    assert ended.outcome == "failed"
    assert ended.reason == "a did not finish within 25 s"
    assert play.calls[-1] == "tell"
    assert 2 <= play.calls.count("a") <= 4


def test_a_result_that_comes_after_the_deadline_changes_nothing():
    async def whole():
        play = OptionPlay()
        go_on, given_up = asyncio.Event(), asyncio.Event()

        async def slow(state):
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                given_up.set()
                raise
            return {"n": 1}

        node = {"kind": "step", "name": "a", "work": play.function(slow), "timeout_seconds": 20}
        spec = play.spec(node, variables=N, on_failure=play.path("tell"))
        async with play.host(spec) as host:
            run = await host.start("F", scope=SCOPE, run="r1")
            await asyncio.sleep(0.05)
            await play.clock.advance(20)
            await asyncio.wait_for(given_up.wait(), 5)
            go_on.set()
            await host.idle(run, scope=SCOPE)
            return await host.state(run, scope=SCOPE), play.calls

    ended, calls = waits(whole)
    assert (ended.outcome, ended.variables["n"], calls) == ("failed", 0, ["tell"])


# -- what is told and done then


def test_failure_paths_receive_their_failure():
    told = []
    play = OptionPlay()

    def broken(state, context):
        raise LookupError("no such order")

    def tell(state, context):
        told.append(context.failure)

    of_step = {"steps": [play.step("of_step", tell)]}
    of_flow = {"steps": [play.step("of_flow", tell)]}
    node = play.step("pay", broken, on_failure=of_step, compensate=play.undo("pay", tell))
    ended = play.play(node, on_failure=of_flow)
    assert ended.outcome == "failed"
    assert play.calls == ["pay", "of_step", "undo:pay", "of_flow"]
    assert told[0] == told[1] == told[2]
    failure = told[0]
    assert (failure.step, failure.attempt, failure.type) == ("pay", 1, "LookupError")
    assert "no such order" in failure.message
    assert "in broken" in failure.stack
    (event,) = [event for event in play.events if isinstance(event.data, TurnFailed)]
    assert failure.at.timestamp() * 1000 == event.at


def test_the_message_of_a_failure_is_that_of_the_exception():
    told = []
    play = OptionPlay()
    tell = {"steps": [play.step("tell", lambda state, context: told.append(context.failure))]}
    play.play(play.step("pay", LookupError("no such order"), on_failure=tell))
    assert told[0].message == "no such order"


def test_a_step_that_fails_is_followed_by_its_path_then_its_compensation_then_earlier_ones():
    play = OptionPlay()
    node = play.step(
        "pay", ValueError("no"), compensate=play.undo("pay"), on_failure=play.path("notify")
    )
    first = play.step("reserve", compensate=play.undo("reserve"))
    second = play.step("weigh")
    ended = play.play(first, second, node, on_failure=play.path("sorry"))
    assert ended.outcome == "failed"
    assert play.calls == [
        "reserve", "weigh", "pay", "notify", "undo:pay", "undo:reserve", "sorry",
    ]  # fmt: skip
    assert play.steps == play.calls


def test_on_failure_of_a_step_does_not_repair_it():
    play = OptionPlay()
    ended = play.play(play.step("a", ValueError("x"), on_failure=play.path("f")), play.step("b"))
    assert (ended.outcome, play.calls) == ("failed", ["a", "f"])


def test_completed_steps_are_undone_newest_first_each_once_with_the_state_after_them():
    play = OptionPlay()
    found = []

    def plus(state, context):
        return {"n": state["n"] + 1}

    def undo(state, context):
        found.append((context.undoes.step, context.undoes.state["n"]))
        return {"seen": [f"undone {context.undoes.step}"]}

    steps = [play.step(name, plus, compensate=play.undo(name, undo)) for name in ("a", "b", "c")]
    ended = play.play(*steps, play.step("d", ValueError("no")), variables=N)
    assert found == [("c", 3), ("b", 2), ("a", 1)]
    assert ended.variables["seen"] == ["undone c", "undone b", "undone a"]


def test_a_compensation_that_fails_is_recorded_and_the_next_one_is_done():
    play = OptionPlay()
    first = play.step("a", compensate=play.undo("a"))
    second = play.step("b", compensate=play.undo("b", ValueError("cannot")))
    ended = play.play(first, second, play.step("c", ValueError("no")))
    assert ended.outcome == "failed"
    assert play.calls == ["a", "b", "c", "undo:b", "undo:a"]
    assert any("cannot" in event.error for event in play.of(TurnFailed))
    assert "no" in ended.reason


def test_failure_path_receives_a_failure_without_an_attempt():
    told = []
    play = OptionPlay()
    tell = {"steps": [play.step("tell", lambda state, context: told.append(context.failure))]}
    branch = {"kind": "branch", "name": "way", "on": "n", "cases": [{"value": 1, "path": {}}]}
    ended = play.play(branch, variables=N, on_failure=tell)
    assert (ended.outcome, play.calls) == ("failed", ["tell"])
    assert (told[0].step, told[0].attempt) == ("way", 0)
    assert "no case for this value" in told[0].message


def test_stopped_path_has_not_failed():
    async def whole():
        told = []
        play = OptionPlay()
        undo = play.undo("a", lambda state, context: told.append(context.failure))
        ask = {"kind": "approval", "name": "ask", "approver": "user:ada"}
        spec = play.spec(play.step("a", compensate=undo), ask, compensate_on_cancel=True)
        async with play.begun(spec) as begun:
            await begun.host.deliver(begun.run, Stop("now"), scope=SCOPE)
            await begun.rest()
        return play.calls, told

    assert waits(whole) == (["a", "undo:a"], [None])


# -- confidence


def sure(share, **path):
    play = OptionPlay()
    options = {"minimum": 0.8, **({"path": {"steps": [play.step("ask")], **path}} if path else {})}
    node = play.step("a", StepResult({"n": 1}, confidence=share), confidence=options)
    ended = play.play(node, play.step("b"), variables=N, **{"finally": play.step("last")})
    return ended, play


def test_result_of_minimum_confidence_is_accepted():
    ended, play = sure(0.8, ends=True)
    assert (ended.outcome, play.calls) == ("completed", ["a", "b", "last"])


def test_the_path_of_low_confidence_ends_the_run_or_rejoins_and_what_was_set_counts():
    ended, play = sure(0.7, ends=True)
    assert (ended.outcome, play.calls, ended.variables["n"]) == ("completed", ["a", "ask"], 1)
    assert [event.why for event in play.of(Branched)] == ["low_confidence"]
    ended, play = sure(0.7, ends=False)
    assert (ended.outcome, play.calls) == ("completed", ["a", "ask", "b", "last"])


@pytest.mark.parametrize("share", [0.7, None])
def test_without_a_path_a_result_that_is_not_sure_fails_the_step(share):
    ended, play = sure(share)
    assert (ended.outcome, play.calls, ended.variables["n"]) == ("failed", ["a"], 0)
    assert "0.8 is required" in ended.reason


# -- where several of these meet


def test_a_step_whose_time_is_over_between_two_attempts_was_attempted_and_is_undone():
    async def whole():
        play = OptionPlay()
        told = []
        retry = {"attempts": 9, "delay_seconds": 60}
        undo = play.undo("a", lambda state, context: told.append(context.failure))
        node = play.step("a", OSError("x"), retry=retry, timeout_seconds=10, compensate=undo)
        async with play.begun(play.spec(node)) as begun:
            await begun.after(10)
        assert begun.state.reason == "a did not finish within 10 s"
        assert play.calls == ["a", "undo:a"]
        return told[0].type

    assert waits(whole) == "TimeoutError"


def test_a_finally_step_that_fails_fails_the_run_and_all_is_undone():
    play = OptionPlay()
    first = play.step("a", compensate=play.undo("a"))
    ended = play.play(first, **{"finally": play.step("last", ValueError("no"))})
    assert (ended.outcome, play.calls) == ("failed", ["a", "last", "undo:a"])


def test_a_compensation_that_changes_the_state_is_seen_by_the_next_one_and_by_the_path():
    play = OptionPlay()
    found = []

    def note(state, context):
        found.append(list(state["seen"]))
        return {"seen": [context.step]}

    steps = [play.step(name, compensate=play.undo(name, note)) for name in ("a", "b")]
    tell = {"steps": [play.step("tell", note)]}
    ended = play.play(*steps, play.step("c", ValueError("x")), variables=N, on_failure=tell)
    assert found == [[], ["b"], ["b", "a"]]
    assert ended.variables["seen"] == ["b", "a", "tell"]


def test_retries_and_deadlines_of_a_path_leave_the_other_path_alone():
    async def whole():
        play = OptionPlay()
        slow = play.step(
            "slow", OSError("x"), retry={"attempts": 9, "delay_seconds": 20}, timeout_seconds=30
        )
        quick = play.step("quick", {"n": 1}, retry={"attempts": 2, "delay_seconds": 1})
        node = {
            "kind": "fork", "name": "both",
            "paths": [{"name": "left", "steps": [slow]}, {"name": "right", "steps": [quick]}],
            "join": play.step("j", lambda state, context: {"seen": _ended(context)}),
        }  # fmt: skip
        async with play.begun(play.spec(node, variables=N)) as begun:
            for _ in range(8):
                await begun.after(5)
        return begun.state

    ended = waits(whole)
    assert (ended.outcome, ended.variables["n"]) == ("completed", 1), ended.reason
    assert ended.variables["seen"] == ["left failed", "right success"]


def _ended(context):
    return [f"{name} {path.status}" for name, path in context.paths.items()]


def test_approval_in_one_path_does_not_block_the_other():
    async def whole():
        play = OptionPlay()
        ask = {"kind": "approval", "name": "ask", "approver": "user:ada"}
        node = {
            "kind": "fork", "name": "both",
            "paths": [
                {"name": "left", "steps": [ask]},
                {"name": "right", "steps": [play.step("r", {"n": 1})]},
            ],
            "join": play.step("j", lambda state, context: {"seen": _ended(context)}),
        }  # fmt: skip
        async with play.begun(play.spec(node, variables=N)) as begun:
            before = list(play.calls)
            await begun.answer("reject")
        return before, begun.state

    before, ended = waits(whole)
    assert before == ["r"]
    assert (ended.outcome, ended.variables["n"]) == ("completed", 1)
    assert ended.variables["seen"] == ["left failed", "right success"]


# -- another process


def test_an_attempt_that_a_process_has_left_is_made_again_with_the_same_key(tmp_path):
    """What a step does outside may happen twice; by its key the other side knows it again."""

    async def whole():
        file, keys = tmp_path / "journal.db", []
        play = OptionPlay(store=await SqliteStore.open(file))
        begun = asyncio.Event()

        async def pay(state, context):
            keys.append((context.key, context.attempt, state["n"]))
            if len(keys) == 1:
                begun.set()
                await asyncio.sleep(60)
            return {"n": state["n"] + 1}

        node = {"kind": "step", "name": "pay", "work": play.function(pay)}
        spec = play.spec(play.step("first", {"n": 5}), node, variables=N)
        async with play.host(spec) as host:
            run = await host.start("F", scope=SCOPE, run="r1")
            await begun.wait()
        play.journal = await SqliteStore.open(file, clock=play.clock)
        async with play.host(spec) as host:
            await host.resume(run, scope=SCOPE, take_over=True)
            await host.idle(run, scope=SCOPE)
            return await host.state(run, scope=SCOPE), keys, play.calls

    ended, keys, calls = waits(whole)
    assert (ended.outcome, ended.variables["n"], calls) == ("completed", 6, ["first"])
    assert len(keys) == 2
    assert keys[0] == keys[1]


def test_a_retry_that_is_due_while_no_process_is_there_is_made_by_the_next_one(tmp_path):
    async def whole():
        clock, file = ManualClock(), tmp_path / "journal.db"
        play = OptionPlay(clock=clock, store=await SqliteStore.open(file, clock=clock))
        work = FailsFirst(1, {"n": 7})
        spec = play.spec(
            play.step("a", work, retry={"attempts": 2, "delay_seconds": 50}), variables=N
        )
        async with play.begun(spec) as begun:
            assert begun.state.outcome is None
        await clock.advance(60)
        play.journal = await SqliteStore.open(file, clock=play.clock)
        async with play.host(spec) as host:
            await host.recover()
            for _ in range(200):
                await asyncio.sleep(0.01)
                state = await host.state("r1", scope=SCOPE)
                if state.outcome:
                    break
        return state.outcome, state.variables["n"], play.calls

    assert waits(whole) == ("completed", 7, ["a", "a"])


def test_abandoned_compensations_are_resumed_and_completed(tmp_path):
    async def whole():
        file = tmp_path / "journal.db"
        play = OptionPlay(store=await SqliteStore.open(file))
        begun, undone = asyncio.Event(), []

        async def undo(state, context):
            undone.append((context.undoes.step, context.key))
            if len(undone) == 2:
                begun.set()
                await asyncio.sleep(60)

        steps = [play.step(name, compensate=play.function(undo)) for name in ("a", "b", "c")]
        spec = play.spec(*steps, play.step("d", ValueError("no")))
        async with play.host(spec) as host:
            run = await host.start("F", scope=SCOPE, run="r1")
            await begun.wait()
        play.journal = await SqliteStore.open(file, clock=play.clock)
        async with play.host(spec) as host:
            await host.resume(run, scope=SCOPE, take_over=True)
            await host.idle(run, scope=SCOPE)
            return (await host.state(run, scope=SCOPE)).outcome, undone, play.calls

    outcome, undone, calls = waits(whole)
    assert (outcome, calls) == ("failed", ["a", "b", "c", "d"])
    assert [step for step, _ in undone] == ["c", "b", "b", "a"]
    assert undone[1] == undone[2], "the same key: the other side knows it again"
