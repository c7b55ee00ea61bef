"""Transformation 13.6: the models of replies, of documents that are kept, and of forms."""

from collections.abc import Iterator, Mapping, Sequence

from weft.generator.compile.sources import record_fields
from weft.generator.names import unique
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.type_field import ModelField, OutputBinding, OutputModel
from weft.spec.type_meaning import references
from weft.spec.type_parser import parse_type
from weft.spec.variables import EntitySource, Variable


def form_name(workflow: WorkflowPlan) -> str:
    """Return the model of the form that starts a workflow."""
    return f"{workflow.name}Form"


def models(
    workflow: WorkflowPlan, shapes: Sequence[ToolShape], known: Mapping[str, Variable]
) -> tuple[tuple[OutputModel, ...], tuple[OutputBinding, ...]]:
    """Return the models, and which agent's replies fit which."""
    found = list(_documents(known))
    if workflow.strategy.trigger == "form_submit":
        found.append(_form(workflow))
    bindings: list[OutputBinding] = []
    for shape in shapes:
        if shape.auto_invoke:
            name = unique(f"{shape.agent}Decision", {it.name for it in found})
            found.append(_reply(name, shape))
            bindings.append(OutputBinding(agent=shape.agent, model=name))
    return tuple(found), tuple(bindings)


def _documents(known: Mapping[str, Variable]) -> Iterator[OutputModel]:
    described: dict[str, str] = {}
    for variable in known.values():
        if isinstance(variable.source, EntitySource):
            for model in references(variable.type):
                described.setdefault(model, variable.description)
    for name, told in described.items():
        yield OutputModel(name=name, description=told, fields=record_fields())


def _form(workflow: WorkflowPlan) -> OutputModel:
    return OutputModel(
        name=form_name(workflow),
        description="What is filled in to start.",
        fields={
            "request": ModelField(type=parse_type("str"), description="What is wanted."),
            "details": ModelField(
                type=parse_type("optional[str]"), description="What else must be known."
            ),
        },
    )


def _reply(name: str, shape: ToolShape) -> OutputModel:
    return OutputModel(
        name=name,
        description=f"What {shape.agent} decides.",
        fields={
            it.name: ModelField(type=parse_type(it.type), description=it.description)
            for it in shape.parameters
        },
    )
