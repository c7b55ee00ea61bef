"""Approvals in flows: who is asked, what they may answer, and what counts as an answer."""

import asyncio

import pytest

from support.flow_hosts import SCOPE, derived
from support.flow_options import ALL, OptionPlay, waits
from weft.adapters.sql import SqliteStore
from weft.engine.events import RequestAnswered, RequestExpired, RequestOpened
from weft.errors import AccessDenied, UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, UserMessage
from weft.testing import ManualClock

HOUR = 3600

#: Who may not see a run is told that there is none.
REFUSED = (UsageError, AccessDenied)
VALUES = {"total": derived("int", 30), "decision": derived("str | None")}
EDITOR = Scope(SCOPE.app, "edith", roles=("editor",))
CHIEF = Scope(SCOPE.app, "carl", roles=("chief",))
STRANGER = Scope(SCOPE.app, "eve", roles=("author",))
ELSEWHERE = Scope("other", "edith", roles=("editor",))


def asked(**options):
    node = {"kind": "approval", "name": "ask", "approver": "role:editor", **options}
    return {"output": "decision", **node}


def spec_of(play, node):
    return play.spec(
        play.step("pay", compensate=play.undo("pay")), node, play.step("ship"), variables=VALUES
    )


def decided(decision=None, *, after=(), **options):
    """Play an approval: time that passes, then a decision; return the state and the calls."""

    async def whole():
        play = OptionPlay()
        for name in ("on_timeout", "on_rejection"):
            if isinstance(options.get(name), list):
                options[name] = play.path(*options[name])
        async with play.begun(spec_of(play, asked(**options))) as begun:
            for seconds in after:
                await begun.after(seconds)
            if decision:
                await begun.answer(decision)
        return begun.state, play

    return waits(whole)


# -- options


def test_the_approver_is_asked_with_the_text_and_the_run_waits():
    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked(text="Pay {total} euros?"))) as begun:
            (request,) = await begun.host.requests(scope=EDITOR)
            assert await begun.host.requests(scope=STRANGER) == []
            return begun.state, request, play.calls

    state, request, calls = waits(whole)
    assert (state.outcome, calls) == (None, ["pay"])
    assert request.addressee == "role:editor"
    assert request.payload == {
        "step": "ask", "text": "Pay 30 euros?", "options": ["approve", "reject"],
    }  # fmt: skip


def test_approvals_are_identified_by_their_names():
    async def whole():
        play = OptionPlay()
        nodes = [
            {"kind": "approval", "name": name, "approver": "role:editor"} for name in ("one", "two")
        ]
        async with play.begun(play.spec(*nodes)) as begun:
            found = []
            for _ in nodes:
                found += [
                    (request.tool, request.payload["step"]) for request in await begun.requests()
                ]
                await begun.answer("approve")
        return found, play.steps

    found, steps = waits(whole)
    assert found == [("approval:one", "one"), ("approval:two", "two")]
    assert steps == ["one", "two"]


def test_the_option_that_was_chosen_is_the_output():
    options = [{"name": "yes"}, {"name": "later"}, {"name": "no", "rejects": True}]
    state, play = decided("later", options=options)
    assert (state.outcome, play.calls) == ("completed", ["pay", "ship"])
    assert state.variables["decision"] == "later"


def test_an_answer_may_have_a_comment_which_is_recorded():
    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked())) as begun:
            await begun.answer("approve", EDITOR, comment="Fine.")
        return begun.state.outcome, play.of(RequestAnswered)[0]

    outcome, answer = waits(whole)
    assert outcome == "completed"
    assert answer.value == {"decision": "approve", "comment": "Fine."}


@pytest.mark.parametrize("value", ["approve", "yes", {"decision": "yes"}, {"decison": "approve"}])
def test_answer_without_a_decision_lists_the_options(value):
    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked())) as begun:
            (request,) = await begun.host.requests(scope=ALL)
            with pytest.raises(UsageError, match="approve") as caught:
                await begun.host.deliver(begun.run, Answer(request.id, value), scope=EDITOR)
        return caught.value

    hint = waits(whole).hint or ""
    assert hint == 'answer {"decision": "approve"}, and a comment if you like'


def test_second_answer_gets_an_error():
    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked())) as begun:
            (request,) = await begun.requests()
            await begun.answer("approve", EDITOR)
            again = Answer(request.id, {"decision": "approve"})
            with pytest.raises(UsageError, match="it is answered already"):
                await begun.host.deliver(begun.run, again, scope=EDITOR)
            with pytest.raises(AccessDenied, match="there is no run"):
                await begun.host.deliver(begun.run, again, scope=STRANGER)

    waits(whole)


def test_an_option_that_rejects_fails_the_run_and_what_was_done_is_undone():
    options = [{"name": "yes"}, {"name": "no", "rejects": True}]
    state, play = decided("no", options=options)
    assert (state.outcome, play.calls) == ("failed", ["pay", "undo:pay"])
    assert "ask was rejected by" in state.reason


def test_on_rejection_is_the_path_of_a_rejection():
    state, play = decided("reject", on_rejection=["tell"])
    assert (state.outcome, play.calls) == ("completed", ["pay", "tell", "ship"])


def test_request_expires_after_timeout_seconds():
    state, play = decided(after=[HOUR - 1], timeout_seconds=HOUR)
    assert state.outcome is None
    state, play = decided(after=[HOUR], timeout_seconds=HOUR)
    assert (state.outcome, play.calls) == ("failed", ["pay", "undo:pay"])
    assert "no answer to ask in time" in state.reason


def test_on_timeout_path_follows_the_last_timeout():
    state, play = decided(after=[HOUR], timeout_seconds=HOUR, on_timeout=["tell"])
    assert (state.outcome, play.calls) == ("completed", ["pay", "tell", "ship"])


def test_default_applies_without_an_answer():
    state, _ = decided(after=[HOUR], timeout_seconds=HOUR, default="approve")
    assert (state.outcome, state.variables["decision"]) == ("completed", "approve")
    state, _ = decided(after=[HOUR], timeout_seconds=HOUR, default="reject")
    assert state.outcome == "failed"


def test_a_question_escalates_to_one_approver_after_the_other():
    async def whole():
        play = OptionPlay()
        further = [
            {"approver": "role:chief", "timeout_seconds": 60},
            {"approver": "user:ada", "timeout_seconds": 10},
        ]
        node = asked(timeout_seconds=HOUR, escalate=further, default="reject")
        async with play.begun(spec_of(play, node)) as begun:
            found = []
            for seconds in (HOUR, 60, 10):
                found += [request.addressee for request in await begun.requests()]
                await begun.after(seconds)
            return found, begun.state.outcome, len(play.of(RequestExpired))

    assert waits(whole) == (["role:editor", "role:chief", "user:ada"], "failed", 3)


def test_whom_it_escalated_to_decides():
    async def whole():
        play = OptionPlay()
        further = [{"approver": "role:chief", "timeout_seconds": 60}]
        async with play.begun(spec_of(play, asked(timeout_seconds=9, escalate=further))) as begun:
            await begun.after(9)
            with pytest.raises(REFUSED):
                await begun.answer("approve", EDITOR)
            await begun.answer("approve", CHIEF)
            return begun.state.outcome

    assert waits(whole) == "completed"


# -- only an answer is an answer


def refused(signal_of, *, scope=EDITOR):
    """Deliver something to a run that waits; it is refused, and changes nothing."""

    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked())) as begun:
            (request,) = await begun.requests()
            before = begun.state.seq
            with pytest.raises(REFUSED):
                await begun.host.deliver(begun.run, signal_of(request), scope=scope)
            state = await begun.rest()
            assert (state.seq, state.outcome, len(state.requests)) == (before, None, 1)
            await begun.answer("approve", EDITOR)
            return begun.state.outcome

    assert waits(whole) == "completed"


def test_a_forged_answer_is_refused():
    yes = {"decision": "approve"}
    refused(lambda item: Answer("r1:1", yes))
    refused(lambda item: Answer(item.id[:-1], yes))


@pytest.mark.parametrize(
    "value",
    [
        {"decision": "maybe"},
        {"decision": None},
        {},
        "approve",
        True,
        {"decision": "approve", "approver": "role:chief"},
    ],
)
def test_answer_outside_the_options_is_refused(value):
    refused(lambda item: Answer(item.id, value))


@pytest.mark.parametrize("scope", [STRANGER, CHIEF, SCOPE, ELSEWHERE])
def test_a_foreign_answer_is_refused(scope):
    refused(
        lambda item: Answer(item.id, {"decision": "approve"}),
        scope=scope,
    )


def test_message_is_not_an_answer():
    refused(lambda item: UserMessage("approve"), scope=SCOPE)


def test_an_answer_counts_once():
    async def whole():
        play = OptionPlay()
        options = [{"name": "yes"}, {"name": "no", "rejects": True}]
        async with play.begun(spec_of(play, asked(options=options))) as begun:
            (request,) = await begun.requests()
            results = await asyncio.gather(
                *(
                    begun.host.deliver(
                        begun.run, Answer(request.id, {"decision": name}), scope=EDITOR
                    )
                    for name in ("yes", "no", "yes")
                ),
                return_exceptions=True,
            )
            await begun.rest()
            with pytest.raises(REFUSED):
                await begun.host.deliver(
                    begun.run, Answer(request.id, {"decision": "no"}), scope=EDITOR
                )
        return begun.state.outcome, [result is None for result in results], play

    outcome, results, play = waits(whole)
    assert outcome == "completed"
    assert results == [True, False, False]
    (answer,) = play.of(RequestAnswered)
    assert (answer.value, answer.user) == ({"decision": "yes"}, "edith")


def test_the_answer_to_one_run_does_not_count_for_another():
    async def whole():
        play = OptionPlay()
        async with play.host(spec_of(play, asked())) as host:
            for run in ("one", "two"):
                await host.start("F", scope=SCOPE, run=run)
                await host.settled(run, scope=SCOPE)
            (request,) = await host.requests(scope=EDITOR, run="one")
            with pytest.raises(REFUSED):
                await host.deliver("two", Answer(request.id, {"decision": "approve"}), scope=EDITOR)
            return [len(await host.requests(scope=EDITOR, run=name)) for name in ("one", "two")]

    assert waits(whole) == [1, 1]


def test_questions_are_bound_to_run_approver_and_what_is_shown():
    digests = set()
    for values in ({}, {"total": 31}):

        async def whole(values=values):
            play = OptionPlay()
            further = [{"approver": "role:chief"}]
            node = asked(text="Pay {total}?", timeout_seconds=9, escalate=further)
            async with play.begun(spec_of(play, node), **values) as begun:
                await begun.after(9)
            return [event.digest for event in play.of(RequestOpened)]

        digests.update(waits(whole))
    assert len(digests) == 4


def test_an_answer_after_the_time_is_over_is_refused():
    async def whole():
        play = OptionPlay()
        async with play.begun(spec_of(play, asked(timeout_seconds=HOUR))) as begun:
            (request,) = await begun.requests()
            await begun.after(HOUR)
            with pytest.raises(REFUSED):
                await begun.host.deliver(
                    begun.run, Answer(request.id, {"decision": "approve"}), scope=EDITOR
                )
            return (await begun.rest()).outcome

    assert waits(whole) == "failed"


# -- another process


def test_a_question_survives_a_restart_and_counts_once(tmp_path):
    async def whole():
        clock, file = ManualClock(), tmp_path / "journal.db"
        play = OptionPlay(clock=clock, store=await SqliteStore.open(file, clock=clock))
        spec = spec_of(play, asked())
        async with play.begun(spec) as begun:
            (request,) = await begun.requests()
        play.journal = await SqliteStore.open(file, clock=play.clock)
        async with play.host(spec) as host:
            await host.recover()
            (again,) = await host.requests(scope=EDITOR)
            answer = Answer(request.id, {"decision": "approve"})
            await host.deliver("r1", answer, scope=EDITOR)
            await host.settled("r1", scope=SCOPE)
            with pytest.raises(REFUSED):
                await host.deliver("r1", answer, scope=EDITOR)
            state = await host.state("r1", scope=SCOPE)
        return request == again, state.outcome, play.calls

    assert waits(whole) == (True, "completed", ["pay", "ship"])


@pytest.mark.parametrize("recover", [True, False])
def test_a_question_that_expired_while_no_process_was_there(tmp_path, recover):
    async def whole():
        clock, file = ManualClock(), tmp_path / "journal.db"
        play = OptionPlay(clock=clock, store=await SqliteStore.open(file, clock=clock))
        further = [{"approver": "role:chief", "timeout_seconds": HOUR}]
        spec = spec_of(play, asked(timeout_seconds=HOUR, escalate=further))
        async with play.begun(spec) as begun:
            (request,) = await begun.requests()
        await clock.advance(HOUR)
        play.journal = await SqliteStore.open(file, clock=play.clock)
        async with play.host(spec) as host:
            if recover:
                await host.recover()
            answer = Answer(request.id, {"decision": "approve"})
            with pytest.raises(REFUSED):
                await host.deliver("r1", answer, scope=EDITOR)
            await asyncio.sleep(0.05)
            (now,) = await host.requests(scope=ALL, run="r1")
            assert now.addressee == "role:chief"
            await host.deliver("r1", Answer(now.id, {"decision": "approve"}), scope=CHIEF)
            await host.settled("r1", scope=SCOPE)
            return (await host.state("r1", scope=SCOPE)).outcome

    assert waits(whole) == "completed"
