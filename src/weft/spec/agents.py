"""Agents: who takes part, what each is told, how far it may go alone, and to whom it hands off."""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from weft.spec.ingredients import Ingredient
from weft.spec.model_settings import ModelSettings
from weft.spec.part import Name, Nearness, Part, Text, Words

AgentType: TypeAlias = Literal[
    "intake", "router", "worker", "evaluator", "orchestrator", "generator"
]
HumanInteraction: TypeAlias = Literal["none", "context", "approval", "feedback", "single"]

#: How many replies in a row an agent may give, by how it works with people.
REPLY_LIMITS: Final[dict[HumanInteraction, int]] = {
    "none": 30,
    "context": 20,
    "approval": 5,
    "feedback": 5,
    "single": 1,
}
ConditionScope: TypeAlias = Literal["pre", "post"]
ConditionType: TypeAlias = Literal["expression", "llm", "nearest"]

#: The conditions that are words, and no expression over variables.
IN_WORDS: Final = frozenset[ConditionType]({"llm", "nearest"})


class PromptSection(Part):
    """One headed paragraph of an agent's instructions."""

    id: Name
    heading: str | None = Field(default=None, description='Shown above the text, e.g. "[ROLE]".')
    content: Text = Field(description="`{name}` inserts a variable; `{{name}}` is literal text.")


class Agent(Part):
    """One member of the team."""

    agent_name: Name = Field(description="PascalCase; other files refer to the agent by it.")
    description: str = Field(
        default="",
        description="What it is for, in a line: told to agents that may hand off to it, drawn in "
        "diagrams.",
    )
    prompt_sections: tuple[PromptSection, ...] = ()
    agent_type: AgentType = Field(
        default="worker",
        description="What the agent is for: drawn in diagrams, for readers. Runs do not ask.",
    )
    human_interaction: HumanInteraction = "none"
    max_consecutive_auto_reply: int | None = Field(
        default=None,
        ge=1,
        le=500,
        description="Replies in a row; by default 30, 20, 5, 5 or 1, after human_interaction.",
    )
    auto_tool_mode: bool = Field(
        default=False,
        description="A valid structured output calls the agent's auto_invoke tool with its fields.",
    )
    structured_outputs_required: bool = Field(
        default=False,
        description="The package is refused if the registry binds no model to the agent. Replies "
        "of an agent with a model must fit it in any case.",
    )
    model: Name | None = Field(
        default=None, description="Name of the language model; null takes the workflow's."
    )
    model_settings: ModelSettings | None = Field(
        default=None, description="How the model is asked; what is null here the workflow says."
    )
    handoff_tools: bool = Field(
        default=False,
        description="The model is offered a tool for each target of the agent's handoffs, and may "
        "hand off by calling it.",
    )
    context: tuple[Ingredient, ...] = Field(
        default=(),
        description="What the agent sees after its prompt, in order; empty: its variables, then "
        "the conversation. Without a history, what it did in the turn under way is sent still.",
    )


class Handoff(Part):
    """One rule: from whom, to whom, when."""

    source_agent: Name
    target_agent: Name = Field(description='An agent, "user" or "terminate".')
    condition: Words | None = Field(
        default=None, description="When the rule applies; null makes it the agent's fallback."
    )
    condition_type: ConditionType = Field(
        default="expression",
        description="llm: a model judges the condition; must be enabled. nearest: of these rules "
        "of the agent, the one applies whose condition, a description, is nearest in meaning to "
        "the user's last message; needs embeddings.",
    )
    condition_scope: ConditionScope = Field(
        default="post", description="pre: before the agent replies; post: after."
    )
    priority: int = Field(default=1, description="Lower comes first; equal ones in file order.")
    reason: Words | None = Field(default=None, description="Why the run ends, for terminate.")
    threshold: Nearness | None = Field(
        default=None, description="How near a message must be, for nearest; null: 0.3."
    )
