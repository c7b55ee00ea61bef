"""Pictures for the terminal: ASCII characters only, never wider than a terminal.

A graph is one block per node with its outgoing edges; a sequence is drawn in lanes if they fit,
else as a list of messages.
"""

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from weft.diagrams.board_graph import BOARD
from weft.diagrams.flow_graph import FLOW
from weft.diagrams.nodes import Edge, Graph, Node, reachable_keys
from weft.diagrams.sequence import Block, Branch, Message, Note, Sequence, Step

#: The widest line.
COLUMNS: Final = 100

#: The narrowest lane in which names and messages can still be read, and the widest that helps.
_MIN_LANE: Final = 14
_MAX_LANE: Final = 26
_NAME_WIDTH: Final = 36


def ascii_graph(graph: Graph) -> str:
    """Write a graph as blocks of plain text, in the order in which they are reached."""
    names = {node.key: cut(plain(node.title), _NAME_WIDTH) for node in graph.nodes}
    leaving = graph.leaving()
    nearest = reachable_keys(graph)
    rank = {key: place for place, key in enumerate(nearest)}
    ordered = sorted(graph.nodes, key=lambda node: rank.get(node.key, len(rank)))
    way = graph.pattern if graph.pattern in (BOARD, FLOW) else f"pattern: {graph.pattern}"
    lines = [f"{cut(plain(graph.title), 60)}   ({way})"]
    lines += wrap(plain(graph.description), COLUMNS)
    for node in ordered:
        if node.kind in ("user", "end"):
            continue
        lines += ["", *_header(node, names[node.key], reachable=node.key in rank)]
        lines += _ways(leaving[node.key], names)
    return "\n".join(lines) + "\n"


def _header(node: Node, name: str, *, reachable: bool) -> Iterator[str]:
    text = f"{name} : {plain(node.role)}"
    if not reachable:
        text += "   (nothing leads here)"
    rows = wrap(text, COLUMNS - 4)
    width = max(len(row) for row in rows)
    yield f"+{'-' * (width + 2)}+"
    for row in rows:
        yield f"| {row.ljust(width)} |"
    yield f"+{'-' * (width + 2)}+"
    for note in node.notes:
        # Accents alone leave nothing when they are taken away.
        first, *more = wrap(plain(note), COLUMNS - 6) or ["?"]
        yield f"  | {first}"
        for line in more:
            yield f"  |   {line}"


def _ways(edges: list[Edge], names: dict[str, str]) -> Iterator[str]:
    if not edges:
        return
    yield "  |"
    width = max(len(names[edge.target]) for edge in edges)
    for number, edge in enumerate(edges, start=1):
        line = "." if edge.dashed else "-"
        arrow = f"{'<' if edge.returns else line}{line}>"
        lead = f"  +{arrow} {names[edge.target].ljust(width)}   "
        first, *more = wrap(_when(edge), COLUMNS - len(lead))
        yield f"{lead}{first}"
        bar = "  |" if number < len(edges) else "   "
        for line in more:
            yield f"{bar.ljust(len(lead))}{line}"


def _when(edge: Edge) -> str:
    words = plain(edge.label) or "then"
    if edge.kind == "rule":
        words = f"if {words}"
    if edge.before:
        words = f"before replying, {words}"
    return f"{words}; {plain(edge.reason)}" if edge.reason else words


def plain(text: str) -> str:
    """Write text in ASCII: letters without their accents, what has no such form as an escape."""
    return "".join(char if char.isascii() else _to_ascii(char) for char in text)


def _to_ascii(char: str) -> str:
    pieces = unicodedata.normalize("NFKD", char)
    base = "".join(piece for piece in pieces if not unicodedata.combining(piece))
    return base if base and base.isascii() else ascii(char)[1:-1]


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Participants side by side, each in a lane of equal width."""

    keys: tuple[str, ...]
    width: int

    def header(self, titles: list[str]) -> list[str]:
        return ["".join(cut(title, self.width - 2).center(self.width) for title in titles)]

    def rails(self) -> str:
        """Write a row in which nothing happens."""
        return "|".center(self.width) * len(self.keys)

    def message(self, source: str, target: str, text: str, *, dotted: bool) -> Iterator[str]:
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
        yield self.rails()
        for line in wrap(text, COLUMNS - 4):
            remark = f"[ {line} ]"
            yield self._over(self._shifted(self._centre(over) - len(remark) // 2, remark), remark)

    def divider(self, text: str, depth: int) -> str:
        """Write the beginning or end of an alternative, indented by its depth."""
        row = "=" * max(self.width * len(self.keys) - 4 * depth, 20)
        label = cut(text, COLUMNS - 2 * depth - 6)
        filled = f"==[{label}]"
        return "  " * depth + filled + row[len(filled) :]

    def _centre(self, key: str) -> int:
        return self.keys.index(key) * self.width + (self.width - 1) // 2

    def _fitting(self, text: str, left: int) -> list[str]:
        """Break a text so that it ends at the right edge, however far right it begins."""
        return wrap(text, max(COLUMNS - left, COLUMNS // 3))

    def _shifted(self, left: int, text: str) -> int:
        """Move a text to the left as far as it takes to stay on the page."""
        return max(0, min(left, COLUMNS - len(text)))

    def _over(self, left: int, text: str) -> str:
        """Lay a text over the rails, with a blank on both sides where it hides one."""
        row = self.rails().ljust(left + len(text))
        return row[:left] + text + row[left + len(text) :]


def ascii_sequence(sequence: Sequence) -> str:
    """Write a sequence as plain text of at most a terminal's width."""
    lines = [cut(plain(sequence.title), COLUMNS)]
    lines += [*wrap(plain(sequence.description), COLUMNS), ""]
    width = min(_MAX_LANE, COLUMNS // len(sequence.participants))
    if width >= _MIN_LANE:
        keys = tuple(one.key for one in sequence.participants)
        lanes = Lanes(keys, width)
        lines += lanes.header([plain(one.title) for one in sequence.participants])
        lines += _in_lanes(sequence.steps, lanes, depth=0)
        lines.append(lanes.rails())
    else:
        names = {one.key: cut(plain(one.title), _NAME_WIDTH) for one in sequence.participants}
        lines += _list_steps(sequence.steps, names, depth=0)
    if sequence.legend:
        lines += [
            "",
            *(line for entry in sequence.legend for line in wrap(plain(entry), COLUMNS)),
        ]
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
                    yield lanes.divider(_heading(step, branch, first=number == 0), depth)
                    yield from _in_lanes(branch.steps, lanes, depth + 1)
                yield lanes.divider("end", depth)


def _list_steps(steps: Iterable[Step], names: dict[str, str], depth: int) -> Iterator[str]:
    for step in steps:
        match step:
            case Message():
                arrow = "..>" if step.before else "-->"
                passing = f"{names[step.source]} {arrow} {names[step.target]}"
                yield from _indent(f"{passing}: {plain(step.text)}", depth)
            case Note():
                yield from _indent(f"[{names[step.over]}] {plain(step.text)}", depth)
            case _:
                for number, branch in enumerate(step.branches):
                    yield from _indent(f"{_heading(step, branch, first=number == 0)}:", depth)
                    yield from _list_steps(branch.steps, names, depth + 1)


def _indent(text: str, depth: int) -> Iterator[str]:
    margin = "    " * depth
    first, *more = wrap(text, COLUMNS - len(margin) - 2)
    yield margin + first
    for line in more:
        yield f"{margin}  {line}"


def _heading(block: Block, branch: Branch, *, first: bool) -> str:
    label = plain(branch.label)
    if block.kind == "par":
        return f"side by side: {label}" if first else f"and {label}"
    if first:
        return f"again and again: {label}" if block.kind == "loop" else f"if {label}"
    return label if label.startswith("otherwise") else f"else if {label}"
