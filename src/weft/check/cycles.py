"""Cycles in what depends on what."""

from collections.abc import Iterable, Iterator, Mapping


def find_cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles that share no node, so many that breaking them leaves no other.

    Names without an entry lead nowhere. Takes time in proportion to the graph.
    """
    after = {node: [*dict.fromkeys(n for n in graph[node] if n in graph)] for node in graph}
    before: dict[str, list[str]] = {node: [] for node in graph}
    for node, following in after.items():
        for other in following:
            before[other].append(node)
    # The nodes that may still lie on a cycle, with how many of them each leads to.
    left = {node: len(following) for node, following in after.items()}
    _remove([node for node, count in left.items() if count == 0], before, left)
    while left:
        cycle = _walk(next(iter(left)), after, left)
        yield cycle
        _remove(cycle, before, left)


def _walk(start: str, after: Mapping[str, list[str]], left: Mapping[str, int]) -> tuple[str, ...]:
    """Go on from node to node until one comes again; every node that is left leads to another."""
    path: dict[str, None] = {}
    node = start
    while node not in path:
        path[node] = None
        node = next(other for other in after[node] if other in left)
    nodes = tuple(path)
    return nodes[nodes.index(node) :]


def _remove(nodes: Iterable[str], before: Mapping[str, list[str]], left: dict[str, int]) -> None:
    """Take nodes out, and then all that lead to none of those left."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if left.pop(node, None) is None:
            continue
        for other in before[node]:
            if other in left:
                left[other] -= 1
                if left[other] == 0:
                    waiting.append(other)
