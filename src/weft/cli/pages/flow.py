"""Flows as text: events in one line each, and pages of attempts, branches and contexts."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from weft.cli.results import Page
from weft.cli.streams import at_time, counted, shortened, value_text
from weft.engine.events import (
    Branched,
    Event,
    EventData,
    Forked,
    Joined,
    RequestAnswered,
    RequestOpened,
    TimerFired,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.kinds import STEP_HOOKS
from weft.engine.flow.failure import RETRY
from weft.engine.flow.plan import AGAIN, APPROVAL, END, JOIN
from weft.findings import Json
from weft.inspect.flow import (
    AskedRecord,
    BranchRecord,
    FlowRun,
    SegmentRecord,
    StepTurn,
    attempts_of,
    case_of,
    path_of,
    step_turn,
)
from weft.runtime.workflow import Workflow

#: The greatest length of a value, and of a passage, in a line.
_VALUE: Final = 100
_PASSAGE: Final = 160

#: The beginning of an error message about the code of a step.
_FUNCTION_FAILED: Final = re.compile(r"[\w.]+ failed: ")


def flow_line(event: Event, workflow: Workflow) -> str | None:
    """Return an event of a flow in one line; None if the general line applies."""
    line = _LINES.get(type(event.data)) if workflow.compiled.flow is not None else None
    return None if line is None else line(event, event.data, workflow)


def is_step_call(call: str) -> bool:
    """Tell whether a call is one of the code of a step."""
    return call.partition("-")[0] in STEP_HOOKS


def _started(event: Event, data: TurnStarted, workflow: Workflow) -> str:
    return f"turn {event.turn}: {step_heading(step_turn(workflow, data), data.agent)}"


def step_heading(turn: StepTurn, agent: str) -> str:
    """Return a step with its agent, attempt and path."""
    undoes = turn.kind == "compensation"
    told = [
        f"compensating {turn.step} (turn {turn.undoes})" if undoes else f"{turn.kind} {turn.step}"
    ]
    if agent != turn.step:
        told.append(f"by {agent}")
    if turn.attempt > 1 and not undoes:
        told.append(_attempt(turn.attempt, turn.attempts))
    if turn.path:
        told.append(f"path {turn.path}")
    return ", ".join(told)


def _attempt(attempt: int, attempts: int) -> str:
    return f"attempt {attempt} of {max(attempt, attempts)}"


def agent_name(role: str) -> str:
    """Return the agent of a role: an agent has one role per step."""
    return role.partition("/")[0]


def _failed(_event: Event, data: TurnFailed, workflow: Workflow) -> str:
    known = data.failure or {}
    step = str(known.get("step") or data.agent)
    attempts = attempts_of(workflow, step)
    which = f", {_attempt(int(str(known.get('attempt', 1))), attempts)}" * (attempts > 1)
    return f"{step} failed{which}: {reason_text(data.error)}"


def reason_text(error: str) -> str:
    """Return why a step failed, without the name of its function."""
    return _FUNCTION_FAILED.sub("", error)


def branched_text(workflow: Workflow, data: Branched) -> str:
    """Return where a flow continues, and why."""
    return continuation_text(
        data.source, data.target, data.why, case_of(workflow, data), path_of(workflow, data.source)
    )


def continuation_text(
    source: str, target: str, why: str, case: str, path: str, count: int = 0
) -> str:
    """Return where a flow continues; `count` is the number of earlier iterations of a loop."""
    where = _place(target)
    if why == "failure":
        return f"path {path} failed" if target == JOIN else f"on failure of {source} -> {where}"
    times = f" ({count + 1})" if count else ""
    told = {
        "case": f"branch {source} -> {case or where}",
        "otherwise": f"branch {source} -> otherwise",
        "again": f"loop {source}: again{times}",
        "done": f"loop {source}: done",
        "limit": f"loop {source}: max_iterations reached, continues",
        "unsure": f"{source} is below its confidence -> {where}",
        "rejected": f"{source} rejected -> {where}",
        "late": f"{source} timed out -> {where}",
        "recovery": f"path {path} recovers -> {where}",
    }
    return told[why]


def _place(target: str) -> str:
    """Return the name of the place where a flow continues."""
    if target == END:
        return "end of the run"
    if target.startswith(AGAIN):
        return f"end of the loop {target.removeprefix(AGAIN)}"
    return "end of the path" if target.startswith("/") else target


def results_text(results: Mapping[str, str]) -> str:
    """Return how the paths of a fork ended."""
    return ", ".join(f"{path} {status}" for path, status in results.items())


def _forked(_event: Event, data: Forked, _workflow: Workflow) -> str:
    return f"fork {data.name}: paths {', '.join(data.members)}"


def _joined(_event: Event, data: Joined, _workflow: Workflow) -> str:
    return f"join {data.name}: {results_text(data.results or {})}"


def _timer_set(event: Event, data: TimerSet, _workflow: Workflow) -> str | None:
    if data.why != "flow":
        return None
    seconds = (data.at - event.at) / 1000
    if data.id.startswith(RETRY):
        return f"retry in {seconds:.1f} s"
    return f"timeout of the step in {seconds:g} s"


def _timer_fired(_event: Event, data: TimerFired, _workflow: Workflow) -> str | None:
    told = {"retry": "next attempt", "step": "the step timed out"}
    return told.get(data.id.partition(":")[0])


def _called(_event: Event, data: ToolCalled, _workflow: Workflow) -> str | None:
    texts = {"step": f"{data.tool} runs", "apply": f"{data.tool} applies the reply"}
    return texts.get(data.hook or "")


def _returned(event: Event, data: ToolReturned, _workflow: Workflow) -> str | None:
    """Return which variables the code of a step set, and its confidence."""
    if not is_step_call(data.id):
        return None
    given = fields_of(data.value)
    sure = given.get("confidence")
    names = ", ".join(fields_of(given.get("set"))) or "nothing"
    told = f"{event.actor.removeprefix('tool:')} sets {names}"
    return told + (f", confidence {sure:g}" if isinstance(sure, int | float) else "")


def _call_failed(_event: Event, data: ToolFailed, _workflow: Workflow) -> str | None:
    # The text names the function and the place.
    return None if data.exception is None else data.error


def context_texts(value: Json) -> Iterator[str]:
    """Return what a step is shown besides its state."""
    given = fields_of(value)
    context = cast("Mapping[str, Any]", fields_of(given.get("context")))
    names = [_segment_text(segment) for segment in context.get("segments", ())]
    if names:
        yield f"context: {', '.join(names)}"
    if context.get("left_out"):
        yield f"{len(context['left_out'])} left out"
    messages = given.get("messages")
    if isinstance(messages, list) and messages:
        yield counted(len(cast("list[Json]", messages)), "message")


def _segment_text(given: Mapping[str, Any]) -> str:
    told = f"{given['kind']} {given['name']}".rstrip()
    hits = given.get("hits")
    return told if hits is None else f"{told}: {counted(len(hits), 'passage')}"


def _opened(_event: Event, data: RequestOpened, _workflow: Workflow) -> str | None:
    """Return who is asked for approval, and of what."""
    kind, _, name = (data.tool or "").partition(":")
    if f"{kind}:" != APPROVAL:
        return None
    text = fields_of(data.payload).get("text")
    return f"approval {name} requested from {data.addressee}" + (f": {text}" if text else "")


def _answered(_event: Event, data: RequestAnswered, _workflow: Workflow) -> str | None:
    given = fields_of(data.value)
    if "decision" not in given:
        return None
    comment = f" ({given['comment']})" if given.get("comment") else ""
    return f"{data.user} decides: {given['decision']}{comment}"


def fields_of(value: Json) -> Mapping[str, Json]:
    """Return the fields of a JSON object; empty for any other value."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


_Line: TypeAlias = Callable[[Event, Any, Workflow], str | None]

#: Events whose line is different in flows.
_LINES: Final[dict[type[EventData], _Line]] = {
    TurnStarted: _started,
    TurnFailed: _failed,
    Forked: _forked,
    Joined: _joined,
    TimerSet: _timer_set,
    TimerFired: _timer_fired,
    ToolCalled: _called,
    ToolReturned: _returned,
    ToolFailed: _call_failed,
    RequestOpened: _opened,
    RequestAnswered: _answered,
}


def add_context(page: Page, step: StepTurn, margin: int) -> None:
    """Add what a step was shown besides its state."""
    for segment in step.segments:
        page.line(f"context: {_segment(segment)}", margin)
        for hit in segment.hits:
            source = hit.source or "unknown source"
            words = shortened(" ".join(hit.content.split()), _PASSAGE)
            page.line(f"{hit.score:.2f}  {source}: {words}", margin + 4, "dim")
        if segment.artifacts:
            page.line(", ".join(segment.artifacts), margin + 4, "dim")
    for item in step.left_out:
        names = cast("list[str]", item.get("names") or [])
        which = f" {', '.join(names)}" if names else ""
        page.line(f"left out: {item['kind']} {item['origin']}{which}, {item['reason']}", margin)


def _segment(segment: SegmentRecord) -> str:
    size = counted(segment.tokens, "token")
    found = f", {counted(len(segment.hits), 'passage')}" if segment.kind == "retrieval" else ""
    return f"{segment.kind} {segment.name}".rstrip() + f"{found}, about {size}"


def add_step_outcome(page: Page, step: StepTurn, margin: int, *, stacks: bool) -> None:
    """Add the approvals, the values and the failure of a step; `stacks` adds the traceback."""
    page.lines((_asked(record) for record in step.asked), margin)
    if step.confidence is not None:
        page.line(f"confidence {step.confidence:g}", margin)
    for change in step.sets:
        page.line(f"set {change.name} = {shortened(value_text(change.value), _VALUE)}", margin)
    if step.failure is not None:
        reason = reason_text(str(step.failure.get("message")))
        kind = str(step.failure.get("type"))
        page.line(f"failed: {reason if kind in reason else f'{kind}: {reason}'}", margin)
        stack = str(step.failure.get("stack") or "")
        if stacks and stack:
            page.text(stack, margin + 4)
    if step.retry_seconds is not None:
        page.line(f"retry in {step.retry_seconds:.1f} s", margin)


def _asked(record: AskedRecord) -> str:
    asked = f"asked {record.addressee} at {at_time(record.at, '%H:%M:%S')}"
    match record.outcome:
        case "answered":
            return f"{asked}: {record.decision} by {record.user}"
        case "expired":
            return f"{asked}: no answer in time"
        case "open":
            expires = record.expires_at
            until = f" until {at_time(expires)}" if expires is not None else ""
            return f"{asked}: open{until}"


def flow_lines(run: FlowRun) -> list[tuple[int, str]]:
    """Return the branches and forks of a flow as lines, each with its event, in order."""
    lines = [(branch.seq, _branch(branch)) for branch in run.branches]
    for fork in run.forks:
        lines.append((fork.seq, f"fork {fork.name}: paths {', '.join(fork.paths)}"))
        if fork.joined is not None:
            lines.append((fork.joined, f"join {fork.name}: {results_text(fork.results or {})}"))
    return sorted(lines)


def _branch(branch: BranchRecord) -> str:
    return continuation_text(
        branch.source, branch.target, branch.why, branch.case, branch.path, branch.iterations
    )
