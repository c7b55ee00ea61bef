"""Family LINK, the part that a spec shows: what this version of Weft does not perform."""

from collections.abc import Iterator

from weft.check.rule import rule
from weft.check.subject import Hit, Subject
from weft.engine.not_performed import HINT, not_performed, refusal


@rule(
    "LINK003",
    "orchestrator", "agents", "variables", "handoffs", "lifecycle_tools", "hooks", "flow", "board",
)  # fmt: skip
def is_performed(subject: Subject) -> Iterator[Hit]:
    name = subject.spec.orchestrator.workflow_name
    for path, what in not_performed(subject.spec):
        yield Hit(path, refusal(name, what), hint=(HINT,))
