"""Works out whether a payment can be refunded, and how much of it."""


def check_refund(amount: float, days_since_payment: int, context_variables) -> dict[str, object]:
    """Return the refund: all of it in the first week, later a share for the days left."""
    window = context_variables.get("refund_window_days")
    if days_since_payment <= 7:
        return {"refund": round(amount, 2), "reason": "Paid less than a week ago: in full."}
    days_left = max(window - days_since_payment, 0)
    refund = round(amount * days_left / window, 2)
    return {"refund": refund, "reason": f"{days_left} of {window} days are left."}
