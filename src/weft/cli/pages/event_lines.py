"""Events in one line each."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from weft.cli.text import at_time, value_text
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    EventData,
    Forked,
    HandedOff,
    Joined,
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
    TimerFired,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.findings import Json
from weft.inspect.handoffs import HandoffRecord, condition_of
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
    "joined": "the group is done",
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
    return f"{data.workflow} starts"


def _forked(_event: Event, data: RunForked, _workflow: Workflow) -> str:
    return f"forked from run {data.parent} after event {data.seq}"


def _shown(_event: Event, data: MessageShown, _workflow: Workflow) -> str:
    return data.text


def _turn(event: Event, data: TurnStarted, _workflow: Workflow) -> str:
    return f"turn {event.turn}: {data.agent}"


def _assembled(_event: Event, data: ContextAssembled, _workflow: Workflow) -> str:
    tokens = data.manifest.get("tokens")
    unit = "token" if tokens == 1 else "tokens"
    return f"call {data.call} of {data.agent} is sent about {tokens} {unit}"


def _replied(_event: Event, data: ModelReplied, _workflow: Workflow) -> str:
    asked = ", ".join(it.tool for it in data.tool_requests)
    text = data.text if data.shown is None else data.shown
    said = [text] if text.strip() else []
    if asked:
        said.append(f"asks for {asked}")
    elif not said:
        said.append("says nothing")
    if data.finish:
        said.append(f"the reply {how_it_ended(data.finish)}")
    if data.instead_of:
        said.append(who_stood_in(data.model, data.instead_of))
    return "; ".join((*said, *data.retries))


def _failed(_event: Event, data: ModelFailed, _workflow: Workflow) -> str:
    return "; ".join((f"the model gave no answer: {data.error}", *data.retries))


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


def _handed(_event: Event, data: HandedOff, workflow: Workflow) -> str:
    reason = condition_of(workflow, data) or _WHY[data.why]
    return f"{data.source} -> {data.target}, because {reason}"


def _turn_failed(_event: Event, data: TurnFailed, _workflow: Workflow) -> str:
    return f"the turn failed: {data.error}"


def _forked_group(_event: Event, data: Forked, _workflow: Workflow) -> str:
    return f"{data.name}: {', '.join(data.members)} side by side"


def _joined(_event: Event, data: Joined, _workflow: Workflow) -> str:
    turns = ", ".join(map(str, data.turns))
    what = f"turns {turns} count" if len(data.turns) > 1 else f"turn {turns} counts"
    return f"{data.name} is done: {data.text or what}"


def _timer_set(_event: Event, data: TimerSet, _workflow: Workflow) -> str:
    return f"{data.why} at {at_time(data.at, '%H:%M:%S')}"


def _timer_fired(_event: Event, data: TimerFired, _workflow: Workflow) -> str:
    return f"{data.id.partition(':')[0]}: its time has come"


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
    TurnFailed: _turn_failed,
    Forked: _forked_group,
    Joined: _joined,
    TimerSet: _timer_set,
    TimerFired: _timer_fired,
    HandedOff: _handed,
    StopAsked: _stop,
    RunEnded: _ended,
}
