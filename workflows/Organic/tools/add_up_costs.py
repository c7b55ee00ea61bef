"""Adds up what an idea costs."""


def add_up_costs(one_time: dict[str, float], monthly: dict[str, float]) -> dict[str, float]:
    """Return the cost of starting and the cost of the first year."""
    start = round(sum(one_time.values()), 2)
    year = round(start + 12 * sum(monthly.values()), 2)
    return {"to_start": start, "first_year": year}
