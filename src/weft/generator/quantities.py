"""Quantities: computed values that are numbers, told by their names."""

from typing import Final, Literal, TypeAlias

Quantity: TypeAlias = Literal["total", "average", "count"]

#: Where the numbers stand that a quantity is worked out from: a field of every kept document.
AMOUNTS: Final = "amounts"

_WORDS: Final[dict[str, Quantity]] = {
    "total": "total",
    "sum": "total",
    "amount": "total",
    "average": "average",
    "mean": "average",
    "count": "count",
    "number": "count",
}


def quantity_of(name: str) -> Quantity | None:
    """Return the quantity that a variable is by its name; None if it is none.

    >>> quantity_of("invoice_total"), quantity_of("is_urgent")
    ('total', None)
    """
    return next((_WORDS[word] for word in name.split("_") if word in _WORDS), None)


def computation_of(name: str) -> str:
    """Return the function that works a quantity out: a file of its own under `tools/`."""
    return f"tools.{name}:{name}"
