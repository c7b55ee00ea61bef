"""Families NAME and TOOL: servers whose tools agents may use."""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from weft.check.rules.sources import address_hits, login_hits, secret_name_hits
from weft.check.subject import Hit, Subject, rule
from weft.findings import Path
from weft.spec.templates import Reference, parse_template
from weft.spec.tools import McpServer, SecretRef
from weft.spec.variables import EnvironmentSource

#: Begins the names of all its tools, which models take only so long and of these characters.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")


@rule("NAME011", "mcp_servers")
def server_has_a_name_of_its_own(subject: Subject) -> Iterator[Hit]:
    met: dict[str, int] = {}
    for index, server in enumerate(subject.spec.mcp_servers):
        path = ("mcp_servers", index, "name")
        first = met.setdefault(server.name, index)
        if not _NAME.fullmatch(server.name):
            yield Hit(
                path,
                f'"{server.name}" cannot be the name of a tool server: its tools begin with it',
                hint=("write a letter, then up to 30 letters, digits, _ and -",),
            )
        elif first != index:
            yield Hit(
                path,
                f'two tool servers are named "{server.name}"',
                cause=(f"server number {first + 1} of the file has this name already",),
                hint=("give one of them another name, or remove it",),
            )


@rule("TOOL013", "mcp_servers", "variables")
def server_can_be_reached(subject: Subject) -> Iterator[Hit]:
    for index, server in enumerate(subject.spec.mcp_servers):
        path: Path = ("mcp_servers", index)
        yield from _way_to(server, path)
        if server.url is not None:
            yield from _address_hits(subject, server.name, server.url, (*path, "url"))
        if server.auth is not None:
            yield from login_hits(server.name, server.auth, (*path, "auth"))
        for name, value in server.env.items():
            if isinstance(value, SecretRef):
                at = (*path, "env", name, "secret_env")
                yield from secret_name_hits(server.name, value.secret_env, at)


def _address_hits(subject: Subject, server: str, url: str, path: Path) -> Iterator[Hit]:
    """Report a url that is none; it may begin with a variable that holds its first part."""
    what = f"the url of the tool server {server}"
    first = next(iter(parse_template(url)), "")
    if not isinstance(first, Reference):
        yield from address_hits(what, url, path)
        return
    variable = subject.spec.variables.get(first.name)
    if variable is None or variable.secret or not isinstance(variable.source, EnvironmentSource):
        yield Hit(
            path,
            f"{what} begins with {{{first.name}}}, which is no open environment variable",
            hint=(f'declare {first.name} with a source of type "environment"', "or write it out"),
            offset=first.offset,
            length=len(first.name),
        )


def _way_to(server: McpServer, path: Path) -> Iterator[Hit]:
    name = f"the tool server {server.name}"
    if not server.command and server.url is None:
        yield Hit(
            path,
            f"{name} has neither a command that starts it nor a url",
            hint=('add "command" with a program and its arguments', 'or add "url"'),
        )
    elif server.command and server.url is not None:
        yield Hit(
            (*path, "url"),
            f"{name} has a command that starts it and a url as well",
            hint=('keep either "command" or "url"',),
        )
    elif server.auth is not None and server.url is None:
        yield Hit(
            (*path, "auth"),
            f"{name} is a program, to which nobody signs in: its auth is not used",
            hint=('give it the secret in "env": {"KEY": {"secret_env": "KEY"}}',),
        )
    elif server.env and not server.command:
        yield Hit(
            (*path, "env"),
            f"{name} runs already, elsewhere: its env is not used",
            hint=('remove "env", or start the server with "command"',),
        )


@rule("TOOL014", "mcp_servers")
def server_is_spoken_to_in_private(subject: Subject) -> Iterator[Hit]:
    for index, server in enumerate(subject.spec.mcp_servers):
        if server.url and server.url.lower().startswith("http://") and not _is_local(server.url):
            yield Hit(
                ("mcp_servers", index, "url"),
                f"what is said to the tool server {server.name} can be read on its way: "
                "its url begins with http://",
                hint=("write https:// if the server knows it",),
            )


def _is_local(url: str) -> bool:
    """Tell whether an address is one of this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
