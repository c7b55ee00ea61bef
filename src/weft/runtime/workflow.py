"""A workflow: a package that was checked and linked, ready to run, shared by all its runs."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final
from weakref import finalize

from pydantic_core import from_json, to_json

from weft.check.board_parts import comparisons
from weft.context.view import EngineView, View, make_step_view, make_view
from weft.engine.board.publishing import output_schema
from weft.engine.board.rules import role_of
from weft.engine.compile import compile_workflow, not_performed, refusal
from weft.engine.compiled import ActivationRules, CompiledWorkflow
from weft.engine.flow.plan import roles
from weft.engine.turn.hook_points import linked_functions
from weft.engine.variables.access import without_sources
from weft.engine.variables.trigger_index import TriggerKind, TriggerKinds
from weft.errors import LinkError, StoreError
from weft.findings import Finding, Json, Place
from weft.ids import TERMINATE, USER
from weft.ports.model import OutputSchema, ToolSchema
from weft.ports.tools import Call, ToolLoader, Tools
from weft.runtime.board.code import NO_TYPES, ArtifactTypes, BoardCode, artifact_types, link_board
from weft.runtime.flow.code import FlowCode, link_flow
from weft.runtime.tools.forms import Form, Validator, make_forms, validator_for
from weft.spec.agents import CACHE_SEED, WORD_CONDITIONS, Handoff, ModelSettings
from weft.spec.board import BoardAgent, ModelEngine
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import names
from weft.spec.templates import references
from weft.spec.tools import Tool, is_outside_package
from weft.spec.variables import ComputedSource, ExternalSource
from weft.spec.workflow import WorkflowSpec, digest, plain

#: The descriptions of the tools that hand off to the fixed targets.
_HANDOFFS: Final = {
    USER: "Hand the conversation back to the user.",
    TERMINATE: "End the conversation.",
}


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Workflow:
    """What a run needs to know of its package; it never changes."""

    name: str
    digest: str
    spec: WorkflowSpec
    compiled: CompiledWorkflow
    views: Mapping[str, View]
    models: Mapping[str, str | None]
    #: Whether a run asks an agent that names no model, so that the host must have a default.
    needs_default_model: bool
    settings: Mapping[str, ModelSettings | None]
    tools: Tools
    forms: Mapping[str, Form]
    #: The package as it is kept for runs that outlive its files.
    package: bytes
    #: The variables the package declares and that do not exist here.
    suppressed: frozenset[str] = frozenset()
    #: Whether anything in it is secret, so that what tools say has to be looked through.
    has_secrets: bool = False
    #: What in it compares meanings, in words; empty: nothing does.
    compares: str = ""
    #: Of a board: its code, and the types of its artifacts.
    board_code: BoardCode | None = None
    types: ArtifactTypes = NO_TYPES
    #: Of a flow: its code.
    flow_code: FlowCode | None = None
    #: By agent: what does not fit in what its model is to publish.
    output_validators: Mapping[str, Validator] = field(default_factory=dict[str, Validator])
    #: What of its code cannot be found here, where it is only looked at: nothing can be called.
    missing: LinkError | None = None


@dataclass(frozen=True, slots=True)
class Linking:
    """What decides, beside a package, how it runs here."""

    #: The sources whose variables do not exist here.
    suppressed: frozenset[str] = frozenset()
    #: The kinds of triggers that plug-ins add.
    kinds: TriggerKinds = field(default_factory=dict[str, TriggerKind])
    #: What is defined in code in this process, by the names under which specs refer to it.
    objects: Mapping[str, object] = field(default_factory=dict[str, object])
    #: Runs are only looked at: what of their code cannot be found is left out.
    reading: bool = False


LINKING: Final = Linking()


class NoTools:
    """The tools of a workflow that is only looked at, and whose code cannot be found here."""

    def __init__(self, why: LinkError) -> None:
        self._why = why

    def schema(self, tool: str) -> ToolSchema:
        """Return what is known of a tool without its code: its name."""
        return ToolSchema(tool, "", {"type": "object", "properties": {}})

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:  # noqa: ARG002 - nothing is known
        return None

    async def call(self, call: Call) -> object:  # noqa: ARG002 - whichever it is
        raise self._why


def link(
    declared: WorkflowSpec,
    code: Mapping[str, bytes],
    loader: ToolLoader,
    linking: Linking = LINKING,
) -> Workflow:
    """Import the code of a package and put everything in its place.

    Raises LinkError naming everything that is missing, or that this version does not perform. Where
    runs are only looked at, a workflow that lacks code says what is `missing`, and calls nothing.
    """
    name = digest(declared, code)
    spec = without_sources(declared, linking.suppressed)
    _refuse_suppressed(declared, spec)
    _refuse_not_performed(spec, linking.kinds)
    functions = {
        tool.function: (
            tool.file if is_outside_package(tool) else str(PurePosixPath("tools") / tool.file),
            tool.function,
        )
        for tool in spec.tools
    }
    for group in spec.orchestrator.parallel:
        if group.function is not None:
            module, _, function = group.function.partition(":")
            functions[group.function] = (f"{module.replace('.', '/')}.py", function)
    compiled = compile_workflow(spec, linking.kinds)
    given = {
        it.function: linking.objects[it.file] for it in spec.tools if it.file in linking.objects
    }
    try:
        hooks = linked_functions(compiled.hooks)
        title = spec.orchestrator.workflow_name
        tools = loader.load(name, code, functions, hooks, given, title)
    except LinkError as error:
        if not linking.reading:
            raise
        return replace(_linked(declared, spec, code, compiled, NoTools(error)), missing=error)
    try:
        workflow = _linked(declared, spec, code, compiled, tools)
        try:
            workflow = _with_code(workflow, loader, linking)
        except LinkError as error:
            if not linking.reading:
                raise
            workflow = replace(workflow, missing=error)
    except LinkError:
        loader.unload(name)
        raise
    # Every workflow lets go of the code it has loaded when nothing needs it any more.
    finalize(workflow, loader.unload, name)
    return workflow


def _linked(
    declared: WorkflowSpec,
    spec: WorkflowSpec,
    code: Mapping[str, bytes],
    compiled: CompiledWorkflow,
    tools: Tools,
) -> Workflow:
    """Put everything in its place but the code of a board or a flow."""
    name = digest(declared, code)
    board = spec.board
    types = None if board is None else artifact_types(spec, board)
    return Workflow(
        name=spec.orchestrator.workflow_name,
        digest=name,
        spec=spec,
        compiled=compiled,
        views=dict(_views(spec, tools, compiled, types)),
        models=dict(_models(spec)),
        needs_default_model=None in _asked_models(spec),
        settings=settings_by_agent(spec),
        tools=tools,
        forms=make_forms(spec),
        package=pack(declared, code),
        has_secrets=_has_secrets(spec),
        compares=next(comparisons(spec), ""),
        suppressed=frozenset(declared.variables.keys() - spec.variables.keys()),
        types=types or NO_TYPES,
        output_validators=dict(_output_validators(spec, types)),
    )


def _with_code(workflow: Workflow, loader: ToolLoader, linking: Linking) -> Workflow:
    """Add the code of a board or a flow."""
    board, flow, name, local = (
        workflow.spec.board,
        workflow.spec.flow,
        workflow.digest,
        linking.objects,
    )
    return replace(
        workflow,
        board_code=None if board is None else link_board(board, name, loader, local),
        flow_code=None if flow is None else link_flow(flow, name, loader, local),
    )


def _views(
    spec: WorkflowSpec,
    tools: Tools,
    compiled: CompiledWorkflow,
    types: ArtifactTypes | None,
) -> Iterator[tuple[str, View]]:
    """Yield what each agent sees; on a board, each of its engines."""
    board = {it.agent: it for it in spec.board.agents} if spec.board else {}
    for agent in spec.agents:
        name = agent.agent_name
        schemas = tuple(_schemas(spec, tools, compiled.agents[name]))
        declared = board.get(name)
        for role, step, work in roles(spec.flow) if spec.flow else ():
            if work.agent == name:
                yield role, make_step_view(spec, agent, schemas, role, step)
        if declared is None or types is None:
            yield name, make_view(spec, agent, schemas)
            continue
        output = _published_schema(declared, types)
        for index, engine in enumerate(declared.engines or (ModelEngine(),)):
            role = role_of(name, index)
            told = engine.instructions if isinstance(engine, ModelEngine) else ""
            yield role, make_view(spec, agent, schemas, EngineView(role, told, output))


def _published_schema(agent: BoardAgent, types: ArtifactTypes) -> OutputSchema | None:
    if not agent.publishes:
        return None
    name = "_".join(publication.type for publication in agent.publishes)
    return OutputSchema(name, output_schema(agent, types.schemas))


def _output_validators(
    spec: WorkflowSpec, types: ArtifactTypes | None
) -> Iterator[tuple[str, Validator]]:
    for it in spec.board.agents if spec.board and types else ():
        schema = _published_schema(it, types or NO_TYPES)
        if schema is not None:
            yield it.agent, validator_for(schema.schema)


def _asked_models(spec: WorkflowSpec) -> Iterator[str | None]:
    """Yield the model of each agent that a run asks without code: None where it names none."""
    usual = {it.agent_name: it.model or spec.orchestrator.model for it in spec.agents}
    if spec.board is None and spec.flow is None:
        yield from usual.values()
    for agent in spec.board.agents if spec.board else ():
        for engine in agent.engines or (ModelEngine(),):
            if isinstance(engine, ModelEngine):
                yield engine.model or usual.get(agent.agent)
    for _, _, work in roles(spec.flow) if spec.flow else ():
        yield usual.get(work.agent)


def _models(spec: WorkflowSpec) -> Iterator[tuple[str, str | None]]:
    """Yield the model of each agent; engines of a board may have their own."""
    usual = {it.agent_name: it.model or spec.orchestrator.model for it in spec.agents}
    yield from usual.items()
    for agent in spec.board.agents if spec.board else ():
        for index, engine in enumerate(agent.engines):
            own = engine.model if isinstance(engine, ModelEngine) else None
            yield role_of(agent.agent, index), own or usual.get(agent.agent)
    for role, _, work in roles(spec.flow) if spec.flow else ():
        yield role, usual.get(work.agent)


def _has_secrets(spec: WorkflowSpec) -> bool:
    """Tell whether a package refers to secrets: of variables, services or tool servers."""
    sources = (variable.source for variable in spec.variables.values())
    return (
        bool(spec.mcp_servers)
        or any(variable.secret for variable in spec.variables.values())
        or any(isinstance(source, ExternalSource) and source.auth for source in sources)
    )


def _refuse_suppressed(declared: WorkflowSpec, spec: WorkflowSpec) -> None:
    """Raise LinkError if a rule or a computation asks for a variable that does not exist here."""
    gone = declared.variables.keys() - spec.variables.keys()
    asking: list[tuple[str, Iterable[str]]] = [
        (f"a rule of {rule.source_agent}", _asked(rule)) for rule in (spec.handoffs if gone else ())
    ]
    for name, variable in spec.variables.items() if gone else ():
        if isinstance(variable.source, ComputedSource):
            asking.append((f"the computation of {name}", variable.source.inputs))
    for who, asked in asking:
        used = sorted(gone.intersection(asked))
        if used:
            raise LinkError(
                f"{who} asks for {', '.join(used)}, which does not exist "
                "here (production, or CONTEXT_INCLUDE_SCHEMA is off)"
            )


def _asked(rule: Handoff) -> Iterable[str]:
    """Return the variables of a condition; in words they stand in braces."""
    if rule.condition is None:
        return ()
    if rule.condition_type in WORD_CONDITIONS:
        return (reference.name for reference in references(rule.condition))
    return names(parse_condition(rule.condition))


def _schemas(spec: WorkflowSpec, tools: Tools, rules: ActivationRules) -> Iterator[ToolSchema]:
    """Yield the tools of an agent as its model sees them, and those by which it hands off."""
    yield from (_described(tools, it) for it in rules.tools.values())
    described = {agent.agent_name: agent.description for agent in spec.agents}
    for tool, target in rules.targets.items():
        told = _HANDOFFS.get(target) or f"Hand the conversation over to {target}."
        what = f"{told} {described.get(target, '')}".strip()
        yield ToolSchema(tool, what, {"type": "object", "properties": {}})


def _refuse_not_performed(spec: WorkflowSpec, kinds: TriggerKinds) -> None:
    """Raise LinkError if a workflow declares what would have no effect.

    The checker says so before, with the place in the file. A package that was never checked, or
    that another version kept for its runs, is refused here.
    """
    name = spec.orchestrator.workflow_name
    left = not_performed(spec, kinds)
    findings = tuple(
        Finding(
            "LINK003",
            "error",
            refusal(name, it),
            Place(".".join(map(str, it.path))),
            hint=(it.hint,),
        )
        for it in left
    )
    if findings:
        raise LinkError("; ".join(finding.message for finding in findings), findings)


def _described(tools: Tools, tool: Tool) -> ToolSchema:
    """Return how a model sees a tool: what the package says of it wins over its docstring."""
    schema = tools.schema(tool.function)
    return replace(schema, description=tool.description) if tool.description else schema


def pack(spec: WorkflowSpec, code: Mapping[str, bytes]) -> bytes:
    """Return a package as one piece of JSON."""
    files = {path: raw.decode() for path, raw in sorted(code.items())}
    return to_json({"spec": plain(spec), "code": files})


def unpack(content: bytes) -> tuple[WorkflowSpec, dict[str, bytes]]:
    """Return the package that was packed. Raises StoreError if this version cannot read it."""
    try:
        data = from_json(content)
        for agent in data["spec"].get("agents", ()):
            # Kept by versions in which an agent could say that it makes text.
            agent.pop("generation_mode", None)
        spec = WorkflowSpec.model_validate_json(to_json(data["spec"]), strict=True)
        return spec, {path: text.encode() for path, text in data["code"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the package of a run cannot be read ({error}); "
            "it was damaged, or written by another version of Weft"
        ) from error


#: Every provider takes seeds of 31 bits; 0 means "none" to some.
_SEEDS: Final = 2**31 - 1


def settings_by_agent(spec: WorkflowSpec) -> dict[str, ModelSettings | None]:
    """Return how the model of each agent is asked; null where nothing is declared."""
    usual = spec.orchestrator.model_settings
    own = {agent.agent_name: _merged(usual, agent.model_settings) for agent in spec.agents}
    for it in spec.board.agents if spec.board else ():
        own |= {role_of(it.agent, engine): own.get(it.agent) for engine in range(len(it.engines))}
    own |= {role: own.get(it.agent) for role, _, it in (roles(spec.flow) if spec.flow else ())}
    return own


def _merged(usual: ModelSettings | None, own: ModelSettings | None) -> ModelSettings | None:
    said = {**declared(usual), **declared(own)}
    return ModelSettings.model_validate(said) if said else None


def declared(settings: ModelSettings | None) -> dict[str, Any]:
    """Return what settings say, by name; what they leave to the provider is not there."""
    return {name: value for name, value in settings or () if value is not None}


def in_run(
    settings: ModelSettings | None, app: str, workflow: str, run: str
) -> ModelSettings | None:
    """Return settings as they are sent in a run: a seed is a number there."""
    if settings is None or settings.seed != CACHE_SEED:
        return settings
    return settings.model_copy(update={"seed": cache_seed(app, workflow, run)})


def cache_seed(app: str, workflow: str, run: str) -> int:
    """Return a number from 1 on that follows from app, workflow and run, and from nothing else."""
    named = json.dumps((app, workflow, run)).encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:8]) % _SEEDS + 1
