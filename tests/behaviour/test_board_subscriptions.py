"""Subscriptions: what wakes an agent, and what it gets then."""

from datetime import timedelta

import pytest

from support.boards import Note, Order, Payment, Receipt, Seen, play
from weft.board import (
    AfterVisibility,
    BatchSpec,
    Board,
    FunctionEngine,
    JoinSpec,
    PrivateVisibility,
)
from weft.errors import CheckFailed, UsageError


def big(payload) -> bool:
    return payload.total > 10


def breaks(payload) -> bool:
    raise ValueError("no idea")


def half(payload) -> int:
    return payload["number"] // 2


def one_agent(board: Board, *types, publishes=(), result=None, **options) -> Seen:
    seen = Seen(result)
    board.agent("worker").consumes(*types, **options).publishes(*publishes).with_engines(
        seen.engine
    )
    return seen


async def test_each_artifact_of_a_type_wakes_the_agent_and_others_do_not(board):
    seen = one_agent(board, Order)
    for number in range(3):
        await board.publish(Order(number=number))
    await board.publish(Note(text="no"))
    await board.run_until_idle()
    assert sorted(seen.calls) == [(0,), (1,), (2,)]


async def test_several_types_wait_for_one_of_each_in_the_declared_order(board):
    seen = one_agent(board, Order, Payment)
    made = await board.publish(Payment(number=7))
    await board.run_until_idle()
    assert seen.calls == []
    await board.publish(Order(number=1), correlation_id=made.correlation_id)
    await board.run_until_idle()
    assert seen.calls == [(1, 7)]


async def test_a_type_that_is_named_twice_is_counted(board):
    seen = one_agent(board, Order, Order, Payment)
    async with board.traced_run():
        for number in (1, 2, 3):
            await board.publish(Order(number=number))
        await board.publish(Payment(number=9))
        await board.publish(Payment(number=8))
        await board.publish(Order(number=4))
    await board.run_until_idle()
    assert seen.calls == [(1, 2, 9), (3, 4, 8)]


async def test_consumes_twice_means_either(board):
    seen = Seen()
    board.agent("worker").consumes(Order).consumes(Payment).with_engines(seen.engine)
    await board.publish(Order(number=1))
    await board.publish(Payment(number=2))
    await board.run_until_idle()
    assert sorted(seen.calls) == [(1,), (2,)]


@pytest.mark.parametrize("where", ["total > 10", big], ids=["condition", "function"])
async def test_where_decides_by_the_payload(where, board):
    seen = one_agent(board, Order, where=where)
    await board.publish(Order(number=1, total=5))
    await board.publish(Order(number=2, total=50))
    await board.run_until_idle()
    assert seen.calls == [(2,)]
    assert await board.missed() == []


async def test_where_that_raises_is_a_recorded_error_and_no_match(board):
    seen = one_agent(board, Order, where=breaks)
    made = await board.publish(Order(number=1))
    await board.run_until_idle()
    assert seen.calls == []
    (missed,) = await board.missed()
    assert (missed.why, missed.artifacts) == ("predicate", (made.id,))
    assert "ValueError" in missed.detail
    assert "no idea" in missed.detail


async def test_where_on_what_cannot_be_compared_is_a_recorded_error(board):
    seen = one_agent(board, Order, where="customer > 3")
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert seen.calls == []
    assert [delivery.why for delivery in await board.missed()] == ["predicate"]


async def test_tags_want_one_of_them(board):
    seen = one_agent(board, Order, tags={"rush", "vip"})
    await board.publish(Order(number=1), tags={"slow"})
    await board.publish(Order(number=2), tags=["vip", "slow"])
    await board.run_until_idle()
    assert seen.calls == [(2,)]


async def test_from_agents_wants_one_of_the_producers(board):
    board.agent("a").consumes(Order).publishes(Note).with_engines(
        FunctionEngine(lambda inputs: Note(text="from a"))
    )
    board.agent("b").consumes(Order).publishes(Note).with_engines(
        FunctionEngine(lambda inputs: Note(text="from b"))
    )
    seen = one_agent(board, Note, from_agents=["b"])
    await board.publish(Note(text="from outside"))
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert seen.calls == [("from b",)]


async def test_mode_events_takes_nothing_that_is_given_and_direct_nothing_else(board):
    events, direct = Seen(), Seen()
    board.agent("events").consumes(Order, mode="events").with_engines(events.engine)
    board.agent("direct").consumes(Order, mode="direct").with_engines(direct.engine)
    await board.publish(Order(number=1))
    await board.invoke("direct", Order(number=2))
    await board.run_until_idle()
    assert (events.calls, direct.calls) == ([(1,)], [(2,)])
    with pytest.raises(UsageError, match="events does not accept a Order that is published"):
        await board.invoke("events", Order(number=3))


async def test_invoke_gives_at_once_whatever_the_agent_would_wait_for(board):
    seen = one_agent(board, Order, Payment)
    others = Seen()
    board.agent("other").consumes(Order).with_engines(others.engine)
    await board.invoke("worker", Order(number=5))
    await board.run_until_idle()
    assert (seen.calls, others.calls) == ([(5,)], [])


def test_priority_comes_first_then_the_order_of_publishing():
    async def test(board, clock):
        order: list[str] = []

        def note(name):
            return FunctionEngine(lambda inputs: order.append(name))

        for name, priority in (("low", -1), ("usual", 0), ("high", 5)):
            board.agent(name).consumes(Order, priority=priority).with_engines(note(name))
        await board.publish(Order(number=1))
        await board.run_until_idle()
        assert order == ["high", "usual", "low"]

    play(test, max_concurrency=1)


@pytest.mark.parametrize("by", ["number", {"Order": "number", "Payment": "number"}])
async def test_join_pairs_by_key(by, board):
    seen = one_agent(board, Order, Payment, join=JoinSpec(by, timedelta(seconds=60)))
    async with board.traced_run():
        await board.publish(Order(number=1))
        await board.publish(Order(number=2))
        await board.publish(Payment(number=2))
        await board.publish(Payment(number=1))
    await board.run_until_idle()
    assert sorted(seen.calls) == [(1, 1), (2, 2)]


async def test_join_by_a_function(board):
    seen = one_agent(board, Order, Payment, join=JoinSpec(half, 100))
    async with board.traced_run():
        await board.publish(Order(number=4))
        await board.publish(Payment(number=9))
        await board.publish(Payment(number=5))
    await board.run_until_idle()
    assert seen.calls == [(4, 5)]


async def test_a_join_window_of_time_expires_with_an_event(board, clock):
    seen = one_agent(board, Order, Payment, join=JoinSpec("number", timedelta(seconds=30)))
    async with board.traced_run():
        made = await board.publish(Order(number=1))
        await board.run_until_idle()
        await clock.advance(31)
        await board.publish(Payment(number=1))
    await board.run_until_idle()
    assert seen.calls == []
    (missed,) = await board.missed()
    assert (missed.why, missed.artifacts) == ("expired", (made.id,))
    assert "did not arrive in time" in missed.detail


async def test_a_join_window_of_a_count_expires_with_an_event(board):
    seen = one_agent(board, Order, Payment, join=JoinSpec("number", 2))
    async with board.traced_run():
        for number in (1, 2, 3, 4):
            await board.publish(Order(number=number))
        await board.publish(Payment(number=1))
        await board.publish(Payment(number=4))
    await board.run_until_idle()
    assert seen.calls == [(4, 4)]
    assert {delivery.why for delivery in await board.missed()} == {"expired"}


async def test_an_artifact_without_a_key_is_a_recorded_error(board):
    join = JoinSpec({"Order": "number", "Payment": "ref"}, 9)
    seen = one_agent(board, Order, Payment, join=join)
    await board.publish(Payment(number=1))
    await board.run_until_idle()
    assert seen.calls == []
    assert [delivery.why for delivery in await board.missed()] == ["no_key"]


async def test_batch_by_size(board):
    seen = one_agent(board, Order, batch=BatchSpec(size=3))
    async with board.traced_run():
        for number in range(7):
            await board.publish(Order(number=number))
    await board.run_until_idle()
    assert seen.calls == [(0, 1, 2), (3, 4, 5)]
    await board.run_until_idle(flush=True)
    assert seen.calls[2:] == [(6,)]


async def test_batch_by_timeout(board, clock):
    seen = one_agent(board, Order, batch={"size": 10, "timeout": timedelta(seconds=5)})
    async with board.traced_run():
        await board.publish(Order(number=1))
        await board.publish(Order(number=2))
    await board.run_until_idle()
    assert seen.calls == []
    await clock.advance(6)
    await board.run_until_idle()
    assert seen.calls == [(1, 2)]


async def test_join_then_batch(board):
    seen = one_agent(board, Order, Payment, join=JoinSpec("number"), batch=BatchSpec(size=2))
    async with board.traced_run():
        for number in (1, 2):
            await board.publish(Order(number=number))
        for number in (2, 1):
            await board.publish(Payment(number=number))
    await board.run_until_idle()
    assert seen.calls == [(2, 2, 1, 1)]


async def test_activation_waits_until_the_correlation_has_enough(board):
    seen = one_agent(board, Order, activation="Payment >= 2 and not Note")
    board.types(Payment, Note)
    async with board.traced_run():
        await board.publish(Order(number=1))
        await board.publish(Payment(number=1))
        await board.run_until_idle()
        assert seen.calls == []
        await board.publish(Payment(number=2))
    await board.run_until_idle()
    assert seen.calls == [(1,)]


async def test_correlations_never_mix(board):
    seen = one_agent(board, Order, Payment)
    for number in range(5):
        await board.publish(Order(number=number), correlation_id=f"c{number}")
    for number in reversed(range(5)):
        await board.publish(Payment(number=number), correlation_id=f"c{number}")
    await board.run_until_idle()
    assert sorted(seen.calls) == [(number, number) for number in range(5)]


async def test_scope_all_collects_beyond_correlations(board):
    seen = one_agent(board, Order, batch=BatchSpec(size=3), scope="all")
    for number in range(3):
        await board.publish(Order(number=number))
    await board.run_until_idle()
    (got,) = seen.calls
    assert sorted(got) == [0, 1, 2]


async def test_scope_partition_collects_within_each(board):
    seen = one_agent(board, Order, batch=BatchSpec(size=2), scope="partition")
    for number in range(4):
        await board.publish(Order(number=number), partition=["even", "odd"][number % 2])
    await board.run_until_idle()
    assert sorted(sorted(call) for call in seen.calls) == [[0, 2], [1, 3]]


def test_own_artifacts_wake_an_agent_only_if_declared():
    async def test(board, clock):
        def again(inputs):
            text = inputs.first_as(Note).text
            return Note(text=f"{text}!") if len(text) < 4 else None

        board.agent("quiet").consumes(Note).publishes(Note).with_engines(FunctionEngine(again))
        await board.publish(Note(text="a"))
        await board.run_until_idle()
        assert (await board.query_artifacts())[1] == 2

    play(test)

    async def test_loop(board, clock):
        def again(inputs):
            text = inputs.first_as(Note).text
            return Note(text=f"{text}!") if len(text) < 4 else None

        agent = board.agent("loud").consumes(Note).publishes(Note)
        agent.prevent_self_trigger(False).with_engines(FunctionEngine(again))
        await board.publish(Note(text="a"))
        await board.run_until_idle()
        assert (await board.query_artifacts())[1] == 4

    play(test_loop)


def test_a_loop_reaches_the_wake_limit_visibly_and_the_next_input_works():
    async def test(board, clock):
        agent = board.agent("loop").consumes(Note).publishes(Note).prevent_self_trigger(False)
        agent.with_engines(FunctionEngine(lambda inputs: Note(text="again")))
        made = await board.publish(Note(text="a"))
        await board.run_until_idle()
        missed = [delivery.why for delivery in await board.missed()]
        assert missed == ["wake_limit"]
        assert (await board.query_artifacts())[1] == 21
        await board.publish(Note(text="b"), correlation_id=made.correlation_id)
        await board.run_until_idle()
        assert (await board.query_artifacts())[1] == 42

    play(test, max_wakes_per_input=20)


async def test_an_id_counts_once(board):
    seen = one_agent(board, Order)
    for _ in range(3):
        made = await board.publish(Order(number=1), correlation_id="c", id="o-1")
        assert made.id == "o-1"
    await board.run_until_idle()
    assert seen.calls == [(1,)]
    assert (await board.query_artifacts())[1] == 1


async def test_hidden_artifact_wakes_no_agent(board):
    seen = one_agent(board, Order)
    await board.publish(Order(number=1), visibility=PrivateVisibility(agents=("other",)))
    await board.run_until_idle()
    assert seen.calls == []
    assert await board.missed() == []


async def test_a_delayed_artifact_wakes_when_it_can_be_seen(board, clock):
    seen = one_agent(board, Order)
    await board.publish(Order(number=1), visibility=AfterVisibility(seconds=10))
    await board.run_until_idle()
    assert seen.calls == []
    await clock.advance(11)
    await board.run_until_idle()
    assert seen.calls == [(1,)]


async def test_max_concurrency_of_agent_and_board(board):
    import asyncio

    working: list[int] = [0, 0]

    async def work(inputs):
        working[0] += 1
        working[1] = max(working)
        await asyncio.sleep(0.05)
        working[0] -= 1

    agent = board.agent("worker").consumes(Order).max_concurrency(3)
    agent.with_engines(FunctionEngine(work))
    async with board.traced_run():
        for number in range(12):
            await board.publish(Order(number=number))
    await board.run_until_idle()
    assert working[1] == 3


@pytest.mark.parametrize(
    "options",
    [{"join": {"by": "number"}}, {"batch": {}}, {"where": "total >"}],
    ids=["join of one", "empty batch", "bad condition"],
)
async def test_impossible_runs_are_refused_before_they_start(options, board):
    async def publish():
        one_agent(board, Order, **options)
        await board.publish(Order(number=1))

    with pytest.raises((UsageError, CheckFailed)):
        await publish()


async def test_nothing_is_published_that_was_not_given(board):
    one_agent(board, Order, publishes=[Receipt], result=None)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert (await board.query_artifacts())[1] == 1


async def test_activation_counts_only_what_the_agent_may_see(board, clock):
    seen = one_agent(board, Order, activation="Payment >= 1")
    board.types(Payment)
    async with board.traced_run():
        await board.publish(Order(number=1))
        hidden = PrivateVisibility(agents=("boss",))
        await board.publish(Payment(number=1), visibility=hidden)
        await board.run_until_idle()
        assert seen.calls == []
        await board.publish(Payment(number=2), visibility=AfterVisibility(seconds=5))
        await board.run_until_idle()
        assert seen.calls == []
    await clock.advance(6)
    await board.run_until_idle()
    assert seen.calls == [(1,)]


async def test_invoke_with_what_the_agent_does_not_want_is_refused(board):
    one_agent(board, Order, where="total > 10")
    with pytest.raises(UsageError, match="worker does not accept this Order"):
        await board.invoke("worker", Order(number=1, total=1))
