"""A graph as SVG: boxes in layers, links as smooth curves, every label on a clear place."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from weft.diagrams import svg
from weft.diagrams.flow_graph import FLOW
from weft.diagrams.layers import Layered, layered
from weft.diagrams.layout import Layout, Point, Size, arrange
from weft.diagrams.nodes import Edge, Graph, Node
from weft.diagrams.svg import lines, text_width

_MARGIN: Final = 24.0
_HEADER: Final = 44.0
_PADDING: Final = 14.0

#: The page a picture is fitted to: of both directions the one that can be shown larger is taken.
_PAGE: Final = (1280.0, 800.0)


@dataclass(frozen=True, slots=True)
class _Box:
    """A node with its text broken into lines."""

    node: Node
    rows: tuple[str, ...]
    repeats: bool

    @property
    def size(self) -> Size:
        widths = [text_width(self.node.title, svg.NAME) * 1.06]
        widths += [text_width(row, svg.SMALL) for row in self.rows]
        return max(widths) + 2 * _PADDING + 4, 34.0 + svg.LINE * len(self.rows)


@dataclass(frozen=True, slots=True)
class _Wire:
    """An edge between two nodes with its label broken into lines."""

    edge: Edge
    rows: tuple[str, ...]

    @property
    def size(self) -> Size:
        if not self.rows:
            return 0.0, 0.0
        widths = [text_width(row, svg.SMALL) for row in self.rows]
        return max(widths) + 12.0, svg.LINE * len(self.rows) + 5.0


def svg_graph(graph: Graph) -> str:
    """Write a graph as an SVG picture that follows the reader's light or dark colours."""
    repeated = _repetitions(graph)
    boxes = [_box(node, repeated.get(node.key, [])) for node in graph.nodes]
    passing = [edge for edge in graph.edges if edge.source != edge.target]
    wires = [_Wire(edge, _label_rows(edge)) for edge in passing]
    places = {node.key: number for number, node in enumerate(graph.nodes)}
    links = [(places[wire.edge.source], places[wire.edge.target]) for wire in wires]
    layers = layered(len(boxes), links)
    picture = _better(_picture(boxes, wires, layers, turn=turn) for turn in (False, True))
    legend = list(_legend(graph, picture.height + _HEADER + _MARGIN * 2))
    width = max(
        picture.width, text_width(graph.title + graph.pattern, svg.TITLE), 260.0 * len(legend)
    )
    height = picture.height + _HEADER + _MARGIN * 1.5 + (30.0 if legend else 0.0)
    body = (
        svg.label(_MARGIN, 34, graph.title, "title", aside=graph.pattern),
        f'<g transform="translate({svg.points(_MARGIN, _HEADER + _MARGIN / 2)})">',
        *picture.elements,
        "</g>",
        *legend,
    )
    size = (width + 2 * _MARGIN, height)
    return svg.document(graph.title, size, body, description=graph.description)


def _label_rows(edge: Edge) -> tuple[str, ...]:
    return tuple(lines(edge.label, 190, svg.SMALL)) if edge.label else ()


def _repetitions(graph: Graph) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        if edge.source == edge.target:
            found.setdefault(edge.source, []).append(edge)
    return found


def _box(node: Node, repeated: list[Edge]) -> _Box:
    said = [node.role, *node.notes, *(f"again: {edge.label}" for edge in repeated)]
    rows = [row for text in said if text for row in lines(text, 260, svg.SMALL)]
    return _Box(node, tuple(rows), repeats=bool(repeated))


@dataclass(frozen=True, slots=True)
class _Picture:
    elements: tuple[str, ...]
    width: float
    height: float


def _better(pictures: Iterator[_Picture]) -> _Picture:
    return max(pictures, key=lambda it: min(1.0, _PAGE[0] / it.width, _PAGE[1] / it.height))


def _picture(
    boxes: Sequence[_Box], wires: Sequence[_Wire], layers: Layered, *, turn: bool
) -> _Picture:
    """Lay out from left to right, or from top to bottom if `turn`."""
    layout = arrange(
        layers,
        [_turned(box.size, turn=turn) for box in boxes],
        [_turned(wire.size, turn=turn) for wire in wires],
    )
    width, height = _turned(layout.size, turn=turn)
    return _Picture(tuple(_elements(boxes, wires, layout, turn=turn)), width, height)


def _turned(pair: tuple[float, float], *, turn: bool) -> tuple[float, float]:
    return (pair[1], pair[0]) if turn else pair


def _elements(
    boxes: Sequence[_Box], wires: Sequence[_Wire], layout: Layout, *, turn: bool
) -> Iterator[str]:
    # Curves first, labels over them, boxes last: nothing hides a text.
    for wire, track in zip(wires, layout.tracks, strict=True):
        yield _curve(wire.edge, track, turn=turn)
    for wire, place in zip(wires, layout.labels, strict=True):
        yield from _wire_label(wire, _turned(place, turn=turn))
    for box, place in zip(boxes, layout.boxes, strict=True):
        yield from _drawn(box, _turned(place, turn=turn))


def _curve(edge: Edge, track: Sequence[Point], *, turn: bool) -> str:
    path = f"M{svg.points(*_turned(track[0], turn=turn))}"
    for number, (here, there) in enumerate(pairwise(track)):
        if number % 2 == 0:
            path += f"L{svg.points(*_turned(there, turn=turn))}"
        else:
            middle = (here[0] + there[0]) / 2
            bends = [_turned(point, turn=turn) for point in ((middle, here[1]), (middle, there[1]))]
            end = _turned(there, turn=turn)
            path += f"C{svg.points(*bends[0], *bends[1], *end)}"
    return svg.arrow(path, _edge_style(edge))


def _edge_style(edge: Edge) -> str:
    return "edge" + " before" * edge.dashed + " unruled" * (edge.kind in ("default", "joined"))


def _wire_label(wire: _Wire, centre: Point) -> Iterator[str]:
    if not wire.rows:
        return
    width, height = wire.size
    x, y = centre
    yield svg.rectangle(x - width / 2, y - height / 2, wire.size, "paper", round_by=3)
    base = y - height / 2 + 13.5
    for number, row in enumerate(wire.rows):
        yield svg.label(x, base + number * svg.LINE, row, "small", anchor="middle")


#: What is drawn as a box, and how; all else is a pill.
_BOXES: Final[Mapping[str, str]] = {
    "agent": "box",
    "undeclared": "undeclared",
    "step": "box",
    "approval": "note",
    "branch": "tab",
    "fork": "tab",
    "undo": "box before",
}


def _drawn(box: _Box, centre: Point) -> Iterator[str]:
    node = box.node
    width, height = box.size
    left, top = centre[0] - width / 2, centre[1] - height / 2
    if node.kind in _BOXES:
        style = _BOXES[node.kind]
        yield svg.rectangle(left, top, box.size, style, round_by=7)
        if node.kind == "agent":
            yield svg.rectangle(left, top + 7, (4.0, height - 14), node.role, round_by=2)
    else:
        yield svg.rectangle(left, top, box.size, "pill", round_by=17)
    yield svg.label(left + _PADDING + 2, top + 22, node.title, "name")
    for number, row in enumerate(box.rows):
        style = "small muted" if number == 0 else "small"
        yield svg.label(left + _PADDING + 2, top + 39 + number * svg.LINE, row, style)
    if box.repeats:
        x = left + width - 30
        path = f"M{svg.points(x, top)}C{svg.points(x - 6, top - 20, x + 24, top - 20, x + 18, top)}"
        yield svg.arrow(path)


#: What the ways of drawing a link mean.
_STYLES: Final[Mapping[str, str]] = {
    "edge": "after the agent replied",
    "edge before": "before the agent replies",
    "edge unruled": "no rule: by pattern or default",
}
_FLOW_STYLES: Final[Mapping[str, str]] = {
    "edge": "then",
    "edge before": "on failure, or to undo it",
}


def _legend(graph: Graph, y: float) -> Iterator[str]:
    """Explain the ways of drawing a link, if there is more than one."""
    styles = _FLOW_STYLES if graph.pattern == FLOW else _STYLES
    used = {_edge_style(edge) for edge in graph.edges}
    if used == {"edge"}:
        return
    x = _MARGIN
    for style, words in styles.items():
        if style in used:
            yield (
                "<g>"
                + svg.arrow(f"M{svg.points(x, y)}L{svg.points(x + 36, y)}", style)
                + svg.label(x + 44, y + 4, words, "small muted")
                + "</g>"
            )
            x += 260
