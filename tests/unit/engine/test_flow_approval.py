"""Approvals: options, time, escalation, rejection."""

import pytest

from support.flow_play import FlowPlay, flow_spec, step, variable, work
from weft.engine.events import Branched, RequestOpened, TurnFailed
from weft.spec.flow import Approval, Escalation, Flow, Option, Path

HOUR = 3600.0


def approval(**options):
    return Approval(name="ok", approver="role:boss", timeout_seconds=HOUR, **options)


def play(node, *, x=None, **options):
    flow = Flow(steps=(step("a", compensate=work("u")), node, step("z")), **options)
    variables = {"total": variable("int", 7), "decision": x or variable("str")}
    return FlowPlay(flow_spec(flow, **variables))


def path(*names, ends=False):
    return Path(steps=tuple(step(name) for name in names), ends=ends)


def test_a_person_is_asked_and_the_run_waits():
    run = play(approval(text="Pay {total}?"))
    (asked,) = run.of(RequestOpened)

    assert run.state.status == "waiting"
    assert asked.payload == {"step": "ok", "text": "Pay 7?", "options": ["approve", "reject"]}
    assert (asked.addressee, asked.tool, asked.expires_at) == ("role:boss", "approval:ok", 3600000)
    assert run.answer("approve").calls == ["a", "z"]
    assert run.outcome == "completed"


def test_the_option_stands_in_the_state():
    options = (Option(name="now"), Option(name="later"), Option(name="never", rejects=True))
    run = play(approval(options=options, output="decision")).answer("later")

    assert (run.outcome, run.values["decision"]) == ("completed", "later")


def test_an_option_that_does_not_fit_its_variable_fails():
    run = play(approval(output="decision"), x=variable("int")).answer("approve")

    assert run.outcome == "failed"
    assert "ok: decision: expected int" in run.state.reason


def test_a_rejection_fails_the_run_and_undoes_what_was_done():
    run = play(approval(), on_failure=path("f")).answer("reject")

    assert run.calls == ["a", "undo:a", "f"]
    assert (run.outcome, run.state.reason) == ("failed", "ok was rejected by boss")
    assert run.of(TurnFailed)[0].kind == "rejected"


@pytest.mark.parametrize(("ends", "calls"), [(True, ["a", "r"]), (False, ["a", "r", "z"])])
def test_a_rejection_takes_its_path(ends, calls):
    run = play(approval(on_rejection=path("r", ends=ends))).answer("reject")

    assert (run.calls, run.outcome) == (calls, "completed")
    assert run.of(Branched)[0].why == "rejected"


def test_silent_approvers_are_followed_by_the_next_and_the_default():
    chain = (
        Escalation(approver="role:director", timeout_seconds=2 * HOUR),
        Escalation(approver="user:ceo", timeout_seconds=HOUR),
    )
    run = play(approval(escalate=chain, default="approve", on_timeout=path("t")))
    asked = []
    for hours in (1, 2, 1):
        asked.append(next(iter(run.state.requests.values())).addressee)
        run.wait(hours * HOUR)

    assert asked == ["role:boss", "role:director", "user:ceo"]
    assert (run.calls, run.outcome) == (["a", "z"], "completed")
    assert len({event.digest for event in run.of(RequestOpened)}) == 3


def test_the_one_it_was_escalated_to_decides():
    chain = (Escalation(approver="role:director"),)
    run = play(approval(escalate=chain)).wait(HOUR).answer("reject", "ada")

    assert run.state.reason == "ok was rejected by ada"


def test_a_default_may_reject():
    run = play(approval(default="reject", on_rejection=path("r"))).wait(HOUR)

    assert run.calls == ["a", "r", "z"]


def test_without_a_default_the_path_for_this_case_is_taken():
    run = play(approval(on_timeout=path("t", ends=True))).wait(HOUR)

    assert (run.calls, run.outcome) == (["a", "t"], "completed")
    assert run.of(Branched)[0].why == "timed_out"


def test_without_either_the_run_fails():
    run = play(approval()).wait(HOUR)

    assert (run.outcome, run.state.reason) == ("failed", "no answer to ok in time")
    assert run.calls == ["a", "undo:a"]
    assert run.of(TurnFailed)[0].kind == "deadline"


def test_a_run_that_waits_for_a_person_can_be_stopped():
    for mode in ("now", "after_turn"):
        run = play(approval(), compensate_on_cancel=True).stop(mode)
        assert (run.outcome, run.calls) == ("cancelled", ["a", "undo:a"])


def test_it_is_still_asked_after_a_restart():
    run = play(approval())
    run.restart()

    assert run.answer("approve").outcome == "completed"
