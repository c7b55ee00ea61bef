"""A workflow: a package that was checked and linked, ready to run, shared by all its runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from weakref import finalize

from pydantic_core import from_json, to_json

from weft.context.view import View, make_view
from weft.engine.compiled import CompiledWorkflow, compile_workflow
from weft.engine.not_performed import HINT, not_performed, refusal
from weft.errors import LinkError, StoreError
from weft.findings import Finding, Place
from weft.ports.model import ToolSchema
from weft.ports.tools import ToolLoader, Tools
from weft.runtime.forms import Form, make_forms
from weft.spec.canonical import digest, plain
from weft.spec.tools import Tool
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Workflow:
    """What a run needs to know of its package; it never changes."""

    digest: str
    spec: WorkflowSpec
    compiled: CompiledWorkflow
    views: Mapping[str, View]
    models: Mapping[str, str | None]
    tools: Tools
    forms: Mapping[str, Form]
    #: The package as it is kept for runs that outlive its files.
    package: bytes

    @property
    def name(self) -> str:
        return self.spec.orchestrator.workflow_name


def link(spec: WorkflowSpec, code: Mapping[str, bytes], loader: ToolLoader) -> Workflow:
    """Import the code of a package and put everything in its place.

    Raises LinkError naming everything that is missing, or that this version does not perform.
    """
    _refuse_not_performed(spec)
    name = digest(spec, code)
    functions = {
        tool.function: (str(PurePosixPath("tools") / tool.file), tool.function)
        for tool in spec.tools
    }
    for group in spec.orchestrator.parallel:
        if group.function is not None:
            module, _, function = group.function.partition(":")
            functions[group.function] = (f"{module.replace('.', '/')}.py", function)
    compiled = compile_workflow(spec)
    tools = loader.load(name, code, functions)
    workflow = Workflow(
        digest=name,
        spec=spec,
        compiled=compiled,
        views={
            agent.agent_name: make_view(
                spec,
                agent,
                tuple(
                    _described(tools, it) for it in compiled.agents[agent.agent_name].tools.values()
                ),
            )
            for agent in spec.agents
        },
        models={it.agent_name: it.model or spec.orchestrator.model for it in spec.agents},
        tools=tools,
        forms=make_forms(spec),
        package=pack(spec, code),
    )
    # Every workflow lets go of the code it has loaded when nothing needs it any more.
    finalize(workflow, loader.unload, name)
    return workflow


def _refuse_not_performed(spec: WorkflowSpec) -> None:
    """Raise LinkError if a workflow declares what would have no effect.

    The checker says so before, with the place in the file. A package that was never checked, or
    that another version kept for its runs, is refused here.
    """
    name = spec.orchestrator.workflow_name
    left = not_performed(spec)
    findings = tuple(
        Finding(
            "LINK003",
            "error",
            refusal(name, what),
            Place(".".join(map(str, path))),
            hint=(HINT,),
        )
        for path, what in left
    )
    if findings:
        told = ", ".join(what for _, what in left)
        raise LinkError(f"{name} declares what this version does not perform: {told}", findings)


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
        spec = WorkflowSpec.model_validate_json(to_json(data["spec"]), strict=True)
        return spec, {path: text.encode() for path, text in data["code"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"the package of a run cannot be read ({error}); "
            "it was damaged, or written by another version of Weft"
        ) from error
