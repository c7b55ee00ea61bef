"""Agents: their instructions, context, model settings, limits and handoffs."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from weft.spec import keys
from weft.spec.part import JsonMap, Name, Nearness, Part, Text, Words

#: Characters per token, roughly, in any language; used where no exact count is available.
CHARACTERS_PER_TOKEN: Final = 4


class VariablesIngredient(Part):
    """The variables exposed to the agent, or some of them."""

    kind: Literal["variables"] = "variables"
    names: tuple[Name, ...] = Field(default=(), description="Which ones; empty means all exposed.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="What does not fit is left out, from the end of the list."
    )


class HistoryIngredient(Part):
    """The conversation so far."""

    kind: Literal["history"] = "history"
    max_messages: int | None = Field(default=None, ge=1, description="Keep only the newest ones.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Keep only the newest that fit; null means 16,000."
    )


class LiteralIngredient(Part):
    """A fixed text."""

    kind: Literal["literal"] = "literal"
    text: Text
    max_tokens: int | None = Field(
        default=None, ge=1, description="A longer text is refused when the package is checked."
    )


class BoardIngredient(Part):
    """The artifacts that the agent's provider returns, on a board."""

    kind: Literal["board"] = "board"
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="What does not fit is left out, from the end; null means 16,000.",
    )


Ingredient: TypeAlias = Annotated[
    VariablesIngredient | HistoryIngredient | LiteralIngredient | BoardIngredient,
    Field(discriminator="kind"),
]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text takes."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


#: One generated seed for the whole chat.
CACHE_SEED: Final = "cache_seed"


def _seed_kind(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return "number"
    return "word" if value == CACHE_SEED else None


#: The form selects the member, so that an invalid value gives one error.
Seed: TypeAlias = Annotated[
    Annotated[int, Tag("number")] | Annotated[Literal["cache_seed"], Tag("word")],
    Discriminator(
        _seed_kind,
        custom_error_type="seed",
        custom_error_message='a seed is a whole number, or "cache_seed"',
    ),
]

#: Keys that Weft sets itself; another value would make a call differ from the recorded one.
RESERVED: Final = frozenset(
    {"model", "messages", "tools", "tool_choice", "response_format", "stream", "stream_options"}
)


def _refuse_reserved(extra: JsonMap) -> JsonMap:
    taken = sorted(RESERVED.intersection(extra))
    if taken:
        raise PydanticCustomError(
            "reserved_keys",
            "extra_body cannot hold {keys}, which Weft sends itself: take it out",
            {"keys": ", ".join(taken)},
        )
    return extra


class ModelSettings(Part):
    """The settings sent with every model call; null means the provider's default."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: Seed | None = Field(
        default=None,
        description="cache_seed: a number that follows from app, workflow and chat, the same when "
        "a run is resumed.",
    )
    stop: Annotated[tuple[Words, ...], Field(max_length=16)] | None = Field(
        default=None, description="A reply ends where one of these texts would begin."
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    extra_body: Annotated[JsonMap, AfterValidator(_refuse_reserved)] | None = Field(
        default=None,
        description="Keys that are sent as they are, for what a provider has beside; they win "
        "over the settings above.",
    )


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

#: The types of conditions that are written in words, not as expressions.
WORD_CONDITIONS: Final = frozenset[ConditionType]({"llm", "nearest"})


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
        description="Its purpose, in one line. Shown to agents that may hand off to it, and in "
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

    _judged = keys.require_with("condition", "condition_type", "llm", "nearest")
    _replies = keys.require_with(
        "condition", "condition_scope", "pre", why="without one, the agent never replies"
    )
    _compared = keys.allow_only_with("threshold", "condition_type", "nearest")
