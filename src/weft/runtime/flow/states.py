"""The state as code gets it, and what code has changed in it."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from weft.engine.compiled import CompiledWorkflow
from weft.engine.events.codec import read_json, unfenced
from weft.engine.flow.lanes import work_of
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.engine.variables.conditions import same
from weft.errors import ToolError
from weft.findings import Json
from weft.ids import nearest
from weft.runtime.variables.json_values import own_copy, plain_json
from weft.runtime.workflow import Workflow
from weft.spec.flow import AgentWork
from weft.spec.variables import DerivedSource, Merge

ModelT = TypeVar("ModelT", bound=BaseModel)


class StateView(dict[str, Any]):
    """A state that no class stands for: its fields are keys and attributes, and stay so."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field
        if name not in self:
            raise AttributeError(f"the state has no field {name}")
        value = self[name]
        return StateView(cast("dict[str, Any]", value)) if isinstance(value, dict) else value

    def _fixed(self, *_given: object, **_named: object) -> NoReturn:
        raise TypeError("the state cannot be changed; return what is to be changed")

    __setattr__ = __delattr__ = __setitem__ = __delitem__ = _fixed
    clear = pop = popitem = setdefault = update = __ior__ = _fixed  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class GivenState:
    """The state as a step is given it."""

    compiled: CompiledWorkflow
    kind: type[BaseModel] | None
    #: What code gets, and the same as JSON: what code does to the one shows in comparison.
    state: Any
    before: Mapping[str, Json]

    def changes(self, returned: object) -> dict[str, Json]:
        """Return the fields that a step has changed; raises ToolError if it may not, or not so.

        Of fields that are appended to or merged, it is what was added.
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
                raise ToolError(f"what it returned does not fit: {fault}")
        return set_

    def _differences(self, after: Mapping[str, Json]) -> dict[str, Json]:
        """Compare a whole state with the one that was given."""
        found: dict[str, Json] = {}
        for name, value in after.items():
            held = self.before.get(name)
            if not same(held, value):
                found[name] = _added_part(name, self._merge(name), held, value)
        return found

    def _patch(self, patch: Mapping[str, Any]) -> dict[str, Json]:
        """Look through the fields that a step says it has changed."""
        for name in patch:
            if name not in self.before:
                near = nearest(str(name), self.before)
                known = f"did you mean {near}?" if near else f"available: {', '.join(self.before)}"
                raise ToolError(f"it returned {name}, and the state has no such field; {known}")
        if self.kind is None:
            return cast("dict[str, Json]", _plain(dict(patch)))
        # Not those of the state that was given: whatever code has done to it changes nothing.
        held = _fields(_read(self.kind, self.before))
        whole = {it: merge_value(it, self._merge(it), held[it], patch[it]) for it in patch}
        made = self._made(self.kind, {**held, **whole})
        after = dump_state(made)
        set_ = {it: _patched_part(self._merge(it), patch[it], after[it]) for it in patch}
        # A validator of the class may have set others. A set may only be in another order.
        others = [it for it in held if it not in patch and getattr(made, it) != held[it]]
        return {**set_, **self._differences({other: after[other] for other in others})}

    def _whole(self, returned: object) -> Mapping[str, Json]:
        """Return a whole state as JSON if its class takes its values."""
        if self.kind is None:
            return cast("Mapping[str, Json]", _plain(_fields(returned)))
        return dump_state(self._made(self.kind, _fields(returned)))

    def _made(self, kind: type[ModelT], fields: Mapping[str, Any]) -> ModelT:
        try:
            return kind.model_validate(fields, by_name=True)
        except ValidationError as error:
            told = f"what it returned does not fit {kind.__name__}: {first_error(error)}"
            raise ToolError(told) from error

    def _merge(self, name: str) -> Merge | None:
        return self.compiled.variables[name].merge


def given_state(
    compiled: CompiledWorkflow, kind: type[BaseModel] | None, values: Mapping[str, Json]
) -> GivenState:
    """Return the state as a step is given it. Raises ToolError if the values do not fit its class.

    It is made anew each time: whatever code does to it changes nothing for others.
    """
    if kind is None:
        derived = {
            name: values.get(name)
            for name, it in compiled.variables.items()
            if isinstance(it.source, DerivedSource)
        }
        return GivenState(compiled, None, StateView(cast("Any", own_copy(derived))), derived)
    state = _read(kind, values)
    return GivenState(compiled, kind, state, dump_state(state))


def _read(kind: type[ModelT], values: Mapping[str, Json]) -> ModelT:
    try:
        return read_state(kind, values)
    except ValidationError as error:
        raise ToolError(f"the state does not fit {kind.__name__}: {first_error(error)}") from error


def read_state(kind: type[ModelT], values: Mapping[str, Json]) -> ModelT:
    """Return a state of its fields as JSON; raises ValidationError."""
    fields = {field: values[field] for field in kind.model_fields if field in values}
    return kind.model_validate_json(to_json(fields), by_name=True)


def dump_state(state: BaseModel) -> dict[str, Json]:
    """Return the fields of a state as JSON; raises ToolError naming one that cannot be kept."""
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
    reason = str(error).rpartition("is no JSON: ")[2]
    return f"is too large: {size}" if too_large else f"cannot be kept as JSON: {reason}"


def _dump_fields(state: BaseModel, names: Iterable[str]) -> dict[str, Json]:
    # What does not fit is said when it is read again, with the name of its field.
    fields = state.model_dump(mode="json", include=set(names), by_alias=False, warnings=False)
    return cast("dict[str, Json]", plain_json(fields))


def first_error(error: ValidationError, of: Container[object] | None = None) -> str:
    """Return the first thing that is wrong, in one line and without the value.

    With names of fields, that is what is wrong in these or with all together; it may be nothing.
    """
    found = error.errors(include_input=False, include_url=False)
    if of is not None:
        found = [it for it in found if not it["loc"] or it["loc"][0] in of]
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
    """Return the whole value of a field that new entries or keys are added to."""
    if merge == "append":
        if not isinstance(new, list | tuple):
            raise ToolError(f"{name} is appended to: return a list of the new entries")
        return [*(held or ()), *cast("list[Any]", new)]
    if merge == "merge":
        if not isinstance(new, Mapping):
            raise ToolError(f"{name} is merged: return a mapping of the new keys")
        kept: Mapping[Any, Any] = held or {}
        return {**kept, **cast("Mapping[Any, Any]", new)}
    return new


def _patched_part(merge: Merge | None, patch: Any, whole: Any) -> Json:  # noqa: ANN401 - as above
    """Return what a patch has added, out of the whole value as its class has made it."""
    if merge == "append":
        return whole[len(whole) - len(patch) :]
    if merge == "merge":
        keys = cast("dict[str, Json]", _plain(dict.fromkeys(patch)))
        return {it: whole[it] for it in keys}
    return whole


def _added_part(name: str, merge: Merge | None, held: Any, value: Any) -> Json:  # noqa: ANN401
    """Return what a whole value has more than the one before; raises ToolError if it has less."""
    if merge == "append" and value is not None:
        old: list[Json] = held or []
        if not same(value[: len(old)], old):
            raise ToolError(f"{name} is appended to, and an entry that was there has changed")
        return value[len(old) :]
    if merge == "merge" and value is not None:
        kept: dict[str, Json] = held or {}
        gone = [it for it in kept if it not in value]
        if gone:
            raise ToolError(f"{name} is merged, and {', '.join(gone)} was removed")
        return {it: one for it, one in value.items() if it not in kept or not same(kept[it], one)}
    return value


# -- replies of the agents that a flow declares: whether the class of the state takes them


def reply_error(workflow: Workflow, state: State, turn: int, text: str) -> str:
    """Say what the class of the state does not take of a reply; nothing if it takes everything."""
    kind = workflow.flow_code and workflow.flow_code.state
    active = state.active.get(turn)
    if kind is None or active is None or not active.step:
        return ""
    work = work_of(workflow.compiled, active)
    if not isinstance(work, AgentWork) or work.step is not None:  # Its code is asked, not we.
        return ""
    values, variables = state.values_of(turn), workflow.compiled.variables
    reply = _reply_values(workflow.compiled, work, text)
    try:
        whole = {
            it: merge_value(it, variables[it].merge, values.get(it), reply[it]) for it in reply
        }
        read_state(kind, {**values, **whole})
    except ToolError as error:
        return str(error)
    except ValidationError as error:
        return first_error(error, of=reply)  # What else does not fit is not for this agent to fix.
    return ""


def _reply_values(compiled: CompiledWorkflow, work: AgentWork, text: str) -> dict[str, Json]:
    """Return what a reply sets; nothing where it cannot be read, which the engine says itself."""
    output: Json = text
    if compiled.agents[work.agent].output is not None:
        try:
            output = read_json(unfenced(text).encode())
        except ValueError:
            return {}
    if work.output is not None:
        return {work.output: output}
    fields = cast("dict[str, Json]", output) if isinstance(output, dict) else {}
    return {name: value for name, value in fields.items() if name in compiled.variables}
