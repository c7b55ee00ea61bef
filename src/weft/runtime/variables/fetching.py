"""Fetching: external values that a turn or a run needs, read through ports as events."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar, cast

from weft.context.segment import values_of
from weft.context.user_code import error_type, user_code
from weft.engine.commands import Fetch
from weft.engine.events import ContextFetched, EventData, VariableSet
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.engine.variables.conditions import same
from weft.errors import PortError, ToolError, UsageError
from weft.findings import Json
from weft.ports.external import ExternalPorts, ToolServer
from weft.runtime.variables.json_values import masked
from weft.runtime.variables.sources import Reading, login, read_source
from weft.runtime.workflow import Workflow
from weft.spec.templates import Reference, parse_template, references
from weft.spec.tools import McpServer, SecretRef
from weft.spec.type_meaning import validation_error
from weft.spec.variables import EnvironmentSource, ExternalSource, FileSource

T = TypeVar("T")

_log: Final = logging.getLogger("weft.runtime")

#: The prefix of the origin of a server's tools.
SERVER: Final = "mcp:"


async def fetch(
    outside: ExternalPorts, workflow: Workflow, state: State, command: Fetch
) -> list[EventData]:
    """Read everything concurrently; an unreadable variable gets its default, or is an error."""
    names = command.names
    servers = [server for server in workflow.spec.mcp_servers if command.servers]
    read = [read_variable(outside, workflow, state, command.turn, name) for name in names]
    listed = [_listed(outside, workflow, state.app, server) for server in servers]
    found: dict[str, Json] = {}
    faults: dict[str, str] = {}
    writes: list[EventData] = []
    for name, (reading, fault) in zip(names, await _all(read), strict=True):
        if fault:
            faults[name] = fault
        if reading is None:
            continue
        found[name] = reading.note
        if not same(state.values_of(command.turn).get(name), reading.value):
            writes.append(set_by_source(workflow, name, reading.value))
    tools: dict[str, list[dict[str, Json]]] | None = {} if servers else None
    for server, listing in zip(servers, await _all(listed), strict=True):
        if isinstance(listing, str):
            faults[f"{SERVER}{server.name}"] = listing
        elif tools is not None:
            tools[server.name] = listing
    return [*writes, ContextFetched(found, faults, tools)]


async def _all(reading: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Await everything concurrently; a single coroutine needs no task."""
    if len(reading) > 1:
        return await asyncio.gather(*reading)
    return [await task for task in reading]


def set_by_source(workflow: Workflow, name: str, value: Json) -> VariableSet:
    """Return the event for a variable that was read."""
    return VariableSet(name, value, f"source:{workflow.spec.variables[name].source.type}")


async def read_variable(
    outside: ExternalPorts,
    workflow: Workflow,
    state: State,
    turn: int,
    name: str,
    values: Mapping[str, Json] | None = None,
    key: str = "",
) -> tuple[Reading | None, str]:
    """Read a variable; return its value, default or None, and the error if it was unreadable.

    `values` replaces the values of the turn in its query. With a `key` its service is called.
    """
    source = workflow.spec.variables[name].source
    values = values_of(state, turn) if values is None else values
    begun = time.perf_counter()
    try:
        _require_set(workflow, name, values)
        with user_code:
            reading = await read_source(
                outside, source, app=state.app, workflow=workflow.name, values=values, key=key
            )
        fault = _value_error(workflow, state, turn, name, reading.value)
    except (PortError, UsageError) as error:
        reading, fault = None, str(error)
    except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
        # Without the message, which may quote what was read.
        reading, fault = None, f"it failed unexpectedly, with {error_type(error)}"
        _log.error("reading %s failed with %s", name, error_type(error))
    took: dict[str, Json] = {"ms": round((time.perf_counter() - begun) * 1000, 1)}
    if reading is not None and not fault:
        return Reading(reading.value, {**reading.note, **took}), ""
    default: Json = getattr(source, "default", None)
    if default is None or key:  # The caller of a service must know that it failed.
        return None, fault
    return Reading(default, {"default": True, **took}), fault


def _value_error(workflow: Workflow, state: State, turn: int, name: str, value: Json) -> str:
    compiled = workflow.compiled
    variable = compiled.variables[name]
    fault = value_error(compiled, state.values_of(turn), name, value)
    # A missing document is not an error; an empty answer of a service or file is.
    if value is None and isinstance(variable.source, ExternalSource | FileSource):
        fault = validation_error(variable.type, None, compiled.models)
    if not fault:
        return ""
    return "it has the wrong shape" if variable.secret else f"it has the wrong shape: {fault}"


def _require_set(workflow: Workflow, name: str, values: Mapping[str, Json]) -> None:
    """Raise UsageError if the url of a service uses an environment variable that is not set."""
    source = workflow.spec.variables[name].source
    for part in references(source.url) if isinstance(source, ExternalSource) else ():
        needed = workflow.spec.variables.get(part.name)
        if needed and isinstance(needed.source, EnvironmentSource) and not values.get(part.name):
            raise _not_set(needed.source.env_var)


def _not_set(name: str) -> UsageError:
    return UsageError(f"the environment variable {name} is not set", hint=f"set {name}")


async def _listed(
    outside: ExternalPorts, workflow: Workflow, app: str, server: McpServer
) -> list[dict[str, Json]] | str:
    """Return the allowed tools of a server as models see them, or the error."""
    if outside.servers is None:
        return "this host has no tool servers"
    try:
        reached = reach(server, workflow, outside, app)
        offered = await outside.servers.tools(reached)
    except (ToolError, UsageError) as error:
        return str(error)
    there = {tool.schema.name: tool for tool in offered}
    wanted = there if server.allow is None else server.allow
    missing = [name for name in wanted if name not in there]
    if missing:
        known = ", ".join(there) or "none"
        return f"it has no tool {', '.join(missing)}; available: {known}"
    return [
        {
            "name": f"{server.name}_{name}",
            "tool": name,
            "description": there[name].schema.description,
            "parameters": there[name].schema.parameters,
            "reads": there[name].reads,
        }
        for name in wanted
    ]


def reach(server: McpServer, workflow: Workflow, outside: ExternalPorts, app: str) -> ToolServer:
    """Return the connection settings of a server with its secrets; raises UsageError."""
    return ToolServer(
        app=app,
        name=server.name,
        command=server.command,
        url=_server_address(server.url or "", workflow, outside.environment),
        env={name: _secret(setting, outside.environment) for name, setting in server.env.items()},
        login=None if server.auth is None else login(server.auth, outside.environment),
        folder=outside.folder,
        timeout=server.timeout_seconds,
    )


def _server_address(url: str, workflow: Workflow, environment: Mapping[str, str]) -> str:
    """Return the address of a server; it may begin with a variable of the environment."""
    first = next(iter(parse_template(url)), "")
    if not isinstance(first, Reference):
        return url
    source = cast("EnvironmentSource", workflow.spec.variables[first.name].source)
    base = environment.get(source.env_var) or source.default
    if not base:
        raise _not_set(source.env_var)
    return f"{base}{url[len(first.name) + 2 :]}"


def _secret(value: str | SecretRef, environment: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    found = environment.get(value.secret_env)
    if found is None:
        raise _not_set(value.secret_env)
    return found


def hidden_settings(workflow: Workflow, environment: Mapping[str, str]) -> dict[str, Json]:
    """Return the secrets of servers and services, which are masked in texts."""
    names: list[str] = []
    for server in workflow.spec.mcp_servers:
        names += [
            setting.secret_env for setting in server.env.values() if isinstance(setting, SecretRef)
        ]
        names += [server.auth.secret_env] if server.auth else []
    for variable in workflow.spec.variables.values():
        auth = getattr(variable.source, "auth", None)
        names += [auth.secret_env] if auth else []
    known = {name: environment[name] for name in names if environment.get(name)}
    return {f"{name}.{at}": form for name in known for at, form in enumerate(forms_of(known[name]))}


def forms_of(secret: str) -> list[str]:
    """Return a secret and, if it is `user:password`, also the password."""
    return list(filter(None, (secret, secret.partition(":")[2])))


def without_secrets(events: Sequence[EventData], hidden: Mapping[str, Json]) -> list[EventData]:
    """Return the fetched values with secrets masked: a service may send one back."""
    return [_unsecret(event, hidden) for event in events] if hidden else list(events)


def _unsecret(data: EventData, hidden: Mapping[str, Json]) -> EventData:
    match data:
        case VariableSet(name=name, value=value, writer=writer):
            return VariableSet(name, masked(value, hidden), writer)
        case ContextFetched():
            whole = masked(cast("Json", asdict(data)), hidden)
            return ContextFetched(**cast("dict[str, Any]", whole))
        case _:
            return data
