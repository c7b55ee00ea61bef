"""What is made on a board is called after what made it, never after when.

The numbers of events and turns count what an agent may not see as well, so none of them goes into
a name that an agent gets to see: whatever is hidden from it, all it sees is called the same.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from pydantic_core import to_json

from weft.engine.board.state import Artifact
from weft.findings import Json

#: 128 bits: no two things on all boards get the same name by chance.
_BYTES: Final = 16


def activation_name(
    correlation: str, subscription: str, inputs: Iterable[Artifact], tries: int = 0
) -> str:
    """Return what an activation is called: after what woke it, and how often that was put off.

    A delivery wakes an agent once, so no other activation of the run has the name. Where artifacts
    are collected beyond correlations, an id may be that of one in each of several.
    """
    woken_by: list[Json] = [[it.correlation, it.id] for it in inputs]
    return _name("activation", correlation, subscription, woken_by, tries)


def product_name(activation: str, correlation: str, visibility: Json, place: int) -> str:
    """Return what an artifact is called that an activation publishes.

    `place` is its place among those of the same visibility: whoever may not see the others of them
    does not see this one either. A fork has a correlation of its own: what an activation publishes
    when it is taken anew there is another artifact.
    """
    return _name("product", activation, correlation, visibility, place)


def tick_name(correlation: str, iteration: int) -> str:
    """Return what the artifact is called by which a schedule wakes its agent."""
    return _name("tick", correlation, iteration)


def timer_name(what: str, seq: int) -> str:
    """Return what a timer is called that an event sets; nobody but operators sees it.

    Those of one time fire in the order of their names as texts. With numbers of one length that is
    the order they were set in, however many events there were before.
    """
    return f"{what}:{seq:012}"


def _name(*parts: Json) -> str:
    return blake2b(to_json(parts), digest_size=_BYTES).hexdigest()
