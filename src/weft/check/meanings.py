"""What in a workflow compares meanings, and so needs embeddings where it runs."""

from collections.abc import Iterator

from weft.check.board_parts import providers, subscriptions
from weft.check.subject import Subject
from weft.spec.providers import SemanticProvider
from weft.spec.workflow import WorkflowSpec


def comparisons(spec: WorkflowSpec) -> Iterator[str]:
    """Yield what compares meanings, in words."""
    for handoff in spec.handoffs:
        if handoff.condition_type == "nearest":
            yield f"a handoff of {handoff.source_agent} is of the type nearest"
    subject = Subject(spec)
    for _, agent, it in subscriptions(subject):
        if it.semantic_match:
            yield f"a subscription of {agent.agent} has semantic_match"
    for _, agent, it in providers(subject):
        if isinstance(it, SemanticProvider):
            yield f"a provider of {agent.agent} is semantic"
