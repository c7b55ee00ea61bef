"""A sequence as SVG: lifelines, arrows between them, frames around alternatives."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from weft.diagrams import svg
from weft.diagrams.sequence import Block, Branch, Message, Note, Participant, Sequence, Step
from weft.diagrams.svg import lines, text_width

_MARGIN: Final = 24.0
_TOP: Final = 56.0
_HEAD: Final = 44.0
_LANE: Final = 150.0
_NOTE: Final = 210.0

#: How much further in a frame stands for each frame around it.
_INSET: Final = 10.0


def svg_sequence(sequence: Sequence) -> str:
    """Write a sequence as an SVG picture that follows the reader's light or dark colours."""
    page = _Page(_lanes(sequence.participants))
    page.steps(sequence.steps, depth=0)
    bottom = page.y + 14
    legend = [row for entry in sequence.legend for row in lines(entry, 700, svg.SMALL)]
    texts = [text_width(sequence.title, svg.TITLE), *(text_width(it, svg.SMALL) for it in legend)]
    width = max(page.right + _MARGIN, max(texts) + 2 * _MARGIN)
    height = bottom + _MARGIN + (len(legend) * svg.LINE + 10 if legend else 0)
    body = [svg.label(_MARGIN, 34, sequence.title, "title")]
    for one in sequence.participants:
        body += _lifeline(one, page.lanes[one.key], bottom)
    body += page.elements
    for number, row in enumerate(legend):
        body.append(svg.label(_MARGIN, bottom + 26 + number * svg.LINE, row, "small muted"))
    return svg.document(sequence.title, (width, height), body, description=sequence.description)


def _lanes(participants: Iterable[Participant]) -> dict[str, float]:
    """Give every participant its place, with room for its name and for usual messages."""
    lanes: dict[str, float] = {}
    x, last = _MARGIN + _NOTE / 2, 0.0
    for one in participants:
        half = _head_width(one) / 2
        x += max(half + last + 24, _LANE) if lanes else 0.0
        lanes[one.key] = x
        last = half
    return lanes


def _head_width(one: Participant) -> float:
    name = text_width(one.title, svg.NAME) * 1.06
    return max(name, text_width(one.role, svg.SMALL), 30.0) + 26


def _lifeline(one: Participant, x: float, bottom: float) -> Iterator[str]:
    width = _head_width(one)
    yield svg.line((x, _TOP + _HEAD), (x, bottom), "lifeline")
    if one.kind != "user":
        style = "undeclared" if one.kind == "undeclared" else "box"
        yield svg.rectangle(x - width / 2, _TOP, (width, _HEAD), style, round_by=7)
        yield svg.label(x, _TOP + 19, one.title, "name", anchor="middle")
        yield svg.label(x, _TOP + 35, one.role, "small muted", anchor="middle")
    else:
        yield svg.rectangle(x - width / 2, _TOP, (width, _HEAD), "pill", round_by=_HEAD / 2)
        yield svg.label(x, _TOP + 27, one.title, "name", anchor="middle")


@dataclass(slots=True)
class _Page:
    """The picture as it grows downward; `y` is where the next thing may begin."""

    lanes: dict[str, float]
    y: float = _TOP + _HEAD + 12
    elements: list[str] = field(default_factory=list[str])

    @property
    def right(self) -> float:
        """Where the outermost frame ends."""
        return max(self.lanes.values()) + _NOTE / 2 + _INSET

    def steps(self, steps: Iterable[Step], *, depth: int) -> None:
        """Draw what happens, one thing below the other."""
        for step in steps:
            match step:
                case Message():
                    self._message(step)
                case Note():
                    self._note(step)
                case _:
                    self._block(step, depth)

    def _message(self, message: Message) -> None:
        start, end = self.lanes[message.source], self.lanes[message.target]
        room = max(abs(end - start) - 20, 130.0)
        rows = lines(message.text, room, svg.SMALL)
        middle = (start + end) / 2 if start != end else start + 12
        anchor = "middle" if start != end else "start"
        for row in rows:
            self.y += svg.LINE
            self._clear(middle, row, anchor)
            self.elements.append(svg.label(middle, self.y, row, "small", anchor=anchor))
        self.y += 8
        style = "edge before" if message.before else "edge"
        if start != end:
            path = f"M{svg.points(start, self.y)}L{svg.points(end, self.y)}"
        else:
            bend = svg.points(start + 46, self.y, start + 46, self.y + 18, start, self.y + 18)
            path = f"M{svg.points(start, self.y)}C{bend}"
            self.y += 18
        self.elements.append(svg.arrow(path, style))
        self.y += 12

    def _clear(self, x: float, row: str, anchor: str) -> None:
        """Keep lifelines from running through a text."""
        width = text_width(row, svg.SMALL)
        left = x - width / 2 if anchor == "middle" else x
        self.elements.append(svg.rectangle(left, self.y - 11.5, (width, 14.5), "paper"))

    def _note(self, note: Note) -> None:
        rows = lines(note.text, _NOTE - 20, svg.SMALL)
        width = max(text_width(row, svg.SMALL) for row in rows) + 18
        x = self.lanes[note.over]
        size = (width, svg.LINE * len(rows) + 8)
        self.elements.append(svg.rectangle(x - width / 2, self.y + 2, size, "note", round_by=4))
        for number, row in enumerate(rows):
            y = self.y + 17 + number * svg.LINE
            self.elements.append(svg.label(x, y, row, "small", anchor="middle"))
        self.y += size[1] + 12

    def _block(self, block: Block, depth: int) -> None:
        left, right = _MARGIN + depth * _INSET, self.right - depth * _INSET
        top = self.y
        # The frame is drawn under what it holds, but its height is known only afterwards.
        place = len(self.elements)
        for number, branch in enumerate(block.branches):
            if number:
                self.elements.append(svg.line((left, self.y), (right, self.y), "divider"))
            self._guard(branch, left, right, word=block.word if number else block.kind)
            self.steps(branch.steps, depth=depth + 1)
            self.y += 2
        size = (right - left, self.y - top)
        self.elements.insert(place, svg.rectangle(left, top, size, "frame", round_by=4))
        self.y += 14

    def _guard(self, branch: Branch, left: float, right: float, *, word: str) -> None:
        self.elements.append(svg.rectangle(left, self.y, (38.0, 20.0), "tab", round_by=4))
        middle = left + 19
        self.elements.append(svg.label(middle, self.y + 14, word, "small muted", anchor="middle"))
        for row in lines(branch.label, right - left - 60, svg.SMALL):
            self.y += svg.LINE
            self._clear(left + 46, row, "start")
            self.elements.append(svg.label(left + 46, self.y, row, "small"))
        self.y += 16
