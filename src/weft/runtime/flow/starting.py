"""The state a flow begins with: it must fit its class before anything is written."""

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
    """Raise UsageError naming every field that is missing or wrong in what a flow begins with."""
    kind = None if workflow.flow_code is None else workflow.flow_code.state
    if kind is None:
        return
    values = {**workflow.compiled.start_values, **given}
    try:
        read_state(kind, values)
    except ValidationError as error:
        later = set(_set_later(workflow.compiled))
        none = {it for it, field in kind.model_fields.items() if field.is_required()}
        missing, wrong = state_errors(error, {it for it in none if values.get(it) is None}, later)
        if missing or wrong:
            raise UsageError(
                f"{workflow.name} cannot begin: {errors_text(missing, wrong)}",
                hint=_hint(workflow, kind, missing, wrong),
            ) from None


def require_collections(workflow: Workflow, known: Retrievers | None, app: str) -> None:
    """Raise UsageError if a flow searches a collection that nothing is registered for."""
    code = workflow.flow_code
    for name in sorted(code.collections) if code is not None else ():
        if known is None or known.adapter(app, name) is None:
            near = nearest(name, known.names(app) if known else ())
            meant = f"did you mean {near}? or " if near else ""
            raise UsageError(
                f"{workflow.name} searches the collection {name}, which is not there",
                hint=f"{meant}make it: weft collection add {name} PATHS; in Python also: "
                f'collections={{"{name}": ADAPTER}}, or workspace="." for those of a folder',
            )


def state_errors(
    error: ValidationError, none: Collection[str] = (), later: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the fields that are missing, and what is wrong with others, without any value.

    `none` are required ones that have no value, `later` those that get theirs in the run.
    """
    missing: list[str] = []
    wrong: dict[str, str] = {}
    for it in error.errors(include_input=False, include_url=False):
        place = ".".join(map(str, it["loc"]))
        if str(it["loc"][0] if it["loc"] else "") in later:
            continue
        if it["type"] == "missing" or place in none:
            missing.append(place)
        else:
            wrong.setdefault(place, it["msg"])
    return missing, wrong


def errors_text(missing: list[str], wrong: Mapping[str, str]) -> str:
    """Say which fields are missing and what is wrong with others."""
    told = [f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"]
    wrongs = [f"{name}: {fault}" if name else fault for name, fault in wrong.items()]
    return "; ".join((told if missing else []) + wrongs)


def require_fields(kind: type[BaseModel], given: Mapping[str, object]) -> None:
    """Raise UsageError for a key that is not a field of the state."""
    validators = kind.__pydantic_decorators__.model_validators.values()
    if kind.model_config.get("extra") == "allow" or any(
        validator.info.mode != "after" for validator in validators
    ):
        return  # The class itself says what it takes.
    known = set(kind.model_fields)
    for field in kind.model_fields.values():
        known.update(it for it in (field.alias, field.validation_alias) if isinstance(it, str))
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
    """Yield the variables that get their values when the run has begun."""
    for name, it in compiled.variables.items():
        if isinstance(it.source, DerivedSource):
            if it.source.triggers:
                yield name
        elif not isinstance(it.source, EnvironmentSource):
            yield name


def _hint(
    workflow: Workflow, kind: type[BaseModel], missing: list[str], wrong: Mapping[str, str]
) -> str:
    names = dict.fromkeys(it.partition(".")[0] for it in (*missing, *wrong) if it)
    known = [name for name in names if name in kind.model_fields]
    options = " ".join(f"--set {it}=..." for it in known) or "--set NAME=VALUE"
    return f"give each a value: weft run {workflow.name} {options}"
