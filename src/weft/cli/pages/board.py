"""Boards in words: artifacts, who sees them, what they woke, and what came to nothing."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.cli.hosting import short
from weft.cli.pages.page import Page
from weft.cli.streams import Streams
from weft.cli.text import at_time, counted
from weft.engine.board.visibility import Audience
from weft.engine.events import TimerSet, TurnStarted
from weft.inspect.board import (
    ArtifactRef,
    BoardRun,
    BoardTurn,
    MissedRecord,
    PublishedRecord,
    SliceRecord,
    WaitingRecord,
)
from weft.ports.board import Consumption, StoredArtifact
from weft.runtime.workflow import Workflow

#: The name of an artifact that nobody has named: as clocks make them, or by what made it.
_UNNAMED: Final = re.compile("[0-9a-z]{26}|[0-9a-f]{32}")

#: Why artifacts did not come to what they were collected for.
_MISSED: Final = {
    "failed": "the turn failed",
    "expired": "expired",
    "no_key": "cannot be joined",
    "predicate": "nobody can tell whether it is wanted",
    "breaker": "woken too often",
    "skipped": "skipped",
    "blocked": "blocked",
    "unfinished": "the run is over",
}

#: What a board has set a timer for.
_TIMERS: Final = {
    "idle": "looks whether anything has happened",
    "schedule": "the clock wakes an agent",
    "visible": "an artifact becomes visible",
    "defer": "what was put off is tried again",
    "window": "the window of {} closes",
    "batch": "the batch of {} is handled",
}


def short_id(artifact: str) -> str:
    """Return the name of an artifact as it stands in a line; of one nobody gave only the end."""
    return short(artifact) if _UNNAMED.fullmatch(artifact) else artifact


def woken_text(workflow: Workflow, data: TurnStarted) -> str:
    """Say which artifacts have woken an agent."""
    rules = workflow.compiled.board
    found = rules.subscriptions.get(data.step) if rules else None
    types = found.types if found else ()
    # They come in the order of the types, again and again in a batch; given directly, one by one.
    whole = bool(types) and len(data.inputs) % len(types) == 0
    named = [types[at % len(types)] if whole else "" for at in range(len(data.inputs))]
    told = ref_list([ArtifactRef(*it) for it in zip(data.inputs, named, strict=True)])
    return f"{data.agent} is woken by {told}"


def ref_list(artifacts: Sequence[ArtifactRef], most: int = 10) -> str:
    """Name artifacts with their types; of many only the first."""
    told = [f"{it.type} {short_id(it.id)}".strip() for it in artifacts[:most]]
    more = [f"{len(artifacts) - most} more"] if len(artifacts) > most else []
    return ", ".join([*told, *more]) or "nothing"


def id_list(artifacts: Sequence[str]) -> str:
    """Name artifacts."""
    return ref_list([ArtifactRef(it, "") for it in artifacts])


def missed_text(subscription: str, artifacts: Sequence[str], why: str, detail: str) -> str:
    """Say what did not come to anything, and why."""
    reason = ": ".join(filter(None, (_MISSED.get(why, why), detail)))
    if not subscription:
        return f"not published: {reason}"
    ids = f" ({id_list(artifacts)})" if artifacts else ""
    return f"not delivered to {subscription}: {reason}{ids}"


def waiting_text(it: WaitingRecord) -> str:
    """Say what has not woken its agent yet, and what it waits for."""
    verb = "waits" if len(it.artifacts) == 1 else "wait"
    return f"{it.subscription}: {ref_list(it.artifacts)} {verb} {it.what}"


def timer_text(data: TimerSet) -> str:
    """Say what a board waits for."""
    kind, _, rest = data.id.partition(":")
    what = _TIMERS.get(kind, kind).format(rest.rpartition(":")[0])
    return f"{what} at {at_time(data.at)}"


def slice_text(it: SliceRecord) -> str:
    """Say what a provider gave, and how long that took."""
    return f"{counted(len(it.items), 'item')} from {it.provider} ({it.ms:g} ms)"


def audience_text(seen: Audience, now: int) -> str:
    """Say who sees an artifact."""
    names = ", ".join(seen.names)
    told = {
        "public": "public",
        "private": f"private to {names}",
        "labelled": f"for agents that have all of the labels {names}",
        "tenant": f"for the tenant {names}",
    }.get(seen.policy, "hidden: its visibility cannot be read")
    if now >= seen.visible_at:
        return told
    return f"{told}, visible in {(seen.visible_at - now) / 1000:g} s"


def artifact_page(
    found: StoredArtifact, consumed: Iterable[Consumption], now: int, streams: Streams
) -> str:
    """Return everything about one artifact."""
    it = found.artifact
    page = Page(streams)
    page.title(f"{it.type} {it.id}")
    facts = {
        "by": it.by,
        "created": at_time(it.created_at),
        "correlation": it.correlation,
        "partition": it.partition,
        "tags": ", ".join(it.tags),
        "visible": audience_text(found.audience, now),
        "version": str(found.version),
        "event": f"{found.seq} of run {found.run}",
    }
    page.lines(f"{name:<11} {value}" for name, value in facts.items() if value)
    used = [f"{one.agent} in turn {one.turn} of run {one.run}" for one in consumed]
    page.lines(f"{'woke':<11} {one}" for one in used or ["nobody"])
    page.title("Payload")
    page.text(json.dumps(it.payload, indent=2, ensure_ascii=False), 2)
    return str(page)


def add_board(page: Page, board: BoardRun) -> None:
    """Add what happened on a board beside its turns."""
    page.title("Board")
    page.line(f"correlation {board.correlation}")
    if board.collects:
        page.line(f"collects for {board.collects} beyond correlations")
    if board.schedule:
        page.line(f"keeps the schedule of {board.schedule}")
    page.lines(_published(it) for it in board.published)
    page.lines(f"from another run: {_published(it)}" for it in board.arrived)
    page.lines(_missed(it) for it in board.missed)
    for it in board.waiting:
        page.line(waiting_text(it))


def add_board_turn(page: Page, board: BoardTurn, margin: int) -> None:
    """Add what woke an agent and what it was shown."""
    changed = ", changed by components" if board.inputs_changed else ""
    page.line(f"woken by {ref_list(board.inputs)} ({board.subscription}){changed}", margin)
    if board.verdict != "continue":
        page.line(
            ": ".join(filter(None, (f"components say {board.verdict}", board.detail))), margin
        )
    for it in board.slices:
        engines = " and ".join(str(at + 1) for at in it.engines)
        whose = f" of engine {engines}" if len(board.slices) > 1 else ""
        begun = at_time(it.started_at, "%H:%M:%S")
        page.line(f"context{whose}: {slice_text(it)}, asked at {begun}", margin)
        for line in _slice_details(it):
            page.line(line, margin + 4, "dim")
    for it in board.left_out:
        page.line(f"left out of call {it.call}: {id_list(it.items)}, {it.reason}", margin)


def _slice_details(it: SliceRecord) -> Iterator[str]:
    if it.instead_of:
        yield f"instead of {it.instead_of}: {it.error}"
    if it.items:
        yield ref_list(it.items)
    if it.redacted:
        yield f"redacted: {', '.join(it.redacted)}"
    if it.foreign:
        yield f"{counted(it.foreign, 'item')} dropped that the agent may not see"


def add_board_outcome(page: Page, board: BoardTurn, margin: int) -> None:
    """Add what came of a turn."""
    page.lines((_published(it) for it in board.published), margin)
    # Why the turn failed is told before.
    page.lines((_missed(it, told=it.why == "failed") for it in board.missed), margin)
    if board.deferred_until is not None:
        page.line(f"put off until {at_time(board.deferred_until, '%H:%M:%S')}", margin)


def _published(it: PublishedRecord) -> str:
    tags = f" tagged {', '.join(it.tags)}" if it.tags else ""
    wakes = f", for {', '.join(it.wakes)}" if it.wakes else ", which wakes nobody"
    return f"{it.by} publishes {it.type} {short_id(it.id)}{tags}{wakes}"


def _missed(it: MissedRecord, *, told: bool = False) -> str:
    return missed_text(it.subscription, it.artifacts, it.why, "" if told else it.detail)
