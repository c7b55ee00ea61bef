"""What computed variables come from: the way from one down to a variable of a certain kind."""

from collections.abc import Callable
from itertools import pairwise

from weft.check.subject import Subject
from weft.spec.variables import ComputedSource, Variable


def way_down(subject: Subject, name: str, is_goal: Callable[[Variable], bool]) -> tuple[str, ...]:
    """Return the variables from `name` down to the nearest goal that it is or comes from.

    What comes from a secret is a matter of its own, so the way does not lead through one.
    """
    waiting, met = [(name,)], {name}
    for chain in waiting:
        variable = subject.spec.variables.get(chain[-1])
        if variable is None:
            continue
        if is_goal(variable):
            return chain
        if isinstance(variable.source, ComputedSource) and not variable.secret:
            fresh = [entry for entry in variable.source.inputs if entry not in met]
            met.update(fresh)
            waiting += [(*chain, entry) for entry in fresh]
    return ()


def computed_from(way: tuple[str, ...]) -> tuple[str, ...]:
    """Write a way, one step after the other."""
    return tuple(f"{computed} is computed from {entry}" for computed, entry in pairwise(way))
