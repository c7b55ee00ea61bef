"""Events of flows in one line each: steps and attempts, branches, paths, approvals."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from weft.cli.text import counted
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
from weft.inspect.flow import StepTurn, attempts_of, case_of, path_of, step_turn
from weft.runtime.workflow import Workflow

#: How the text begins that says what the code of a step has raised.
_FUNCTION_FAILED: Final = re.compile(r"[\w.]+ failed: ")


def flow_line(event: Event, workflow: Workflow) -> str | None:
    """Say what happened in a flow; None for other runs, and where nothing is special about it."""
    line = _LINES.get(type(event.data)) if workflow.compiled.flow is not None else None
    return None if line is None else line(event, event.data, workflow)


def is_step_call(call: str) -> bool:
    """Tell whether a call is that of the code of a step."""
    return call.partition("-")[0] in STEP_HOOKS


def _started(event: Event, data: TurnStarted, workflow: Workflow) -> str:
    return f"turn {event.turn}: {step_heading(step_turn(workflow, data), data.agent)}"


def step_heading(it: StepTurn, agent: str) -> str:
    """Say which step it is, who works at it, which attempt it is, and where it stands."""
    undoes = it.kind == "compensation"
    told = [f"compensating {it.step} (turn {it.undoes})" if undoes else f"{it.kind} {it.step}"]
    if agent != it.step:
        told.append(f"by {agent}")
    if it.attempt > 1 and not undoes:
        told.append(_attempt(it.attempt, it.attempts))
    if it.path:
        told.append(f"path {it.path}")
    return ", ".join(told)


def _attempt(attempt: int, attempts: int) -> str:
    return f"attempt {attempt} of {max(attempt, attempts)}"


def agent_name(role: str) -> str:
    """Return who works in a role: at each step an agent has one of its own."""
    return role.partition("/")[0]


def _failed(_event: Event, data: TurnFailed, workflow: Workflow) -> str:
    known = data.failure or {}
    step = str(known.get("step") or data.agent)
    attempts = attempts_of(workflow, step)
    which = f", {_attempt(int(str(known.get('attempt', 1))), attempts)}" * (attempts > 1)
    return f"{step} failed{which}: {reason_text(data.error)}"


def reason_text(error: str) -> str:
    """Return why a step failed, without the name of its function in front."""
    return _FUNCTION_FAILED.sub("", error)


def branched_text(workflow: Workflow, data: Branched) -> str:
    """Say where a flow goes on, and why."""
    return way_text(
        data.source, data.target, data.why, case_of(workflow, data), path_of(workflow, data.source)
    )


def way_text(source: str, target: str, why: str, case: str, path: str, count: int = 0) -> str:
    """Say where a flow goes on; `count` is how often a loop was gone through before."""
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
    return {"step": f"{data.tool} runs", "apply": f"{data.tool} applies the reply"}.get(
        data.hook or ""
    )


def _returned(event: Event, data: ToolReturned, _workflow: Workflow) -> str | None:
    """Say which variables code has returned, and how sure it is."""
    if not is_step_call(data.id):
        return None
    given = fields_of(data.value)
    sure = given.get("confidence")
    names = ", ".join(fields_of(given.get("set"))) or "nothing"
    told = f"{event.actor.removeprefix('tool:')} sets {names}"
    return told + (f", confidence {sure:g}" if isinstance(sure, int | float) else "")


def _call_failed(_event: Event, data: ToolFailed, _workflow: Workflow) -> str | None:
    # Its text names the function, and where it failed.
    return None if data.exception is None else data.error


def context_texts(value: Json) -> Iterator[str]:
    """Say what a step is shown beside its state."""
    given = fields_of(value)
    context = cast("Mapping[str, Any]", fields_of(given.get("context")))
    names = [_segment_text(it) for it in context.get("segments", ())]
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
    """Say who is asked for approval, and what."""
    kind, _, name = (data.tool or "").partition(":")
    if f"{kind}:" != APPROVAL:
        return None
    text = fields_of(data.payload).get("text")
    return f"approval {name} asked of {data.addressee}" + (f": {text}" if text else "")


def _answered(_event: Event, data: RequestAnswered, _workflow: Workflow) -> str | None:
    given = fields_of(data.value)
    if "decision" not in given:
        return None
    comment = f" ({given['comment']})" if given.get("comment") else ""
    return f"{data.user} decides: {given['decision']}{comment}"


def fields_of(value: Json) -> Mapping[str, Json]:
    """Return an object of JSON; what is none has no fields."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else {}


_Line: TypeAlias = Callable[[Event, Any, Workflow], str | None]

#: Kinds of events of which flows say something else than other runs.
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
