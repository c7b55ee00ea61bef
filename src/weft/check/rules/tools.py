"""Family TOOL: every declared tool has code, and the code can be called as declared."""

import builtins
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from weft.check.code.facts import reachable
from weft.check.code.functions import CONTEXT_NAMES, PLAIN_NAME, Parameter
from weft.check.code.modules import UI_CALL, Module
from weft.check.rules.code import tool_entries, with_code
from weft.check.rules.sources import address_hits, secret_name_hits
from weft.check.spelling import did_you_mean, listed
from weft.check.subject import Hit, Subject, rule
from weft.findings import Fix, Path, SetValue
from weft.spec.templates import Reference, parse_template
from weft.spec.tools import SecretRef, UiTool
from weft.spec.variables import EnvironmentSource

#: How long a description may be; a model reads all of them before every reply.
MAX_DESCRIPTION: Final = 140


@rule("TOOL004", "tools", "code")
def parameters_can_be_told(subject: Subject) -> Iterator[Hit]:
    seen: set[tuple[str, str]] = set()
    for entry, module, function in with_code(tool_entries(subject)):
        key = (module.path, function.name)
        if key in seen:
            continue
        seen.add(key)
        path = (*entry.path, "function")
        own = [one for one in function.parameters if one.kind in ("positional", "keyword")]
        bare = [one for one in own if not one.hinted and not one.injected]
        if bare:
            yield Hit(
                path,
                f"{function.name} has no type hint for {listed(one.name for one in bare)}",
                hint=(_type_hint(bare[0].name),),
                place=module.place(bare[0].spot),
            )
        yield from _unreadable_hints(path, module, own)


def _type_hint(name: str) -> str:
    if name in CONTEXT_NAMES:
        return f"write {name}: Context if it takes the context, or the type of the argument"
    return f"write the type, for example {name}: str"


def _unreadable_hints(path: Path, module: Module, parameters: list[Parameter]) -> Iterator[Hit]:
    """Report the type hints with a name that the file does not have."""
    for one in parameters:
        # The run passes the context to this parameter.
        names = sorted(one.hint_names) if one.name != PLAIN_NAME else []
        unknown = [
            name for name in names if not module.defines(name) and not hasattr(builtins, name)
        ]
        if unknown:
            yield Hit(
                path,
                f"the type hint of {one.name} names {listed(unknown)}, "
                f"which {module.path} neither defines nor imports",
                hint=did_you_mean(unknown[0], module.definitions)
                or (f"import {unknown[0]}, or correct the hint",),
                severity="error",
                place=module.place(one.spot),
            )


@rule("TOOL006", "tools")
def description_fits(subject: Subject) -> Iterator[Hit]:
    for entry in tool_entries(subject):
        text, path = entry.declared.description, (*entry.path, "description")
        summary = entry.function.summary if entry.function else ""
        if not text and summary:
            # The model is then sent the docstring.
            if len(summary) > MAX_DESCRIPTION:
                yield Hit(
                    (*entry.path, "function"),
                    f"{entry.name} has no description, and the first line of its docstring has "
                    f"{len(summary)} characters, {MAX_DESCRIPTION} are the limit",
                    hint=("describe in one sentence what it does and when to call it",),
                )
        elif not text.strip():
            adopt = Fix("take the first line of the docstring", (SetValue(path, summary),))
            yield Hit(
                (*entry.path, "function"),
                f"{entry.name} has no description",
                hint=("describe in one sentence what it does and when to call it",),
                fix=adopt if 0 < len(summary) <= MAX_DESCRIPTION else None,
            )
        elif len(text) > MAX_DESCRIPTION:
            yield Hit(
                path,
                f"the description of {entry.declared.function} has {len(text)} characters, "
                f"{MAX_DESCRIPTION} are the limit",
                hint=("keep what it does and when to call it; the rest belongs in the prompt",),
                offset=MAX_DESCRIPTION,
                length=len(text) - MAX_DESCRIPTION,
            )


@rule("TOOL010", "tools", "code")
def ui_tool_asks(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(tool_entries(subject)):
        used = reachable(subject, module.path, function.name)
        if isinstance(entry.declared, UiTool) and not any(
            UI_CALL in definition.mentions for definition in used
        ):
            yield Hit(
                (*entry.path, "function"),
                f"the UI tool {function.name} never calls {UI_CALL}",
                hint=(
                    f"call {UI_CALL} and wait for the answer",
                    "or declare it as Agent_Tool",
                ),
                place=module.place(function.spot),
            )


# -- servers whose tools agents may use


@rule("TOOL013", "mcp_servers", "variables")
def server_can_be_reached(subject: Subject) -> Iterator[Hit]:
    for index, server in enumerate(subject.spec.mcp_servers):
        path: Path = ("mcp_servers", index)
        if server.url is not None:
            yield from _address_hits(subject, server.name, server.url, (*path, "url"))
        if server.auth is not None:
            at = (*path, "auth", "secret_env")
            yield from secret_name_hits(server.name, server.auth.secret_env, at)
        for name, value in server.env.items():
            if isinstance(value, SecretRef):
                at = (*path, "env", name, "secret_env")
                yield from secret_name_hits(server.name, value.secret_env, at)


def _address_hits(subject: Subject, server: str, url: str, path: Path) -> Iterator[Hit]:
    """Report an invalid URL; it may begin with a variable that holds its first part."""
    what = f"the url of the tool server {server}"
    first = next(iter(parse_template(url)), "")
    if not isinstance(first, Reference):
        yield from address_hits(what, url, path)
        return
    variable = subject.spec.variables.get(first.name)
    if variable is None or variable.secret or not isinstance(variable.source, EnvironmentSource):
        yield Hit(
            path,
            f"{what} begins with {{{first.name}}}, which is not a public environment variable",
            hint=(f'declare {first.name} with a source of type "environment"', "or write it out"),
            offset=first.offset,
            length=len(first.name),
        )


@rule("TOOL014", "mcp_servers")
def server_is_spoken_to_in_private(subject: Subject) -> Iterator[Hit]:
    for index, server in enumerate(subject.spec.mcp_servers):
        if server.url and server.url.lower().startswith("http://") and not _is_local(server.url):
            yield Hit(
                ("mcp_servers", index, "url"),
                f"the traffic to the tool server {server.name} is not encrypted: "
                "its url begins with http://",
                hint=("use https:// if the server supports it",),
            )


def _is_local(url: str) -> bool:
    """Return whether a URL refers to this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
