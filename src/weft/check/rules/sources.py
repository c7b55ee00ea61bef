"""Family VAR, sixth part: whether a value can be fetched from where it is said to come from."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.rule import rule
from weft.check.rules.secrets import why_not_read
from weft.check.secrets import secret_in
from weft.check.spelling import did_you_mean, unknown_name
from weft.check.subject import Hit, Subject
from weft.check.values import texts_in
from weft.findings import Path
from weft.spec.templates import references
from weft.spec.variables import (
    DatabaseSource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
    ServiceAuth,
)

#: An address may also begin with a variable that holds its first part.
_ADDRESS: Final = re.compile(r"https?://[^\s/]|\{[A-Za-z_]", re.IGNORECASE)
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What an operating system can have set; not all of it is good style.
_LOOKED_UP: Final = re.compile(r"[^\s=\0]+")


@rule("VAR022", "variables")
def value_can_be_fetched(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        path: Path = ("variables", name, "source")
        match variable.source:
            case DatabaseSource() as source:
                yield from _search(subject, name, source, path)
                for at, text in texts_in(source.query_template, (*path, "query_template")):
                    yield from _inserted(subject, f"the query of {name}", text, at)
            case ExternalSource() as source:
                yield from _address(name, source.url, (*path, "url"))
                yield from _inserted(subject, f"the url of {name}", source.url, (*path, "url"))
                if source.auth:
                    yield from _signing_in(name, source.auth, (*path, "auth"))
            case EnvironmentSource() as source:
                yield from _looked_up(name, source, (*path, "env_var"))
            case FileSource() as source:
                yield from _opened(subject, name, source, (*path, "path"))
            case _:
                continue


def _search(subject: Subject, name: str, source: DatabaseSource, path: Path) -> Iterator[Hit]:
    field = source.search_by
    if field is not None and field not in subject.variable_names:
        fact = f'{name} is found by "{field}", which is no variable of the run'
        otherwise = "name a declared or built-in variable, or use query_template"
        yield unknown_name((*path, "search_by"), field, subject.variable_names, fact, otherwise)


def _inserted(subject: Subject, what: str, text: str, path: Path) -> Iterator[Hit]:
    for found in references(text):
        if found.name not in subject.variable_names:
            yield Hit(
                path,
                f'{what} puts in "{found.name}", which is no variable',
                hint=did_you_mean(found.name, subject.variable_names)
                or (
                    f"declare it, or write {{{{{found.name}}}}} if the braces are meant literally",
                ),
                offset=found.offset,
                length=len(found.name),
            )


def _address(name: str, url: str, path: Path) -> Iterator[Hit]:
    if not _ADDRESS.match(url):
        yield Hit(
            path,
            f"the url of {name} does not begin with https:// or http:// and the name of a server",
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


def _signing_in(name: str, auth: ServiceAuth, path: Path) -> Iterator[Hit]:
    secret = auth.secret_env
    # The text is not repeated: it may be the secret itself.
    if not _ENVIRONMENT_NAME.fullmatch(secret) or secret_in("text", secret):
        yield Hit(
            (*path, "secret_env"),
            f"the secret_env of {name} is not the name of an environment variable",
            hint=("write a name such as CRM_KEY, and put the secret into that variable",),
        )
    if auth.type != "header" and "header" in auth.model_fields_set:
        yield Hit(
            (*path, "header"),
            f"the header of {name} is not used: signing in by {auth.type} has its own",
            hint=('remove "header"', 'or set the type to "header"'),
        )
