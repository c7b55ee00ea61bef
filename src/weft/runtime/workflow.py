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
from weft.runtime.board.code import (
    NO_BOARD,
    NO_TYPES,
    ArtifactTypes,
    BoardCode,
    artifact_types,
    link_board,
)
from weft.runtime.flow.code import FlowCode, link_flow
from weft.runtime.linked_objects import find_objects
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
    """The immutable data of a package that its runs need."""

    name: str
    digest: str
    spec: WorkflowSpec
    compiled: CompiledWorkflow
    views: Mapping[str, View]
    models: Mapping[str, str | None]
    #: The models that a run needs; empty: the default of the host.
    needed_models: frozenset[str]
    settings: Mapping[str, ModelSettings | None]
    tools: Tools
    forms: Mapping[str, Form]
    #: The package as stored for runs that outlive its files.
    package: bytes
    #: The declared variables that do not exist here.
    suppressed: frozenset[str] = frozenset()
    #: Whether it has secrets, which must be masked in the results of tools.
    has_secrets: bool = False
    #: The part that compares meanings, in words; empty if there is none.
    compares: str = ""
    #: The code and artifact types of a board.
    board_code: BoardCode = NO_BOARD
    types: ArtifactTypes = NO_TYPES
    #: The code of a flow.
    flow_code: FlowCode | None = None
    #: The validators of the artifacts that models publish, by agent.
    output_validators: Mapping[str, Validator] = field(default_factory=dict[str, Validator])
    #: The missing code of a workflow that is only read; nothing can be called then.
    missing: LinkError | None = None


@dataclass(frozen=True, slots=True)
class Linking:
    """The settings of the host that decide how a package runs."""

    #: The sources whose variables do not exist here.
    suppressed: frozenset[str] = frozenset()
    #: The kinds of triggers that plug-ins add.
    kinds: TriggerKinds = field(default_factory=dict[str, TriggerKind])
    #: Objects of this process, by the names that specs use.
    objects: Mapping[str, object] = field(default_factory=dict[str, object])
    #: Runs are only read: missing code is left out.
    reading: bool = False
    #: How long the import of a package may take.
    seconds: float = 60.0


LINKING: Final = Linking()


class NoTools:
    """The tools of a workflow that is only read and whose code is missing."""

    def __init__(self, why: LinkError, schemas: Mapping[str, ToolSchema] | None = None) -> None:
        self._why = why
        self._schemas = schemas or {}

    def schema(self, tool: str) -> ToolSchema:
        """Return the schema of a tool; only its name if nothing is known of it."""
        unknown = ToolSchema(tool, "", {"type": "object", "properties": {}})
        return self._schemas.get(tool, unknown)

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
    """Import the code of a package and link it.

    Raises LinkError that names missing code and features this version does not support. If
    runs are only read, the workflow names the code that is `missing`, and calls nothing.
    """
    spec = without_sources(declared, linking.suppressed)
    name = _name(declared, spec, code)
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
        tool.function: linking.objects[tool.file]
        for tool in spec.tools
        if tool.file in linking.objects
    }
    try:
        hooks = linked_functions(compiled.hooks)
        title = spec.orchestrator.workflow_name
        tools = loader.load(name, code, functions, hooks, given, title)
    except LinkError as error:
        if not linking.reading:
            raise
        return replace(_link_tools(declared, spec, code, compiled, NoTools(error)), missing=error)
    try:
        workflow = _link_tools(declared, spec, code, compiled, tools)
        try:
            workflow = _with_code(workflow, loader, linking)
        except LinkError as error:
            if not linking.reading:
                raise
            workflow = replace(workflow, missing=error)
    except LinkError:
        loader.unload(name)
        raise
    # The code is unloaded when the workflow is garbage collected.
    finalize(workflow, loader.unload, name)
    return workflow


#: The separator between the digest of a package and the kinds of hidden sources.
_HIDDEN: Final = "~"


def _name(declared: WorkflowSpec, spec: WorkflowSpec, code: Mapping[str, bytes]) -> str:
    """Return the digest of a package, and the kinds of sources whose variables are hidden.

    A run records it, so that the same variables are hidden in every process that opens the run.
    """
    gone = declared.variables.keys() - spec.variables.keys()
    kinds = sorted({declared.variables[name].source.type for name in gone})
    return _HIDDEN.join((digest(declared, code), *kinds))


def package_digest(name: str) -> str:
    """Return the digest of the package of a run without the kinds that are hidden."""
    return name.partition(_HIDDEN)[0]


def hidden_sources(name: str) -> frozenset[str]:
    """Return the kinds of sources whose variables a run has without."""
    return frozenset(name.split(_HIDDEN)[1:])


def _link_tools(
    declared: WorkflowSpec,
    spec: WorkflowSpec,
    code: Mapping[str, bytes],
    compiled: CompiledWorkflow,
    tools: Tools,
) -> Workflow:
    """Link everything except the code of a board or flow."""
    name = _name(declared, spec, code)
    board = spec.board
    types = None if board is None else artifact_types(spec, board)
    models = dict(_models(spec))
    return Workflow(
        name=spec.orchestrator.workflow_name,
        digest=name,
        spec=spec,
        compiled=compiled,
        views=dict(_views(spec, tools, compiled, types)),
        models=models,
        needed_models=frozenset({*filter(None, models.values())}).union(
            name or "" for name in asked_models(spec)
        ),
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
    """Link the code of a board or flow."""
    board, flow, local = workflow.spec.board, workflow.spec.flow, linking.objects
    if board is None and flow is None:
        return workflow
    objects = find_objects(workflow.spec, workflow.digest, loader, local)
    return replace(
        workflow,
        board_code=NO_BOARD if board is None else link_board(board, objects, local),
        flow_code=None if flow is None else link_flow(flow, objects, local),
    )


def _views(
    spec: WorkflowSpec,
    tools: Tools,
    compiled: CompiledWorkflow,
    types: ArtifactTypes | None,
) -> Iterator[tuple[str, View]]:
    """Yield the view of each agent; on a board, of each engine."""
    board = {agent.agent: agent for agent in spec.board.agents} if spec.board else {}
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
            instructions = engine.instructions if isinstance(engine, ModelEngine) else ""
            yield role, make_view(spec, agent, schemas, EngineView(role, instructions, output))


def _published_schema(agent: BoardAgent, types: ArtifactTypes) -> OutputSchema | None:
    if not agent.publishes:
        return None
    name = "_".join(publication.type for publication in agent.publishes)
    return OutputSchema(name, output_schema(agent, types.schemas))


def _output_validators(
    spec: WorkflowSpec, types: ArtifactTypes | None
) -> Iterator[tuple[str, Validator]]:
    for agent in spec.board.agents if spec.board and types else ():
        schema = _published_schema(agent, types or NO_TYPES)
        if schema is not None:
            yield agent.agent, validator_for(schema.schema)


def asked_models(spec: WorkflowSpec) -> Iterator[str | None]:
    """Yield the model of each agent that a run calls without code; None if it names none."""
    usual = {agent.agent_name: agent.model or spec.orchestrator.model for agent in spec.agents}
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
    usual = {agent.agent_name: agent.model or spec.orchestrator.model for agent in spec.agents}
    yield from usual.items()
    for agent in spec.board.agents if spec.board else ():
        for index, engine in enumerate(agent.engines):
            own = engine.model if isinstance(engine, ModelEngine) else None
            yield role_of(agent.agent, index), own or usual.get(agent.agent)
    for role, _, work in roles(spec.flow) if spec.flow else ():
        yield role, usual.get(work.agent)


def _has_secrets(spec: WorkflowSpec) -> bool:
    """Return whether a package refers to secrets: of variables, services or tool servers."""
    sources = (variable.source for variable in spec.variables.values())
    return (
        bool(spec.mcp_servers)
        or any(variable.secret for variable in spec.variables.values())
        or any(isinstance(source, ExternalSource) and source.auth for source in sources)
    )


def _refuse_suppressed(declared: WorkflowSpec, spec: WorkflowSpec) -> None:
    """Raise LinkError if a rule or a computation uses a variable that does not exist here."""
    gone = declared.variables.keys() - spec.variables.keys()
    asking: list[tuple[str, Iterable[str]]] = [
        (f"a rule of {rule.source_agent}", _condition_variables(rule))
        for rule in (spec.handoffs if gone else ())
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


def _condition_variables(rule: Handoff) -> Iterable[str]:
    """Return the variables of a condition; in words they are in braces."""
    if rule.condition is None:
        return ()
    if rule.condition_type in WORD_CONDITIONS:
        return (reference.name for reference in references(rule.condition))
    return names(parse_condition(rule.condition))


def _schemas(spec: WorkflowSpec, tools: Tools, rules: ActivationRules) -> Iterator[ToolSchema]:
    """Yield the tools and handoff tools of an agent as its model sees them."""
    yield from (_describe_tool(tools, tool) for tool in rules.tools.values())
    described = {agent.agent_name: agent.description for agent in spec.agents}
    for tool, target in rules.targets.items():
        action = _HANDOFFS.get(target) or f"Hand the conversation over to {target}."
        what = f"{action} {described.get(target, '')}".strip()
        yield ToolSchema(tool, what, {"type": "object", "properties": {}})


def _refuse_not_performed(spec: WorkflowSpec, kinds: TriggerKinds) -> None:
    """Raise LinkError if a workflow declares an unsupported feature.

    The checker reports it with its place in the file. A package that was not checked, or
    that another version has stored, is refused here.
    """
    name = spec.orchestrator.workflow_name
    left = not_performed(spec, kinds)
    findings = tuple(
        Finding(
            "LINK003",
            "error",
            refusal(name, feature),
            Place(".".join(map(str, feature.path))),
            hint=(feature.hint,),
        )
        for feature in left
    )
    if findings:
        raise LinkError("; ".join(finding.message for finding in findings), findings)


def _describe_tool(tools: Tools, tool: Tool) -> ToolSchema:
    """Return a tool as its model sees it: the package's description wins over the docstring."""
    schema = tools.schema(tool.function)
    return replace(schema, description=tool.description) if tool.description else schema


def pack(spec: WorkflowSpec, code: Mapping[str, bytes]) -> bytes:
    """Return a package as JSON text."""
    files = {path: raw.decode() for path, raw in sorted(code.items())}
    return to_json({"spec": plain(spec), "code": files})


def unpack(content: bytes) -> tuple[WorkflowSpec, dict[str, bytes]]:
    """Return a packed package; raises StoreError if this version cannot read it."""
    try:
        data = from_json(content)
        for agent in data["spec"].get("agents", ()):
            # Earlier versions had this field in agents.
            agent.pop("generation_mode", None)
        spec = WorkflowSpec.model_validate_json(to_json(data["spec"]), strict=True)
        return spec, {path: text.encode() for path, text in data["code"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the package of a run cannot be read ({error}); "
            "it was damaged, or written by another version of Weft"
        ) from error


#: Every provider accepts seeds of 31 bits; 0 means "none" to some.
_SEEDS: Final = 2**31 - 1


def settings_by_agent(spec: WorkflowSpec) -> dict[str, ModelSettings | None]:
    """Return the model settings of each agent; None where nothing is declared."""
    usual = spec.orchestrator.model_settings
    own = {agent.agent_name: _merge_settings(usual, agent.model_settings) for agent in spec.agents}
    for worker in spec.board.agents if spec.board else ():
        own |= {
            role_of(worker.agent, engine): own.get(worker.agent)
            for engine in range(len(worker.engines))
        }
    own |= {role: own.get(part.agent) for role, _, part in (roles(spec.flow) if spec.flow else ())}
    return own


def _merge_settings(usual: ModelSettings | None, own: ModelSettings | None) -> ModelSettings | None:
    said = {**declared(usual), **declared(own)}
    return ModelSettings.model_validate(said) if said else None


def declared(settings: ModelSettings | None) -> dict[str, Any]:
    """Return the declared settings by name."""
    return {name: value for name, value in settings or () if value is not None}


def in_run(
    settings: ModelSettings | None, app: str, workflow: str, run: str
) -> ModelSettings | None:
    """Return settings as sent in a run, where the seed is a number."""
    if settings is None or settings.seed != CACHE_SEED:
        return settings
    return settings.model_copy(update={"seed": cache_seed(app, workflow, run)})


def cache_seed(app: str, workflow: str, run: str) -> int:
    """Return a number from 1 on that depends only on app, workflow and run."""
    named = json.dumps((app, workflow, run)).encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:8]) % _SEEDS + 1
