"""Going on without keys that nobody knows, so that they do not hide what else is wrong."""

from collections.abc import Collection, Iterable
from functools import reduce

from weft.findings import Path
from weft.packages.problems import Problem
from weft.packages.rewrite import Rewrite, child, is_list, is_map


def without_unknown(
    rewrite: Rewrite, unknown: Iterable[Problem], holders: Collection[Path]
) -> bool:
    """Read misspelt keys as what they were meant to be, and take the other unknown ones away.

    Returns whether the rest can be judged. It cannot where a list or object is taken away that
    stands where the file holds all it declares, at `holders`: its author may have meant that, and
    everything else would be blamed for what is not there.
    """
    for problem in unknown:
        *parent, key = problem.path
        container = reduce(child, parent, rewrite.data)
        if not is_map(container):
            return False
        if problem.rename is not None:
            rewrite.rename(container, str(key), problem.rename, None)
        value = container.pop(str(key), None)
        if (is_map(value) or is_list(value)) and _may_hold_all(tuple(parent), holders):
            return False
    return True


def _may_hold_all(parent: Path, holders: Collection[Path]) -> bool:
    return any(len(parent) < len(path) and path[: len(parent)] == parent for path in holders)
