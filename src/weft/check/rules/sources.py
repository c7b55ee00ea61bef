"""Family VAR, sixth part: whether a value can be fetched from where it is said to come from."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.rule import rule
from weft.check.rules.comparisons import kinds_of
from weft.check.rules.needs import (
    PREPARED,
    Need,
    known_from,
    needs_of,
    read_at,
    unknown_insertion,
)
from weft.check.rules.queries import query_faults
from weft.check.rules.secrets import why_not_read
from weft.check.secrets import secret_in
from weft.check.spelling import short, unknown_name
from weft.check.subject import Hit, Subject
from weft.findings import Path
from weft.spec.types import print_type
from weft.spec.variables import (
    DatabaseSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
    ServiceAuth,
    Source,
    Variable,
)

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
            yield from _needed(subject, name, variable.source, need)
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


def _needed(subject: Subject, name: str, source: Source, need: Need) -> Iterator[Hit]:
    known = subject.spec.variables.get(need.name)
    if need.name in subject.variable_names:
        if need.offset is None and known is not None and kinds_of(known.type) <= {"object"}:
            fact = f"{name} is found by {need.name}, an object, which no field equals"
            yield Hit(need.path, fact, hint=("find it by one of its fields",))
    elif need.offset is not None:
        what = "query" if "query_template" in need.path else "url"
        yield unknown_insertion(subject, f"the {what} of {name}", need)
    elif not isinstance(source, EntitySource) or need.name in (source.document or [need.name]):
        # Of a field that the schema of an entity does not have, VAR019 speaks.
        fact = f'{name} is found by "{need.name}", which is no variable of the run'
        otherwise = "name a declared or built-in variable"
        yield unknown_name(need.path, need.name, subject.variable_names, fact, otherwise)


def _whole_document(name: str, variable: Variable, field: str | None = None) -> Iterator[Hit]:
    """Report a variable that takes no object, and gets a document, which is one."""
    if field is None and "object" not in kinds_of(variable.type):
        document = isinstance(variable.source, EntitySource)
        yield Hit(
            ("variables", name, "type"),
            f"{name} is a document, an object, which never fits {short(print_type(variable.type))}",
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
                f"{name} may decide handoffs, but is read for the turns that are shown it alone",
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


_SIGN_IN: Final = "find it by something that is no secret; a service knows us by its auth"
_FOUND_BY: Final = "find it by a built-in, static, environment or derived variable"
_READ_LATER: Final = 'or read the one once, and the other with "refresh_strategy": "per_phase"'
