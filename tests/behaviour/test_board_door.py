"""`weft.board` over processes and collections: what is idle, flushed, missed and hidden."""

import asyncio
from datetime import timedelta

import pytest

from support.boards import Note, Order, Payment, Seen, play
from weft.board import (
    BatchSpec,
    Board,
    Component,
    EvalInputs,
    FilterConfig,
    JoinSpec,
    Output,
    PrivateVisibility,
)
from weft.errors import UsageError
from weft.testing import ManualClock


@pytest.mark.parametrize("scope", ["correlation", "partition", "all"])
async def test_flush_reaches_batches_of_every_scope(scope, board):
    seen = Seen()
    board.agent("packer").consumes(Order, batch=BatchSpec(size=9), scope=scope).with_engines(
        seen.engine
    )
    await board.publish(Order(number=1), partition="north", correlation_id="c")
    await board.publish(Order(number=2), partition="north", correlation_id="c")
    await board.run_until_idle()
    assert seen.calls == []
    await board.run_until_idle(flush=True)
    assert seen.calls == [(1, 2)]


def test_missed_tells_of_what_another_process_published(tmp_path):
    clock = ManualClock()

    def opened() -> Board:
        board = Board(journal=tmp_path / "j.db", clock=clock)
        join = JoinSpec(by="number", within=timedelta(hours=1))
        board.agent("cashier").consumes(Order, Payment, join=join).with_engines(Seen().engine)
        return board

    async def test() -> None:
        async with opened() as board:
            made = await board.publish(Order(number=1))
            await board.run_until_idle()
        async with opened() as board:
            await board.start()
            await clock.advance(3600)
            await board.run_until_idle()  # What is due by now is done before it returns.
            [missed] = await board.missed()
            assert (missed.run, missed.artifacts, missed.why) == (made.run, (made.id,), "expired")
            assert await board.missed(made.correlation_id) == [missed]

    asyncio.run(test())


async def test_artifacts_that_may_come_in_between_are_counted(board):
    seen = Seen()
    join = JoinSpec(by="number", within=1)
    board.agent("cashier").consumes(Order, Payment, join=join).with_engines(seen.engine)
    async with board.traced_run():
        for item in (Order(number=1), Order(number=2), Order(number=3)):
            await board.publish(item)
        for number in (2, 3, 1):
            await board.publish(Payment(number=number))
    await board.run_until_idle()
    assert sorted(seen.calls) == [(2, 2), (3, 3)]


def test_run_until_gives_up_when_all_is_idle(tmp_path):
    async def test(board, clock):
        seen = Seen()
        board.agent("clerk").consumes(Order).with_engines(seen.engine)
        for number in range(20):
            await board.publish(Order(number=number))
            assert await board.run_until(lambda _: len(seen.calls) > 20) is False
        assert len(seen.calls) == 20
        await board.publish(Order(number=20))
        assert await board.run_until(lambda _: len(seen.calls) > 20) is True

    play(test)
    play(test, Board(journal=tmp_path / "j.db"))


async def test_why_an_agent_does_not_see_something(board):
    seen = Seen()
    clerk = board.agent("clerk").consumes(Order).with_engines(seen.engine)
    private = PrivateVisibility(agents=("boss",))
    made = await board.publish(Note(text="x"), visibility=private)
    assert await board.why(made, clerk) == "it is private to boss"
    assert await board.why((await board.publish(Note(text="y"))).id, "clerk") is None
    with pytest.raises(UsageError, match="no agent clark"):
        await board.why(made, "clark")


async def test_all_hooks_before_an_agent_works_get_inputs(board):
    got: list[type] = []

    class Watch(Component):
        def before_schedule(self, _ctx, inputs):
            got.append(type(inputs))

        pre_consume = pre_evaluate = before_schedule

    board.agent("clerk").consumes(Order).with_utilities(Watch()).with_engines(Seen().engine)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    assert got == [EvalInputs] * 3


async def test_the_visibility_of_an_output_may_be_written_out(board):
    shown: list[dict[str, object]] = [{"kind": "private", "agents": ["boss"]}, {"kind": "none"}]
    seen = Seen(*(Output(Note(text="x"), visibility=item) for item in shown))
    board.agent("clerk").consumes(Order).publishes(Note).with_engines(seen.engine)
    await board.publish(Order(number=1))
    await board.run_until_idle()
    await board.publish(Order(number=2))
    await board.run_until_idle()
    [note], total = await board.query_artifacts(FilterConfig(types={"Note"}))
    assert (total, await board.why(note.id, "clerk")) == (1, "it is private to boss")
    [missed] = await board.missed()
    assert (missed.why, missed.detail.partition(":")[0]) == (
        "failed",
        "invalid visibility of an artifact",
    )
