"""Retries, fallbacks, time limits and places: each layer alone, with a clock that stands still."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_play import Canned, StillClock, ask, passing, run
from weft.adapters.models.limits import Limited, Retrying, RetryPolicy, TimeLimited, WithFallback
from weft.errors import ModelError
from weft.ports.model import ModelReply

OK = ModelReply("ok")
LASTING = ModelError("wrong key")


def retrying(*acts: object, clock: StillClock, policy: RetryPolicy | None = None) -> Retrying:
    model = Canned(*acts)
    return Retrying(model, clock=clock, random=Random(1), policy=policy or RetryPolicy())


def test_transient_error_is_retried_with_growing_waits():
    clock = StillClock()
    reply = run(retrying(passing(), passing(), passing(), OK, clock=clock).reply(ask()))
    assert reply.text == "ok"
    first, second, third = clock.waits
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0


def test_permanent_error_is_not_retried():
    clock = StillClock()
    with pytest.raises(ModelError, match=r"^wrong key$") as caught:
        run(retrying(LASTING, OK, clock=clock).reply(ask()))
    assert caught.value.attempts == 1
    assert clock.waits == []


def test_after_the_last_attempt_the_last_error_counts_them():
    clock = StillClock()
    model = retrying(*[passing(f"busy {at}") for at in range(1, 5)], clock=clock)
    with pytest.raises(ModelError, match=r"^busy 4 \(attempts: 4\)$") as caught:
        run(model.reply(ask()))
    assert caught.value.retryable
    assert caught.value.attempts == 4
    assert len(clock.waits) == 3


def test_an_answer_names_the_attempts_that_failed_before_it():
    model = retrying(passing("500 from it"), passing("busy"), OK, clock=StillClock())
    reply = run(model.reply(ask()))
    assert reply.retries == ("attempt 1 of 4: 500 from it", "attempt 2 of 4: busy")
    assert run(retrying(OK, clock=StillClock()).reply(ask())) is OK
    assert OK.retries == ()


def test_final_error_lists_earlier_attempts_that_failed_differently():
    model = retrying(passing("500"), passing("502"), LASTING, clock=StillClock())
    with pytest.raises(ModelError, match=r"^wrong key \(attempts: 3\)$") as caught:
        run(model.reply(ask()))
    assert caught.value.retries == (
        "attempt 1 of 4: 500",
        "attempt 2 of 4: 502",
    )
    with pytest.raises(ModelError, match=r"^wrong key$") as caught:
        run(retrying(LASTING, clock=StillClock()).reply(ask()))
    assert caught.value.retries == ()


def test_every_wait_is_announced():
    clock, told = StillClock(), list[tuple[int, str]]()
    policy = RetryPolicy(attempts=3)
    model = retrying(
        passing("500", after=1.24),
        passing("502", after=75),
        passing("x"),
        clock=clock,
        policy=policy,
    )
    request = ask()._replace(on_retry=lambda text: told.append((len(clock.waits), text)))
    with pytest.raises(ModelError, match=r"attempts: 3"):
        run(model.reply(request))
    assert told == [
        (0, "attempt 2 of 3 in 1.2 s, after: 500"),
        (1, "attempt 3 of 3 in 75.0 s, after: 502"),
    ]


def test_repeated_error_is_reported_once():
    notices = list[str]()
    model = retrying(*[passing("429 limit")] * 4, clock=StillClock())
    with pytest.raises(ModelError, match=r"^429 limit \(attempts: 4\)$") as caught:
        run(model.reply(ask()._replace(on_retry=notices.append)))
    assert caught.value.retries == ()
    assert [notice.partition(", after: ")[2] for notice in notices] == [
        "429 limit",
        "the same error",
        "the same error",
    ]


def test_error_names_a_wait_that_is_too_long():
    clock = StillClock()
    with pytest.raises(ModelError) as caught:
        run(retrying(passing("the provider answered 429.", after=900), clock=clock).reply(ask()))
    assert str(caught.value) == (
        "the provider answered 429. The next attempt would start in 900 s, longer than Weft waits."
    )
    assert clock.waits == []


def test_single_attempt_is_not_reported():
    request = ask()._replace(on_retry=pytest.fail)
    with pytest.raises(ModelError):
        run(retrying(LASTING, clock=StillClock()).reply(request))


def test_attempts_of_a_model_and_its_fallback_are_distinguished():
    def tries(*acts: object) -> Retrying:
        return retrying(*acts, clock=StillClock(), policy=RetryPolicy(attempts=2))

    busy = [passing("slow"), passing("busy")]
    reply = run(WithFallback(tries(*busy), tries(passing("500"), OK), name="a:b").reply(ask()))
    assert reply.retries == ("a:b, attempt 1 of 2: slow", "attempt 1 of 2: 500")
    assert reply.instead_of == "a:b, which gave no answer: busy (attempts: 2)"
    with pytest.raises(ModelError) as caught:
        run(WithFallback(tries(*busy), tries(*busy), name="a:b").reply(ask()))
    assert caught.value.retries == ("a:b, attempt 1 of 2: slow", "attempt 1 of 2: slow")


def test_retry_after_is_obeyed():
    clock = StillClock()
    run(retrying(passing(after=7.0), passing(after=0.0), OK, clock=clock).reply(ask()))
    assert clock.waits[0] == 7.0
    assert 0.5 <= clock.waits[1] <= 1.0


def test_no_attempt_begins_after_the_deadline():
    clock = StillClock()
    policy = RetryPolicy(attempts=100, deadline=10.0)
    with pytest.raises(ModelError, match="attempts: 2"):
        run(
            retrying(passing(after=6), passing(after=6), OK, clock=clock, policy=policy).reply(
                ask()
            )
        )
    assert clock.waits == [6.0]


def test_a_wait_without_end_is_not_waited_for():
    clock = StillClock()
    model = WithFallback(retrying(passing(after=1e308), clock=clock), Canned(OK), name="a:b")
    assert run(model.reply(ask())).text == "ok"
    assert clock.waits == []


def test_one_attempt_means_no_repetition():
    clock = StillClock()
    with pytest.raises(ModelError, match=r"^busy$"):
        run(retrying(passing(), OK, clock=clock, policy=RetryPolicy(attempts=1)).reply(ask()))


@given(st.integers(2, 2000), st.floats(0, 1, exclude_max=True))
def test_waits_grow_up_to_the_longest(attempt: int, draw: float):
    policy = RetryPolicy(first_wait=1.0, longest_wait=8.0)
    wait = policy.wait_before(attempt, draw)
    full = min(8.0, 2.0 ** min(attempt - 2, 10))
    assert full / 2 <= wait <= full


async def speak_then_fail(on_text: Callable[[str], None] | None) -> ModelReply:
    if on_text is not None:
        on_text("half a ")
    raise passing("cut")


def test_follower_of_half_an_answer_gets_no_other():
    clock, heard = StillClock(), list[str]()
    model = Canned(speak_then_fail, speak_then_fail, OK)
    wrapped = Retrying(model, clock=clock, random=Random(1))
    run(wrapped.reply(ask(), heard.append))
    assert heard == ["half a "]
    assert model.listened == [True, False, False]


def test_follower_without_text_keeps_listening():
    heard = list[str]()
    model = Canned(passing(), speak_then_fail, OK)
    run(Retrying(model, clock=StillClock(), random=Random(1)).reply(ask(), heard.append))
    assert model.listened == [True, True, False]


def test_without_a_listener_nothing_is_streamed():
    model = Canned(passing(), OK)
    run(Retrying(model, clock=StillClock(), random=Random(1)).reply(ask()))
    assert model.listened == [False, False]


def test_a_fallback_answers_whatever_went_wrong():
    for fault in (LASTING, passing()):
        first, second = Canned(fault), Canned(OK)
        reply = run(WithFallback(first, second, name="a:b").reply(ask()))
        assert reply.text == "ok"
        assert reply.instead_of == f"a:b, which gave no answer: {fault}"
        assert second.requests == first.requests


def test_a_fallback_is_not_asked_without_need():
    second = Canned()
    assert run(WithFallback(Canned(OK), second, name="a:b").reply(ask())) is OK
    assert second.requests == []


def test_fallback_is_not_streamed_after_half_an_answer():
    heard, second = list[str](), Canned(OK)
    run(WithFallback(Canned(speak_then_fail), second, name="a:b").reply(ask(), heard.append))
    assert heard == ["half a "]
    assert second.listened == [False]


def test_when_both_fail_both_are_named():
    with pytest.raises(ModelError, match=r"wrong key. The fallback failed too: busy") as caught:
        run(WithFallback(Canned(LASTING), Canned(passing(after=3)), name="a:b").reply(ask()))
    assert caught.value.retryable
    assert caught.value.after_seconds == 3


def test_the_attempts_of_both_are_counted():
    def tries() -> Retrying:
        return retrying(*[passing()] * 4, clock=StillClock(), policy=RetryPolicy(attempts=2))

    with pytest.raises(ModelError) as caught:
        run(WithFallback(tries(), tries(), name="a:b").reply(ask()))
    assert caught.value.attempts == 4


def test_silence_ends_a_call():
    async def silent(_: object) -> ModelReply:
        await asyncio.sleep(60)
        return OK

    with pytest.raises(ModelError, match=r"no answer from mock within 0\.02 s") as caught:
        run(TimeLimited(Canned(silent), name="mock", seconds=0.02).reply(ask()))
    assert caught.value.retryable


def test_time_counts_anew_with_every_piece():
    async def slowly(on_text: Callable[[str], None] | None) -> ModelReply:
        for word in ("a", "", "", "", "e"):
            await asyncio.sleep(0.15)
            assert on_text is not None
            on_text(word)
            on_text("!" if word else "")
        return OK

    heard = list[str]()
    reply = run(TimeLimited(Canned(slowly), name="mock", seconds=0.5).reply(ask(), heard.append))
    assert reply is OK
    # Those without words count too, and nobody else hears them.
    assert heard == ["a", "!", "e", "!"]


def test_a_call_in_time_is_left_alone():
    assert run(TimeLimited(Canned(OK), name="mock", seconds=5).reply(ask())) is OK


async def test_cancellation_is_not_a_timeout():
    async def silent(_: object) -> ModelReply:
        await asyncio.sleep(60)
        return OK

    task = asyncio.create_task(TimeLimited(Canned(silent), name="mock", seconds=30).reply(ask()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_only_so_many_run_at_once_and_all_are_served():
    running, most = 0, 0

    async def work(_: object) -> ModelReply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return OK

    async def play() -> None:
        model = Limited(Canned(*[work] * 20), at_once=3)
        replies = await asyncio.gather(*(model.reply(ask()) for _ in range(20)))
        assert replies == [OK] * 20

    run(play())
    assert most == 3


async def test_a_place_is_given_back_after_a_failure():
    model = Limited(Canned(LASTING, OK), at_once=1)
    with pytest.raises(ModelError):
        await model.reply(ask())
    assert await model.reply(ask()) is OK
