"""A graph for the terminal: one block for each party, with the ways that lead on from it."""

from collections.abc import Iterator

from weft.diagrams.ascii_text import COLUMNS, cut, plain, wrapped
from weft.diagrams.graph import Edge, Graph, Node, reached

_NAME_WIDTH = 36


def ascii_graph(graph: Graph) -> str:
    """Write a graph as blocks of plain text, in the order in which they are reached."""
    names = {node.key: cut(plain(node.title), _NAME_WIDTH) for node in graph.nodes}
    leaving = graph.leaving()
    nearest = reached(graph)
    rank = {key: place for place, key in enumerate(nearest)}
    ordered = sorted(graph.nodes, key=lambda node: rank.get(node.key, len(rank)))
    lines = [f"{cut(plain(graph.title), 60)}   (pattern: {graph.pattern})"]
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
    rows = wrapped(text, COLUMNS - 4)
    width = max(len(row) for row in rows)
    yield f"+{'-' * (width + 2)}+"
    for row in rows:
        yield f"| {row.ljust(width)} |"
    yield f"+{'-' * (width + 2)}+"
    for note in node.notes:
        first, *more = wrapped(plain(note), COLUMNS - 6)
        yield f"  | {first}"
        for line in more:
            yield f"  |   {line}"


def _ways(edges: list[Edge], names: dict[str, str]) -> Iterator[str]:
    if not edges:
        return
    yield "  |"
    width = max(len(names[edge.target]) for edge in edges)
    for number, edge in enumerate(edges, start=1):
        arrow = "..>" if edge.before else "-->"
        lead = f"  +{arrow} {names[edge.target].ljust(width)}   "
        first, *more = wrapped(_when(edge), COLUMNS - len(lead))
        yield f"{lead}{first}"
        bar = "  |" if number < len(edges) else "   "
        for line in more:
            yield f"{bar.ljust(len(lead))}{line}"


def _when(edge: Edge) -> str:
    words = plain(edge.label)
    if edge.kind == "rule":
        words = f"if {words}"
    if edge.before:
        words = f"before replying, {words}"
    return f"{words}; {plain(edge.reason)}" if edge.reason else words
