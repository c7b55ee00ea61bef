"""Works out what part of a monthly price is due."""

from typing import Final

_DAYS_IN_BILLING_MONTH: Final = 30


def prorate(monthly_price: float, days_used: int) -> dict[str, float]:
    """Split a monthly price into the part that was used and the part that is left."""
    days = min(max(days_used, 0), _DAYS_IN_BILLING_MONTH)
    used = round(monthly_price * days / _DAYS_IN_BILLING_MONTH, 2)
    return {"used": used, "left": round(monthly_price - used, 2)}
