"""Orders: what belongs together is joined, what is many is batched, what is lost is told.

The board is kept in a file; it is closed in the middle and goes on when it is opened again.

Run it with: python examples/board/orders.py
"""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from weft.board import (
    BatchSpec,
    Board,
    EvalInputs,
    FilterConfig,
    FunctionEngine,
    JoinSpec,
    artifact,
)
from weft.testing import ManualClock


@artifact
class Order(BaseModel):
    number: int
    item: str


@artifact
class Payment(BaseModel):
    order: int
    euros: int


class Paid(BaseModel):
    number: int
    item: str
    euros: int


class Shipment(BaseModel):
    items: list[str]


class Total(BaseModel):
    orders: int
    euros: int


def match(inputs: EvalInputs):
    order, payment = inputs.first_as(Order), inputs.first_as(Payment)
    if order and payment:
        return Paid(number=order.number, item=order.item, euros=payment.euros)
    return None


def ship(inputs: EvalInputs):
    return Shipment(items=sorted(it.item for it in inputs.all_as(Paid)))


def add_up(inputs: EvalInputs):
    paid = inputs.all_as(Paid)
    return Total(orders=len(paid), euros=sum(it.euros for it in paid))


def shop(journal: Path, clock: ManualClock) -> Board:
    board = Board(name="shop", journal=journal, clock=clock)
    (
        board.agent("cashier")
        # An order, and the payment of the same number if it comes within an hour.
        .consumes(
            Order,
            Payment,
            join=JoinSpec(by={"Order": "number", "Payment": "order"}, within=timedelta(hours=1)),
        )
        .publishes(Paid)
        .with_engines(FunctionEngine(match))
    )
    (
        board.agent("packer")
        # Two at a time out of one warehouse, whatever correlations they are of.
        .consumes(Paid, batch=BatchSpec(size=2), scope="partition")
        .publishes(Shipment)
        .with_engines(FunctionEngine(ship))
    )
    (
        board.agent("accountant")
        # Everything that is paid, once a day.
        .consumes(Paid, batch=BatchSpec(timeout=timedelta(days=1)), scope="all")
        .publishes(Total)
        .with_engines(FunctionEngine(add_up))
    )
    return board


async def order(board: Board, number: int, item: str, warehouse: str) -> None:
    await board.publish(
        Order(number=number, item=item), correlation_id=f"order-{number}", partition=warehouse
    )


async def pay(board: Board, number: int, euros: int) -> None:
    await board.publish(Payment(order=number, euros=euros), correlation_id=f"order-{number}")


async def show(board: Board, *types: str) -> None:
    wanted = FilterConfig(types=types, order="created_at")
    for it in (await board.query_artifacts(wanted))[0]:
        print(f"  {it.type:9}{it.payload}")


async def work(journal: Path, clock: ManualClock) -> None:
    async with shop(journal, clock) as board:
        await order(board, 1, "loom", "north")
        await order(board, 2, "yarn", "north")
        await order(board, 3, "bobbin", "south")
        await board.run_until_idle()
        print("Three orders wait for their payments. The board is closed.")

    async with shop(journal, clock) as board:
        await board.start()
        print("It is open again, and the payments of two of them come.")
        await pay(board, 1, 90)
        await pay(board, 2, 10)
        await board.run_until_idle()
        await show(board, "Paid", "Shipment")

        print("An hour later:")
        await clock.advance(3600)
        await board.run_until_idle()
        for it in await board.missed():
            print(f"  {it.subscription} missed {', '.join(it.artifacts)}: {it.detail}")

        print("In the evening, without waiting for the end of the day:")
        await board.run_until_idle(flush=True)
        await show(board, "Total")


async def main():
    with tempfile.TemporaryDirectory() as folder:
        await work(Path(folder) / "shop.db", ManualClock())  # a clock that only we move


if __name__ == "__main__":
    asyncio.run(main())
