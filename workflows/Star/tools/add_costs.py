"""Adds up the costs of an event."""


def add_costs(items: dict[str, float], limit: float) -> dict[str, float]:
    """Return the total and what is left of the limit; a negative rest is too much."""
    total = round(sum(items.values()), 2)
    return {"total": total, "rest": round(limit - total, 2)}
