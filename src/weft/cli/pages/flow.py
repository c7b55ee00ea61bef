"""Flows in words: steps and attempts, branches, paths side by side, approvals, compensations."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from weft.cli.pages.page import Page
from weft.cli.text import at_time, counted, shortened, value_text
from weft.engine.events import (
    Branched,
    Event,
    Joined,
    RequestAnswered,
    RequestOpened,
    TimerSet,
    TurnFailed,
    TurnStarted,
)
from weft.engine.flow_failure import RETRY
from weft.engine.flow_plan import AGAIN, APPROVAL, END, JOIN
from weft.findings import Json
from weft.inspect.flow import (
    AskedRecord,
    BranchRecord,
    FlowRun,
    SegmentRecord,
    StepKind,
    StepTurn,
    attempts_of,
    case_of,
    path_of,
    step_kind,
)
from weft.runtime.workflow import Workflow

#: How much of a value, and of a passage, stands in a line.
_VALUE: Final = 100
_PASSAGE: Final = 160

#: How the text begins that says what the code of a step has raised.
_FUNCTION_FAILED: Final = re.compile(r"[\w.]+ failed: ")


def step_text(workflow: Workflow, data: TurnStarted) -> str:
    """Say which step is begun, which attempt it is, and where it stands."""
    kind, path = step_kind(workflow, data), path_of(workflow, data.step)
    attempts = attempts_of(workflow, data.step)
    told = _headed(kind, data.step, data.undoes)
    return told + _aside(kind, data.agent, data.step, data.attempt, attempts, path)


def _headed(kind: StepKind, step: str, undoes: int) -> str:
    if kind == "compensation":
        return f"compensating {step} (turn {undoes})"
    return f"{kind} {step}"


def _aside(kind: StepKind, agent: str, step: str, attempt: int, attempts: int, path: str) -> str:
    """Return what else is to be known of a step, as it stands after its name."""
    told = [f"by {agent}"] if agent != step else []
    if attempt > 1 and kind == "step":
        told.append(attempt_text(attempt, attempts))
    if path:
        told.append(f"path {path}")
    return "".join(f", {it}" for it in told)


def attempt_text(attempt: int, attempts: int) -> str:
    return f"attempt {attempt} of {max(attempt, attempts)}"


def agent_name(role: str) -> str:
    """Return who works in a role: at each step an agent has one of its own."""
    return role.partition("/")[0]


def failed_text(workflow: Workflow, data: TurnFailed) -> str:
    """Say which step failed, at which attempt, and why."""
    known = data.failure or {}
    step = str(known.get("step") or data.agent)
    attempts = attempts_of(workflow, step)
    which = f", {attempt_text(int(str(known.get('attempt', 1))), attempts)}" * (attempts > 1)
    return f"{step} failed{which}: {reason_text(data.error)}"


def reason_text(error: str) -> str:
    """Return why a step failed, without the name of its function in front."""
    return _FUNCTION_FAILED.sub("", error)


def branched_text(workflow: Workflow, data: Branched) -> str:
    """Say where a flow goes on, and why."""
    return _went(
        data.source, data.target, data.why, case_of(workflow, data), path_of(workflow, data.source)
    )


def _went(source: str, target: str, why: str, case: str, path: str, count: int = 0) -> str:
    where = _place(target)
    if why == "failure":
        return f"path {path} failed" if target == JOIN else f"on failure of {source} -> {where}"
    times = f" ({count + 1})" if count else ""
    told = {
        "case": f"branch {source} -> {case or where}",
        "otherwise": f"branch {source} -> otherwise",
        "again": f"loop {source}: again{times}",
        "done": f"loop {source}: done",
        "limit": f"loop {source}: max_iterations reached, goes on",
        "unsure": f"{source} is below its confidence -> {where}",
        "rejected": f"{source} rejected -> {where}",
        "late": f"{source} timed out -> {where}",
        "recovery": f"path {path} recovers -> {where}",
    }
    return told[why]


def _place(target: str) -> str:
    """Name the place where a flow goes on."""
    if target == END:
        return "end of the run"
    if target.startswith(AGAIN):
        return f"end of the loop {target.removeprefix(AGAIN)}"
    return "end of the path" if target.startswith("/") else target


def results_text(results: Mapping[str, str]) -> str:
    """Say how the paths of a fork ended."""
    return ", ".join(f"{path} {status}" for path, status in results.items())


def joined_text(data: Joined) -> str:
    return f"join {data.name}: {results_text(data.results or {})}"


def timer_text(event: Event, data: TimerSet) -> str:
    """Say when a step is tried again, or until when it must be done."""
    seconds = (data.at - event.at) / 1000
    if data.id.startswith(RETRY):
        return f"retry in {seconds:.1f} s"
    return f"timeout of the step in {seconds:g} s"


def fired_text(timer: str) -> str:
    return "next attempt" if timer.startswith(RETRY) else "the step timed out"


def changes_text(value: Json) -> str:
    """Say which variables code has returned, and how sure it is."""
    given = fields_of(value)
    sure = given.get("confidence")
    told = f"sets {', '.join(fields_of(given.get('set'))) or 'nothing'}"
    return told + (f", confidence {sure:g}" if isinstance(sure, int | float) else "")


def context_texts(value: Json) -> Iterator[str]:
    """Say what a step is shown beside its state."""
    given = fields_of(value)
    context = cast("Mapping[str, Any]", fields_of(given.get("context")))
    names = [f"{it['kind']} {it['name']}".rstrip() for it in context.get("segments", ())]
    if names:
        yield f"context: {', '.join(names)}"
    if context.get("left_out"):
        yield f"{len(context['left_out'])} left out"
    messages = given.get("messages")
    if isinstance(messages, list) and messages:
        yield counted(len(cast("list[Json]", messages)), "message")


def approval_text(data: RequestOpened) -> str:
    """Say who is asked for approval, and what."""
    text = fields_of(data.payload).get("text")
    name = (data.tool or "").removeprefix(APPROVAL)
    return f"approval {name} asked of {data.addressee}" + (f": {text}" if text else "")


def decided_text(data: RequestAnswered) -> str:
    """Say what a person decided; empty where the question was another."""
    given = fields_of(data.value)
    if "decision" not in given:
        return ""
    comment = f" ({given['comment']})" if given.get("comment") else ""
    return f"{data.user} decides: {given['decision']}{comment}"


def fields_of(value: Json) -> Mapping[str, Json]:
    """Return an object of JSON; what is none has no fields."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


# -- inspection


def step_title(step: StepTurn, agent: str) -> str:
    """Return the heading of an attempt."""
    told = _headed(step.kind, step.step, step.undoes).removeprefix("step ")
    return told + _aside(step.kind, agent, step.step, step.attempt, step.attempts, step.path)


def add_context(page: Page, step: StepTurn, margin: int) -> None:
    """Add what a step was shown beside its state."""
    for it in step.segments:
        page.line(f"context: {_segment(it)}", margin)
        for hit in it.hits:
            source = hit.source or "unknown source"
            words = shortened(" ".join(hit.content.split()), _PASSAGE)
            page.line(f"{hit.score:.2f}  {source}: {words}", margin + 4, "dim")
        if it.artifacts:
            page.line(", ".join(it.artifacts), margin + 4, "dim")
    for it in step.left_out:
        names = cast("list[str]", it.get("names") or [])
        which = f" {', '.join(names)}" if names else ""
        page.line(f"left out: {it['kind']} {it['origin']}{which}, {it['reason']}", margin)


def _segment(it: SegmentRecord) -> str:
    size = counted(it.tokens, "token")
    found = f", {counted(len(it.hits), 'passage')}" if it.kind == "retrieval" else ""
    return f"{it.kind} {it.name}".rstrip() + f"{found}, about {size}"


def add_step_outcome(page: Page, step: StepTurn, margin: int, *, stacks: bool) -> None:
    """Add what was set, what people decided, and how it failed; `stacks` with its traceback."""
    page.lines((_asked(it) for it in step.asked), margin)
    if step.confidence is not None:
        page.line(f"confidence {step.confidence:g}", margin)
    for it in step.sets:
        page.line(f"set {it.name} = {shortened(value_text(it.value), _VALUE)}", margin)
    if step.failure is not None:
        reason = reason_text(str(step.failure.get("message")))
        kind = str(step.failure.get("type"))
        page.line(f"failed: {reason if kind in reason else f'{kind}: {reason}'}", margin)
        stack = str(step.failure.get("stack") or "")
        if stacks and stack:
            page.text(stack, margin + 4)
    if step.retry_seconds is not None:
        page.line(f"retry in {step.retry_seconds:.1f} s", margin)


def _asked(it: AskedRecord) -> str:
    asked = f"asked of {it.addressee} at {at_time(it.at, '%H:%M:%S')}"
    match it.outcome:
        case "answered":
            return f"{asked}: {it.decision} by {it.user}"
        case "expired":
            return f"{asked}: no answer in time"
        case "open":
            until = f" until {at_time(it.expires_at)}" if it.expires_at is not None else ""
            return f"{asked}: open{until}"


def flow_lines(run: FlowRun) -> list[tuple[int, str]]:
    """Return where a flow went as lines, with the event each belongs to, in order."""
    lines = [(it.seq, _branch(it)) for it in run.branches]
    for it in run.forks:
        lines.append((it.seq, f"fork {it.name}: paths {', '.join(it.paths)}"))
        if it.joined is not None:
            lines.append((it.joined, f"join {it.name}: {results_text(it.results or {})}"))
    return sorted(lines)


def _branch(it: BranchRecord) -> str:
    return _went(it.source, it.target, it.why, it.case, it.path, it.iterations)
