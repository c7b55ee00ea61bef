"""Joins, batches and missed deliveries, with a board that is closed and reopened.

The board is stored in a file. It is closed in the middle and continues when it is opened again.

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
    return Shipment(items=sorted(paid.item for paid in inputs.all_as(Paid)))


def add_up(inputs: EvalInputs):
    paid = inputs.all_as(Paid)
    return Total(orders=len(paid), euros=sum(order.euros for order in paid))


def shop(journal: Path, clock: ManualClock) -> Board:
    board = Board(name="shop", journal=journal, clock=clock)
    (
        board.agent("cashier")
        # An order with the payment of the same number, if it arrives within an hour.
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
        # Two at a time from one warehouse, across correlations.
        .consumes(Paid, batch=BatchSpec(size=2), scope="partition")
        .publishes(Shipment)
        .with_engines(FunctionEngine(ship))
    )
    (
        board.agent("accountant")
        # All payments, once a day.
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
    for query_artifact in (await board.query_artifacts(wanted))[0]:
        print(f"  {query_artifact.type:9}{query_artifact.payload}")


async def work(journal: Path, clock: ManualClock) -> None:
    async with shop(journal, clock) as board:
        await order(board, 1, "loom", "north")
        await order(board, 2, "yarn", "north")
        await order(board, 3, "bobbin", "south")
        await board.run_until_idle()
        print("Three orders wait for their payments. The board is closed.")

    async with shop(journal, clock) as board:
        await board.start()
        print("The board is open again, and two payments arrive.")
        await pay(board, 1, 90)
        await pay(board, 2, 10)
        await board.run_until_idle()
        await show(board, "Paid", "Shipment")

        print("An hour later:")
        await clock.advance(3600)
        await board.run_until_idle()
        for missed in await board.missed():
            print(f"  {missed.subscription} missed {', '.join(missed.artifacts)}: {missed.detail}")

        print("In the evening, without waiting for the end of the day:")
        await board.run_until_idle(flush=True)
        await show(board, "Total")


async def main():
    with tempfile.TemporaryDirectory() as folder:
        await work(Path(folder) / "shop.db", ManualClock())  # moves only when told to


if __name__ == "__main__":
    asyncio.run(main())
