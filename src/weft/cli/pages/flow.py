"""Flows as text: events in one line each, and pages of attempts, branches and contexts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from weft.cli.results import Page
from weft.cli.streams import at_time, counted, shortened, value_text
from weft.engine import events
from weft.engine.events import Event
from weft.engine.flow.failure import RETRY
from weft.engine.flow.plan import AGAIN, APPROVAL, END, JOIN
from weft.findings import Json
from weft.inspect.flow import (
    AskedRecord,
    FlowRun,
    StepTurn,
    attempts_of,
    case_of,
    is_step_call,
    path_of,
    step_turn,
)
from weft.runtime.workflow import Workflow

#: The greatest length of a value, and of a passage, in a line.
_VALUE: Final = 100
_PASSAGE: Final = 160

#: The timers of a step.
_FIRED: Final = {"retry": "next attempt", "step": "the step timed out"}

#: The beginning of an error message about the code of a step.
_FUNCTION_FAILED: Final = re.compile(r"[\w.]+ failed: ")


def flow_line(event: Event, workflow: Workflow) -> str | None:
    """Return an event of a flow in one line; None if the general line applies."""
    text: str | None = None
    match event.data:
        case events.TurnStarted(agent=agent) as data:
            text = f"turn {event.turn}: {step_heading(step_turn(workflow, data), agent)}"
        case events.TurnFailed() as data:
            text = _failed(data, workflow)
        case events.Forked(name=name, members=members):
            text = f"fork {name}: paths {', '.join(members)}"
        case events.Joined(name=name, results=results):
            text = f"join {name}: {results_text(results or {})}"
        case events.TimerSet(why="flow", at=at, id=id_):
            seconds = (at - event.at) / 1000
            step = f"timeout of the step in {seconds:g} s"
            text = f"retry in {seconds:.1f} s" if id_.startswith(RETRY) else step
        case events.TimerFired(id=id_):
            text = _FIRED.get(id_.partition(":")[0])
        case events.ToolCalled(tool=tool, hook=hook):
            text = {"step": f"{tool} runs", "apply": f"{tool} applies the reply"}.get(hook or "")
        case events.ToolReturned(id=id_, value=value) if is_step_call(id_):
            text = f"{event.actor.removeprefix('tool:')} sets {_sets(fields_of(value))}"
        case events.ToolFailed(error=error, exception=exception) if exception is not None:
            text = error  # It names the function and the place.
        case events.RequestOpened(tool=str(tool)) as data if tool.startswith(APPROVAL):
            asked = fields_of(data.payload).get("text")
            named = f"approval {tool.removeprefix(APPROVAL)} requested from {data.addressee}"
            text = f"{named}: {asked}" if asked else named
        case events.RequestAnswered(user=user, value=value) if "decision" in fields_of(value):
            given = fields_of(value)
            comment = f" ({given['comment']})" if given.get("comment") else ""
            text = f"{user} decides: {given['decision']}{comment}"
        case _:
            pass
    return text


def _sets(given: Mapping[str, Json]) -> str:
    """Return which variables the code of a step set, and its confidence."""
    sure = given.get("confidence")
    names = ", ".join(fields_of(given.get("set"))) or "nothing"
    return names + (f", confidence {sure:g}" if isinstance(sure, int | float) else "")


def step_heading(turn: StepTurn, agent: str) -> str:
    """Return a step with its agent, attempt and path."""
    undoes = turn.kind == "compensation"
    parts = [
        f"compensating {turn.step} (turn {turn.undoes})" if undoes else f"{turn.kind} {turn.step}"
    ]
    if agent != turn.step:
        parts.append(f"by {agent}")
    if turn.attempt > 1 and not undoes:
        parts.append(_attempt(turn.attempt, turn.attempts))
    if turn.path:
        parts.append(f"path {turn.path}")
    return ", ".join(parts)


def _attempt(attempt: int, attempts: int) -> str:
    return f"attempt {attempt} of {max(attempt, attempts)}"


def agent_name(role: str) -> str:
    """Return the agent of a role: an agent has one role per step."""
    return role.partition("/")[0]


def _failed(data: events.TurnFailed, workflow: Workflow) -> str:
    known = data.failure or {}
    step = str(known.get("step") or data.agent)
    attempts = attempts_of(workflow, step)
    which = f", {_attempt(int(str(known.get('attempt', 1))), attempts)}" * (attempts > 1)
    return f"{step} failed{which}: {reason_text(data.error)}"


def reason_text(error: str) -> str:
    """Return why a step failed, without the name of its function."""
    return _FUNCTION_FAILED.sub("", error)


def branched_text(workflow: Workflow, data: events.Branched) -> str:
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
    sentences = {
        "case": f"branch {source} -> {case or where}",
        "otherwise": f"branch {source} -> otherwise",
        "again": f"loop {source}: again{times}",
        "done": f"loop {source}: done",
        "limit": f"loop {source}: max_iterations reached, continues",
        "low_confidence": f"{source} is below its confidence -> {where}",
        "rejected": f"{source} rejected -> {where}",
        "timed_out": f"{source} timed out -> {where}",
        "recovery": f"path {path} recovers -> {where}",
    }
    return sentences[why]


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
    text = f"{given['kind']} {given['name']}".rstrip()
    hits = given.get("hits")
    return text if hits is None else f"{text}: {counted(len(hits), 'passage')}"


def fields_of(value: Json) -> Mapping[str, Json]:
    """Return the fields of a JSON object; empty for any other value."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


def add_context(page: Page, step: StepTurn, margin: int) -> None:
    """Add what a step was shown besides its state."""
    for segment in step.segments:
        is_search = segment.kind == "retrieval"
        found = f", {counted(len(segment.hits), 'passage')}" if is_search else ""
        name = f"{segment.kind} {segment.name}".rstrip()
        page.line(f"context: {name}{found}, about {counted(segment.tokens, 'token')}", margin)
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


def add_step_outcome(page: Page, step: StepTurn, margin: int, *, stacks: bool) -> None:
    """Add the approvals, the values and the failure of a step; `stacks` adds the traceback."""
    page.lines((_request_line(record) for record in step.asked), margin)
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


def _request_line(record: AskedRecord) -> str:
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
    lines = [
        (
            branch.seq,
            continuation_text(
                branch.source,
                branch.target,
                branch.why,
                branch.case,
                branch.path,
                branch.iterations,
            ),
        )
        for branch in run.branches
    ]
    for fork in run.forks:
        lines.append((fork.seq, f"fork {fork.name}: paths {', '.join(fork.paths)}"))
        if fork.joined is not None:
            lines.append((fork.joined, f"join {fork.name}: {results_text(fork.results or {})}"))
    return sorted(lines)
