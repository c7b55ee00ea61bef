"""The steps of an order: pay, reserve, pack, ship, and what undoes each of them.

No shop is behind it. As with the test cards of payment services, the order itself decides what
happens: the card `declined` is refused, the carrier is busy at the first call for the address
`harbour`, and the item `unicorn` is never in stock.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel

from weft.flow import Append, StepContext

_MOST_WORDS: Final = 60


class Order(BaseModel):
    """What all steps share."""

    order: str = "A-1"
    items: list[str] = ["lamp"]
    amount: float = 80.0
    payment: Literal["card", "invoice"] = "card"
    card: str = "valid"
    address: str = "station"
    paid_by: str = ""
    reserved: list[str] = []
    message: str = ""
    message_fits: bool = False
    decision: str = ""
    parcel: str = ""
    log: Annotated[list[str], Append] = []


def look_at_order(order: Order) -> dict:
    """Take the order in."""
    return {"log": [f"order {order.order} over {order.amount:g}"]}


def charge_card(order: Order) -> dict:
    """Take the money from the card."""
    if order.card == "declined":
        raise ValueError(f"the card for order {order.order} was declined")
    return {"paid_by": f"card-{order.order}", "log": ["card charged"]}


def send_invoice(order: Order) -> dict:
    """Write an invoice."""
    return {"paid_by": f"invoice-{order.order}", "log": ["invoice sent"]}


def give_money_back(order: Order, context: StepContext) -> dict:
    """Undo a payment; where none was made, there is nothing to do."""
    paid = context.undoes.state.paid_by if context.undoes else order.paid_by
    return {"paid_by": "", "log": [f"{paid} given back"] if paid else []}


def reserve_items(order: Order) -> dict:
    """Take the items from the shelf."""
    if "unicorn" in order.items:
        raise LookupError("there is no unicorn in the warehouse")
    return {"reserved": order.items, "log": [f"{len(order.items)} reserved"]}


def put_items_back(_order: Order) -> dict:
    """Undo a reservation."""
    return {"reserved": [], "log": ["items put back"]}


def check_message(order: Order) -> dict:
    """Say whether the message to the customer can be sent: short, and about this order."""
    words = order.message.split()
    return {"message_fits": 0 < len(words) <= _MOST_WORDS}


def use_standard_message(order: Order) -> dict:
    """Write what needs no model."""
    return {"message": f"Your order {order.order} is on its way."}


def pack(_order: Order, context: StepContext) -> dict:
    """Put everything into a parcel; without the goods there is nothing to send."""
    if context.paths["goods"].status == "failed":
        raise LookupError("there is nothing to pack")
    paths = ", ".join(f"{name} {path.status}" for name, path in context.paths.items())
    return {"log": [f"packed ({paths})"]}


def ship(order: Order, context: StepContext) -> dict:
    """Hand the parcel to the carrier, who may be busy."""
    if order.address == "harbour" and context.attempt == 1:
        raise ConnectionError("the carrier is busy")
    return {"parcel": f"parcel-{order.order}", "log": [f"shipped to {order.address}"]}


def call_parcel_back(order: Order) -> dict:
    """Undo the shipping."""
    return {"parcel": "", "log": ["parcel called back"] if order.parcel else []}


def close_order(_order: Order) -> dict:
    """Note that all is done."""
    return {"log": ["closed"]}


def tell_support(order: Order, context: StepContext) -> dict:
    """Notify support that an order failed."""
    why = context.failure.message if context.failure else "unknown"
    return {"log": [f"support notified about {order.order}: {why}"]}
