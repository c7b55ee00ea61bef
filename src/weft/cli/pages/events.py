"""Events in one line each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from weft.check.values import without_secrets
from weft.cli.pages.board import (
    id_list,
    missed_text,
    short_id,
    slice_text,
    timer_text,
    woken_text,
)
from weft.cli.pages.flow import branched_text, context_texts, flow_line
from weft.cli.streams import at_time, counted, shortened, value_text
from weft.engine import events
from weft.engine.events import Event, EventData
from weft.engine.events.kinds import HookPoint
from weft.findings import Json
from weft.inspect.board import slice_records
from weft.inspect.calls import FetchRecord, fetch_records
from weft.inspect.handoffs import HandoffRecord, Judgement, condition_of, judgement_record
from weft.inspect.variables import HIDDEN_VALUE, is_secret
from weft.runtime.workflow import Workflow

#: The reasons for a handoff without a condition.
_REASONS: Final = {
    "rule": "a rule without a condition",
    "fallback": "no other rule applies",
    "pattern": "the pattern says so",
    "default": "no rule names another agent",
    "start": "the run starts with it",
    "reply_limit": "it reached its limit of replies in a row",
    "joined": "the group is done",
    "chosen": "its model chose so",
}

#: Why a reply is incomplete.
_ENDS: Final = {
    events.CUT: "was truncated (token limit)",
    "content_filter": "was truncated by the provider's content filter",
}


#: The hook points of an activation on a board.
_BOARD_HOOKS: Final[dict[str, str]] = {
    "engine": "{} works",
    "publish": "components check the artifacts to publish",
    "post_publish": "components are notified of the artifacts",
    "error": "components are notified of the failed turn",
}

#: The greatest length of a value in a line, and of a sentence that quotes values.
_VALUE: Final = 80
_QUOTING: Final = 200


def summary(event: Event, workflow: Workflow) -> str:
    """Return an event in one line; empty for an event that needs no words."""
    line = flow_line(event, workflow)
    if line is not None:
        return line
    template = _TEMPLATES.get(type(event.data))
    if template is not None:
        return template.format(event=event, data=event.data)
    return _SUMMARIES[type(event.data)](event, event.data, workflow)


def reason_of(record: HandoffRecord) -> str:
    """Return the reason for a handoff."""
    return record.condition or _REASONS[record.why]


def how_it_ended(finish: str) -> str:
    """Return why a reply ended where it did."""
    return _ENDS.get(finish) or f"ended with {finish}"


def replacement_text(model: str, instead_of: str) -> str:
    """Return which model answered in place of which, and why."""
    return f"{model or 'another model'} answers instead of {instead_of}"


def hook_text(hook: HookPoint | None, variable: str, function: str) -> str:
    """Return which function is called at a hook point, and for what."""
    if hook == "computed":
        return f"{function} computes {variable}"
    if hook == "trigger":
        return f"{function} decides {variable}"
    return _BOARD_HOOKS.get(hook or "", f"{{}} ({hook})").format(function)


def fetched_text(record: FetchRecord) -> str:
    """Return where a value was read, how long that took, and what failed."""
    took = "" if record.ms is None else f" ({record.ms:g} ms)"
    match record.how:
        case "found" if record.tools is not None:
            return f"{record.origin}: {counted(len(record.tools), 'tool')}"
        case "found":
            return f"{record.origin} from {record.where}{took}"
        case "not found":
            return f"{record.origin}: nothing in {record.where}{took}"
        case "default":
            reason = record.error or f"there is nothing in {record.where}"
            return f"{record.origin}: its default, because {reason}{took}"
        case "error":
            return f"{record.origin} could not be read: {record.error}"


def writer_text(writer: str, inputs: Sequence[str] = ()) -> str:
    """Return what set a variable, to follow the word "set"."""
    if writer == "computed":
        return f"computed from {', '.join(inputs)}" if inputs else "computed"
    kind = writer.removeprefix("source:")
    if writer.startswith("step:"):
        return f"by step {writer.removeprefix('step:')}"
    return f"by {writer}" if kind == writer else f"from the {kind} source"


def preview(value: Json, name: str = "") -> str:
    """Return the beginning of a value, without anything that looks like a secret."""
    return shortened(value_text(without_secrets(name, value, HIDDEN_VALUE)), _VALUE)


def progress_text(share: float, text: str) -> str:
    """Return the progress of a tool."""
    return f"{share:.0%} {text}".rstrip()


def document_text(name: str, error: str) -> str:
    """Return whether a document was written."""
    return f"the document of {name} was " + (f"not written: {error}" if error else "written")


def judgement_text(record: Judgement) -> str:
    """Return what a model judged, and its verdict."""
    if record.error:
        return f"could not judge whether {record.condition}: {record.error}"
    if record.comparison:
        return f"compared the messages with the descriptions of {record.comparison}"
    return f"judged whether {record.condition}: {record.verdict}"


def _turn(event: Event, data: events.TurnStarted, workflow: Workflow) -> str:
    return f"turn {event.turn}: {woken_text(workflow, data) if data.step else data.agent}"


def _assembled(_event: Event, data: events.ContextAssembled, _workflow: Workflow) -> str:
    tokens = data.manifest.get("tokens")
    unit = "token" if tokens == 1 else "tokens"
    return f"call {data.call} of {data.agent} is sent about {tokens} {unit}"


def _replied(event: Event, data: events.ModelReplied, workflow: Workflow) -> str:
    text = data.text if data.shown is None else data.shown
    said = [text] if text.strip() else []
    if data.tool_requests:
        said.append(f"asks for {', '.join(request.tool for request in data.tool_requests)}")
    elif not said:
        said.append(_silence(event, data, workflow))
    if data.finish:
        said.append(f"the reply {how_it_ended(data.finish)}")
    if data.instead_of:
        said.append(replacement_text(data.model, data.instead_of))
    return "; ".join((*said, *data.retries))


def _silence(event: Event, data: events.ModelReplied, workflow: Workflow) -> str:
    """Return why a reply shows no text."""
    if not data.text.strip():
        return "says nothing"
    rules = workflow.compiled.agents.get(event.actor.removeprefix("agent:"))
    hooked = rules is not None and rules.send
    return "replied; its hooks process the reply first" if hooked else "has nothing to show"


def _model_failed(_event: Event, data: events.ModelFailed, _workflow: Workflow) -> str:
    return "; ".join((f"the model gave no answer: {data.error}", *data.retries))


def _called(_event: Event, data: events.ToolCalled, _workflow: Workflow) -> str:
    if data.hook and data.hook != "handoff":
        return hook_text(data.hook, data.variable, data.tool)
    return f"tool {data.tool}({_arguments(data.arguments)})"


def _arguments(arguments: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={preview(value, name)}" for name, value in arguments.items())


def _returned(event: Event, data: events.ToolReturned, _workflow: Workflow) -> str:
    text = f"{event.actor.removeprefix('tool:')} returned {preview(data.value)}"
    return f"{text} ({progress_text(*data.progress)})" if data.progress else text


def _consulted(event: Event, data: events.ModelConsulted, _workflow: Workflow) -> str:
    return f"{event.actor.removeprefix('tool:')} asked the model: {preview(data.text)}"


def _surface(_event: Event, data: events.SurfaceShown, _workflow: Workflow) -> str:
    return f"{data.tool} shows {data.component} ({data.mode}): {preview(data.payload)}"


def _sent(_event: Event, data: events.MessageSent, _workflow: Workflow) -> str:
    return data.text if data.text.strip() else "says nothing"


def _fetched(event: Event, data: events.ContextFetched, workflow: Workflow) -> str:
    texts = [fetched_text(record) for record in fetch_records(workflow, event, data)]
    if data.step is not None:
        texts += context_texts(data.step)
    board: Any = data.board or {}
    texts += [slice_text(record) for record in slice_records(board)]
    if board.get("verdict"):
        texts.append(f"nothing: components say {board['verdict']}")
    return f"fetched {'; '.join(texts) or 'nothing'}"


def _written(_event: Event, data: events.DocumentWritten, _workflow: Workflow) -> str:
    return document_text(data.name, data.fault)


def _judged(event: Event, data: events.ConditionJudged, workflow: Workflow) -> str:
    return judgement_text(judgement_record(workflow, event, data))


def _tool_failed(event: Event, data: events.ToolFailed, _workflow: Workflow) -> str:
    what = "refused" if data.kind == "refused" else "failed"
    tool = event.actor.removeprefix("tool:") if event.actor.startswith("tool:") else "the tool"
    # The text of an error in the code of a tool names the tool itself.
    return data.error if data.error.startswith(f"{tool} ") else f"{tool} {what}: {data.error}"


def _set(_event: Event, data: events.VariableSet, workflow: Workflow) -> str:
    value = HIDDEN_VALUE if is_secret(workflow, data.name) else preview(data.value, data.name)
    return f"{data.name} = {value} ({writer_text(data.writer)})"


def _not_set(_event: Event, data: events.VariableRefused, _workflow: Workflow) -> str:
    return f"{data.name} is not set {writer_text(data.writer)}: {shortened(data.fault, _QUOTING)}"


def _opened(_event: Event, data: events.RequestOpened, _workflow: Workflow) -> str:
    if data.kind == "chat":
        return "waits for the user"
    return f"{data.tool} asks {data.addressee or 'a person'}: {preview(data.payload)}"


def _answered(_event: Event, data: events.RequestAnswered, _workflow: Workflow) -> str:
    return f"{data.user} answers: {preview(data.value)}"


def _handed(_event: Event, data: events.HandedOff, workflow: Workflow) -> str:
    reason = condition_of(workflow, data) or _REASONS[data.why]
    return f"{data.source} -> {data.target}, because {reason}"


def _forked(_event: Event, data: events.Forked, _workflow: Workflow) -> str:
    return f"{data.name}: {', '.join(data.members)} in parallel"


def _joined(_event: Event, data: events.Joined, _workflow: Workflow) -> str:
    turns = ", ".join(map(str, data.turns))
    what = f"turns {turns} count" if len(data.turns) > 1 else f"turn {turns} counts"
    return f"{data.name} is done: {data.text or what}"


def _branched(_event: Event, data: events.Branched, workflow: Workflow) -> str:
    return branched_text(workflow, data)


def _timer_set(_event: Event, data: events.TimerSet, _workflow: Workflow) -> str:
    if data.why == "board":
        return timer_text(data)
    return f"{data.why} at {at_time(data.at, '%H:%M:%S')}"


def _timer_fired(_event: Event, data: events.TimerFired, _workflow: Workflow) -> str:
    return f"timer {data.id.partition(':')[0]} fired"


def _stop(_event: Event, data: events.StopAsked, _workflow: Workflow) -> str:
    return f"{data.user} stops the run{'' if data.mode == 'now' else ' after this turn'}"


def _published(_event: Event, data: events.ArtifactPublished, _workflow: Workflow) -> str:
    notes = [counted(len(data.tags), "tag")] if data.tags else []
    if data.direct:
        notes.append(f"only for {data.direct}")
    if data.delay:
        notes.append(f"visible in {data.delay / 1000:g} s")
    notes += [f"collected in {run}" for run in data.letters]
    aside = f" ({', '.join(notes)})" if notes else ""
    return f"{data.by} publishes {data.type} {short_id(data.id)}{aside}: {preview(data.payload)}"


def _arrived(_event: Event, data: events.ArtifactArrived, _workflow: Workflow) -> str:
    what = f"{data.type} {short_id(data.id)} of {data.by}"
    return f"{what} arrives from {data.correlation} for {data.subscription}"


def _missed(_event: Event, data: events.DeliveryMissed, _workflow: Workflow) -> str:
    # The event before says why the turn failed.
    detail = "" if data.why == "failed" else data.detail
    return missed_text(data.subscription, data.artifacts, data.why, detail)


def _deferred(_event: Event, data: events.DeliveryDeferred, _workflow: Workflow) -> str:
    until = at_time(data.at, "%H:%M:%S")
    return f"{data.subscription} is deferred until {until} ({id_list(data.artifacts)})"


#: Events whose line needs nothing but their own fields.
_TEMPLATES: Final[dict[type[EventData], str]] = {
    events.RunStarted: "{data.workflow} starts",
    events.RunForked: "forked from run {data.parent} after event {data.seq}",
    events.MessageShown: "{data.text}",
    events.OutputRefused: "the reply is rejected: {data.fault}",
    events.RequestExpired: "no answer in time",
    events.TurnEnded: "",
    events.TurnFailed: "the turn failed: {data.error}",
    events.BatchesFlushed: "{data.user} processes all pending batches now",
    events.RunEnding: "about to end, {data.outcome}: {data.reason}",
    events.RunEnded: "{data.outcome}: {data.reason}",
}

_Summary: TypeAlias = Callable[[Event, Any, Workflow], str]

_SUMMARIES: Final[dict[type[EventData], _Summary]] = {
    events.ArtifactPublished: _published,
    events.TurnStarted: _turn,
    events.ContextAssembled: _assembled,
    events.ModelReplied: _replied,
    events.ModelFailed: _model_failed,
    events.ToolCalled: _called,
    events.ToolReturned: _returned,
    events.ToolFailed: _tool_failed,
    events.ModelConsulted: _consulted,
    events.SurfaceShown: _surface,
    events.MessageSent: _sent,
    events.ContextFetched: _fetched,
    events.DocumentWritten: _written,
    events.ConditionJudged: _judged,
    events.VariableSet: _set,
    events.VariableRefused: _not_set,
    events.RequestOpened: _opened,
    events.RequestAnswered: _answered,
    events.Forked: _forked,
    events.Joined: _joined,
    events.Branched: _branched,
    events.TimerSet: _timer_set,
    events.TimerFired: _timer_fired,
    events.HandedOff: _handed,
    events.StopAsked: _stop,
    events.ArtifactArrived: _arrived,
    events.DeliveryMissed: _missed,
    events.DeliveryDeferred: _deferred,
}
