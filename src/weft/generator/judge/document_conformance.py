"""Conformance of variables: whether the documents and services are those of the plan."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from weft.findings import Finding
from weft.generator.judge.comparison import Comparison
from weft.generator.plans.data_rules import DOCUMENTS, VARIABLE_KINDS
from weft.ids import join_names
from weft.spec.plan import PlannedVariable
from weft.spec.templates import references
from weft.spec.type_meaning import finite_values
from weft.spec.variables import (
    DatabaseSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
)

#: The sources that a kind of variable in a plan may become.
_SOURCES: Final = {
    "config": ("environment", "static"),
    "data_reference": ("database", "entity", "file"),
    "data_entity": ("entity",),
    "computed": ("computed",),
    "state": ("derived", "computed"),
    "external": ("external",),
    "file": ("file", "static"),
}


def document_findings(compared: Comparison) -> Iterator[Finding]:
    """Yield the variables that are read or kept otherwise than the plan says."""
    for name, planned in compared.variables.items():
        variable = compared.spec.variables.get(name)
        if variable is None:
            continue
        kind = VARIABLE_KINDS[planned.type]
        source = variable.source
        if source.type not in _SOURCES[kind]:
            message = f"{name} is {source.type}; the plan says {kind}"
            yield compared.finding("GEN012", "context_variables.json", message)
        elif kind in DOCUMENTS and isinstance(source, EntitySource | DatabaseSource):
            for message in _document(name, planned, source):
                yield compared.finding("GEN012", "context_variables.json", message)
        elif isinstance(source, ExternalSource):
            asked = f"{name} asks {source.method} {source.url}"
            if not planned.url and not _is_configured(compared, source.url):
                message = f"{asked}; the plan names no address"
                yield compared.finding("GEN020", "context_variables.json", message)
            elif planned.url and not _is_address(source, planned.url):
                message = f"{asked}; the plan says {planned.url}"
                yield compared.finding("GEN012", "context_variables.json", message)
        lacking = {*planned.outcomes}.difference(_texts(finite_values(variable.type, 64)))
        if lacking and finite_values(variable.type, 64) is not None:
            message = f"{name} cannot be {join_names(sorted(lacking))}"
            yield compared.finding("GEN010", "context_variables.json", message)


def _is_address(source: ExternalSource, planned: str) -> bool:
    """Return whether a service is asked at the planned address, with the planned method if any.

    Scheme and host are the same; the path may go on.
    """
    method, _, url = planned.rpartition(" ")
    wanted, asked = urlsplit(url), urlsplit(source.url)
    same = (asked.scheme, asked.netloc.lower()) == (wanted.scheme, wanted.netloc.lower())
    path = wanted.path.rstrip("/")
    below = f"{asked.path}/".startswith(f"{path}/") and ".." not in asked.path.split("/")
    return same and below and asked.query.startswith(wanted.query) and method in ("", source.method)


def _is_configured(compared: Comparison, url: str) -> bool:
    """Return whether the address is a setting of the deployment, which no package contains."""
    name = next((each.name for each in references(url) if url.startswith(f"{{{each.name}}}")), "")
    variable = compared.spec.variables.get(name)
    return variable is not None and isinstance(variable.source, EnvironmentSource)


def _texts(values: tuple[object, ...] | None) -> set[str]:
    return {value for value in values or () if isinstance(value, str)}


def _document(
    name: str, planned: PlannedVariable, source: EntitySource | DatabaseSource
) -> Iterator[str]:
    keys = _keys_of(source)
    if planned.key and planned.key not in keys and (planned.key != "app_id" or keys):
        found = join_names(sorted(keys)) or "nothing"
        yield f"{name} is found by {found}; the plan says {planned.key}"
    elif not planned.key and planned.shared and keys & {"user_id", "chat_id"}:
        yield f"{name} is found by {join_names(sorted(keys))}; in the plan all users share it"
    elif not planned.key and planned.shared is False and keys <= {"app_id"}:
        yield f"{name} is one document for all users; the plan says that it is not shared"
    if planned.collection and planned.collection != source.collection:
        yield f"{name} is in {source.collection}; the plan says {planned.collection}"
    known = _fields_of(source)
    lacking = [field.name for field in planned.fields if field.name not in known]
    if known and lacking:
        yield f"{name} lacks {join_names(lacking)}"


def _keys_of(source: EntitySource | DatabaseSource) -> set[str]:
    """Return the variables by which a document is found."""
    if source.search_by:
        return {source.search_by}
    template = str(source.query_template) if isinstance(source, DatabaseSource) else ""
    return {reference.name for reference in references(template)}


def _fields_of(source: EntitySource | DatabaseSource) -> set[str]:
    """Return the fields that are declared of a document; none if it is taken as a whole."""
    if isinstance(source, EntitySource):
        return {*source.document}
    single = {source.field.partition(".")[0]} if source.field else set[str]()
    return single | {field.partition(".")[0] for field in source.fields}
