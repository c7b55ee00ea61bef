"""Works out how large a room must be."""

import math
from typing import Final, Literal

_SQUARE_METRES_EACH: Final = {"standing": 1.0, "rows": 1.4, "tables": 2.2}


def room_size(guests: int, layout: Literal["standing", "rows", "tables"]) -> dict[str, int]:
    """Return the floor space for a number of guests, with a tenth to spare."""
    needed = guests * _SQUARE_METRES_EACH[layout] * 1.1
    return {"square_metres": math.ceil(round(needed, 6))}
