"""Family VAR, sixth part: whether a value can be fetched from where it is said to come from."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from weft.check.rules.comparisons import Kind, kinds_of
from weft.check.rules.references import Reference, unknown_names
from weft.check.rules.secrets import why_not_read
from weft.check.secrets import secret_in
from weft.check.spelling import short
from weft.check.subject import Hit, Subject, rule
from weft.check.values import texts_in, variable_types
from weft.engine.compile import refreshed
from weft.engine.turn.hook_points import is_function
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import TENANT_VARIABLES
from weft.spec import templates
from weft.spec.part import JsonMap
from weft.spec.queries import parse_query
from weft.spec.templates import parse_template, references
from weft.spec.types import print_type
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
    ServiceAuth,
    Source,
    Variable,
)


@dataclass(frozen=True, slots=True)
class Need:
    """A variable that is looked for, or that a text at a path puts in at an offset."""

    name: str
    path: Path
    offset: int | None = None


def needs_of(source: Source, path: Path = ()) -> Iterator[Need]:
    """Yield the variables that must have a value for a source to be read."""
    if isinstance(source, DatabaseSource | EntitySource) and source.search_by is not None:
        yield Need(source.search_by, (*path, "search_by"))
    for key in ("query_template", "url"):
        for at, text in texts_in(getattr(source, key, None), (*path, key)):
            yield from insertions_in(text, at)


def insertions_in(text: str, path: Path) -> Iterator[Need]:
    """Yield the variables that a text puts in."""
    return (Need(it.name, path, it.offset) for it in references(text))


#: When a variable has its value: from the start, once the run has been prepared, or in a turn.
AT_START, PREPARED, IN_TURN = range(3)


def read_at(source: Source) -> int:
    """Return when a source is read from outside; AT_START for what is not."""
    strategy = refreshed(source)
    return AT_START if strategy is None else PREPARED if strategy == "once" else IN_TURN


def known_from(subject: Subject, name: str) -> int:
    """Return when a variable first has its value, with all that it is computed from."""
    latest, waiting, met = AT_START, [name], {name}
    for found in waiting:
        variable = subject.spec.variables.get(found)
        if variable is None:
            continue
        source = variable.source
        latest = max(latest, read_at(source))
        if isinstance(source, ComputedSource):
            # A function is called when all was read that is read for the run.
            latest = max(latest, PREPARED if is_function(source.computation) else AT_START)
            fresh = [it for it in source.inputs if it not in met]
            met.update(fresh)
            waiting += fresh
    return latest


#: What stands for the value of a variable, by the kind it is of, and what operators look for.
_STAND_INS: Final[dict[Kind, Json]] = {"text": "", "number": 0, "truth": True, "list": []}
_WANTED: Final[dict[str, Kind]] = {"$in": "list", "$exists": "truth"}
_OWN_TENANT: Final = tuple(f"{{{name}}}" for name in TENANT_VARIABLES)


@dataclass(frozen=True, slots=True)
class QueryFault:
    """What keeps a query from being asked, where in it, and what to do."""

    path: Path
    fact: str
    hint: str


def query_faults(subject: Subject, template: JsonMap) -> Iterator[QueryFault]:
    """Yield what a store of documents would refuse in a query, whatever the values are."""
    try:
        parse_query(cast("JsonMap", _filled(subject, template, "")))
    except ExpressionError as error:
        hint = error.hint or "correct the query"
        yield QueryFault((), f"cannot be asked: {error}", hint)
    for path in _tenants(template, ()):
        fact = f"names a tenant by {path[-1]}: a run finds the documents of its own tenant alone"
        yield QueryFault(path, fact, f'take "{path[-1]}" out of the query')


def _filled(subject: Subject, part: Json, key: str) -> Json:
    """Return a query with values such as the variables have that it puts in."""
    match part:
        case dict():
            fields = cast("JsonMap", part)
            return {name: _filled(subject, it, name) for name, it in fields.items()}
        case list():
            return [_filled(subject, it, key) for it in cast("list[Json]", part)]
        case str():
            pieces = parse_template(part)
            alone = pieces[0] if len(pieces) == 1 else None
            return (
                _value(subject, alone.name, key) if isinstance(alone, templates.Reference) else part
            )
        case _:
            return part


def _value(subject: Subject, name: str, key: str) -> Json:
    """Return what may stand for a variable, of the kind that is looked for if it can be."""
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
    """Yield where a query names a tenant other than by the run's own."""
    for key, value in query.items():
        if key in TENANT_VARIABLES and (path or value not in _OWN_TENANT):
            yield (*path, key)
        for index, inner in enumerate(cast("list[Json]", value) if isinstance(value, list) else ()):
            if key.startswith("$") and isinstance(inner, dict):
                yield from _tenants(cast("JsonMap", inner), (*path, key, index))


_ADDRESS: Final = re.compile(r"https?://[^\s/]", re.IGNORECASE)
_INSERTION: Final = re.compile(r"\{[A-Za-z_]")
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What an operating system can have set; not all of it is good style.
_LOOKED_UP: Final = re.compile(r"[^\s=\0]+")


@rule("VAR022", "variables", "models")
def value_can_be_fetched(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        path: Path = ("variables", name, "source")
        for need in needs_of(variable.source, path):
            yield from _objects(subject, name, need)
        match variable.source:
            case DatabaseSource() as source:
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
                    yield from login_hits(name, source.auth, (*path, "auth"))
            case EnvironmentSource() as source:
                yield from _looked_up(name, source, (*path, "env_var"))
            case FileSource() as source:
                yield from _opened(subject, name, source, (*path, "path"))
            case _:
                continue


@rule("NAME001", "variables")
def needed_is_declared(subject: Subject) -> Iterator[Hit]:
    return unknown_names(subject, _references(subject))


def _references(subject: Subject) -> Iterator[Reference]:
    """Yield the variables that sources need to be read."""
    for name, variable in subject.spec.variables.items():
        source = variable.source
        for need in needs_of(source, ("variables", name, "source")):
            if need.offset is not None:
                what = f"the {'query' if 'query_template' in need.path else 'url'} of {name}"
                yield insertion(what, need)
            elif not isinstance(source, EntitySource) or need.name in (
                source.document or [need.name]
            ):
                # The rule about schemas reports a field that the schema does not have.
                yield Reference(need.path, "variable", need.name, f"{name} is searched by")


def insertion(what: str, need: Need) -> Reference:
    """Return the reference of a text that inserts a variable."""
    literally = f"or write {{{{{need.name}}}}} for the text {{{need.name}}}"
    return Reference(need.path, "variable", need.name, f"{what} inserts", need.offset, literally)


def _objects(subject: Subject, name: str, need: Need) -> Iterator[Hit]:
    """Report an object that a document is searched by: no field equals one."""
    known = subject.spec.variables.get(need.name)
    if need.offset is None and known is not None and kinds_of(known.type) <= {"object"}:
        message = f"{name} is searched by {need.name}, which is an object: no field equals it"
        yield Hit(need.path, message, hint=("search by one of its fields",))


def _whole_document(name: str, variable: Variable, field: str | None = None) -> Iterator[Hit]:
    """Report a variable that takes no object, and gets a document, which is one."""
    if field is None and "object" not in kinds_of(variable.type):
        document = isinstance(variable.source, EntitySource)
        yield Hit(
            ("variables", name, "type"),
            f"{name} is a document (an object), which is not {short(print_type(variable.type))}",
            hint=("set the type to dict or to a model",)
            if document
            else ('name the "field" of the document that is meant', "or set the type to dict"),
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


def _opened(subject: Subject, name: str, source: FileSource, path: Path) -> Iterator[Hit]:
    """Report a file that is not there; with a default, or where nobody has looked, it need not."""
    if subject.files is None or source.default is not None or why_not_read(source.path):
        return
    if source.path not in subject.files:
        yield Hit(
            path,
            f"{name} is read from {source.path}, which does not exist",
            hint=("add the file to the package, or correct the path", "or give it a default"),
            severity="warning",
        )


def login_hits(name: str, auth: ServiceAuth, path: Path) -> Iterator[Hit]:
    yield from secret_name_hits(name, auth.secret_env, (*path, "secret_env"))
    if auth.type != "header" and "header" in auth.model_fields_set:
        yield Hit(
            (*path, "header"),
            f"the header of {name} is not used: signing in by {auth.type} has its own",
            hint=('remove "header"', 'or set the type to "header"'),
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
    for name, variable in subject.spec.variables.items():
        when = read_at(variable.source)
        for need in needs_of(variable.source, ("variables", name, "source")):
            needed = subject.spec.variables.get(need.name)
            if needed is None:
                continue  # a built-in one has its value always; of others VAR022 speaks
            # What is secret is read when a tool asks for it, whatever its source says.
            late = not variable.secret and known_from(subject, need.name) >= when
            if late or needed.secret:
                moment = "the run begins" if when == PREPARED else "a turn begins"
                why = "is secret and has no value in a run" if needed.secret else "is not there yet"
                yield Hit(
                    need.path,
                    f"{name} is read when {moment}, by {need.name}, which {why}",
                    hint=(_SIGN_IN,) if needed.secret else (_FOUND_BY, _READ_LATER),
                    offset=need.offset,
                    length=None if need.offset is None else len(need.name),
                )


_SIGN_IN: Final = 'use a variable that is not secret; for a service use "auth"'
_FOUND_BY: Final = "find it by a built-in, static, environment or derived variable"
_READ_LATER: Final = 'or read the one once, and the other with "refresh_strategy": "per_phase"'
