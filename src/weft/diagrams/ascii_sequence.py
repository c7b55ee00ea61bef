"""A sequence for the terminal: lanes where they fit side by side, else a list of who says what."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.diagrams.ascii_lanes import Lanes
from weft.diagrams.ascii_text import COLUMNS, cut, plain, wrapped
from weft.diagrams.sequence import Branch, Message, Note, Sequence, Step

#: The narrowest lane in which names and messages can still be read, and the widest that helps.
_MIN_LANE: Final = 14
_MAX_LANE: Final = 26

_NAME_WIDTH: Final = 36


def ascii_sequence(sequence: Sequence) -> str:
    """Write a sequence as plain text of at most a terminal's width."""
    lines = [cut(plain(sequence.title), COLUMNS), ""]
    width = min(_MAX_LANE, COLUMNS // len(sequence.participants))
    if width >= _MIN_LANE:
        keys = tuple(one.key for one in sequence.participants)
        lanes = Lanes(keys, width)
        lines += lanes.header([plain(one.title) for one in sequence.participants])
        lines += _in_lanes(sequence.steps, lanes, depth=0)
        lines.append(lanes.rails())
    else:
        names = {one.key: cut(plain(one.title), _NAME_WIDTH) for one in sequence.participants}
        lines += _listed(sequence.steps, names, depth=0)
    if sequence.legend:
        lines += ["", *(line for entry in sequence.legend for line in wrapped(entry, COLUMNS))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _in_lanes(steps: Iterable[Step], lanes: Lanes, depth: int) -> Iterator[str]:
    for step in steps:
        match step:
            case Message():
                text = plain(step.text)
                yield from lanes.message(step.source, step.target, text, dotted=step.before)
            case Note():
                yield from lanes.note(step.over, plain(step.text))
            case _:
                for number, branch in enumerate(step.branches):
                    yield lanes.divider(_heading(branch, first=number == 0), depth)
                    yield from _in_lanes(branch.steps, lanes, depth + 1)
                yield lanes.divider("end", depth)


def _listed(steps: Iterable[Step], names: dict[str, str], depth: int) -> Iterator[str]:
    for step in steps:
        match step:
            case Message():
                arrow = "..>" if step.before else "-->"
                passing = f"{names[step.source]} {arrow} {names[step.target]}"
                yield from _indented(f"{passing}: {plain(step.text)}", depth)
            case Note():
                yield from _indented(f"[{names[step.over]}] {plain(step.text)}", depth)
            case _:
                for number, branch in enumerate(step.branches):
                    yield from _indented(f"{_heading(branch, first=number == 0)}:", depth)
                    yield from _listed(branch.steps, names, depth + 1)


def _indented(text: str, depth: int) -> Iterator[str]:
    margin = "    " * depth
    first, *more = wrapped(text, COLUMNS - len(margin) - 2)
    yield margin + first
    for line in more:
        yield f"{margin}  {line}"


def _heading(branch: Branch, *, first: bool) -> str:
    label = plain(branch.label)
    if first:
        return f"if {label}"
    return label if label.startswith("otherwise") else f"else if {label}"
