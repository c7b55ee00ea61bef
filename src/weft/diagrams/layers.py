"""Layers of a graph: every node gets a rank such that links lead from lower to higher ranks."""

from collections.abc import Sequence
from typing import TypeAlias

#: From node to node, by number.
Link: TypeAlias = tuple[int, int]


def without_cycles(count: int, links: Sequence[Link]) -> list[Link]:
    """Turn round the links that close a cycle, looking from the first node on."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(links):
        leaving[source].append(number)
    turned: set[int] = set()
    done: set[int] = set()
    for root in range(count):
        if root not in done:
            turned |= _closing(root, links, leaving, done)
    return [
        (target, source) if number in turned else (source, target)
        for number, (source, target) in enumerate(links)
    ]


def _closing(
    root: int, links: Sequence[Link], leaving: list[list[int]], done: set[int]
) -> set[int]:
    """Walk in depth from `root` and return the links that lead back into the present walk."""
    found: set[int] = set()
    walk = [(root, iter(leaving[root]))]
    inside = {root}
    while walk:
        node, pending = walk[-1]
        number = next(pending, None)
        if number is None:
            walk.pop()
            inside.discard(node)
            done.add(node)
            continue
        target = links[number][1]
        if target in inside:
            found.add(number)
        elif target not in done:
            inside.add(target)
            walk.append((target, iter(leaving[target])))
    return found


def ranks(count: int, links: Sequence[Link]) -> list[int]:
    """Give every node the rank of its longest way in, two per link: labels stand between."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    entering = [0] * count
    for source, target in links:
        leaving[source].append(target)
        entering[target] += 1
    found = [0] * count
    ready = [node for node in range(count) if not entering[node]]
    first = list(ready)
    for node in ready:
        for target in leaving[node]:
            found[target] = max(found[target], found[node] + 2)
            entering[target] -= 1
            if not entering[target]:
                ready.append(target)
    # A node that nothing leads to stands close to what it leads to, not far off at the edge.
    for node in first[1:]:
        if leaving[node]:
            found[node] = max(0, min(found[target] for target in leaving[node]) - 2)
    return found
