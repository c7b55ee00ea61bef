"""Where the word went in a run, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.engine.events import Event, HandedOff, TurnStarted
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class HandoffRecord:
    """A handoff; rule and condition are those of the declared one that decided, if one did."""

    seq: int
    at: int
    source: str
    target: str
    why: str
    rule: int | None
    condition: str | None


def handoff_record(workflow: Workflow, event: Event, data: HandedOff) -> HandoffRecord:
    """Return the record of a handoff, with the condition of its rule as the author wrote it."""
    handoffs = workflow.spec.handoffs
    known = data.rule is not None and data.rule < len(handoffs)
    return HandoffRecord(
        seq=event.seq,
        at=event.at,
        source=data.source,
        target=data.target,
        why=data.why,
        rule=data.rule,
        condition=handoffs[data.rule or 0].condition if known else None,
    )


def opening_handoffs(workflow: Workflow, events: Sequence[Event]) -> tuple[HandoffRecord, ...]:
    """Return where the word went before anybody spoke."""
    found: list[HandoffRecord] = []
    for event in events:
        if isinstance(event.data, TurnStarted):
            break
        if isinstance(event.data, HandedOff):
            found.append(handoff_record(workflow, event, event.data))
    return tuple(found)
