"""Cycles in what depends on what."""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter


def find_cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles that share no node, so many that breaking them leaves no other.

    Names without an entry lead nowhere.
    """
    left = {node: [*dict.fromkeys(graph[node])] for node in graph}
    while True:
        known = {node: [it for it in after if it in left] for node, after in left.items()}
        try:
            TopologicalSorter(known).prepare()
        except CycleError as error:
            # Each node of the cycle is what the next one leads to, and the first stands twice.
            _, *cycle = reversed(error.args[1])
            begin = cycle.index(min(cycle, key=list(graph).index))
            yield (*cycle[begin:], *cycle[:begin])
            left = {node: after for node, after in left.items() if node not in cycle}
        else:
            return
