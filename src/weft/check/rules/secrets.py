"""Family VAR, third part: secrets stay out of packages and out of the context."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.secrets import is_secret_file, secret_in
from weft.check.subject import Hit, Subject, rule
from weft.check.values import declared_values, is_open_secret, label_of, texts_in
from weft.findings import Path
from weft.ids import name_error
from weft.spec.agents import LiteralIngredient
from weft.spec.tools import McpServer
from weft.spec.variables import EnvironmentSource, ExternalSource, FileSource

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_URL_PARAMETER: Final = re.compile(r"[?&]([^=&#]+)=([^&#]*)")


_TAKEN_FROM_OUTSIDE: Final = 'take it from an "environment" variable with "secret": true'
_GIVEN_UP: Final = "and make the written one invalid: it may have been seen"


@rule("VAR005", "variables", "agents", "orchestrator", "mcp_servers")
def no_secret_is_written_down(subject: Subject) -> Iterator[Hit]:
    for name, path, value in declared_values(subject):
        if is_open_secret(subject.spec.variables[name]):
            continue
        variable = subject.spec.variables[name]
        outside = variable.secret and isinstance(variable.source, EnvironmentSource)
        instead = 'remove "default"' if outside else _TAKEN_FROM_OUTSIDE
        for at, text in texts_in(value, ()):
            yield from _secret_hits(name, label_of(name, at), (*path, *at), text, instead)
    for name, source in subject.sources(ExternalSource):
        yield from _url_hits(name, ("variables", name, "source", "url"), source.url)
    for index, server in enumerate(subject.spec.mcp_servers):
        yield from _server_hits(server, ("mcp_servers", index))
    for what, path, text in _words(subject):
        kind = secret_in("text", text)
        if kind:
            yield Hit(
                path,
                f"{what} looks like a secret ({kind}), which every model it is sent to and "
                "everyone who has the package can read",
                hint=(f"let a tool use it, and {_TAKEN_FROM_OUTSIDE}", _GIVEN_UP),
            )


def _words(subject: Subject) -> Iterator[tuple[str, Path, str]]:
    """Yield the texts that are sent to models and people as they are written."""
    for index, agent in enumerate(subject.spec.agents):
        path: Path = ("agents", index)
        for number, section in enumerate(agent.prompt_sections):
            at = (*path, "prompt_sections", number)
            yield f"the prompt of {agent.agent_name}", (*at, "content"), section.content
            yield f"a heading of {agent.agent_name}", (*at, "heading"), section.heading or ""
        for number, ingredient in enumerate(agent.context):
            if isinstance(ingredient, LiteralIngredient):
                at = (*path, "context", number, "text")
                yield f"a text in the context of {agent.agent_name}", at, ingredient.text
    first = subject.spec.orchestrator
    for key in ("initial_message", "initial_message_to_user"):
        yield f"the {key}", ("orchestrator", key), getattr(first, key) or ""


def _secret_hits(
    name: str, label: str, path: Path, text: str, instead: str = _TAKEN_FROM_OUTSIDE
) -> Iterator[Hit]:
    kind = secret_in(label, text)
    if kind:
        yield Hit(
            path,
            f"{name} looks like a secret ({kind}), which everyone with the package can read",
            hint=(instead, _GIVEN_UP),
        )


def _server_hits(server: McpServer, path: Path) -> Iterator[Hit]:
    name = f"the tool server {server.name}"
    for key, value in server.env.items():
        kind = secret_in(key, value) if isinstance(value, str) else None
        if kind:
            yield Hit(
                (*path, "env", key),
                f"{name} seems to contain a secret, {kind}, which everyone who has the package "
                "can read",
                hint=(f'write {{"secret_env": "{key}"}}, and set that where Weft runs', _GIVEN_UP),
            )
    for index, word in enumerate(server.command):
        yield from _secret_hits(name, "argument", (*path, "command", index), word)
    yield from _url_hits(name, (*path, "url"), server.url or "")


def _url_hits(name: str, path: Path, url: str) -> Iterator[Hit]:
    found = [*_secret_hits(name, "url", path, url)]
    for parameter in _URL_PARAMETER.finditer(url):
        found += _secret_hits(name, parameter[1], path, parameter[2])
    yield from found[:1]


@rule("VAR018", "variables")
def file_may_be_read(subject: Subject) -> Iterator[Hit]:
    for name, source in subject.sources(FileSource):
        reason = why_not_read(source.path)
        if reason:
            yield Hit(
                ("variables", name, "source", "path"),
                f"{name} cannot be read from this file: {reason}",
                hint=("name a file below the package folder, such as data/prices.json",),
            )


def why_not_read(path: str) -> str | None:
    """Return why a file must not be read into a variable, or None."""
    if path.startswith(("/", "~")) or _DRIVE.match(path):
        return "the path does not start in the package folder"
    if "\\" in path or "\0" in path:
        return "folders in a path are parted by /"
    if ".." in path.split("/"):
        return "the path leads out of the package folder"
    if is_secret_file(path):
        return "such files hold secrets"
    fault = name_error("/".join(part for part in path.split("/") if part not in {"", "."}))
    return f"its name {fault}" if fault else None


@rule("VAR020", "variables")
def secret_has_a_keeper(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        if is_open_secret(variable):
            kind = variable.source.type
            yield Hit(
                ("variables", name, "source", "type"),
                f"{name} is secret, but its source is {kind}, which stores the value visibly",
                hint=(
                    'use an "environment", "database", "external" or "file" source',
                    'or remove "secret"',
                ),
            )
