"""Events in one line each."""

from collections.abc import Sequence
from typing import Any, Final, cast

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
from weft.runtime.runs.effects import repeated_text
from weft.runtime.workflow import Workflow
from weft.wire.events import readable_text

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

#: Marks a reply that its automatic tool has still to accept.
_HELD: Final = " (not shown to users yet)"

#: The greatest length of a value in a line, and of a sentence that quotes values.
_VALUE: Final = 80
_QUOTING: Final = 200


def summary(event: Event, workflow: Workflow) -> str:
    """Return an event in one line; empty for an event that needs no words."""
    line = flow_line(event, workflow) if workflow.compiled.flow is not None else None
    if line is None and type(event.data) in _TEMPLATES:
        return _TEMPLATES[type(event.data)].format(data=event.data)
    for line_of in (_turn_line, _call_line, _outside_line):
        line = line_of(event, workflow) if line is None else line
    return cast("str", line)


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


def _repeated(abandoned_by: str) -> str:
    return f" ({repeated_text(abandoned_by)})" if abandoned_by else ""


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


def _turn_line(event: Event, workflow: Workflow) -> str | None:
    """Return a line about a turn: its model calls, what it says, and what follows it."""
    text: str | None = None
    match event.data:
        case events.TurnStarted() as data:
            text = f"turn {event.turn}: {woken_text(workflow, data) if data.step else data.agent}"
        case events.ContextFetched() as data:
            text = f"fetched {_fetched(event, data, workflow) or 'nothing'}"
        case events.ContextAssembled(call=call, agent=agent, manifest=manifest):
            tokens = manifest.get("tokens")
            unit = "token" if tokens == 1 else "tokens"
            text = f"call {call} of {agent} is sent about {tokens} {unit}"
        case events.ModelReplied() as data:
            text = _replied(event, data, workflow)
        case events.ModelFailed(error=error, retries=retries):
            text = "; ".join((f"the model gave no answer: {error}", *retries))
        case events.MessageSent(agent=agent, text=said, held=held):
            text = readable_text(workflow, agent, said) or "says nothing"
            text += _HELD if held else ""
        case events.ConditionJudged() as data:
            text = judgement_text(judgement_record(workflow, event, data))
        case events.HandedOff(source=source, target=target, why=why) as data:
            text = f"{source} -> {target}, because {condition_of(workflow, data) or _REASONS[why]}"
        case events.Forked(name=name, members=members):
            text = f"{name}: {', '.join(members)} in parallel"
        case events.Joined(name=name, text=said, turns=turns):
            numbers = ", ".join(map(str, turns))
            counts = f"turns {numbers} count" if len(turns) > 1 else f"turn {numbers} counts"
            text = f"{name} is done: {said or counts}"
        case events.Branched() as data:
            text = branched_text(workflow, data)
        case _:
            pass
    return text


def _fetched(event: Event, data: events.ContextFetched, workflow: Workflow) -> str:
    texts = [fetched_text(record) for record in fetch_records(workflow, event, data)]
    if data.step is not None:
        texts += context_texts(data.step)
    board: Any = data.board or {}
    texts += [slice_text(record) for record in slice_records(board)]
    if board.get("verdict"):
        texts.append(f"nothing: components say {board['verdict']}")
    return "; ".join(texts)


def _replied(event: Event, data: events.ModelReplied, workflow: Workflow) -> str:
    text = data.text if data.shown is None else data.shown
    said = [text + (_HELD if data.held else "")] if text.strip() else []
    if data.tool_requests:
        said.append(f"asks for {', '.join(request.tool for request in data.tool_requests)}")
    elif not said:
        said.append(_silence(event, data, workflow))
    if data.finish_reason:
        said.append(f"the reply {how_it_ended(data.finish_reason)}")
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


def _call_line(event: Event, workflow: Workflow) -> str | None:
    """Return a line about a tool, a variable or a request."""
    text: str | None = None
    tool = event.actor.removeprefix("tool:")
    match event.data:
        case events.ToolCalled(hook=hook) as data if hook and hook != "handoff":
            text = hook_text(hook, data.variable, data.tool)
        case events.ToolCalled(tool=tool, arguments=arguments):
            given = (f"{name}={preview(value, name)}" for name, value in arguments.items())
            text = f"tool {tool}({', '.join(given)})"
        case events.ToolReturned(value=value, progress=progress, abandoned_by=abandoned_by):
            reached = f" ({progress_text(*progress)})" if progress else ""
            text = f"{tool} returned {preview(value)}{reached}{_repeated(abandoned_by)}"
        case events.ToolFailed(error=error, kind=kind, abandoned_by=abandoned_by):
            name = tool if event.actor.startswith("tool:") else "the tool"
            what = "refused" if kind == "refused" else "failed"
            # The text of an error in the code of a tool names the tool itself.
            text = error if error.startswith(f"{name} ") else f"{name} {what}: {error}"
            text += _repeated(abandoned_by)
        case events.ModelConsulted(text=said):
            text = f"{tool} asked the model: {preview(said)}"
        case events.SurfaceShown() as data:
            text = f"{data.tool} shows {data.component} ({data.mode}): {preview(data.payload)}"
        case events.DocumentWritten(name=name, error=error):
            text = document_text(name, error)
        case events.VariableSet(name=name, value=value, writer=writer):
            shown = HIDDEN_VALUE if is_secret(workflow, name) else preview(value, name)
            text = f"{name} = {shown} ({writer_text(writer)})"
        case events.VariableRefused(name=name, writer=writer, error=error):
            text = f"{name} is not set {writer_text(writer)}: {shortened(error, _QUOTING)}"
        case events.RequestOpened(kind=kind) as data:
            asked = f"{data.tool} asks {data.addressee or 'a person'}: {preview(data.payload)}"
            text = "waits for the user" if kind == "chat" else asked
        case events.RequestAnswered(user=user, value=value):
            text = f"{user} answers: {preview(value)}"
        case _:
            pass
    return text


def _outside_line(event: Event, _workflow: Workflow) -> str | None:
    """Return a line about a timer, a stop, or an artifact."""
    text: str | None = None
    match event.data:
        case events.TimerSet(why=why, at=at) as data:
            own = why == "board"
            text = timer_text(data) if own else f"{why} at {at_time(at, '%H:%M:%S')}"
        case events.TimerFired(id=id_):
            text = f"timer {id_.partition(':')[0]} fired"
        case events.StopRequested(user=user, mode=mode):
            text = f"{user} stops the run{'' if mode == 'now' else ' after this turn'}"
        case events.ArtifactPublished() as data:
            text = _published(data)
        case events.ArtifactArrived() as data:
            what = f"{data.type} {short_id(data.id)} of {data.by}"
            text = f"{what} arrives from {data.correlation} for {data.subscription}"
        case events.DeliveryMissed(why=why) as data:
            # The event before says why the turn failed.
            text = missed_text(data, is_known=why == "failed")
        case events.DeliveryDeferred(at=at, artifacts=artifacts) as data:
            until = f"{at_time(at, '%H:%M:%S')} ({id_list(artifacts)})"
            text = f"{data.subscription} is deferred until {until}"
        case _:
            pass
    return text


def _published(data: events.ArtifactPublished) -> str:
    notes = [counted(len(data.tags), "tag")] if data.tags else []
    if data.direct:
        notes.append(f"only for {data.direct}")
    if data.delay:
        notes.append(f"visible in {data.delay / 1000:g} s")
    notes += [f"collected in {run}" for run in data.forwarded_to]
    aside = f" ({', '.join(notes)})" if notes else ""
    return f"{data.by} publishes {data.type} {short_id(data.id)}{aside}: {preview(data.payload)}"


#: Events whose line needs nothing but their own fields.
_TEMPLATES: Final[dict[type[EventData], str]] = {
    events.RunStarted: "{data.workflow} starts",
    events.RunForked: "forked from run {data.parent} after event {data.seq}",
    events.MessageShown: "{data.text}",
    events.OutputRefused: "the reply is rejected: {data.error}",
    events.RequestExpired: "no answer in time",
    events.TurnEnded: "",
    events.TurnFailed: "the turn failed: {data.error}",
    events.BatchesFlushed: "{data.user} processes all pending batches now",
    events.RunEnding: "about to end, {data.outcome}: {data.reason}",
    events.RunEnded: "{data.outcome}: {data.reason}",
}
