"""Flows: typed steps in place of a conversation.

The state of a flow are the derived variables of the workflow: a step is given them and returns the
ones it changes. What a limit is wrong for is the checker's matter, so that a program and a file
are told of it by the same code.
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from weft.spec.agents import HistoryIngredient, LiteralIngredient
from weft.spec.part import JsonMap, JsonValue, Name, ObjectRef, Part, Text, Words
from weft.spec.providers import FilterConfig

#: How long a person has to approve something, unless it is said.
DAY: Final = 86_400.0

#: The answers to a question for approval, unless others are given.
APPROVE: Final = "approve"
REJECT: Final = "reject"


# -- what a step is shown


class StateIngredient(Part):
    """A value of the state."""

    kind: Literal["state"] = "state"
    path: Name = Field(description="A field of the state, or a part of it: `document.summary`.")


class VariableIngredient(Part):
    """A variable outside the state: read from a database, a service or a setting."""

    kind: Literal["variable"] = "variable"
    name: Name


class RetrievalFilter(Part):
    """Only passages whose metadata has this value."""

    key: Name
    value: JsonValue = None
    path: Name | None = Field(default=None, description="In place of value: a field of the state.")


class RetrievalIngredient(Part):
    """The passages of a collection that fit a query best."""

    kind: Literal["retrieval"] = "retrieval"
    collection: Name
    query: Text | None = Field(default=None, description="The query itself.")
    query_path: Name | None = Field(
        default=None, description="In place of query: the field of the state that has it."
    )
    top_k: int = 5
    min_relevance: float = 0.7
    filters: tuple[RetrievalFilter, ...] = Field(default=(), description="All of them must hold.")


class ArtifactsIngredient(Part):
    """Artifacts of a board of the same tenant, as far as the step's agent may see them."""

    kind: Literal["board"] = "board"
    board: Name = Field(description="The workflow whose board it is.")
    filters: FilterConfig = FilterConfig()
    limit: int = Field(default=20, ge=1, le=1000)


StepIngredient: TypeAlias = Annotated[
    StateIngredient
    | VariableIngredient
    | RetrievalIngredient
    | ArtifactsIngredient
    | LiteralIngredient
    | HistoryIngredient,
    Field(discriminator="kind"),
]


class ContextFormat(Part):
    """How the pieces of a context become one text."""

    headers: bool = Field(
        default=False, description="Put a heading with its name above each piece."
    )
    separator: str = Field(default="\n\n", description="Between two pieces.")
    hit_separator: str = Field(default="\n---\n", description="Between two passages.")
    template: Text | None = Field(
        default=None, description="The text around the context; `{context}` inserts it."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Pieces that do not fit are left out; the first ones are kept.",
    )


class StepContext(Part):
    """What a step is shown beside its state; in order."""

    sources: tuple[StepIngredient, ...] = ()
    format: ContextFormat = ContextFormat()
    assembler: ObjectRef | None = Field(
        default=None, description="In place of sources: an object that puts the context together."
    )
    options: JsonMap = Field(default={}, description="What the assembler's class is made with.")


# -- what does the work of a step


class AgentWork(Part):
    """An agent does it. Its reply becomes values of the state."""

    kind: Literal["agent"] = "agent"
    agent: Name
    prompt: Text = Field(
        default="", description="Its instructions; `{name}` inserts a field of the state."
    )
    output: Name | None = Field(
        default=None,
        description="The field of the state that gets the reply. null: a structured reply sets "
        "the fields that are called like its own.",
    )
    step: ObjectRef | None = Field(
        default=None,
        description="A class (weft.flow.AgentStep) that writes the prompts and applies the reply.",
    )
    options: JsonMap = Field(default={}, description="What the class is made with.")


class FunctionWork(Part):
    """A function does it, or a class with `run`. What it returns is set in the state."""

    kind: Literal["function"] = "function"
    function: ObjectRef
    options: JsonMap = Field(default={}, description="What a class is made with.")


Work: TypeAlias = Annotated[AgentWork | FunctionWork, Field(discriminator="kind")]


class Retry(Part):
    """How often a step is tried in all, and how long it waits before the second time."""

    attempts: int
    delay_seconds: float = Field(
        default=1.0, description="Doubled each time, at most a minute; less by chance."
    )


class Guard(Part):
    """What must hold of the state before a step."""

    condition: Words
    message: Text = ""


class Confidence(Part):
    """How sure the result of a step must be, and what is done with one that is not."""

    minimum: float
    path: "_FlowPath | None" = Field(default=None, description="null: the step fails.")


class Step(Part):
    """Something is done: by an agent or a function."""

    kind: Literal["step"] = "step"
    name: Name
    work: Work
    context: StepContext | None = None
    validate_: tuple[Guard, ...] = Field(default=(), alias="validate")
    retry: Retry | None = None
    timeout_seconds: float | None = Field(default=None, description="For all attempts together.")
    confidence: Confidence | None = None
    compensate: Work | None = Field(
        default=None, description="Undoes it if the run fails later; safe if nothing was done."
    )
    on_failure: "_FlowPath | None" = None


# -- the order of steps


class Path(Part):
    """Steps beside the main line. The flow returns to the main line unless the path ends it."""

    steps: tuple["_FlowNode", ...] = ()
    ends: bool = Field(default=False, description="The run is over at its end.")


class Case(Part):
    """What is done for one value."""

    value: JsonValue
    path: Path = Field(description="Without steps, the flow continues after the branch.")


class Branch(Part):
    """One of several paths."""

    kind: Literal["branch"] = "branch"
    name: Name
    on: Words = Field(description="A field of the state, or a condition (true or false).")
    cases: tuple[Case, ...] = ()
    otherwise: Path | None = Field(default=None, description="null: another value fails the run.")


class ForkPath(Part):
    """One of several paths that are gone side by side."""

    name: Name
    steps: tuple["_FlowNode", ...] = ()
    on_failure: Path | None = Field(
        default=None, description="When it has run to its end, the path has recovered."
    )


class Fork(Part):
    """Parallel paths, and the step that runs when all of them have ended."""

    kind: Literal["fork"] = "fork"
    name: Name
    paths: tuple[ForkPath, ...] = ()
    join: Step | None = None


class Repeat(Part):
    """Steps that are done again until a condition holds; at least once."""

    kind: Literal["repeat"] = "repeat"
    name: Name
    until: Words
    steps: tuple["_FlowNode", ...] = ()
    max_iterations: int = 10


class Option(Part):
    """One of the answers a person may give."""

    name: Name
    rejects: bool = False


class Escalation(Part):
    """The next person to ask when there is no answer in time."""

    approver: Name
    timeout_seconds: float = DAY


class Approval(Part):
    """A person decides whether the flow continues."""

    kind: Literal["approval"] = "approval"
    name: Name
    approver: Name = Field(description="user:NAME, role:NAME or group:NAME.")
    text: Text = Field(
        default="", description="Text for the person; `{name}` inserts a field of the state."
    )
    options: tuple[Option, ...] = (Option(name=APPROVE), Option(name=REJECT, rejects=True))
    default: Name | None = Field(
        default=None, description="The option that applies when there is no answer in time."
    )
    timeout_seconds: float = DAY
    escalate: tuple[Escalation, ...] = Field(
        default=(), description="Who is asked after that, in order."
    )
    on_timeout: Path | None = None
    on_rejection: Path | None = Field(default=None, description="null: the run fails.")
    output: Name | None = Field(
        default=None, description="The field of the state that gets the option."
    )


Node: TypeAlias = Annotated[Step | Branch | Fork | Repeat | Approval, Field(discriminator="kind")]

# Parts are built where they are first used, and pydantic looks up names there first: in a module
# that imports another Path, that one would be taken.
_FlowPath: TypeAlias = Path
_FlowNode: TypeAlias = Node


class Flow(Part):
    """The steps, in order."""

    state: ObjectRef | None = Field(
        default=None, description="The class whose objects code is given as the state."
    )
    steps: tuple[Node, ...] = ()
    finally_: Step | None = Field(
        default=None, alias="finally", description="The last step of a run that has not failed."
    )
    on_failure: Path | None = Field(default=None, description="Done before a run ends as failed.")
    compensate_on_cancel: bool = Field(
        default=False, description="What was done is undone when the run is stopped."
    )
