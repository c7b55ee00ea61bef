"""Family VAR, sixth part: whether a value can be fetched from where it is said to come from."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.rules import rule
from weft.check.secrets import secret_in
from weft.check.subject import Hit, Subject
from weft.check.suggestions import did_you_mean, respelling
from weft.check.values import texts_in
from weft.findings import Path
from weft.spec.sources import DatabaseSource, ExternalSource, ServiceAuth
from weft.spec.templates import references

#: An address may also begin with a variable that holds its first part.
_ADDRESS: Final = re.compile(r"https?://[^\s/]|\{[A-Za-z_]", re.IGNORECASE)
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@rule("VAR022", "variables")
def value_can_be_fetched(subject: Subject) -> Iterator[Hit]:
    """What a source says about how it is asked can be carried out."""
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
            case _:
                continue


def _search(subject: Subject, name: str, source: DatabaseSource, path: Path) -> Iterator[Hit]:
    field = source.search_by
    if field is not None and field not in subject.variable_names:
        known = subject.variable_names
        yield Hit(
            (*path, "search_by"),
            f'{name} is found by "{field}", which is no variable of the run',
            hint=did_you_mean(field, known)
            or ("name a declared or built-in variable, or use query_template",),
            fix=respelling((*path, "search_by"), field, known),
        )


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
