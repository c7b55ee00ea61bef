"""When steps fail: the table of docs/decisions/0012, row by row."""

import pytest

from support.flow_play import FlowPlay, flow_spec, step, variable, work
from weft.engine.events import (
    Branched,
    Joined,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    StopRequested,
    TimerSet,
    TurnFailed,
    TurnStarted,
    VariableSet,
)
from weft.engine.flow.lanes import failure_of, paths_of, undone_of
from weft.spec.flow import (
    Approval,
    Confidence,
    Flow,
    Fork,
    ForkPath,
    Guard,
    Path,
    Repeat,
    Retry,
)

BAD = ValueError("bad card")


def play(*nodes, does=None, values=None, variables=None, **options):
    return FlowPlay(flow_spec(Flow(steps=nodes, **options), **(variables or {})), does, values)


def path(*names):
    return Path(steps=tuple(step(name) for name in names))


def paid(name, **options):
    return step(name, compensate=work(f"undo_{name}"), **options)


# -- 1 and 2: guards and attempts


def test_row_1_a_guard_makes_no_attempt_and_undoes_nothing_of_it():
    node = paid("a", validate=(Guard(condition="x"),), on_failure=path("f"))
    run = play(node, variables={"x": variable("int", 0)})

    assert run.calls == ["f"]
    assert run.of(TurnFailed)[0].kind == "guard"


def test_row_2_every_attempt_has_the_same_input_and_changes_nothing():
    seen = []

    def tried(values):
        seen.append(values["x"])
        return BAD if len(seen) < 3 else {"x": 7}

    node = step("a", retry=Retry(attempts=3, delay_seconds=0))
    run = play(node, does={"a": tried}, values={"x": 5}, variables={"x": variable("int")})

    assert seen == [5, 5, 5]
    assert (run.outcome, run.values["x"]) == ("completed", 7)
    assert [event.attempt for event in run.of(TurnStarted)] == [1, 2, 3]


def test_failure_has_its_place_and_input():
    run = play(step("a", retry=Retry(attempts=2, delay_seconds=0)), does={"a": BAD})
    first, last = run.of(TurnFailed)

    assert (first.failure["attempt"], last.failure["attempt"]) == (1, 2)
    kept = {key: last.failure[key] for key in ("step", "type", "message", "stack")}
    assert kept == {"step": "a", "type": "ValueError", "message": "bad card", "stack": "here"}
    assert len(last.failure["input"]) == 64
    assert first.failure["input"] == last.failure["input"]


# -- 3: retries


def test_row_3_attempts_wait_longer_each_time_and_at_most_a_minute():
    run = play(step("a", retry=Retry(attempts=9)), does={"a": BAD})
    waits = []
    while run.state.timers:
        (timer,) = run.state.timers.values()
        waits.append((timer.at - run.now) / 1000)
        run.wait(waits[-1])

    assert len(run.calls) == 9
    assert run.outcome == "failed"
    for wait, most in zip(waits, (1, 2, 4, 8, 16, 32, 60, 60), strict=True):
        assert most / 2 <= wait <= most
    assert len(set(waits)) == 8, "two runs do not try again in the same moments"


def test_a_run_that_waits_for_its_next_attempt_rests():
    run = play(step("a", retry=Retry(attempts=2)), does={"a": [BAD, {}]})

    assert run.state.status == "waiting"
    assert run.wait(2).outcome == "completed"


# -- 4: deadlines


def test_row_4_the_deadline_covers_all_attempts():
    node = step("a", retry=Retry(attempts=99, delay_seconds=2), timeout_seconds=5)
    run = play(node, does={"a": BAD}, on_failure=path("f")).wait(60)

    assert run.outcome == "failed"
    assert run.state.reason == "a did not finish within 5 s"
    assert run.calls[-1] == "f"
    assert not run.state.timers


def test_a_late_result_changes_nothing():
    spec = flow_spec(Flow(steps=(step("a", timeout_seconds=5),)), x=variable("int"))
    run = FlowPlay(spec, {"a": {"x": 1}}, go=False)
    open_ = list(run.open)
    run.open.clear()
    run.wait(6)
    run.open = open_
    run.work()

    assert (run.outcome, run.values["x"]) == ("failed", None)
    assert run.of(TurnFailed)[0].kind == "deadline"
    assert run.of(TurnFailed)[0].failure["type"] == "TimeoutError"


def test_a_step_that_is_done_in_time_has_no_timer_left():
    run = play(step("a", timeout_seconds=5), step("b"))

    assert run.of(TimerSet)[0].why == "flow"
    assert (run.outcome, run.state.timers) == ("completed", {})


# -- 5 to 9: paths and compensation


def test_rows_5_and_6_the_seeds_own_order():
    """ProcessPayment fails: NotifySupport, then RefundPayment."""
    run = play(paid("pay", on_failure=path("notify", "log")), does={"pay": BAD})

    assert run.calls == ["pay", "notify", "log", "undo:pay"]
    assert (run.outcome, run.state.reason) == ("failed", "bad card")


def test_row_5_a_failure_path_that_fails_itself_is_followed_by_the_rest():
    node = paid("pay", on_failure=path("notify", "log"))
    run = play(node, does={"pay": BAD, "notify": RuntimeError("no mail")}, on_failure=path("end"))

    assert run.calls == ["pay", "notify", "undo:pay", "end"]
    assert run.state.reason == "bad card"


def test_rows_8_and_9_completed_steps_are_undone_newest_first_then_the_workflow_path():
    run = play(
        paid("a"), step("b"), paid("c"), paid("d"), does={"d": BAD}, on_failure=path("f", "g")
    )

    assert run.calls == ["a", "b", "c", "d", "undo:d", "undo:c", "undo:a", "f", "g"]
    assert run.outcome == "failed"


def test_failed_compensation_does_not_stop_the_others():
    run = play(paid("a"), paid("b"), step("c"), does={"c": BAD, "undo:b": BAD})

    assert run.calls == ["a", "b", "c", "undo:b", "undo:a"]
    assert run.outcome == "failed"


def test_each_turn_of_a_loop_is_undone_with_the_values_it_had():
    seen = []
    loop = Repeat(name="loop", until="n == 3", steps=(paid("a"),))
    spec = flow_spec(Flow(steps=(loop, step("b"))), n=variable("int", 0))
    run = FlowPlay(spec, {"a": lambda entry: {"n": entry["n"] + 1}, "b": BAD})

    class Watching(FlowPlay):
        def perform(self, at):
            effect = self.open[at]
            active = self.state.active.get(effect.turn)
            if active is not None and active.flow.undoes:
                seen.append(undone_of(self.state, active)["state"]["n"])
                assert undone_of(self.state, active)["turn"] == active.flow.undoes
            else:
                assert undone_of(self.state, active) is None
            super().perform(at)

    watched = Watching(spec, {"a": lambda entry: {"n": entry["n"] + 1}, "b": BAD})
    assert seen == [3, 2, 1]
    assert watched.calls == run.calls == ["a", "a", "a", "b", "undo:a", "undo:a", "undo:a"]
    undone = [event.undoes for event in run.of(TurnStarted) if event.undoes]
    assert len(set(undone)) == 3


def test_handlers_receive_the_failure():
    told = []

    class Watching(FlowPlay):
        def perform(self, at):
            active = self.state.active[self.open[at].turn]
            told.append((active.step, (failure_of(self.state, active) or {}).get("message")))
            super().perform(at)

    flow = Flow(steps=(paid("a", on_failure=path("f")),), on_failure=path("g"))
    Watching(flow_spec(flow), {"a": BAD})

    assert told == [("a", None), ("f", "bad card"), ("a", "bad card"), ("g", "bad card")]


def test_values_set_in_a_failure_path_are_kept():
    node = step("a", on_failure=path("f"))
    run = play(node, does={"a": BAD, "f": {"x": 1}}, variables={"x": variable("int")})

    assert run.values["x"] == 1
    assert [event.writer for event in run.of(VariableSet)] == ["step:f"]


# -- 7: paths side by side


def side(*, recovery=None, undone=False):
    first = paid("a0") if undone else step("a0")
    return Fork(
        name="fork",
        paths=(
            ForkPath(name="one", steps=(first, paid("a")), on_failure=recovery),
            ForkPath(name="two", steps=(paid("b"),)),
        ),
        join=step("j"),
    )


VARIABLES = {"x": variable("int", 0), "y": variable("int", 0)}


def joined(run):
    return run.of(Joined)[0].results


def test_row_7_a_path_that_recovers_counts_with_what_it_has_set():
    does = {"a0": {"x": 1}, "a": BAD, "r": {"y": 2}}
    run = play(side(recovery=path("r"), undone=True), does=does, variables=VARIABLES)

    assert joined(run) == {"one": "recovered", "two": "success"}
    assert sorted(run.calls) == ["a", "a0", "b", "j", "r", "undo:a"]
    assert (run.outcome, run.values["x"], run.values["y"]) == ("completed", 1, 2)


@pytest.mark.parametrize("recovery", [None, path("r")])
def test_row_7_a_path_that_fails_is_undone_and_nothing_of_it_counts(recovery):
    does = {"a0": {"x": 1}, "a": BAD, "r": BAD}
    run = play(side(recovery=recovery, undone=True), does=does, variables=VARIABLES)

    assert joined(run) == {"one": "failed", "two": "success"}
    rest = [call for call in run.calls if call not in ("b", "r")]
    assert rest == ["a0", "a", "undo:a", "undo:a0", "j"]
    assert (run.outcome, run.values["x"]) == ("completed", 0)


def test_the_join_sees_how_the_paths_ended():
    seen = {}

    class Watching(FlowPlay):
        def perform(self, at):
            active = self.state.active[self.open[at].turn]
            seen[active.step] = paths_of(self.workflow.compiled, self.state, active)
            super().perform(at)

    Watching(flow_spec(Flow(steps=(side(), step("z")))), {"a": BAD})

    assert seen["a"] == seen["z"] == {}
    assert seen["j"]["two"] == {"status": "success", "failure": None}
    assert seen["j"]["one"]["status"] == "failed"
    assert seen["j"]["one"]["failure"]["message"] == "bad card"


def test_if_all_paths_fail_so_does_the_run():
    run = play(paid("first"), side(), does={"a": BAD, "b": BAD}, on_failure=path("f"))

    assert run.outcome == "failed"
    assert run.state.reason == "every path of fork failed: bad card; bad card"
    assert "j" not in run.calls
    assert run.calls[-2:] == ["undo:first", "f"]


def test_a_run_that_fails_later_undoes_the_paths_too_but_nothing_twice():
    run = play(
        paid("first"),
        side(recovery=path("r"), undone=True),
        step("z"),
        does={"a": BAD, "z": BAD},
    )

    undone = [call for call in run.calls if call.startswith("undo:")]
    assert undone == ["undo:a", "undo:b", "undo:a0", "undo:first"]


# -- confidence


def sure(**options):
    return step("a", confidence=Confidence(minimum=0.8, **options))


def test_result_above_minimum_confidence_is_accepted():
    for share in (0.8, 1):
        assert play(sure(), step("z"), does={"a": ({}, share)}).calls == ["a", "z"]


def test_a_result_that_is_not_sure_counts_and_takes_its_path():
    ends = Path(steps=(step("review"),), ends=True)
    rejoins = Path(steps=(step("review"),))
    does = {"a": ({"x": 3}, 0.79)}
    for way, calls in ((ends, ["a", "review"]), (rejoins, ["a", "review", "z"])):
        run = play(sure(path=way), step("z"), does=does, variables=VARIABLES)
        assert run.calls == calls
        assert (run.outcome, run.values["x"]) == ("completed", 3)
        assert run.of(Branched)[0].why == "low_confidence"


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.5, "the confidence of a is 0.5"),
        (None, "returned no confidence"),
        (True, "returned no confidence"),
    ],
)
def test_without_a_path_or_a_word_an_unsure_result_fails(share, told):
    run = play(sure(), does={"a": ({"x": 3}, share)}, variables=VARIABLES)

    assert (run.outcome, run.values["x"]) == ("failed", 0)
    assert told in run.state.reason


# -- stopping


def test_a_stop_undoes_what_was_done_if_the_flow_wants_that():
    for wants, calls in ((True, ["a", "b", "undo:b", "undo:a"]), (False, ["a", "b"])):
        flow = Flow(
            steps=(paid("a"), paid("b"), step("c", retry=Retry(attempts=2))),
            on_failure=path("f"),
            compensate_on_cancel=wants,
        )
        run = FlowPlay(flow_spec(flow), {"c": [BAD, {}]}).stop()

        assert [call for call in run.calls if call != "c"] == calls
        assert (run.outcome, run.state.reason) == ("cancelled", "stopped by me")


def test_a_stop_after_the_turn_lets_the_turn_end():
    flow = Flow(steps=(paid("a"), step("b")), compensate_on_cancel=True)
    run = FlowPlay(flow_spec(flow), go=False).stop("after_turn")

    assert run.calls == ["a", "undo:a"]
    assert (run.outcome, run.state.reason) == ("cancelled", "stopped on request after the turn")


def test_a_stop_after_the_turn_waits_for_all_paths():
    run = FlowPlay(flow_spec(Flow(steps=(side(),))), go=False).stop("after_turn")

    assert sorted(run.calls) == ["a0", "b"]
    assert run.outcome == "cancelled"


def test_a_stop_while_something_is_undone():
    for wants, calls in ((True, ["undo:b", "undo:a"]), (False, [])):
        flow = Flow(steps=(paid("a"), paid("b"), step("c")), compensate_on_cancel=wants)
        run = FlowPlay(flow_spec(flow), {"c": BAD}, go=False)
        for _ in range(3):
            run.perform(0)
        run.calls.clear()
        run.stop()

        assert [call for call in run.calls if wants] == calls
        assert run.outcome == ("failed" if wants else "cancelled")


def test_a_stop_in_the_middle_of_paths_undoes_each_once():
    flow = Flow(steps=(paid("first"), side(undone=True)), compensate_on_cancel=True)
    run = FlowPlay(flow_spec(flow), {"a": BAD}, go=False)
    while "undo:a" not in run.calls:
        run.perform(0)
    run.stop()

    undone = [call for call in run.calls if call.startswith("undo:")]
    assert len(undone) == len(set(undone))
    assert set(undone) >= {"undo:a", "undo:first"}
    assert run.outcome == "cancelled"


def test_a_stop_while_a_path_is_undone_lets_that_end_and_breaks_off_the_others():
    flow = Flow(
        steps=(
            Fork(
                name="fork",
                paths=(
                    ForkPath(name="one", steps=(paid("p"), paid("q"), step("bad"))),
                    ForkPath(name="two", steps=(paid("slow"),)),
                    ForkPath(name="three", steps=(Approval(name="ok", approver="role:boss"),)),
                ),
                join=step("j"),
            ),
        ),
        compensate_on_cancel=True,
    )
    run = FlowPlay(flow_spec(flow), {"bad": BAD}, go=False)
    slow = next(event for event in run.open if run.state.active[event.turn].step == "slow")
    run.open.remove(slow)
    while run.calls.count("bad") == 0:
        run.perform(0)
    # The compensation of q is begun and has not come back; slow never does.
    run.stop()

    undone = [call for call in run.calls if call.startswith("undo:")]
    assert undone == ["undo:q", "undo:p", "undo:slow"]
    assert run.outcome == "cancelled"


@pytest.mark.parametrize("recovers", [True, False])
def test_a_stop_after_the_turn_ends_a_run_whose_last_path_fails(recovers):
    recovery = path("r") if recovers else None
    fork = Fork(
        name="fork",
        paths=(
            ForkPath(name="one", steps=(step("a"), step("a2"))),
            ForkPath(name="two", steps=(step("b", retry=Retry(attempts=3)),), on_failure=recovery),
            ForkPath(name="three", steps=(Approval(name="ok", approver="role:boss"),)),
        ),
        join=step("j"),
    )
    run = FlowPlay(flow_spec(Flow(steps=(fork,))), {"b": BAD}, go=False)
    run.take(StopRequested("after_turn", "me"))
    run.work()

    assert run.outcome == "cancelled"
    assert "a2" not in run.calls
    assert run.calls.count("b") == 1, "no further attempt is made"


def test_a_stop_after_the_turn_while_a_path_waits_for_its_next_attempt():
    fork = Fork(
        name="fork",
        paths=(
            ForkPath(name="one", steps=(step("a"),)),
            ForkPath(name="two", steps=(step("b", retry=Retry(attempts=3)),)),
        ),
        join=step("j"),
    )
    run = FlowPlay(flow_spec(Flow(steps=(fork,))), {"b": BAD}, go=False)
    run.perform(1)
    slow = run.open.pop()
    run.take(StopRequested("after_turn", "me"))
    run.wait(5)
    assert (run.outcome, run.calls) == (None, ["b"])
    run.open.append(slow)
    run.work()

    assert run.outcome == "cancelled"


def test_recovery_steps_are_undone_when_the_run_fails_later():
    recovery = Path(steps=(paid("r"),))
    run = play(side(recovery=recovery), step("z"), does={"a": BAD, "z": BAD})

    assert [call for call in run.calls if call.startswith("undo:")] == [
        "undo:a",
        "undo:b",
        "undo:r",
    ]


def test_failed_compensation_is_reported_with_its_reason():
    run = play(paid("a"), step("b"), does={"b": BAD, "undo:a": RuntimeError("bank closed")})

    assert run.state.reason == "bad card; compensating a failed: bank closed"


def test_very_many_attempts_wait_a_minute_at_most():
    node = step("a", retry=Retry(attempts=1000, delay_seconds=0.0))
    assert len(play(node, does={"a": BAD}).calls) == 1000


def test_a_stop_undoes_what_was_attempted_and_may_have_been_done():
    flow = Flow(
        steps=(
            Fork(
                name="fork",
                paths=(
                    ForkPath(name="one", steps=(paid("working"),)),
                    ForkPath(name="two", steps=(paid("waiting", retry=Retry(attempts=2)),)),
                    ForkPath(name="three", steps=(paid("failed", on_failure=path("f")),)),
                    ForkPath(name="four", steps=(step("plain", on_failure=path("f4")),)),
                ),
                join=step("j"),
            ),
        ),
        compensate_on_cancel=True,
    )
    run = FlowPlay(flow_spec(flow), {"waiting": BAD, "failed": BAD, "plain": BAD}, go=False)
    for name in ("waiting", "failed", "plain"):
        steps = [run.state.active[event.turn].step for event in run.open]
        run.perform(steps.index(name))
    run.open.clear()
    run.calls.clear()
    run.stop()

    assert run.calls == ["undo:failed", "undo:waiting", "undo:working"]
    assert run.outcome == "cancelled"


# -- journals that were cut


def cut(run, at):
    """Go on from a journal that ends before an event."""
    run.events = run.events[:at]
    run.calls.clear()
    run.restart()
    return run.work()


def test_journal_cut_before_any_step_continues_identically():
    def whole():
        return play(paid("first"), side(undone=True), paid("c"), step("z"), does={"z": BAD})

    starts = [at for at, event in enumerate(whole().events) if isinstance(event.data, TurnStarted)]
    expected = whole().state
    for at in starts:
        run = cut(whole(), at)
        assert run.outcome == "failed"
        assert run.state.variables == expected.variables
        undone = [event.undoes for event in run.of(TurnStarted) if event.undoes]
        assert len(undone) == len(set(undone)) == 5


def test_a_journal_that_was_cut_before_the_failed_step_is_undone():
    run = play(paid("a"), paid("b"), does={"b": BAD})
    at = next(n for n, event in enumerate(run.events) if getattr(event.data, "undoes", 0))

    assert cut(run, at).calls == ["undo:b", "undo:a"]


def test_a_journal_that_was_cut_while_a_path_fails_and_the_run_is_to_stop():
    fork = Fork(
        name="f",
        paths=(
            ForkPath(name="one", steps=(step("a"), step("after_a"))),
            ForkPath(name="two", steps=(paid("b"), step("after_b"))),
        ),
        join=step("j"),
    )
    run = FlowPlay(flow_spec(Flow(steps=(fork,))), {"b": BAD}, go=False)
    run.take(StopRequested("after_turn", "me"))
    run.work()
    assert run.calls == ["a", "b", "undo:b"]
    at = next(n for n, event in enumerate(run.events) if getattr(event.data, "undoes", 0))

    assert cut(run, at).calls == ["undo:b"]
    assert run.outcome == "cancelled"


def test_a_timer_that_nothing_waits_for_changes_nothing():
    run = play(step("a", retry=Retry(attempts=2)), does={"a": BAD})
    run.take(TimerSet("stray", run.now, "flow"))
    run.wait(0)

    assert run.state.status == "waiting"


# -- results and requests of code


def test_result_after_the_deadline_fails_the_attempt():
    spec = flow_spec(Flow(steps=(step("a", timeout_seconds=5),)), x=variable("int", 0))
    run = FlowPlay(spec, go=False)

    def finish_late(_values):
        run.now += 6000
        return {"x": 1}

    run.does["a"] = finish_late
    run.work()

    assert [failed.kind for failed in run.of(TurnFailed)] == ["deadline"]
    assert run.values["x"] == 0


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [(RequestAnswered("q", "yes", "boss"), "completed"), (RequestExpired("q"), "failed")],
)
def test_request_of_step_code_is_closed(reply, outcome):
    run = FlowPlay(flow_spec(Flow(steps=(step("a"),))), go=False)
    (called,) = run.open
    run.take(RequestOpened("q", "ui", "a", "ask", called.id), turn=called.turn)
    assert "q" in run.state.requests
    run.take(reply, turn=called.turn)

    assert run.state.requests == {}
    assert run.work().outcome == outcome
