"""An agent's view: the parts of its prompt that do not change between calls."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic_core import to_json

from weft.context.history import HistoryLimits
from weft.context.segment import HIDDEN, Kind, LeftOut, Segment
from weft.engine.compile import servers_of
from weft.engine.flow.plan import role_of
from weft.engine.variables.access import may_read
from weft.ports.model import OutputSchema, ToolSchema
from weft.spec.agents import (
    Agent,
    BoardIngredient,
    HistoryIngredient,
    Ingredient,
    LiteralIngredient,
    PromptSection,
    VariablesIngredient,
    estimate_tokens,
)
from weft.spec.flow import AgentWork, Step
from weft.spec.templates import Reference, parse_template
from weft.spec.type_field import OutputModel
from weft.spec.type_meaning import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec

#: The default budget of the conversation, in tokens.
HISTORY_TOKENS: Final = 16_000

#: The default budget of artifacts, in tokens.
BOARD_TOKENS: Final = 16_000

#: Replaces the value of a variable that the agent may not see.
WITHHELD: Final = "(hidden)"


@dataclass(frozen=True, slots=True)
class Section:
    """A prompt section with placeholders."""

    origin: str
    heading: str
    parts: tuple[str | Reference, ...]


@dataclass(frozen=True, slots=True)
class VariableList:
    """Variables that are listed with their values."""

    origin: str
    names: tuple[str, ...]
    #: The text before each value: the name and the description.
    labels: tuple[str, ...]
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BoardSlice:
    """The slice that a provider returned for the current engine, on a board."""

    origin: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class StepMessages:
    """The messages to an agent at a step of a flow.

    They are written by the step's code, or consist of the assembled context and the declared
    prompt; messages of earlier steps are in between.
    """

    prompt: tuple[str | Reference, ...]
    #: Whether the step's code builds the messages.
    coded: bool = False
    history: HistoryLimits | None = None


@dataclass(frozen=True, slots=True)
class EngineView:
    """What the model of a board engine sees besides the agent's own declarations."""

    role: str
    instructions: str = ""
    output: OutputSchema | None = None


#: The ingredients of every call, in order. A Segment is constant.
Piece: TypeAlias = Segment | Section | VariableList | BoardSlice | HistoryLimits | StepMessages


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees, as declared by the workflow."""

    agent: str
    pieces: tuple[Piece, ...]
    #: What is left out of every call.
    left_out: tuple[LeftOut, ...]
    tools: tuple[ToolSchema, ...]
    output: OutputSchema | None
    #: Tools and output as segments: they are sent with every call, beside the messages.
    schemas: tuple[Segment, ...] = ()
    #: The same, encoded for the hash of the prompt.
    extras: bytes = b""
    #: The servers whose tools it may use; the run has recorded these tools.
    servers: tuple[str, ...] = ()


def make_view(
    spec: WorkflowSpec,
    agent: Agent,
    tools: tuple[ToolSchema, ...],
    engine: EngineView | None = None,
) -> View:
    """Return an agent's view, computed once for all runs of a workflow."""
    output = _output(spec, agent.agent_name) if engine is None else engine.output
    left_out: list[LeftOut] = []
    pieces: list[Piece] = [
        _section(spec, agent.agent_name, section, left_out) for section in agent.prompt_sections
    ]
    if engine is not None:
        if not pieces and agent.description:
            pieces.append(_fixed("prompt", "description", agent.description))
        if engine.instructions:
            pieces.append(_fixed("prompt", "instructions", engine.instructions))
    usual = default_ingredients(board=engine is not None)
    for index, ingredient in enumerate(agent.context or usual):
        origin = f"context[{index}]" if agent.context else "standard"
        pieces += _ingredient(spec, agent.agent_name, origin, ingredient, left_out)
    if not any(isinstance(piece, HistoryLimits) for piece in pieces):
        # Without the results of its tools an agent would call them again and again.
        pieces.append(HistoryLimits("turn", "standard", HISTORY_TOKENS))
    return View(
        agent=agent.agent_name if engine is None else engine.role,
        pieces=tuple(pieces),
        left_out=tuple(left_out),
        tools=tools,
        output=output,
        schemas=tuple(schemas(tools, output)),
        extras=extras(tools, output),
        servers=servers_of(spec, agent.agent_name),
    )


def make_step_view(
    spec: WorkflowSpec, agent: Agent, tools: tuple[ToolSchema, ...], role: str, step: Step
) -> View:
    """Return an agent's view at a step of a flow, computed once for all runs of a workflow."""
    name, output = agent.agent_name, _output(spec, agent.agent_name)
    undoes = role == role_of(name, step.name, undoes=True)
    work = step.compensate if undoes else step.work
    sources = step.context.sources if step.context is not None and not undoes else ()
    limits = [
        ingredient
        for ingredient in (*sources, *agent.context)
        if isinstance(ingredient, HistoryIngredient)
    ]
    coded = isinstance(work, AgentWork) and work.step is not None
    left_out: list[LeftOut] = []
    pieces: list[Piece] = []
    if not coded:
        pieces += [_section(spec, name, section, left_out) for section in agent.prompt_sections]
        for index, ingredient in enumerate(agent.context or (VariablesIngredient(),)):
            if not isinstance(ingredient, HistoryIngredient):
                origin = f"context[{index}]" if agent.context else "standard"
                pieces += _ingredient(spec, name, origin, ingredient, left_out)
    prompt_text = work.prompt if isinstance(work, AgentWork) else ""
    history = next((_history("context", limit) for limit in limits), None)
    prompt = parse_template(prompt_text or f"Do the step {step.name}.")
    pieces.append(StepMessages(prompt, coded, history))
    pieces.append(HistoryLimits("turn", "standard", HISTORY_TOKENS))
    return View(
        agent=role,
        pieces=tuple(pieces),
        left_out=tuple(left_out),
        tools=tools,
        output=output,
        schemas=tuple(schemas(tools, output)),
        extras=extras(tools, output),
        servers=servers_of(spec, name),
    )


def _history(origin: str, ingredient: HistoryIngredient) -> HistoryLimits:
    return HistoryLimits(
        "history", origin, ingredient.max_tokens or HISTORY_TOKENS, ingredient.max_messages
    )


def extras(tools: tuple[ToolSchema, ...], output: OutputSchema | None) -> bytes:
    """Return the schemas sent with the messages, encoded for the hash of the prompt."""
    return to_json((tools, output))


def default_ingredients(*, board: bool = False) -> tuple[Ingredient, ...]:
    """Return the default ingredients of an agent, after its prompt."""
    slices = (BoardIngredient(),) if board else ()
    return VariablesIngredient(), *slices, HistoryIngredient()


def _section(
    spec: WorkflowSpec, agent: str, section: PromptSection, left_out: list[LeftOut]
) -> Segment | Section:
    parts = parse_template(section.content)
    used = [part.name for part in parts if isinstance(part, Reference)]
    hidden = [name for name in dict.fromkeys(used) if not is_visible(spec, agent, name)]
    if hidden:
        left_out.append(_hidden("prompt", section.id, hidden))
        parts = tuple(
            WITHHELD if isinstance(part, Reference) and part.name in hidden else part
            for part in parts
        )
    made = Section(section.id, section.heading or "", parts)
    if any(isinstance(part, Reference) for part in parts):
        return made
    return _fixed("prompt", made.origin, headed(made.heading, "".join(map(str, parts))))


def _ingredient(
    spec: WorkflowSpec,
    agent: str,
    origin: str,
    ingredient: Ingredient,
    left_out: list[LeftOut],
) -> Iterator[Piece]:
    match ingredient:
        case LiteralIngredient(text=text):
            yield _fixed("literal", origin, text)
        case BoardIngredient(max_tokens=tokens):
            yield BoardSlice(origin, tokens or BOARD_TOKENS)
        case HistoryIngredient():
            yield _history(origin, ingredient)
        case _:
            exposed = spec.exposure.get(agent, ())
            wanted = dict.fromkeys(ingredient.names or exposed)
            seen = [name for name in wanted if name in exposed and is_visible(spec, agent, name)]
            hidden = [name for name in wanted if name not in seen]
            if hidden:
                left_out.append(_hidden("variables", origin, hidden))
            if seen:
                labels = tuple(_label(spec, name) for name in seen)
                yield VariableList(origin, tuple(seen), labels, ingredient.max_tokens)


def _label(spec: WorkflowSpec, name: str) -> str:
    """Return the name and description of a variable in one line."""
    known = spec.variables.get(name)
    about = " ".join(known.description.split()) if known else ""
    return f"{name} ({about})" if about else name


def headed(heading: str, text: str) -> str:
    """Return a text under its heading, if it has one."""
    return f"{heading}\n{text}" if heading else text


def is_visible(spec: WorkflowSpec, agent: str, name: str) -> bool:
    """Return whether an agent may be shown a value; secrets are never shown."""
    secret = name in spec.variables and spec.variables[name].secret
    return not secret and may_read(spec.variables, name, agent)


def _hidden(kind: str, origin: str, names: Sequence[str]) -> LeftOut:
    return {"kind": kind, "origin": origin, "names": list(names), "reason": HIDDEN}


def _output(spec: WorkflowSpec, agent: str) -> OutputSchema | None:
    model = next((binding.model for binding in spec.registry if binding.agent == agent), None)
    if not model:
        return None
    models = {
        declared.name: {f: e.type for f, e in declared.fields.items()} for declared in spec.models
    }
    return OutputSchema(model, _described(json_schema(Ref(model), models), spec.models))


def _described(schema: dict[str, Any], models: Iterable[OutputModel]) -> dict[str, Any]:
    """Add the descriptions of models and fields to a schema."""
    for model in models:
        made = schema["$defs"].get(model.name)
        if made is None:
            continue
        if model.description:
            made["description"] = model.description
        for name, field in model.fields.items():
            # Some model providers allow no other key beside a reference.
            if field.description and "$ref" not in made["properties"][name]:
                made["properties"][name]["description"] = field.description
    return schema


def schemas(tools: tuple[ToolSchema, ...], output: OutputSchema | None) -> Iterator[Segment]:
    """Yield tools and output as segments."""
    if tools:
        text = to_json(tools).decode()
        names = [tool.name for tool in tools]
        yield Segment(
            "tools", "tools", text, estimate_tokens(text), role="", facts={"names": names}
        )
    if output:
        text = to_json(output).decode()
        yield Segment("output", output.name, text, estimate_tokens(text), role="")


def _fixed(kind: Kind, origin: str, text: str) -> Segment:
    return Segment(kind, origin, text, estimate_tokens(text))
