"""Retries, compensation and failure paths: payments that succeed, fail and are refunded.

Run it with: python examples/flows/orders.py
"""

import asyncio
import logging
from typing import Annotated

from pydantic import BaseModel

from weft.flow import Append, StepContext, Workflow, run_flow


class Order(BaseModel):
    number: int
    euros: int
    card: str = "good"
    town: str = "Delft"
    payment: str = ""
    history: Annotated[list[str], Append] = []  # a step returns the lines it adds


class Bank:
    """An external service. It performs each request once, identified by its key."""

    def __init__(self) -> None:
        self.payments: dict[str, tuple[int, int]] = {}
        self.busy = 0

    def charge(self, key: str, order: Order) -> str:
        if self.busy:
            self.busy -= 1
            raise ConnectionError("the bank is busy")
        if order.card != "good":
            raise ValueError(f"the card of order {order.number} is {order.card}")
        self.payments[key] = (order.number, order.euros)  # the same key counts once
        return key

    def refund(self, number: int) -> int:
        found = [key for key, (paid, _) in self.payments.items() if paid == number]
        return sum(self.payments.pop(key)[1] for key in found)

    @property
    def euros(self) -> int:
        return sum(euros for _, euros in self.payments.values())


BANK = Bank()


def reserve(order: Order):
    return {"history": [f"reserved for order {order.number}"]}


def release(order: Order):
    return {"history": ["reservation released"]}


class ProcessPayment:
    """Charges the card. The key is the same if this attempt is repeated after a crash."""

    def run(self, order: Order, context: StepContext):
        payment = BANK.charge(context.key, order)
        return {"payment": payment, "history": [f"paid at attempt {context.attempt}"]}


class RefundPayment:
    """Refunds the payment. Also called if the payment failed, because it may have succeeded."""

    def run(self, order: Order):
        back = BANK.refund(order.number)
        return {"history": [f"refunded {back}" if back else "nothing to refund"]}


class NotifySupport:
    """Tells the support team what failed."""

    def run(self, order: Order, context: StepContext):
        failed = context.failure
        if failed is None:
            return None
        return {"history": [f"support told: {failed.type}, attempt {failed.attempt}"]}


def ship(order: Order):
    if order.town == "Atlantis":
        raise LookupError("there is no road to Atlantis")
    return {"history": [f"shipped to {order.town}"]}


def say_thanks(order: Order):
    return {"history": ["thanked"]}


def say_sorry(order: Order):
    return {"history": ["apologised"]}


ORDERS = (
    Workflow.create("Orders", Order, description="From an order to a parcel.")
    .start_with(reserve, lambda step: step.compensate(release))
    .then(
        ProcessPayment,
        lambda step: (
            step.validate_state(lambda order: order.euros > 0, "an order costs something")
            .with_retry(3, delay=0.01)
            .with_timeout(30)
            .compensate(RefundPayment)
            .on_failure(lambda failure: failure.then(NotifySupport))
        ),
    )
    .then(ship)
    .finally_(say_thanks)
    .on_failure(lambda failure: failure.then(say_sorry))
)


class NotifyPaymentFailure:
    """The first step of the other flow's failure path."""

    def run(self, order: Order, context: StepContext):
        return {"history": [f"customer told: {context.failure and context.failure.message}"]}


class RefundAttempt:
    """The second one."""

    def run(self, order: Order):
        return {"history": [f"refund tried: {BANK.refund(order.number)} euros"]}


#: Without compensation: the failure path of the step does everything.
PLAIN = Workflow.create("PlainOrders", Order).start_with(
    ProcessPayment,
    lambda step: step.on_failure(
        lambda failure: failure.then(NotifyPaymentFailure).then(RefundAttempt)
    ),
)


async def process(flow: Workflow[Order], order: Order) -> None:
    result = await run_flow(flow, order)
    for line in result.output.history:
        print(f"  {line}")
    print(f"  order {order.number} {result.outcome}")


async def main() -> None:
    logging.getLogger("weft.tools").setLevel(logging.ERROR)  # steps fail here on purpose
    print("Everything succeeds:")
    await process(ORDERS, Order(number=1, euros=90))

    print("The bank is busy twice:")
    BANK.busy = 2
    await process(ORDERS, Order(number=2, euros=20))

    print("The card is blocked. The failed step is compensated, then the step before it:")
    await process(ORDERS, Order(number=3, euros=30, card="blocked"))

    print("Paid, but it cannot be shipped. Completed steps are compensated, newest first:")
    await process(ORDERS, Order(number=4, euros=40, town="Atlantis"))

    print("An order of 0 euros. The precondition is false, and no attempt is made:")
    await process(ORDERS, Order(number=5, euros=0))

    print("A failure in the flow that has only a failure path:")
    await process(PLAIN, Order(number=6, euros=60, card="stolen"))

    print(f"The bank has {BANK.euros} euros for {len(BANK.payments)} orders")


if __name__ == "__main__":
    asyncio.run(main())
