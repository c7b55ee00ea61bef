"""Plans written by hand, and code that does nothing, to check what is compiled from them."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.check.run import check
from weft.check.subject import Subject
from weft.findings import Finding
from weft.generator.compile.compiler import compile_spec
from weft.generator.shapes import ToolShape
from weft.generator.split import workflow_plans
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import ActionPlan
from weft.spec.workflow import WorkflowSpec

_TYPES = {"str": "str", "int": "int", "bool": "bool", "dict": "dict", "any": "object"}


def agent(name: str, **given: Any) -> dict[str, Any]:
    return {
        "agent_name": name,
        "agent_type": "worker",
        "objective": f"Does the part of {name}.",
        "human_interaction": "none",
        "max_consecutive_auto_reply": 5,
        **given,
    }


def tool(name: str, **given: Any) -> dict[str, Any]:
    return {"name": name, "purpose": f"Does {name}.", "interaction_mode": "none", **given}


def variable(name: str, kind: str, purpose: str = "Something.", hint: str | None = None):
    return {"name": name, "type": kind, "purpose": purpose, "trigger_hint": hint}


def plan(*modules: tuple[int, Sequence[Mapping[str, Any]]], **given: Any) -> ActionPlan:
    """Return a plan with modules of a pattern and agents; `given` are fields of its parts."""
    strategy = {key: given.pop(key) for key in ("trigger", "initiated_by") if key in given}
    workflows = given.pop("workflows", None)
    owners = given.pop("owners", [None] * len(modules))
    first = PATTERN_BY_ID[modules[0][0]]
    legend = {"pattern_id": first.id, "pattern_name": first.title}
    chosen = workflows or [{"name": "Desk", "role": "primary", "description": "A desk.", **legend}]
    return ActionPlan.model_validate(
        {
            "PatternSelection": {
                "is_multi_workflow": len(chosen) > 1,
                "pack_name": "Desk pack",
                "workflows": chosen,
            },
            "WorkflowStrategy": {
                "workflow_name": "Help desk",
                "workflow_description": "When somebody asks, the desk answers.",
                "human_in_loop": given.pop("human_in_loop", True),
                "pattern": [first.name],
                "trigger": "chat",
                "initiated_by": "user",
                **strategy,
                "modules": [
                    {
                        "module_name": f"Module {number}: Part {number}",
                        "module_index": number - 1,
                        "module_description": f"The part number {number}.",
                        "pattern_id": pattern,
                        "pattern_name": PATTERN_BY_ID[pattern].title,
                        "agents_needed": [agent["agent_name"] for agent in agents],
                        "workflow": owner,
                    }
                    for number, ((pattern, agents), owner) in enumerate(
                        zip(modules, owners, strict=True), 1
                    )
                ],
            },
            "TechnicalBlueprint": given,
            "ModuleAgents": [
                {"module_index": number, "agents": list(agents)}
                for number, (_, agents) in enumerate(modules)
            ],
            "MermaidSequenceDiagram": {
                "workflow_name": "Help desk",
                "mermaid_diagram": "sequenceDiagram",
            },
        }
    )


def stub(shape: ToolShape) -> str:
    """Return code with the signature of a tool that names its variables and does nothing."""
    taken = ", ".join(
        f"{parameter.name}: {_hint(parameter.type)} = None" for parameter in shape.parameters
    )
    shown = ", ".join(f'"{parameter.name}": {parameter.name}' for parameter in shape.parameters)
    body = f"return {list(shape.variables)!r}"
    if shape.kind == "ui":
        body = f'return await use_ui_tool("{shape.name}", {{{shown}}})'
    return (
        f'"""A tool."""\n\nfrom weft import use_ui_tool\n\n\nasync def {shape.name}({taken}):\n'
        f'    """Work."""\n    {body}\n'
    )


def _hint(type_: str) -> str:
    inner = type_.removeprefix("optional[").removesuffix("]")
    return _TYPES.get(inner, "str" if inner.startswith("literal") else "list")


def code_for(spec: WorkflowSpec, shapes: Sequence[ToolShape]) -> dict[str, str]:
    code = {f"tools/{shape.file}": stub(shape) for shape in shapes}
    for tool in spec.lifecycle_tools:
        code[f"tools/{tool.file}"] = f"def {tool.function}(context_variables):\n    pass\n"
    for hook in spec.hooks:
        path = f"hooks/{hook.file}"
        code[path] = f"{code.get(path, '')}def {hook.function}(**given):\n    pass\n"
    return code


def findings(spec: WorkflowSpec, shapes: Sequence[ToolShape]) -> tuple[Finding, ...]:
    name = spec.orchestrator.workflow_name
    return check(Subject(spec, folder=name, code=code_for(spec, shapes)))


def told(found: Sequence[Finding]) -> list[str]:
    return [
        f"{finding.code} {finding.severity} {finding.message} {finding.place.file}"
        for finding in found
    ]


def compiled(made: ActionPlan) -> tuple[WorkflowSpec, tuple[ToolShape, ...]]:
    return compile_spec(workflow_plans(made)[0])
