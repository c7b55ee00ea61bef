"""Forms: what a UI tool shows and what it takes for an answer, as its schemas say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import UiTool
from weft.spec.workflow import WorkflowSpec

#: Says what does not fit, or None.
Fault: TypeAlias = Callable[[Json], str | None]


@dataclass(frozen=True, slots=True)
class Form:
    """What may be shown and answered."""

    payload_fault: Fault
    answer_fault: Fault
    #: The schema a form can be made from.
    answer_schema: JsonMap | None


def make_forms(spec: WorkflowSpec) -> Mapping[str, Form]:
    """Return the form of every UI tool of a workflow, by the name of its function."""
    return {
        tool.function: Form(
            _validator(tool.payload_schema), _validator(tool.response_schema), tool.response_schema
        )
        for tool in spec.tools
        if isinstance(tool, UiTool)
    }


def _validator(schema: JsonMap | None) -> Fault:
    if schema is None:
        return _anything
    # Few packages have schemas, and the library takes a while to load.
    from jsonschema.validators import Draft202012Validator  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # A registry of our own: nothing a schema refers to is ever fetched from anywhere.
    validator: Any = Draft202012Validator(schema, registry=Registry())

    def fault(value: Json) -> str | None:
        try:
            error = next(iter(validator.iter_errors(value)), None)
        except Unresolvable as missing:
            return f"its schema refers to {missing.ref}, which is not in it"
        if error is None:
            return None
        place = ".".join(str(it) for it in error.absolute_path)
        return f"{place}: {error.message}" if place else str(error.message)

    return fault


def _anything(_value: Json) -> str | None:
    return None
