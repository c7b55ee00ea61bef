"""Handoffs: the rules by which the word passes on."""

from typing import Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part, Words

ConditionScope: TypeAlias = Literal["pre", "post"]
ConditionType: TypeAlias = Literal["expression", "llm"]


class Handoff(Part):
    """One rule: from whom, to whom, when."""

    source_agent: Name
    target_agent: Name = Field(description='An agent, "user" or "terminate".')
    condition: Words | None = Field(
        default=None, description="When the rule applies; null makes it the agent's fallback."
    )
    condition_type: ConditionType = Field(
        default="expression", description="llm: a model judges the condition; must be enabled."
    )
    condition_scope: ConditionScope = Field(
        default="post", description="pre: before the agent replies; post: after."
    )
    priority: int = Field(default=1, description="Lower comes first; equal ones in file order.")
    reason: Words | None = Field(default=None, description="Why the run ends, for terminate.")
