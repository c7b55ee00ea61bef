"""What a server sends, as the objects that a host in this process gives."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic_core import to_json

from weft.engine.events import KINDS, Event
from weft.engine.events.codec import decode
from weft.engine.rows import OpenRequest, RunRow
from weft.errors import LinkError, PortError
from weft.ports.live import Delta, ModelRetry, TextDelta, ToolProgress
from weft.ports.model import ToolSchema
from weft.ports.tools import Tools
from weft.runtime.workflow import LINKING, NoTools, Workflow, hidden_sources, link, unpack

#: What is null in a row if it is unknown: `unpriced_calls` and `unmetered_calls` say so too.
_UNKNOWN: Final = ("turns", "calls", "cost_usd", "unpriced_calls", "input_tokens", "output_tokens")


def event_of(data: Mapping[str, Any]) -> Event:
    """Return an event."""
    if data["kind"] not in KINDS:
        raise PortError(f"the server has events of kind {data['kind']}: it has a newer Weft")
    content = decode(data["kind"], to_json(data["data"]))
    return Event(data["seq"], data["ts"], data["actor"], data["cause"], data["turn"], content)


def delta_of(data: Mapping[str, Any]) -> Delta:
    """Return a piece of text, a repeated model call, or the progress of a tool."""
    content, run = data["data"], data["run"]
    match data["kind"]:
        case "progress":
            tool, share = content["tool"], content["share"]
            return ToolProgress(run, content["call"], tool, share, content["text"])
        case "delta":
            return TextDelta(run, content["call"], content["offset"], content["text"])
        case _:
            return ModelRetry(run, content["call"], content["text"])


def row_of(data: Mapping[str, Any]) -> RunRow:
    """Return the summary of a run; what the server does not tell an end user is 0 or empty."""
    found: dict[str, Any] = {**dict.fromkeys(_UNKNOWN, 0), "outcome": None, "reason": ""}
    found |= {name: data[name] for name in RunRow._fields if data.get(name) is not None}
    return RunRow(**found)


def request_of(data: Mapping[str, Any]) -> OpenRequest:
    """Return an open request, with the schema of its answer."""
    found: dict[str, Any] = {**data, "sets": tuple(data.get("sets", ()))}
    request = OpenRequest(**{name: found[name] for name in OpenRequest._fields})
    request.response_schema = found["response_schema"]
    return request


def workflow_of(content: bytes, digest: str, tools: Mapping[str, Mapping[str, Any]]) -> Workflow:
    """Return a workflow whose code is on the server: it can be read, and calls nothing."""
    why = LinkError(f"the code of the package {digest[:12]} is on the server")
    schemas = {name: ToolSchema(**schema) for name, schema in tools.items()}
    linking = replace(LINKING, suppressed=hidden_sources(digest), reading=True)
    return replace(link(*unpack(content), _NoCode(why, schemas), linking), missing=None)


class _NoCode:
    """Loads no code: a client calls nothing of a package."""

    def __init__(self, why: LinkError, schemas: Mapping[str, ToolSchema]) -> None:
        self._why = why
        self._tools = NoTools(why, schemas)

    def load(self, *_: object, **__: object) -> Tools:
        """Return the tools without their code."""
        return self._tools

    def objects(self, digest: str, names: Iterable[str]) -> dict[str, object]:  # noqa: ARG002
        """Raise LinkError: the code is not here."""
        raise self._why

    def unload(self, digest: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
