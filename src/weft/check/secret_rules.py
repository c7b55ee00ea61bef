"""Family VAR, third part: secrets stay out of packages and out of the context."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.rules import rule
from weft.check.secrets import is_secret_file, secret_in
from weft.check.subject import Hit, Subject
from weft.check.values import declared_values, texts_in
from weft.findings import Path
from weft.spec.sources import ExternalSource, FileSource

_WRITTEN_DOWN: Final = frozenset({"static", "derived", "computed"})
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_URL_PARAMETER: Final = re.compile(r"[?&]([^=&#]+)=([^&#]*)")


@rule("VAR005", "variables")
def no_secret_is_written_down(subject: Subject) -> Iterator[Hit]:
    """No value that ships with the package looks like a secret."""
    for name, path, value in declared_values(subject):
        variable = subject.spec.variables[name]
        if variable.secret and variable.source.type in _WRITTEN_DOWN:
            continue  # VAR020 reports it
        for place, text in texts_in(value, path):
            label = name if place == path else _label(place)
            yield from _secret_hits(name, label, place, text)
    for name, variable in subject.spec.variables.items():
        if isinstance(variable.source, ExternalSource):
            yield from _url_hits(name, variable.source.url)


def _label(path: Path) -> str:
    """Return the last key on the way to a value: items of a list go by the name of the list."""
    return next(str(step) for step in reversed(path) if isinstance(step, str))


def _secret_hits(name: str, label: str, path: Path, text: str) -> Iterator[Hit]:
    kind = secret_in(label, text)
    if kind:
        yield Hit(
            path,
            f"{name} seems to hold a secret, {kind}, which everyone who has the package can read",
            hint=(
                'take it from an "environment" variable with "secret": true',
                "and make the written one invalid: it may have been seen",
            ),
        )


def _url_hits(name: str, url: str) -> Iterator[Hit]:
    path = ("variables", name, "source", "url")
    found = [*_secret_hits(name, "url", path, url)]
    for parameter in _URL_PARAMETER.finditer(url):
        found += _secret_hits(name, parameter[1], path, parameter[2])
    yield from found[:1]


@rule("VAR018", "variables")
def file_may_be_read(subject: Subject) -> Iterator[Hit]:
    """A file variable names a file inside the folder, and none that holds secrets."""
    for name, variable in subject.spec.variables.items():
        source = variable.source
        reason = _why_not_read(source.path) if isinstance(source, FileSource) else None
        if reason:
            yield Hit(
                ("variables", name, "source", "path"),
                f"{name} cannot be read from this file: {reason}",
                hint=("name a file below the package folder, such as data/prices.json",),
            )


def _why_not_read(path: str) -> str | None:
    if path.startswith(("/", "~")) or _DRIVE.match(path):
        return "the path does not start in the package folder"
    if "\\" in path or "\0" in path:
        return "folders in a path are parted by /"
    if ".." in path.split("/"):
        return "the path leads out of the package folder"
    if is_secret_file(path):
        return "such files hold secrets"
    return None


@rule("VAR020", "variables")
def secret_has_a_keeper(subject: Subject) -> Iterator[Hit]:
    """A secret comes from outside the package and the run."""
    for name, variable in subject.spec.variables.items():
        kind = variable.source.type
        if variable.secret and kind in _WRITTEN_DOWN:
            yield Hit(
                ("variables", name, "source", "type"),
                f"{name} is secret, but its source is {kind}, which keeps the value in the open",
                hint=('use an "environment", "external" or "file" source', 'or remove "secret"'),
            )
