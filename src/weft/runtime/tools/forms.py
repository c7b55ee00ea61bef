"""Forms of UI tools: the schemas of what they show and of the answer."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast

from weft.engine.flow.plan import APPROVAL as STEP_APPROVAL
from weft.engine.flow.plan import nodes_of
from weft.engine.variables.triggers import dig
from weft.findings import Json
from weft.ids import CALL_APPROVAL, nearest
from weft.runtime.variables.json_values import MASK
from weft.spec.flow import Approval
from weft.spec.part import JsonMap
from weft.spec.tools import Surface, UiTool
from weft.spec.variables import ExternalSource
from weft.spec.workflow import WorkflowSpec

#: Returns a validation error, or None.
Fault: TypeAlias = Callable[[Json], str | None]

#: The place of a validation error in a value, and its message.
SchemaError: TypeAlias = tuple[tuple[str | int, ...], str]
Validator: TypeAlias = Callable[[Json], Iterator[SchemaError]]

#: The form with which a person approves a tool call, and the schema of its answer.
APPROVAL: Final = CALL_APPROVAL
#: Before the name of a variable whose service is called.
SERVICE: Final = "external:"
_APPROVED: Final[JsonMap] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}


#: The greatest depth to which recursive references are followed.
_DEEPEST: Final = 20

#: The message for an invalid secret.
_UNQUOTED: Final = "the typed value is invalid"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a UI tool, an approval or a tool server."""

    payload_error: Fault
    validate_answer: Validator
    #: The schema of the answer, from which a client makes a form.
    answer_schema: JsonMap | None
    #: The component that renders it, and where; None without one.
    component: tuple[str, Surface] | None = None
    #: The declared addressee; empty for the user of the run.
    addressee: str = ""
    #: The dotted paths of secret fields.
    secret_fields: tuple[tuple[str, ...], ...] = ()
    #: The options of an approval.
    options: tuple[str, ...] = ()

    def answer_error(self, answer: Json) -> str | None:
        """Return the first error of an answer, without the values of secret fields."""
        fault = first_error(self.validate_answer(answer))
        return self._decision_error(answer) or fault if fault and self.options else fault

    @property
    def answer_hint(self) -> str:
        """An example of a valid answer to an approval; empty for other forms."""
        if self.options:
            return f'answer {{"decision": "{self.options[0]}"}}, and a comment if you like'
        approves = self.answer_schema is _APPROVED
        return 'answer {"approved": true} or {"approved": false}' if approves else ""

    def _decision_error(self, answer: Json) -> str | None:
        """Return why an answer is not a decision."""
        known = f"the options: {', '.join(self.options)}"
        if isinstance(answer, str):
            fact = f'"{answer}" alone is not an answer' if answer in self.options else ""
            return fact or _none_of(answer, self.options, known)
        if not isinstance(answer, dict):
            return f"it is not an object with a decision, one of {known}"
        given = cast("dict[str, Json]", answer)
        strange = [name for name in given if name not in ("decision", "comment")]
        if strange:
            near = nearest(strange[0], ("decision", "comment"))
            meant = f"; did you mean {near}?" if near else ""
            fact = f'"{strange[0]}" is neither decision nor comment{meant}'
            return f"{fact}; a decision is one of {known}"
        if "decision" not in given:
            return f"the decision is missing, one of {known}"
        decision = given["decision"]
        return None if decision in self.options else _none_of(decision, self.options, known)

    def mask_secrets(self, answer: Json) -> Json:
        """Return an answer with the values of secret fields masked."""
        for path in self.secret_fields:
            answer = _mask_at(answer, path)
        return answer

    def secrets(self, answer: Json) -> list[Json]:
        """Return the values of secret fields."""
        found = (dig(answer, path) for path in self.secret_fields)
        return [message for message in found if message is not None]

    def field_error(self, name: str, value: Json) -> str | None:
        """Return the first error of one field of an answer."""
        found = self.validate_answer({name: value})
        return first_error((place[1:], said) for place, said in found if place[:1] == (name,))


def _none_of(decision: Json, options: Sequence[str], known: str) -> str:
    given = json.dumps(decision, ensure_ascii=False)
    near = nearest(decision, options) if isinstance(decision, str) else None
    return f"{given} is not one of {known}" + (f"; did you mean {near}?" if near else "")


def make_forms(spec: WorkflowSpec) -> Mapping[str, Form]:
    """Return the form of every UI tool of a workflow, by the name of its function."""
    forms = {
        tool.function: Form(
            partial(_payload_error, validator_for(tool.payload_schema)),
            validator_for(
                tool.response_schema,
                formats=True,
                secret=tuple(secret_fields(tool.response_schema or {})),
            ),
            tool.response_schema,
            component=(tool.ui.component, tool.ui.mode),
            addressee=tool.for_ or "",
            secret_fields=tuple(secret_fields(tool.response_schema or {})),
        )
        for tool in spec.tools
        if isinstance(tool, UiTool)
    }
    asked = {server.name: server.for_ for server in spec.mcp_servers}
    for name, variable in spec.variables.items():
        if isinstance(variable.source, ExternalSource):
            asked[f"{SERVICE}{name}"] = variable.source.for_
    for name, addressee in asked.items():
        forms[approval_form(name)] = Form(
            partial(_payload_error, _none),
            validator_for(_APPROVED),
            _APPROVED,
            component=("ToolApproval", "inline"),
            addressee=addressee or "",
        )
    for node in nodes_of(spec.flow) if spec.flow else ():
        if isinstance(node, Approval):
            forms[f"{STEP_APPROVAL}{node.name}"] = _step_approval(node)
    return forms


def _step_approval(node: Approval) -> Form:
    """Return the approval form of a flow step."""
    schema: JsonMap = {
        "type": "object",
        "properties": {
            "decision": {"enum": [option.name for option in node.options]},
            "comment": {"type": "string"},
        },
        "required": ["decision"],
        "additionalProperties": False,
    }
    shown: tuple[str, Surface] = ("Approval", "inline")
    return Form(
        partial(_payload_error, _none),
        validator_for(schema),
        schema,
        component=shown,
        options=tuple(option.name for option in node.options),
    )


def approval_form(name: str) -> str:
    """Return the name of the form that approves calls of a server's tools, or of a service."""
    return f"{APPROVAL}:{name}"


def secret_fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of secret fields; () for the whole answer."""
    text = str(schema)
    if "writeOnly" in text or "password" in text:  # few forms have any
        yield from _secrets_in(schema, schema, (), frozenset())


def _secrets_in(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    above: tuple[str, ...],
    seen: frozenset[object],
) -> Iterator[tuple[str, ...]]:
    """Yield the paths of secrets; lists of them and recursive parts are secret as a whole."""
    reference = schema.get("$ref")
    if reference in seen:
        yield above
        return
    seen = seen if reference is None else seen | {reference}
    part = resolved(schema, root)
    if part.get("writeOnly") is True or part.get("format") == "password":
        yield above
        return
    for branch in (*_parts(part, "allOf"), *_parts(part, "anyOf"), *_parts(part, "oneOf")):
        yield from _secrets_in(branch, root, above, seen)
    properties: Any = part.get("properties")
    for name, field in properties.items() if isinstance(properties, dict) else ():  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if isinstance(field, dict):
            yield from _secrets_in(cast("JsonMap", field), root, (*above, str(name)), seen)  # pyright: ignore[reportUnknownArgumentType]
    items: Any = part.get("items")
    if isinstance(items, dict) and any(
        True for _ in _secrets_in(cast("JsonMap", items), root, (), seen)
    ):
        yield above


def _parts(schema: Mapping[str, Any], word: str) -> list[JsonMap]:
    parts: Any = schema.get(word)
    found = cast("list[Any]", parts) if isinstance(parts, list) else []
    return [cast("JsonMap", branch) for branch in found if isinstance(branch, dict)]


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to another place of the same schema."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        found: Any = root
        for step in reference[2:].split("/"):
            found = found.get(step, {}) if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _mask_at(value: Json, path: tuple[str, ...]) -> Json:
    """Return a value with a mask at a path, if there is something."""
    if not path:
        return value if value is None else MASK
    if not isinstance(value, dict) or path[0] not in value:
        return cast("Json", value)
    fields = cast("dict[str, Json]", value)
    return {**fields, path[0]: _mask_at(fields[path[0]], path[1:])}


def validator_for(
    schema: JsonMap | None, *, formats: bool = False, secret: Sequence[tuple[str, ...]] = ()
) -> Validator:
    """Return a function that yields the schema errors of a value.

    `formats` checks formats such as dates, which people type. Errors of `secret` fields, and of
    the objects that contain them, do not quote the value.
    """
    if schema is None:
        return _none
    # Deferred: few packages have schemas, and the library loads slowly.
    from jsonschema.validators import Draft202012Validator  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # An empty registry: references are never fetched.
    validator: Any = Draft202012Validator(
        schema,
        registry=Registry(),
        format_checker=Draft202012Validator.FORMAT_CHECKER if formats else None,
    )

    def find(value: Json) -> Iterator[SchemaError]:
        try:
            for error in validator.iter_errors(value):
                place = tuple(error.absolute_path)
                hides = error.validator != "required" and any(
                    _touch(place, secret_place) for secret_place in secret
                )
                yield place, _UNQUOTED if hides else str(error.message)
        except Unresolvable as missing:
            yield (), f"its schema refers to {missing.ref}, which is not in it"

    return find


def _touch(place: tuple[str | int, ...], path: tuple[str, ...]) -> bool:
    """Return whether one of two places is inside the other."""
    shorter = min(len(place), len(path))
    return place[:shorter] == path[:shorter]


def _payload_error(validator: Validator, payload: Json) -> str | None:
    return first_error(validator(payload))


def first_error(errors: Iterator[SchemaError]) -> str | None:
    """Return the first error with its place."""
    for place, said in errors:
        return f"{'.'.join(str(part) for part in place)}: {said}" if place else said
    return None


def _none(_value: Json) -> Iterator[SchemaError]:
    yield from ()
