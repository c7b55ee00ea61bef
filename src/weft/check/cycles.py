"""Cycles in what depends on what."""

from collections.abc import Iterator, Mapping, Sequence


def find_cycles(graph: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles that share no node, each starting at the node that was met first.

    Every cycle of the graph shares a node with a reported one. Names without an entry are leaves.
    """
    done: set[str] = set()
    told: set[str] = set()
    for root in graph:
        if root in done:
            continue
        # Without recursion: a chain of dependencies may be longer than Python's stack.
        path: dict[str, Iterator[str]] = {root: iter(graph[root])}
        while path:
            node, following = next(reversed(path.items()))
            after = next(following, None)
            if after is None:
                done.add(node)
                path.popitem()
            elif after in told:
                continue
            elif after in path:
                nodes = list(path)
                cycle = tuple(nodes[nodes.index(after) :])
                if told.isdisjoint(cycle):
                    told.update(cycle)
                    yield cycle
            elif after in graph and after not in done:
                path[after] = iter(graph[after])
