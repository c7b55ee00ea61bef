"""Whose board it is: each user of a tenant has their own, unless the board is shared."""

import asyncio

import pytest

from support.boards import Note, Order, Receipt
from weft.board import Board, EvalContext, EvalInputs, FilterConfig, FunctionEngine
from weft.errors import AccessDenied, UsageError
from weft.ports.scope import Scope
from weft.testing.clock import ManualClock

ADA, BOB = Scope("shop", "ada"), Scope("shop", "bob")
OPERATOR, ELSEWHERE = Scope.operator("shop"), Scope("bank", "ada")


async def count(inputs: EvalInputs, ctx: EvalContext) -> Receipt:
    """Tell the numbers of all orders that the agent can find."""
    found, _ = await ctx.board.query_artifacts(FilterConfig(types=frozenset({"Order"})))
    return Receipt(text=" ".join(sorted(str(artifact.payload["number"]) for artifact in found)))


def play(scenario, *, shared: bool):
    async def played():
        board = Board(scope=ADA, clock=ManualClock(), shared=shared)
        board.types(Note)
        board.agent("clerk").consumes(Order).publishes(Receipt).with_engines(FunctionEngine(count))
        async with board:
            return await asyncio.wait_for(scenario(await board.host()), 30)

    return asyncio.run(played())


async def numbers(host, scope, **given) -> list[int]:
    found, total = await host.artifacts(
        "board", FilterConfig(types=frozenset({"Order"})), scope=scope, **given
    )
    assert total == len(found)
    return sorted(artifact.payload["number"] for artifact in found)


async def receipts(host, scope) -> list[str]:
    found, _ = await host.artifacts(
        "board", FilterConfig(types=frozenset({"Receipt"})), scope=scope
    )
    return sorted(artifact.payload["text"] for artifact in found)


async def publish(host, number: int, scope, correlation: str | None = None):
    made = await host.publish(
        "board", "Order", {"number": number}, scope=scope, correlation=correlation
    )
    await host.quiet()
    return made


def test_user_finds_only_their_own_artifacts():
    """S3: users of one tenant do not read the boards of each other."""

    async def scenario(host):
        made = await publish(host, 1, ADA)
        await publish(host, 2, BOB)
        await publish(host, 3, ELSEWHERE)
        for scope, wanted in ((ADA, [1]), (BOB, [2]), (OPERATOR, [1, 2]), (ELSEWHERE, [3])):
            assert await numbers(host, scope) == wanted
            assert await numbers(host, scope, agent="clerk", embed_meta=True) == wanted
            assert len(await host.consumed("board", scope=scope)) == len(wanted)
        assert (await host.artifact("board", made.id, scope=ADA)).run == made.run
        assert await host.why("board", made.id, "clerk", scope=ADA) is None
        for scope in (BOB, ELSEWHERE):
            assert await host.consumed("board", scope=scope, artifact=made.id) == []
            with pytest.raises(UsageError, match="there is no artifact"):
                await host.artifact("board", made.id, scope=scope)
            with pytest.raises(UsageError, match="there is no artifact"):
                await host.why("board", made.id, "clerk", scope=scope)

    play(scenario, shared=False)


def test_agents_read_the_board_of_the_user_they_work_for():
    async def scenario(host):
        for number, scope in enumerate((ADA, BOB, ADA, ELSEWHERE)):
            await publish(host, number, scope)
        assert await receipts(host, ADA) == ["0", "0 2"]
        assert await receipts(host, BOB) == ["1"]

    play(scenario, shared=False)


def test_user_cannot_flush_the_run_of_another():
    async def scenario(host):
        made = await publish(host, 1, ADA)
        for scope in (BOB, ELSEWHERE):
            with pytest.raises(AccessDenied):
                await host.flush(made.run, scope=scope)
        await host.flush(made.run, scope=ADA)
        await host.flush(made.run, scope=OPERATOR)

    play(scenario, shared=False)


def test_shared_board_is_one_for_all_users_of_a_tenant():
    async def scenario(host):
        made = await publish(host, 1, ADA, "c")
        again = await publish(host, 2, BOB, "c")
        assert again.run == made.run
        await publish(host, 3, ELSEWHERE, "c")
        assert await numbers(host, ADA) == await numbers(host, BOB) == [1, 2]
        assert await numbers(host, ELSEWHERE) == [3]
        assert await receipts(host, BOB) == ["1", "1 2"]
        await host.flush(made.run, scope=BOB)
        with pytest.raises(AccessDenied):
            await host.flush(made.run, scope=Scope("mill", "ada"))
        with pytest.raises(AccessDenied):
            await host.run(made.run, scope=BOB)

    play(scenario, shared=True)
