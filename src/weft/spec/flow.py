"""Flows: typed steps in place of a conversation.

The state of a flow is the derived variables of the workflow: a step receives them and returns the
ones it changes.
"""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StringConstraints

from weft.spec import keys
from weft.spec.agents import HistoryIngredient, LiteralIngredient
from weft.spec.part import (
    YEAR,
    Addressee,
    JsonMap,
    JsonValue,
    Name,
    Nearness,
    ObjectRef,
    Part,
    Seconds,
    Text,
    Words,
)
from weft.spec.providers import FilterConfig

#: The default time for an approval.
DAY: Final = 86_400.0

#: The default options of an approval.
APPROVE: Final = "approve"
REJECT: Final = "reject"

#: The journal identifies steps by their names, with / between them.
STEP_NAME: Final = r"^[^/]*[^/\s][^/]*$"
StepName: TypeAlias = Annotated[str, StringConstraints(pattern=STEP_NAME, max_length=200)]


# -- the context of a step


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

    _one_value = keys.allow_one("value", "path")


class RetrievalIngredient(Part):
    """The passages of a collection that fit a query best."""

    kind: Literal["retrieval"] = "retrieval"
    collection: Name
    query: Annotated[Words, StringConstraints(pattern=r"\S")] | None = Field(
        default=None, description="The query itself."
    )
    query_path: Name | None = Field(
        default=None, description="In place of query: the field of the state that has it."
    )
    top_k: int = Field(default=5, ge=1)
    min_relevance: Nearness = 0.7
    filters: tuple[RetrievalFilter, ...] = Field(default=(), description="All of them must hold.")

    _one_query = keys.require_one("query", "query_path")


class ArtifactsIngredient(Part):
    """Artifacts of a board of the same tenant that the step's agent may see."""

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
    """The context of a step besides its state, in order."""

    sources: tuple[StepIngredient, ...] = ()
    format: ContextFormat = ContextFormat()
    assembler: ObjectRef | None = Field(
        default=None, description="In place of sources: an object that puts the context together."
    )
    options: JsonMap = Field(default={}, description="What the assembler's class is made with.")


# -- the work of a step


class AgentWork(Part):
    """An agent does the work. Its reply sets fields of the state."""

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
    """A function, or a class with `run`, does the work. Its result sets fields of the state."""

    kind: Literal["function"] = "function"
    function: ObjectRef
    options: JsonMap = Field(default={}, description="What a class is made with.")


Work: TypeAlias = Annotated[AgentWork | FunctionWork, Field(discriminator="kind")]


class Retry(Part):
    """The number of attempts, and the delay before the second one."""

    attempts: int = Field(ge=1, le=1000, description="The first one counts.")
    delay_seconds: float = Field(
        default=1.0,
        ge=0,
        le=YEAR,
        allow_inf_nan=False,
        description="Doubled each time, at most a minute; less by chance.",
    )


class Guard(Part):
    """A condition on the state that must hold before a step."""

    condition: Words
    message: Text = ""


class Confidence(Part):
    """The required confidence of a result, and the path for a lower one."""

    minimum: Nearness
    path: "_FlowPath | None" = Field(default=None, description="null: the step fails.")


class Step(Part):
    """A step, done by an agent or a function."""

    kind: Literal["step"] = "step"
    name: StepName
    work: Work
    context: StepContext | None = None
    validate_: tuple[Guard, ...] = Field(default=(), alias="validate")
    retry: Retry | None = None
    timeout_seconds: Seconds | None = Field(default=None, description="For all attempts together.")
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
    """The path for one value."""

    value: JsonValue
    path: Path = Field(description="Without steps, the flow continues after the branch.")


class Branch(Part):
    """One of several paths."""

    kind: Literal["branch"] = "branch"
    name: StepName
    on: Words = Field(description="A field of the state, or a condition (true or false).")
    cases: tuple[Case, ...] = Field(min_length=1)
    otherwise: Path | None = Field(default=None, description="null: another value fails the run.")


class ForkPath(Part):
    """One of the parallel paths of a fork."""

    name: StepName
    steps: tuple["_FlowNode", ...] = Field(min_length=1)
    on_failure: Path | None = Field(
        default=None, description="When it has run to its end, the path has recovered."
    )


class Fork(Part):
    """Parallel paths, and the step that runs when all of them have ended."""

    kind: Literal["fork"] = "fork"
    name: StepName
    paths: tuple[ForkPath, ...] = Field(min_length=2)
    join: Step | None = None


class Repeat(Part):
    """Steps that are repeated until a condition holds, at least once."""

    kind: Literal["repeat"] = "repeat"
    name: StepName
    until: Words
    steps: tuple["_FlowNode", ...] = Field(min_length=1)
    max_iterations: int = Field(default=10, ge=1)


class Option(Part):
    """An answer that a person can choose."""

    name: Name
    rejects: bool = False


class Escalation(Part):
    """The next person to ask when there is no answer in time."""

    approver: Addressee
    timeout_seconds: Seconds = DAY


class Approval(Part):
    """A person decides whether the flow continues."""

    kind: Literal["approval"] = "approval"
    name: StepName
    approver: Addressee = Field(description="user:NAME, role:NAME or group:NAME.")
    text: Text = Field(
        default="", description="Text for the person; `{name}` inserts a field of the state."
    )
    options: tuple[Option, ...] = Field(
        default=(Option(name=APPROVE), Option(name=REJECT, rejects=True)), min_length=1
    )
    default: Name | None = Field(
        default=None, description="The option that applies when there is no answer in time."
    )
    timeout_seconds: Seconds = DAY
    escalate: tuple[Escalation, ...] = Field(
        default=(), description="Who is asked after that, in order."
    )
    on_timeout: Path | None = None
    on_rejection: Path | None = Field(default=None, description="null: the run fails.")
    output: Name | None = Field(
        default=None, description="The field of the state that gets the option."
    )


Node: TypeAlias = Annotated[Step | Branch | Fork | Repeat | Approval, Field(discriminator="kind")]

# Built here: pydantic builds a model where it is first used and looks up names there, so a module
# that imports another Path would get that one.
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
