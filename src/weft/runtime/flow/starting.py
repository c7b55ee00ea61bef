"""Validates the initial state of a flow before the run is recorded."""

from collections.abc import Collection, Iterator, Mapping

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from weft.engine.compiled import CompiledWorkflow
from weft.errors import UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.retrieval import Retrievers
from weft.runtime.flow.states import read_state
from weft.runtime.workflow import Workflow
from weft.spec.variables import DerivedSource, EnvironmentSource


def require_state(workflow: Workflow, given: Mapping[str, Json]) -> None:
    """Raise UsageError that names every missing or invalid field of the initial state."""
    kind = None if workflow.flow_code is None else workflow.flow_code.state
    if kind is None:
        return
    values = {**workflow.compiled.start_values, **given}
    try:
        read_state(kind, values)
    except ValidationError as error:
        later = set(_set_later(workflow.compiled))
        none = {name for name, field in kind.model_fields.items() if field.is_required()}
        missing, wrong = state_errors(
            error, {name for name in none if values.get(name) is None}, later
        )
        if missing or wrong:
            raise UsageError(
                f"{workflow.name} cannot start: {errors_text(missing, wrong)}",
                hint=_hint(workflow, kind, missing, wrong),
            ) from None


def require_collections(workflow: Workflow, known: Retrievers | None, app: str) -> None:
    """Raise UsageError if a flow searches a collection without an adapter."""
    code = workflow.flow_code
    for name in sorted(code.collections) if code is not None else ():
        if known is None or known.adapter(app, name) is None:
            near = nearest(name, known.names(app) if known else ())
            meant = f"did you mean {near}? or " if near else ""
            raise UsageError(
                f"{workflow.name} searches the collection {name}, which does not exist",
                hint=f"{meant}create it: weft collection add {name} PATHS; in Python also: "
                f'collections={{"{name}": ADAPTER}}, or workspace="." for those of a folder',
            )


def state_errors(
    error: ValidationError, none: Collection[str] = (), later: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the missing fields, and the errors of others without their values.

    `none` are required fields without a value, `later` those that are set during the run.
    """
    missing: list[str] = []
    wrong: dict[str, str] = {}
    for problem in error.errors(include_input=False, include_url=False):
        place = ".".join(map(str, problem["loc"]))
        if str(problem["loc"][0] if problem["loc"] else "") in later:
            continue
        if problem["type"] == "missing" or place in none:
            missing.append(place)
        else:
            wrong.setdefault(place, problem["msg"])
    return missing, wrong


def errors_text(missing: list[str], wrong: Mapping[str, str]) -> str:
    """Return missing fields and errors as one sentence."""
    sentence = [f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"]
    wrongs = [f"{name}: {fault}" if name else fault for name, fault in wrong.items()]
    return "; ".join((sentence if missing else []) + wrongs)


def require_fields(kind: type[BaseModel], given: Mapping[str, object]) -> None:
    """Raise UsageError for a key that is not a field of the state."""
    validators = kind.__pydantic_decorators__.model_validators.values()
    if kind.model_config.get("extra") == "allow" or any(
        validator.info.mode != "after" for validator in validators
    ):
        return  # Extra fields are allowed.
    known = set(kind.model_fields)
    for field in kind.model_fields.values():
        known.update(
            alias for alias in (field.alias, field.validation_alias) if isinstance(alias, str)
        )
        if isinstance(field.validation_alias, AliasChoices | AliasPath):
            return
    for name in given:
        if name not in known:
            near = nearest(str(name), kind.model_fields)
            there = f"it has: {', '.join(kind.model_fields)}"
            raise UsageError(
                f"{kind.__name__} has no field {name}",
                hint=f"did you mean {near}?" if near else there,
            )


def _set_later(compiled: CompiledWorkflow) -> Iterator[str]:
    """Yield the variables that are set during the run."""
    for name, variable in compiled.variables.items():
        if isinstance(variable.source, DerivedSource):
            if variable.source.triggers:
                yield name
        elif not isinstance(variable.source, EnvironmentSource):
            yield name


def _hint(
    workflow: Workflow, kind: type[BaseModel], missing: list[str], wrong: Mapping[str, str]
) -> str:
    names = dict.fromkeys(place.partition(".")[0] for place in (*missing, *wrong) if place)
    known = [name for name in names if name in kind.model_fields]
    options = " ".join(f"--set {name}=..." for name in known) or "--set NAME=VALUE"
    return f"give each a value: weft run {workflow.name} {options}"
