"""Forms that begin runs: their schemas, and which fields of what was sent do not fit."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft.errors import NotFoundError, UsageError
from weft.findings import Json
from weft.runtime.workflow import Workflow
from weft.spec.orchestrator import FormStart
from weft.spec.type_meaning import json_schema, validation_error
from weft.spec.types import OptionalOf, Ref
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec


class InvalidForm(UsageError):
    """Values that a form does not accept; `causes` has a sentence for each field."""

    def __init__(self, form: str, causes: tuple[str, ...]) -> None:
        super().__init__(f"the values do not fit the form {form}")
        self.causes = causes


#: What the fields of a start are called while their schema is made; no model can have the name.
_START: Final = ""


def start_schema(spec: WorkflowSpec) -> dict[str, Any] | None:
    """Return the JSON Schema of what a workflow begins with; None for a message or nothing.

    That is a form, or the state of a flow, whose fields have their defaults.
    """
    models = {model.name: model.fields for model in spec.models}
    start = spec.orchestrator.trigger
    if isinstance(start, FormStart):
        fields, defaults = models.get(start.form or "", {}), None
    elif spec.flow is not None:
        sources = {name: variable.source for name, variable in spec.variables.items()}
        defaults = {
            name: source.default
            for name, source in sources.items()
            if isinstance(source, DerivedSource) and not spec.variables[name].secret
        }
        fields = {name: spec.variables[name] for name in defaults}
    else:
        return None
    types = {name: {field: each.type for field, each in of.items()} for name, of in models.items()}
    types[_START] = {name: field.type for name, field in fields.items()}
    made: dict[str, Any] = json_schema(Ref(_START), types)
    schema = made["$defs"].pop(_START)
    for name, field in fields.items():
        if field.description:
            schema["properties"][name]["description"] = field.description
        if defaults is not None and defaults[name] is not None:
            schema["properties"][name]["default"] = defaults[name]
    if defaults is not None:
        schema["required"] = []
    return {**schema, "$defs": made["$defs"]}


def require_form(workflow: Workflow, values: Mapping[str, Json]) -> None:
    """Raise InvalidForm for values that do not fit; NotFoundError if no form begins a workflow."""
    start = workflow.spec.orchestrator.trigger
    if not isinstance(start, FormStart):
        raise NotFoundError(
            f"{workflow.name} is not started by a form", hint="start it with POST /api/runs"
        )
    causes = tuple(_field_errors(workflow, start.form, values)) if start.form else ()
    if causes:
        raise InvalidForm(str(start.form), causes)


def _field_errors(workflow: Workflow, form: str, values: Mapping[str, Json]) -> Iterator[str]:
    models = workflow.compiled.models
    fields = models.get(form, {})
    for name, type_ in fields.items():
        if name not in values:
            if not isinstance(type_, OptionalOf):
                yield f"{name}: this field is missing"
        elif error := validation_error(type_, values[name], models):
            yield f"{name}: {error}"
    for name in values.keys() - fields.keys():
        yield f"{name}: the form has no such field"
