"""Family SCHEMA, the part that speaks about a spec: what this version cannot perform yet."""

from collections.abc import Iterator

from weft.check.rules import rule
from weft.check.subject import Hit, Subject


@rule("SCHEMA014", "flow", "board")
def can_be_performed(subject: Subject) -> Iterator[Hit]:
    """Nothing is declared that a run would pass over."""
    hint = ("remove it, and let handoffs decide who is next",)
    if subject.spec.flow is not None:
        message = "a flow is declared, which this version of Weft cannot perform"
        yield Hit(("flow",), message, hint=hint, at_key=True)
    if subject.spec.board is not None:
        message = "a board is declared, which this version of Weft cannot perform"
        yield Hit(("board",), message, hint=hint, at_key=True)
