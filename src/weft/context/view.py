"""An agent's view: everything about what it sees that does not change from call to call."""

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

#: How many tokens of the conversation are sent, unless an agent says otherwise.
HISTORY_TOKENS: Final = 16_000

#: How many tokens of artifacts are sent, unless an agent says otherwise.
BOARD_TOKENS: Final = 16_000

#: Stands in a prompt where the value of a variable would be that the agent may not see.
WITHHELD: Final = "(hidden)"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the instructions into which values are put."""

    origin: str
    heading: str
    parts: tuple[str | Reference, ...]


@dataclass(frozen=True, slots=True)
class VariableList:
    """Variables that are listed with their values."""

    origin: str
    names: tuple[str, ...]
    #: What stands before each value: the name, and what the author says of it.
    labels: tuple[str, ...]
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BoardSlice:
    """What the provider of an agent of a board gave for the engine that works."""

    origin: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class StepMessages:
    """What an agent is told at a step of a flow.

    What its code wrote, or the context that was put together and the prompt that is declared; in
    between, what it was told and has said in earlier steps.
    """

    prompt: tuple[str | Reference, ...]
    #: Whether its code wrote the messages.
    coded: bool = False
    history: HistoryLimits | None = None


@dataclass(frozen=True, slots=True)
class EngineView:
    """What the model of an engine of a board sees beside what its agent declares."""

    role: str
    instructions: str = ""
    output: OutputSchema | None = None


#: What is put together at every call, in order. A segment is the same every time.
Piece: TypeAlias = Segment | Section | VariableList | BoardSlice | HistoryLimits | StepMessages


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees, as far as the workflow decides it."""

    agent: str
    pieces: tuple[Piece, ...]
    #: What is left out of every call.
    left_out: tuple[LeftOut, ...]
    tools: tuple[ToolSchema, ...]
    output: OutputSchema | None
    #: Tools and output as segments: they are sent with every call, beside the messages.
    schemas: tuple[Segment, ...] = ()
    #: The same as it counts in the hash of what is sent.
    extras: bytes = b""
    #: The servers whose tools it may use as well, as each run has recorded them.
    servers: tuple[str, ...] = ()


def make_view(
    spec: WorkflowSpec,
    agent: Agent,
    tools: tuple[ToolSchema, ...],
    engine: EngineView | None = None,
) -> View:
    """Work out an agent's view, once for all runs of a workflow."""
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
    """Work out what an agent sees at a step of a flow, once for all runs of a workflow."""
    name, output = agent.agent_name, _output(spec, agent.agent_name)
    undoes = role == role_of(name, step.name, undoes=True)
    work = step.compensate if undoes else step.work
    sources = step.context.sources if step.context is not None and not undoes else ()
    limits = [it for it in (*sources, *agent.context) if isinstance(it, HistoryIngredient)]
    coded = isinstance(work, AgentWork) and work.step is not None
    left_out: list[LeftOut] = []
    pieces: list[Piece] = []
    if not coded:
        pieces += [_section(spec, name, section, left_out) for section in agent.prompt_sections]
        for index, ingredient in enumerate(agent.context or (VariablesIngredient(),)):
            if not isinstance(ingredient, HistoryIngredient):
                origin = f"context[{index}]" if agent.context else "standard"
                pieces += _ingredient(spec, name, origin, ingredient, left_out)
    told = work.prompt if isinstance(work, AgentWork) else ""
    history = next((_history("context", limit) for limit in limits), None)
    prompt = parse_template(told or f"Do the step {step.name}.")
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


def _history(origin: str, it: HistoryIngredient) -> HistoryLimits:
    return HistoryLimits("history", origin, it.max_tokens or HISTORY_TOKENS, it.max_messages)


def extras(tools: tuple[ToolSchema, ...], output: OutputSchema | None) -> bytes:
    """Return what is sent beside the messages, as it counts in the hash of all that is sent."""
    return to_json((tools, output))


def default_ingredients(*, board: bool = False) -> tuple[Ingredient, ...]:
    """Return what an agent sees after its prompt if it does not say."""
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
            seen = [it for it in wanted if it in exposed and is_visible(spec, agent, it)]
            hidden = [it for it in wanted if it not in seen]
            if hidden:
                left_out.append(_hidden("variables", origin, hidden))
            if seen:
                labels = tuple(_label(spec, name) for name in seen)
                yield VariableList(origin, tuple(seen), labels, ingredient.max_tokens)


def _label(spec: WorkflowSpec, name: str) -> str:
    """Name a variable and say what it is, in one line."""
    known = spec.variables.get(name)
    about = " ".join(known.description.split()) if known else ""
    return f"{name} ({about})" if about else name


def headed(heading: str, text: str) -> str:
    """Return a text under its heading, if it has one."""
    return f"{heading}\n{text}" if heading else text


def is_visible(spec: WorkflowSpec, agent: str, name: str) -> bool:
    """Tell whether an agent may be shown a value; secrets are never shown."""
    secret = name in spec.variables and spec.variables[name].secret
    return not secret and may_read(spec.variables, name, agent)


def _hidden(kind: str, origin: str, names: Sequence[str]) -> LeftOut:
    return {"kind": kind, "origin": origin, "names": list(names), "reason": HIDDEN}


def _output(spec: WorkflowSpec, agent: str) -> OutputSchema | None:
    model = next((it.model for it in spec.registry if it.agent == agent), None)
    if not model:
        return None
    models = {it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models}
    return OutputSchema(model, _described(json_schema(Ref(model), models), spec.models))


def _described(schema: dict[str, Any], models: Iterable[OutputModel]) -> dict[str, Any]:
    """Put into a schema what the package says of its models and their fields."""
    for model in models:
        made = schema["$defs"].get(model.name)
        if made is None:
            continue
        if model.description:
            made["description"] = model.description
        for name, field in model.fields.items():
            # Some providers take nothing beside a reference.
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
