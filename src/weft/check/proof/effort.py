"""How much work an exploration may be. It is counted, not timed: the answer is always the same."""

from dataclasses import dataclass, field
from typing import Final

#: Following an edge, or making a change, is a step for a small set; so many more are one more.
_BITS_OF_A_STEP: Final = 1 << 14

#: With twenty agents and twelve booleans it takes 6,000 to 90,000; this many take two seconds.
MOST_STEPS: Final = 1_000_000


class TooMuchWorkError(Exception):
    """An exploration has taken all the steps it may."""


@dataclass
class Effort:
    """The steps that are left for sets of `size` combinations."""

    size: int
    left: int
    _each: int = field(init=False)

    def __post_init__(self) -> None:
        self._each = 1 + self.size // _BITS_OF_A_STEP

    def spend(self, work: int) -> None:
        """Take the steps for following edges: one for each, and one for each change it makes."""
        self.left -= work * self._each
        if self.left < 0:
            raise TooMuchWorkError
