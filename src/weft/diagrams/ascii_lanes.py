"""Lanes of a sequence in plain text: one upright line for each participant, rows across them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.diagrams.ascii_text import COLUMNS, cut, wrapped


@dataclass(frozen=True, slots=True)
class Lanes:
    """Participants side by side, each in a lane of equal width."""

    keys: tuple[str, ...]
    width: int

    def header(self, titles: list[str]) -> list[str]:
        """Write the names above their lanes."""
        return ["".join(cut(title, self.width - 2).center(self.width) for title in titles)]

    def rails(self) -> str:
        """Write a row in which nothing happens."""
        return "|".center(self.width) * len(self.keys)

    def message(self, source: str, target: str, text: str, *, dotted: bool) -> Iterator[str]:
        """Write an arrow from lane to lane with its text above it."""
        yield self.rails()
        start, end = self._centre(source), self._centre(target)
        left = min(start, end) + 2
        for line in self._fitting(text, left):
            yield self._over(self._shifted(left, line), line)
        line = "." if dotted else "-"
        if start == end:
            yield self._over(start + 1, f"{line * 2}+")
            yield self._over(start + 1, f"<{line}+")
        elif start < end:
            yield self._over(start + 1, line * (end - start - 2) + ">")
        else:
            yield self._over(end + 1, "<" + line * (start - end - 2))

    def note(self, over: str, text: str) -> Iterator[str]:
        """Write a remark across a lane."""
        yield self.rails()
        for line in wrapped(text, COLUMNS - 4):
            remark = f"[ {line} ]"
            yield self._over(self._shifted(self._centre(over) - len(remark) // 2, remark), remark)

    def divider(self, text: str, depth: int) -> str:
        """Write the beginning or end of an alternative, further in the deeper it stands."""
        row = "=" * max(self.width * len(self.keys) - 4 * depth, 20)
        label = cut(text, COLUMNS - 2 * depth - 6)
        filled = f"==[{label}]"
        return "  " * depth + filled + row[len(filled) :]

    def _centre(self, key: str) -> int:
        return self.keys.index(key) * self.width + (self.width - 1) // 2

    def _fitting(self, text: str, left: int) -> list[str]:
        """Break a text so that it ends at the right edge, however far right it begins."""
        return wrapped(text, max(COLUMNS - left, COLUMNS // 3))

    def _shifted(self, left: int, text: str) -> int:
        """Move a text to the left as far as it takes to stay on the page."""
        return max(0, min(left, COLUMNS - len(text)))

    def _over(self, left: int, text: str) -> str:
        """Lay a text over the rails, with a blank on both sides where it hides one."""
        row = self.rails().ljust(left + len(text))
        return row[:left] + text + row[left + len(text) :]
