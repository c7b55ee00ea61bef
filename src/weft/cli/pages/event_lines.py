"""Events in one line each."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from weft.cli.text import value_text
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    EventData,
    HandedOff,
    MessageShown,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunForked,
    RunStarted,
    StopAsked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.findings import Json
from weft.inspect.handoffs import HandoffRecord, handoff_record
from weft.inspect.variables import UNSHOWN, is_secret
from weft.runtime.workflow import Workflow

#: Why a turn was handed off, where no condition decided it.
_WHY: Final = {
    "rule": "a rule without a condition",
    "fallback": "no other rule applies",
    "pattern": "the pattern says so",
    "default": "no rule names another",
    "start": "the run starts with it",
    "reply_limit": "it reached its limit of replies in a row",
}

#: Why a reply ended before it was done.
_ENDS: Final = {
    CUT: "was truncated (token limit)",
    "content_filter": "was truncated by the provider's content filter",
}


def summary(event: Event, workflow: Workflow) -> str:
    """Say what happened in one line; nothing where it needs no words."""
    return _SUMMARIES[type(event.data)](event, event.data, workflow)


def reason_of(record: HandoffRecord) -> str:
    """Say why a turn was handed off."""
    return record.condition or _WHY[record.why]


def how_it_ended(finish: str) -> str:
    """Say of a reply why it ended where it did."""
    return _ENDS.get(finish) or f"ended with {finish}"


def who_stood_in(model: str, instead_of: str) -> str:
    """Say that another model answered than the one that was to, and why."""
    return f"{model or 'another model'} answers instead of {instead_of}"


def _arguments(arguments: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in arguments.items())


def _started(_event: Event, data: RunStarted, _workflow: Workflow) -> str:
    return f"{data.workflow} starts" + (f": {data.message}" if data.message else "")


def _forked(_event: Event, data: RunForked, _workflow: Workflow) -> str:
    return f"forked from run {data.parent} after event {data.seq}"


def _shown(_event: Event, data: MessageShown, _workflow: Workflow) -> str:
    return data.text


def _turn(_event: Event, data: TurnStarted, _workflow: Workflow) -> str:
    return f"turn {data.turn}: {data.agent}"


def _assembled(_event: Event, data: ContextAssembled, _workflow: Workflow) -> str:
    tokens = data.manifest.get("tokens")
    unit = "token" if tokens == 1 else "tokens"
    return f"call {data.call} of {data.agent} is sent about {tokens} {unit}"


def _replied(_event: Event, data: ModelReplied, _workflow: Workflow) -> str:
    asked = ", ".join(it.tool for it in data.tool_requests)
    said = [data.text] if data.text.strip() else []
    if asked:
        said.append(f"asks for {asked}")
    elif not said:
        said.append("says nothing")
    if data.finish:
        said.append(f"the reply {how_it_ended(data.finish)}")
    if data.instead_of:
        said.append(who_stood_in(data.model, data.instead_of))
    return "; ".join(said)


def _failed(_event: Event, data: ModelFailed, _workflow: Workflow) -> str:
    return f"the model gave no answer: {data.error}"


def _refused(_event: Event, data: OutputRefused, _workflow: Workflow) -> str:
    return f"the reply is rejected: {data.fault}"


def _called(_event: Event, data: ToolCalled, _workflow: Workflow) -> str:
    return f"tool {data.tool}({_arguments(data.arguments)})"


def _returned(event: Event, data: ToolReturned, _workflow: Workflow) -> str:
    return f"{event.actor.removeprefix('tool:')} returned {value_text(data.value)}"


def _tool_failed(event: Event, data: ToolFailed, _workflow: Workflow) -> str:
    what = "refused" if data.kind == "refused" else "failed"
    tool = event.actor.removeprefix("tool:") if event.actor.startswith("tool:") else "the tool"
    # Where the code of a tool has failed, the text says so itself.
    return data.error if data.error.startswith(f"{tool} ") else f"{tool} {what}: {data.error}"


def _set(_event: Event, data: VariableSet, workflow: Workflow) -> str:
    value = UNSHOWN if is_secret(workflow, data.name) else value_text(data.value)
    return f"{data.name} = {value} (by {data.writer})"


def _not_set(_event: Event, data: VariableRefused, _workflow: Workflow) -> str:
    return f"{data.name} is not set by {data.writer}: {data.fault}"


def _opened(_event: Event, data: RequestOpened, _workflow: Workflow) -> str:
    if data.kind == "chat":
        return "waits for the user"
    return f"{data.tool} asks a person: {value_text(data.payload)}"


def _answered(_event: Event, data: RequestAnswered, _workflow: Workflow) -> str:
    return f"{data.user} answers: {value_text(data.value)}"


def _expired(_event: Event, _data: RequestExpired, _workflow: Workflow) -> str:
    return "no answer in time"


def _turn_ended(_event: Event, _data: TurnEnded, _workflow: Workflow) -> str:
    return ""


def _handed(event: Event, data: HandedOff, workflow: Workflow) -> str:
    record = handoff_record(workflow, event, data)
    return f"{data.source} -> {data.target}, because {reason_of(record)}"


def _stop(_event: Event, data: StopAsked, _workflow: Workflow) -> str:
    return f"{data.user} stops the run{'' if data.mode == 'now' else ' after this turn'}"


def _ended(_event: Event, data: RunEnded, _workflow: Workflow) -> str:
    return f"{data.outcome}: {data.reason}"


_Summary: TypeAlias = Callable[[Event, Any, Workflow], str]

_SUMMARIES: Final[dict[type[EventData], _Summary]] = {
    RunStarted: _started,
    RunForked: _forked,
    MessageShown: _shown,
    TurnStarted: _turn,
    ContextAssembled: _assembled,
    ModelReplied: _replied,
    ModelFailed: _failed,
    OutputRefused: _refused,
    ToolCalled: _called,
    ToolReturned: _returned,
    ToolFailed: _tool_failed,
    VariableSet: _set,
    VariableRefused: _not_set,
    RequestOpened: _opened,
    RequestAnswered: _answered,
    RequestExpired: _expired,
    TurnEnded: _turn_ended,
    HandedOff: _handed,
    StopAsked: _stop,
    RunEnded: _ended,
}


def words_of(text: str) -> str:
    """Return what an agent says to people: of a structured reply, the message in it."""
    if text.lstrip().startswith("{"):
        try:
            reply: Any = from_json(text)
        except ValueError:
            return text
        if isinstance(reply, dict) and isinstance(said := reply.get("agent_message"), str):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            return said
    return text
