"""Flows on pages: attempts at steps with their contexts, where the flow went, what was undone."""

from typing import Final, cast

from weft.cli.pages.flow_lines import reason_text, results_text, way_text
from weft.cli.pages.page import Page
from weft.cli.text import at_time, counted, shortened, value_text
from weft.inspect.flow import AskedRecord, BranchRecord, FlowRun, SegmentRecord, StepTurn

#: How much of a value, and of a passage, stands in a line.
_VALUE: Final = 100
_PASSAGE: Final = 160


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
    return way_text(it.source, it.target, it.why, it.case, it.path, it.iterations)
