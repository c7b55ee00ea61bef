"""A run as a page, one turn with the exact prompt, and two turns compared."""

import json
from collections.abc import Iterable, Sequence
from typing import Final, cast

from weft.cli.pages.board import add_board, add_board_outcome, add_board_turn
from weft.cli.pages.events import (
    document_text,
    fetched_text,
    hook_text,
    how_it_ended,
    judgement_text,
    progress_text,
    reason_of,
    replacement_text,
    writer_text,
)
from weft.cli.pages.flow import add_context, add_step_outcome, flow_lines, step_heading
from weft.cli.results import Page
from weft.cli.streams import Streams, at_time, counted, value_text
from weft.context.segment import LeftOut
from weft.engine.events.kinds import BOARD_HOOKS, STEP_HOOKS
from weft.findings import Json
from weft.inspect.calls import ToolUse
from weft.inspect.handoffs import HandoffRecord
from weft.inspect.run import RunInspection
from weft.inspect.spans import Span
from weft.inspect.turn import Prompt, TurnComparison, TurnInspection
from weft.inspect.turn_notes import ModelCall, TurnRecord
from weft.inspect.variables import Cause, VariableRecord
from weft.runtime.runs.effects import repeated_text
from weft.runtime.workflow import hidden_sources

#: Events that only connect a cause to its effect.
_INNER: Final = frozenset({"TurnStarted", "TurnEnded", "ContextAssembled"})

_MOST_LINKS: Final = 4

#: Writers of values that a package declares.
_DECLARED: Final = {"package": "the package", "default": "default"}


def run_page(inspection: RunInspection, streams: Streams) -> str:
    """Return a run as a page."""
    page, stacks = Page(streams), streams.settings.verbose
    is_idle = inspection.board and inspection.status == "waiting" and not inspection.requests
    status = inspection.outcome or ("idle" if is_idle else inspection.status)
    page.title(f"run {inspection.run} of {inspection.workflow}: {status}")
    page.lines(_facts(inspection))
    if inspection.board is not None:
        add_board(page, inspection.board)
    page.title("Variables")
    for variable in inspection.variables:
        _variable(page, variable)
    if not inspection.variables:
        page.line("none")
    _add_run_events(page, inspection)
    page.title("Turns" if inspection.flow is None else "Steps")
    for record in inspection.opening:
        _handoff(page, record, 2)
    branches = flow_lines(inspection.flow) if inspection.flow is not None else []
    for turn in inspection.turns:
        _add_branches(page, branches, turn.seq)
        add_turn(page, turn, stacks=stacks)
    _add_branches(page, branches, inspection.seq + 1)
    if not inspection.turns:
        page.line("no agent has taken a turn yet")
    if inspection.requests:
        page.title("Open requests")
        for request in inspection.requests:
            what = "a message" if request.kind == "chat" else f"{request.tool}"
            whom = f", of {request.addressee}" if request.addressee else ""
            page.line(f"{request.id}: {what}{whom}, since {at_time(request.opened_at)}")
    return str(page)


def _add_branches(page: Page, branches: list[tuple[int, str]], before: int) -> None:
    """Move the branches before an event from the list to the page."""
    while branches and branches[0][0] < before:
        page.line(branches.pop(0)[1], style="cyan")


def _add_run_events(page: Page, inspection: RunInspection) -> None:
    """Add what happened in the run outside of turns."""
    if not (inspection.fetched or inspection.points or inspection.judged or inspection.documents):
        return
    page.title("Before, between and after turns")
    page.lines(f"fetched {fetched_text(record)}" for record in inspection.fetched)
    _points(page, inspection.points, 2)
    page.lines(judgement_text(record) for record in inspection.judged)
    for record in inspection.documents:
        page.line(f"{document_text(record.name, record.error)} (as of event {record.value})")


def took_text(seconds: float, waited: float, digits: int = 2) -> str:
    """Say how long something took, and how long it waited for people."""
    took = f"{seconds:.{digits}f} s"
    return f"{took}, waited {waited:.{digits}f} s for answers" if waited else took


def _turn_heading(turn: TurnRecord) -> str:
    took = "" if turn.seconds is None else f"  {took_text(turn.seconds, turn.waited_seconds)}"
    group = f"  in the group {turn.group}" if turn.group else ""
    name = turn.agent
    if turn.step is not None:
        name = step_heading(turn.step, turn.agent).removeprefix("step ")
    return f"{turn.number}  {name}{group}{took}"


def add_turn(page: Page, turn: TurnRecord, *, stacks: bool = False) -> None:
    """Add a turn; `stacks` adds the tracebacks of failed steps."""
    page.line(_turn_heading(turn), style="bold")
    if turn.settings:
        settings = (f"{name} {value_text(value)}" for name, value in turn.settings.items())
        page.line(f"settings {', '.join(settings)}", 5, "dim")
    page.lines((f"fetched {fetched_text(record)}" for record in turn.fetched), 5)
    if turn.board is not None:
        add_board_turn(page, turn.board, 5)
    if turn.step is not None:
        add_context(page, turn.step, 5)
    first = turn.calls[0].seq if turn.calls else 0
    _points(page, [use for use in turn.points if use.seq < first], 5)
    _calls(page, turn)
    _points(page, [use for use in turn.points if use.seq > first], 5)
    if turn.sent is not None:
        page.line(f'says after its hooks "{" ".join(turn.sent.split())}"', 5)
    if turn.step is not None:
        add_step_outcome(page, turn.step, 5, stacks=stacks)
    else:
        if turn.variables:
            page.line(f"set {', '.join(turn.variables)}", 5)
        if turn.error is not None:
            page.line(f"failed: {turn.error}", 5)
    if turn.board is not None:
        add_board_outcome(page, turn.board, 5)
    page.lines((judgement_text(record) for record in turn.judged), 5)
    for record in turn.handoffs:
        _handoff(page, record, 5)


def _calls(page: Page, turn: TurnRecord) -> None:
    """Add the model calls and tool calls of a turn."""
    for call in turn.calls:
        page.line(_call(call), 5)
        for retry in call.retries:
            page.line(retry, 9, "dim")
    for use in turn.tools:
        page.line(_tool(use), 5)
        _aside(page, use, 9)


def _facts(inspection: RunInspection) -> list[str]:
    spent = inspection.spent
    seconds = (inspection.changed_at - inspection.started_at) / 1000
    facts = [inspection.reason] if inspection.reason else []
    started, events = at_time(inspection.started_at), counted(inspection.seq, "event")
    took = took_text(seconds - inspection.waited_seconds, inspection.waited_seconds, 1)
    facts.append(f"started {started}, {took}, {events}")
    facts.append(f"{counted(spent.calls, 'model call')}, {spent.tokens}, cost {spent.cost}")
    hidden = " and ".join(sorted(hidden_sources(inspection.digest)))
    without = f", run without the variables from {hidden}" if hidden else ""
    facts.append(f"package {inspection.digest[:12]}{without}")
    if inspection.other_package:
        facts.append("shown with another version of the package")
    if inspection.ending:
        facts.append(f"about to end, {inspection.ending.outcome}: {inspection.ending.reason}")
    if inspection.parent:
        facts.append(f"forked from run {inspection.parent}")
    return facts


def _variable(page: Page, variable: VariableRecord) -> None:
    shown = variable.shown if variable.secret else value_text(variable.value)
    page.line(f"{variable.name} = {shown}")
    origin = f"{variable.source}, {variable.type}"
    if not variable.history:
        page.line(f"{origin}; not set", 6, "dim")
    else:
        # The value that counts: in a group, another member may have set its own value later.
        counts = variable.causes[0].seq if variable.causes else 0
        changes = variable.history
        last = next((change for change in changes if change.seq == counts), changes[-1])
        sets = sum(change.writer not in _DECLARED for change in changes)
        times = f", set {sets} times" if sets > 1 else ""
        how = writer_text(_DECLARED.get(last.writer, last.writer), variable.inputs)
        set_ = "" if how.startswith("computed") else "set "
        page.line(f"{origin}; {set_}{how} at event {last.seq}{times}", 6, "dim")
        if len(variable.causes) > 1:
            page.line(f"because of {_chain(variable.causes[1:])}", 6, "dim")
    for refused in variable.refused:
        writer = refused.writer
        page.line(f"refused at event {refused.seq} from {writer}: {refused.error}", 6)


def _chain(causes: Sequence[Cause]) -> str:
    """Return a chain of causes; of a long one, the middle is left out."""
    links = [
        f"{cause.kind} {cause.seq} ({cause.actor})" for cause in causes if cause.kind not in _INNER
    ]
    if len(links) > _MOST_LINKS:
        links = [*links[: _MOST_LINKS - 1], "...", links[-1]]
    return " <- ".join(links)


def _call(call: ModelCall) -> str:
    sent = "" if call.sent_tokens is None else f"about {counted(call.sent_tokens, 'token')} "
    said = [f"call {call.call}: {sent}sent"]
    if call.answered is None:
        said.append("no answer yet")
    elif call.error is not None:
        said.append(f"failed after {counted(call.attempts, 'attempt')}: {call.error}")
    else:
        badge = "" if call.answerer == "model" else f" ({call.answerer})"
        said.append(f"{call.model or 'model'}{badge if call.answerer != call.model else ''}")
        said.append(f"{call.seconds:.2f} s")
        if call.tools:
            said.append(f"asks for {', '.join(call.tools)}")
        # Users never see a rejected reply, or one that hooks have not processed yet.
        words = call.text if call.refused else call.shown or call.text
        if words.strip():
            said.append(f'says "{" ".join(words.split())}"')
        elif not call.tools:
            said.append("says nothing")
        if call.finish_reason:
            said.append(how_it_ended(call.finish_reason))
        if call.instead_of:
            said.append(replacement_text(call.model, call.instead_of))
    if call.refused:
        said.append(f"rejected: {call.refused}")
    return ", ".join(said)


def _tool(use: ToolUse) -> str:
    took = "" if use.seconds is None else f" ({took_text(use.seconds, use.waited_seconds)})"
    result = use.error if use.error is not None else value_text(use.value)
    what = "open" if use.outcome == "open" else f"{use.outcome} {result}"
    return f"tool {use.tool}{' (automatic)' if use.auto else ''}: {what}{took}"


def _points(page: Page, uses: Iterable[ToolUse], margin: int) -> None:
    """Add the functions called at hook points, and what they changed."""
    for use in uses:
        if use.hook not in STEP_HOOKS:  # The step itself shows its values and its failure.
            _point(page, use, margin)


def _point(page: Page, use: ToolUse, margin: int) -> None:
    took = "" if use.seconds is None else f" ({took_text(use.seconds, use.waited_seconds)})"
    if use.outcome == "open":
        what = "open"
    elif use.error is not None:
        continued = "; the run continued without it" if use.went_on else ""
        reason = use.error.removeprefix(f"{use.tool} failed: ")
        what = f"{'failed' if use.outcome == 'error' else use.outcome}: {reason}{continued}"
    elif use.edits:
        what = f"changed {', '.join(_EDITED[edit.what] for edit in use.edits)}"
    else:  # On a board, the artifacts show what a function returned.
        is_quiet = use.value is None or use.hook in BOARD_HOOKS
        what = "done" if is_quiet else f"returned {value_text(use.value)}"
    page.line(f"{hook_text(use.hook, use.variable, use.tool)}: {what}{took}", margin)
    for edit in use.edits:
        for label, value in (("before", edit.before), ("after", edit.after)):
            text = value if isinstance(value, str) else value_text(value)
            page.line(f"{label}: {' '.join(text.split())}", margin + 4, "dim")
    _aside(page, use, margin + 4)


#: What hooks may change.
_EDITED: Final = {
    "system": "the instructions",
    "messages": "the messages",
    "last": "the last message",
    "message": "the reply",
}


def _aside(page: Page, use: ToolUse, margin: int) -> None:
    """Add what a call did besides its result."""
    if use.abandoned_by:
        page.line(repeated_text(use.abandoned_by), margin, "yellow")
    if use.progress is not None:
        page.line(f"reached {progress_text(*use.progress)}", margin, "dim")
    page.lines((f"fetched {fetched_text(record)}" for record in use.fetched), margin)
    for reply in use.consulted:
        who = reply.model or reply.answerer or "the model"
        page.line(f'asked {who}, which said "{" ".join(reply.text.split())}"', margin)
    for surface in use.surfaces:
        shown = f"{surface.component} ({surface.mode}): {value_text(surface.payload)}"
        page.line(f"showed {surface.tool} with {shown}", margin)


def _handoff(page: Page, record: HandoffRecord, margin: int) -> None:
    page.line(f"{record.source} -> {record.target}, because {reason_of(record)}", margin)
    # A single rule needs no list.
    if len(record.evaluated) > 1:
        asked = (
            ": ".join(filter(None, (rule.condition, rule.verdict))) for rule in record.evaluated
        )
        numbered = (f"{number} {rule}" for number, rule in enumerate(asked, start=1))
        page.line(f"asked: {'; '.join(numbered)}", margin + 4, "dim")


def turn_page(inspection: TurnInspection, streams: Streams) -> str:
    """Return a turn as a page, with the exact prompts."""
    page = Page(streams)
    page.title(f"run {inspection.run}, turn {inspection.record.number}: {inspection.record.agent}")
    add_turn(page, inspection.record, stacks=True)
    if inspection.values:
        page.title("Variables when the turn began")
        for name, value in inspection.values.items():
            page.line(f"{name} = {value}")
    if inspection.sets:
        page.title("Set in this turn")
        for change in inspection.sets:
            who = writer_text(change.writer)
            page.line(f"{change.name} = {change.shown}  ({who}, event {change.seq})")
    for prompt in inspection.prompts:
        _prompt(page, prompt)
    return str(page)


def comparison_page(comparison: TurnComparison, streams: Streams) -> str:
    """Return the differences between two turns as a page."""
    page = Page(streams)
    page.title(f"{comparison.before} compared with {comparison.after}")
    if comparison.values:
        page.title("Variables")
        for value in comparison.values:
            old = "(none)" if value.before is None else value.before
            page.line(f"{value.name}: {old} -> {'(none)' if value.after is None else value.after}")
    for part in comparison.slices:
        page.title(f"{part.kind} {part.origin}: {part.change}".replace(" :", ":"))
        page.text("\n".join(part.diff[2:]), 2)
    for title, items in (
        ("Left out only in the second", comparison.newly_left_out),
        ("Left out only in the first", comparison.no_longer_left_out),
    ):
        if items:
            page.title(title)
            page.lines(left_out_text(item) for item in items)
    if not (
        comparison.values
        or comparison.slices
        or comparison.newly_left_out
        or comparison.no_longer_left_out
    ):
        page.line("both agents were sent the same content")
    return str(page)


def left_out_text(item: LeftOut) -> str:
    """Return what was left out, and why."""
    rest = {k: v for k, v in item.items() if k not in ("kind", "origin", "reason")}
    what = f" {json.dumps(rest, ensure_ascii=False)}" if rest else ""
    return f"{item.get('kind')} {item.get('origin')}{what}: {item.get('reason')}"


def _prompt(page: Page, prompt: Prompt) -> None:
    page.title(f"Call {prompt.call}: sent about {counted(prompt.tokens, 'token')}")
    for part in prompt.slices:
        who = f" {part.role}" if part.role else ""
        size = counted(part.tokens, "token")
        page.line(f"[{part.kind} {part.origin}]{who}, {size}", style="cyan")
        page.text(part.text)
    if prompt.edited:
        page.title(f"Sent in call {prompt.call} after {', '.join(prompt.edited)}")
        for message in prompt.messages:
            page.line(f"[{message['role']}]", style="cyan")
            calls = message.get("tool_calls")
            page.text(
                (message["content"] or "") + (value_text(cast("Json", calls)) if calls else "")
            )
    page.title(f"Left out of call {prompt.call}")
    page.lines(left_out_text(item) for item in prompt.left_out)
    if not prompt.left_out:
        page.line("nothing")
    if prompt.same:
        page.line(f"digest {prompt.recorded[:12]} matches: this is exactly what was sent")
    else:
        page.line(f"digest {prompt.digest[:12]} is not {prompt.recorded[:12]}: {prompt.note}")


def spans_page(run: str, trace: str, spans: Sequence[Span], streams: Streams) -> str:
    """Return the spans of a run as a page."""
    page = Page(streams)
    page.title(f"run {run}: trace {trace}")
    below: dict[str, list[Span]] = {}
    known = {span.id for span in spans}
    for span in spans:
        below.setdefault(span.parent_id if span.parent_id in known else "", []).append(span)
    first = min((span.started_at for span in spans), default=0)

    def add(span: Span, depth: int) -> None:
        begun = f"{(span.started_at - first) / 1000:.3f}"
        took = "under way" if span.ms is None else f"{span.ms / 1000:.3f}"
        error = f": {span.error or span.attributes.get('error.type', '')}" if span.failed else ""
        line = f"{begun:>10} {took:>10}  {'  ' * depth}{span.title}{error}"
        page.line(line, 0, "red" if span.failed else "")
        for inner in below.get(span.id, ()):
            add(inner, depth + 1)

    page.line(f"{'began':>10} {'seconds':>10}", 0, "dim")
    for span in below.get("", ()):
        add(span, 0)
    return str(page)
