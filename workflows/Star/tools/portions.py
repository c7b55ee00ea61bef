"""Works out how much food and drink is needed."""

import math


def portions(guests: int, hours: float) -> dict[str, int]:
    """Return dishes and drinks: one dish for every two hours, one drink for every hour."""
    return {
        "dishes": guests * math.ceil(hours / 2),
        "drinks": guests * math.ceil(hours),
    }
