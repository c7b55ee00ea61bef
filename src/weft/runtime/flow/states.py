"""The state that code receives, and the changes it returns."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from weft.engine.compiled import CompiledWorkflow
from weft.engine.flow.lanes import work_of
from weft.engine.flow.turn import changes_of
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.engine.variables.conditions import same
from weft.engine.variables.values import added_part, with_part
from weft.errors import ToolError
from weft.findings import Json
from weft.ids import suggestion
from weft.runtime.variables.json_values import own_copy, plain_json
from weft.runtime.workflow import Workflow
from weft.spec.flow import AgentWork
from weft.spec.variables import DerivedSource, Merge

ModelT = TypeVar("ModelT", bound=BaseModel)


class StateView(dict[str, Any]):
    """A read-only state without a class: fields can be read as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field
        if name not in self:
            raise AttributeError(f"the state has no field {name}")
        value = self[name]
        return StateView(cast("dict[str, Any]", value)) if isinstance(value, dict) else value

    def _fixed(self, *_given: object, **_named: object) -> NoReturn:
        raise TypeError("the state is read-only; return a dict of the changed fields")

    __setattr__ = __delattr__ = __setitem__ = __delitem__ = _fixed
    clear = pop = popitem = setdefault = update = __ior__ = _fixed  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class GivenState:
    """The state that a step receives."""

    compiled: CompiledWorkflow
    kind: type[BaseModel] | None
    #: The object for code, and the same as JSON, with which changes are found.
    state: Any
    before: Mapping[str, Json]

    def changes(self, returned: object) -> dict[str, Json]:
        """Return the fields that a step has changed; raises ToolError for invalid changes.

        Fields that are appended to or merged contain only the additions.
        """
        if returned is None:
            return {}
        if isinstance(returned, self.kind or StateView):
            set_ = self._differences(self._whole(returned))
        elif isinstance(returned, Mapping):
            set_ = self._patch(cast("Mapping[str, Any]", returned))
        else:
            wanted = f"a {self.kind.__name__}" if self.kind else "the state"
            raise ToolError(
                f"it returned a value of type {type(returned).__name__}; "
                f"return a dict of changed fields, {wanted} or None"
            )
        for name, value in set_.items():
            whole = merge_value(name, self._merge(name), self.before.get(name), value)
            fault = value_error(self.compiled, self.before, name, whole)
            if fault:
                raise ToolError(f"it returned an invalid value: {fault}")
        return set_

    def _differences(self, after: Mapping[str, Json]) -> dict[str, Json]:
        """Return the differences between a returned state and the given one."""
        found: dict[str, Json] = {}
        for name, value in after.items():
            held, merge = self.before.get(name), self._merge(name)
            if not same(held, value):
                part, fault = (value, "") if value is None else added_part(merge, held, value)
                if fault:
                    raise ToolError(f"{name} is declared with merge: {merge}, and {fault}")
                found[name] = part
        return found

    def _patch(self, patch: Mapping[str, Any]) -> dict[str, Json]:
        """Validate the changed fields that a step returned."""
        for name in patch:
            if name not in self.before:
                known = suggestion(str(name), self.before)
                raise ToolError(f"it returned {name}, and the state has no such field; {known}")
        if self.kind is None:
            return cast("dict[str, Json]", _plain(dict(patch)))
        # Not from the given object: code may have changed it.
        held = _fields(_read(self.kind, self.before))
        whole = {
            name: merge_value(name, self._merge(name), held[name], patch[name]) for name in patch
        }
        made = self._made(self.kind, {**held, **whole})
        after = dump_state(made)
        set_ = {name: _patched_part(self._merge(name), patch[name], after[name]) for name in patch}
        # A validator of the class may have set other fields; a set may have another order.
        others = [name for name in held if name not in patch and getattr(made, name) != held[name]]
        return {**set_, **self._differences({other: after[other] for other in others})}

    def _whole(self, returned: object) -> Mapping[str, Json]:
        """Return a whole state as JSON; raises ToolError if it is invalid."""
        if self.kind is None:
            return cast("Mapping[str, Json]", _plain(_fields(returned)))
        return dump_state(self._made(self.kind, _fields(returned)))

    def _made(self, kind: type[ModelT], fields: Mapping[str, Any]) -> ModelT:
        try:
            return kind.model_validate(fields, by_name=True)
        except ValidationError as error:
            message = f"it returned an invalid {kind.__name__}: {first_error(error)}"
            raise ToolError(message) from error

    def _merge(self, name: str) -> Merge | None:
        return self.compiled.variables[name].merge


def given_state(
    compiled: CompiledWorkflow, kind: type[BaseModel] | None, values: Mapping[str, Json]
) -> GivenState:
    """Return the state for a step; raises ToolError if its class rejects the values.

    Every call returns a new object, so that code cannot change the state of others.
    """
    if kind is None:
        derived = {
            name: values.get(name)
            for name, variable in compiled.variables.items()
            if isinstance(variable.source, DerivedSource)
        }
        return GivenState(compiled, None, StateView(cast("Any", own_copy(derived))), derived)
    state = _read(kind, values)
    return GivenState(compiled, kind, state, dump_state(state))


def _read(kind: type[ModelT], values: Mapping[str, Json]) -> ModelT:
    try:
        return read_state(kind, values)
    except ValidationError as error:
        raise ToolError(
            f"the state is not a valid {kind.__name__}: {first_error(error)}"
        ) from error


def read_state(kind: type[ModelT], values: Mapping[str, Json]) -> ModelT:
    """Return the state object for fields in JSON; raises ValidationError."""
    fields = {field: values[field] for field in kind.model_fields if field in values}
    return kind.model_validate_json(to_json(fields), by_name=True)


def dump_state(state: BaseModel) -> dict[str, Json]:
    """Return the fields of a state as JSON; raises ToolError that names an impossible field."""
    names = type(state).model_fields
    try:
        return _dump_fields(state, names)
    except ValueError as error:
        for name in names:
            try:
                _dump_fields(state, [name])
            except ValueError as field_error:
                raise ToolError(f"{name} {_why_not_kept(field_error)}") from error
        raise ToolError(f"the state {_why_not_kept(error)}") from error


def _why_not_kept(error: ValueError) -> str:
    _, too_large, size = str(error).partition("that is too large: ")
    reason = str(error).rpartition("is not JSON: ")[2]
    return f"is too large: {size}" if too_large else f"cannot be stored as JSON: {reason}"


def _dump_fields(state: BaseModel, names: Iterable[str]) -> dict[str, Json]:
    # Invalid values are reported when the state is read again, with the name of the field.
    fields = state.model_dump(mode="json", include=set(names), by_alias=False, warnings=False)
    return cast("dict[str, Json]", plain_json(fields))


def first_error(error: ValidationError, of: Container[object] | None = None) -> str:
    """Return the first validation error in one line, without the value.

    With names of fields: the first error of these fields or of the whole; may be empty.
    """
    found = error.errors(include_input=False, include_url=False)
    if of is not None:
        found = [problem for problem in found if not problem["loc"] or problem["loc"][0] in of]
    if not found:
        return ""
    place = ".".join(map(str, found[0]["loc"]))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{place + ': ' if place else ''}{found[0]['msg']}{more}"


def _fields(state: object) -> dict[str, Any]:
    if isinstance(state, BaseModel):
        return {field: getattr(state, field) for field in type(state).model_fields}
    return dict(cast("Mapping[str, Any]", state))


def _plain(value: object) -> Json:
    try:
        return plain_json(value)
    except ValueError as error:
        raise ToolError(f"it returned {error}") from error


def merge_value(name: str, merge: Merge | None, held: Any, new: Any) -> Any:  # noqa: ANN401 - values
    """Return the value of a field after adding new entries or keys."""
    if merge == "append" and not isinstance(new, list | tuple):
        raise ToolError(f"{name} is appended to: return a list of the new entries")
    if merge == "merge" and not isinstance(new, Mapping):
        raise ToolError(f"{name} is merged: return a mapping of the new keys")
    return with_part(merge, held, new)


def _patched_part(merge: Merge | None, patch: Any, whole: Any) -> Json:  # noqa: ANN401 - as above
    """Return the part of a validated value that a patch has added."""
    if merge == "append":
        return whole[len(whole) - len(patch) :]
    if merge == "merge":
        keys = cast("dict[str, Json]", _plain(dict.fromkeys(patch)))
        return {key: whole[key] for key in keys}
    return whole


# -- replies of declared agents, validated by the class of the state


def reply_error(workflow: Workflow, state: State, turn: int, text: str, output: Json) -> str:
    """Return the first error that the state class reports for a reply; empty if it is valid."""
    kind = workflow.flow_code and workflow.flow_code.state
    active = state.active.get(turn)
    if kind is None or active is None or not active.step:
        return ""
    work = work_of(workflow.compiled, active)
    if not isinstance(work, AgentWork) or work.step is not None:
        return ""  # The step's own code validates it.
    values, variables = state.values_of(turn), workflow.compiled.variables
    reply, _ = changes_of(workflow.compiled, work, text, output)
    try:
        whole = {
            name: merge_value(name, variables[name].merge, values.get(name), reply[name])
            for name in reply
        }
        read_state(kind, {**values, **whole})
    except ToolError as error:
        return str(error)
    except ValidationError as error:
        return first_error(error, of=reply)  # Other errors are not caused by this agent.
    return ""
