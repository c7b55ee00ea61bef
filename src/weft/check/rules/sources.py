"""Family VAR, sixth part: whether the sources of variables can be read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from weft.check.parts import parts_of
from weft.check.rules.comparisons import Kind, kinds_of
from weft.check.rules.secrets import why_not_read
from weft.check.secrets import secret_in
from weft.check.spelling import short
from weft.check.subject import Hit, Subject, listed_once, rule
from weft.check.texts import Mention, inserted
from weft.check.values import variable_types
from weft.engine.compile import refreshed
from weft.engine.turn.hook_points import is_function
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import TENANT_VARIABLES
from weft.spec import templates
from weft.spec.part import JsonMap
from weft.spec.queries import parse_query
from weft.spec.templates import parse_template
from weft.spec.types import print_type
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
    Source,
    Variable,
    is_call,
)


@listed_once
def needs(subject: Subject) -> Iterator[Mention]:
    """Yield the variables that must have a value for the sources of others to be read."""
    for path, source in parts_of(subject, DatabaseSource, EntitySource):
        if source.search_by is not None:
            yield Mention(source.search_by, (*path, "search_by"), None, "", str(path[1]))
    for mention in inserted(subject, DatabaseSource, ExternalSource):
        if mention.path[-1] != "for":
            yield mention


#: When a variable has its value: from the start, once the run has been prepared, in a turn, or
#: when a tool calls its service.
AT_START, PREPARED, IN_TURN, IN_CALL = range(4)


def read_at(source: Source) -> int:
    """Return when a source is read; AT_START if it is not external."""
    strategy = refreshed(source)
    if is_call(source):
        return IN_CALL
    return AT_START if strategy is None else PREPARED if strategy == "once" else IN_TURN


def known_from(subject: Subject, name: str) -> int:
    """Return when a variable and all its inputs first have a value."""
    latest, waiting, met = AT_START, [name], {name}
    for found in waiting:
        variable = subject.spec.variables.get(found)
        if variable is None:
            continue
        source = variable.source
        latest = max(latest, read_at(source))
        if isinstance(source, ComputedSource):
            # Functions are called after the sources of the run have been read.
            latest = max(latest, PREPARED if is_function(source.computation) else AT_START)
            fresh = [input_name for input_name in source.inputs if input_name not in met]
            met.update(fresh)
            waiting += fresh
    return latest


#: Sample values of variables by kind, and the kinds that operators need.
_STAND_INS: Final[dict[Kind, Json]] = {"text": "", "number": 0, "truth": True, "list": []}
_WANTED: Final[dict[str, Kind]] = {"$in": "list", "$exists": "truth"}
_OWN_TENANT: Final = tuple(f"{{{name}}}" for name in TENANT_VARIABLES)


@dataclass(frozen=True, slots=True)
class QueryFault:
    """An error in a query, its path, and what to do."""

    path: Path
    fact: str
    hint: str


def query_faults(subject: Subject, template: JsonMap) -> Iterator[QueryFault]:
    """Yield the errors of a query that do not depend on the values of variables."""
    try:
        parse_query(cast("JsonMap", _fill_query(subject, template, "")))
    except ExpressionError as error:
        hint = error.hint or "correct the query"
        yield QueryFault((), f"cannot be asked: {error}", hint)
    for path in _tenants(template, ()):
        fact = f"names a tenant by {path[-1]}: a run finds only the documents of its own tenant"
        yield QueryFault(path, fact, f'take "{path[-1]}" out of the query')


def _fill_query(subject: Subject, part: Json, key: str) -> Json:
    """Return a query with sample values in place of variables."""
    match part:
        case dict():
            fields = cast("JsonMap", part)
            return {name: _fill_query(subject, value, name) for name, value in fields.items()}
        case list():
            return [_fill_query(subject, item, key) for item in cast("list[Json]", part)]
        case str():
            pieces = parse_template(part)
            alone = pieces[0] if len(pieces) == 1 else None
            return (
                _value(subject, alone.name, key) if isinstance(alone, templates.Reference) else part
            )
        case _:
            return part


def _value(subject: Subject, name: str, key: str) -> Json:
    """Return a sample value of a variable, of the kind that the operator needs if possible."""
    type_ = subject.once(variable_types).get(name)
    kinds = set(_STAND_INS) if type_ is None else kinds_of(type_)
    fitting: list[Kind] = [kind for kind in _STAND_INS if kind in kinds]
    if not fitting:
        raise ExpressionError(
            f"{name} is an object", hint="put in one of its fields, as a variable of its own"
        )
    wanted = _WANTED.get(key, fitting[0])
    return _STAND_INS[wanted if wanted in fitting else fitting[0]]


def _tenants(query: JsonMap, path: Path) -> Iterator[Path]:
    """Yield the paths at which a query names a fixed tenant instead of the run's."""
    for key, value in query.items():
        if key in TENANT_VARIABLES and (path or value not in _OWN_TENANT):
            yield (*path, key)
        for index, inner in enumerate(cast("list[Json]", value) if isinstance(value, list) else ()):
            if key.startswith("$") and isinstance(inner, dict):
                yield from _tenants(cast("JsonMap", inner), (*path, key, index))


_ADDRESS: Final = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_INSERTION: Final = re.compile(r"\{[A-Za-z_]")
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Names that an operating system accepts for environment variables.
_LOOKED_UP: Final = re.compile(r"[^\s=\0]+")


@rule("VAR022", "variables", "models")
def search_is_by_a_value(subject: Subject) -> Iterator[Hit]:
    for need in needs(subject):
        known = subject.spec.variables.get(need.name)
        if need.offset is None and known is not None and kinds_of(known.type) <= {"object"}:
            message = f"{need.owner} is searched by {need.name}, which is an object"
            yield need.hit(f"{message}: no field equals it", "search by one of its fields")


@rule("VAR022", "variables", "models")
def value_can_be_fetched(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        path: Path = ("variables", name, "source")
        match variable.source:
            case DatabaseSource() as source:
                if source.find == "many":
                    yield from _many_documents(name, variable)
                else:
                    yield from _whole_document(name, variable, source.field)
                for fault in query_faults(subject, source.query_template or {}):
                    at = (*path, "query_template", *fault.path)
                    yield Hit(at, f"the query of {name} {fault.fact}", hint=(fault.hint,))
            case EntitySource():
                yield from _whole_document(name, variable)
            case ExternalSource() as source:
                # It may also begin with a variable that holds its first part.
                if not _INSERTION.match(source.url):
                    yield from address_hits(f"the url of {name}", source.url, (*path, "url"))
                if source.auth:
                    at = (*path, "auth", "secret_env")
                    yield from secret_name_hits(name, source.auth.secret_env, at)
            case EnvironmentSource() as source:
                yield from _looked_up(name, source, (*path, "env_var"))
            case FileSource() as source:
                yield from _find_file(subject, name, source, (*path, "path"))
            case _:
                continue


def _whole_document(name: str, variable: Variable, field: str | None = None) -> Iterator[Hit]:
    """Report a variable that gets a document but whose type does not accept objects."""
    if field is None and "object" not in kinds_of(variable.type):
        document = isinstance(variable.source, EntitySource)
        yield Hit(
            ("variables", name, "type"),
            f"{name} is a document (an object), which is not {short(print_type(variable.type))}",
            hint=("set the type to dict or to a model",)
            if document
            else ('name one "field" of the document', "or set the type to dict"),
        )


def _many_documents(name: str, variable: Variable) -> Iterator[Hit]:
    """Report a variable that gets many documents but whose type does not accept lists."""
    if "list" not in kinds_of(variable.type):
        yield Hit(
            ("variables", name, "type"),
            f"{name} is a list of documents, which is not {short(print_type(variable.type))}",
            hint=("set the type to list[dict[str, any]], or to a list of a model",),
        )


def address_hits(what: str, url: str, path: Path) -> Iterator[Hit]:
    if not _ADDRESS.match(url):
        yield Hit(
            path,
            f"{what} does not begin with https:// or http:// and the name of a server",
            hint=("write the whole address: https://api.example/orders",),
        )


def _looked_up(name: str, source: EnvironmentSource, path: Path) -> Iterator[Hit]:
    # The text is not repeated: it may be the secret itself.
    if not _LOOKED_UP.fullmatch(source.env_var) or secret_in("text", source.env_var):
        yield Hit(
            path,
            f"the env_var of {name} is not the name of an environment variable",
            hint=("write a name such as SHOP_REGION, without blanks and =",),
        )


def _find_file(subject: Subject, name: str, source: FileSource, path: Path) -> Iterator[Hit]:
    """Report a missing file, unless there is a default or files were not looked up."""
    if subject.files is None or source.default is not None or why_not_read(source.path):
        return
    if source.path not in subject.files:
        yield Hit(
            path,
            f"{name} is read from {source.path}, which does not exist",
            hint=("add the file to the package, or correct the path", "or give it a default"),
            severity="warning",
        )


def secret_name_hits(name: str, secret: str, path: Path) -> Iterator[Hit]:
    # The text is not repeated: it may be the secret itself.
    if not _ENVIRONMENT_NAME.fullmatch(secret) or secret_in("text", secret):
        yield Hit(
            path,
            f"the secret_env of {name} is not the name of an environment variable",
            hint=("write a name such as CRM_KEY, and put the secret into that variable",),
        )


@rule("VAR025", "variables")
def routed_on_in_time(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        strategy = getattr(variable.source, "refresh_strategy", None)
        if variable.routing and strategy == "on_demand":
            yield Hit(
                ("variables", name, "routing"),
                f"{name} may decide handoffs, but is read only for agents that are shown it",
                hint=('set "refresh_strategy" to "per_phase" or "once"', 'or remove "routing"'),
            )


@rule("VAR026", "variables")
def needed_is_there(subject: Subject) -> Iterator[Hit]:
    for need in needs(subject):
        variable, needed = subject.spec.variables[need.owner], subject.spec.variables.get(need.name)
        if needed is None:
            continue  # built-in variables always have a value; NAME001 reports unknown ones
        when = read_at(variable.source)
        # A secret is always read when a tool asks for it.
        late = not variable.secret and known_from(subject, need.name) >= when < IN_CALL
        if late or needed.secret:
            why = "is secret and has no value in a run" if needed.secret else "is not there yet"
            yield need.hit(
                f"{need.owner} is read when {_MOMENTS[when]}, by {need.name}, which {why}",
                *((_SIGN_IN,) if needed.secret else (_FOUND_BY, _READ_LATER)),
            )


_MOMENTS: Final = {
    PREPARED: "the run begins",
    IN_TURN: "a turn begins",
    IN_CALL: "a tool calls it",
}
_SIGN_IN: Final = 'use a variable that is not secret; for a service use "auth"'
_FOUND_BY: Final = "find it by a built-in, static, environment or derived variable"
_READ_LATER: Final = 'or read the one once, and the other with "refresh_strategy": "per_phase"'
