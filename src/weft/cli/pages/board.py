"""Boards as text: artifacts, their visibility, and deliveries."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.cli.hosting import short
from weft.cli.results import Page
from weft.cli.streams import Streams, at_time, counted
from weft.engine.board.visibility import Audience
from weft.engine.events import DeliveryMissed, TimerSet, TurnStarted
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

#: The id of an artifact that was not named by its publisher.
_UNNAMED: Final = re.compile("[0-9a-z]{26}|[0-9a-f]{32}")

#: Why artifacts were not delivered.
_MISSED: Final = {
    "failed": "the turn failed",
    "expired": "expired",
    "no_key": "has no join key",
    "predicate": "the predicate failed",
    "wake_limit": "woken too often",
    "skipped": "skipped",
    "blocked": "blocked",
    "unfinished": "the run ended",
}

#: What the timers of a board do.
_TIMERS: Final = {
    "idle": "checks for activity",
    "schedule": "the schedule wakes an agent",
    "visible": "an artifact becomes visible",
    "defer": "a deferred delivery is retried",
    "window": "the window of {} closes",
    "batch": "the batch of {} is processed",
}


def short_id(artifact: str) -> str:
    """Return the id of an artifact for a line; only its end if the publisher did not name it."""
    return short(artifact) if _UNNAMED.fullmatch(artifact) else artifact


def woken_text(workflow: Workflow, data: TurnStarted) -> str:
    """Return which artifacts woke an agent."""
    rules = workflow.compiled.board
    found = rules.subscriptions.get(data.step) if rules else None
    types = found.types if found else ()
    # In a batch the types repeat in order; a direct delivery has one artifact.
    whole = bool(types) and len(data.inputs) % len(types) == 0
    named = [types[at % len(types)] if whole else "" for at in range(len(data.inputs))]
    refs = [ArtifactRef(*pair) for pair in zip(data.inputs, named, strict=True)]
    return f"{data.agent} is woken by {ref_list(refs)}"


def ref_list(artifacts: Sequence[ArtifactRef], most: int = 10) -> str:
    """Return artifacts with their types; of many, only the first."""
    names = [f"{ref.type} {short_id(ref.id)}".strip() for ref in artifacts[:most]]
    more = [f"{len(artifacts) - most} more"] if len(artifacts) > most else []
    return ", ".join([*names, *more]) or "nothing"


def id_list(artifacts: Sequence[str]) -> str:
    """Return the ids of artifacts."""
    return ref_list([ArtifactRef(artifact, "") for artifact in artifacts])


def missed_text(missed: MissedRecord | DeliveryMissed, *, is_known: bool = False) -> str:
    """Return what was not delivered, and why, unless the reason `is_known`."""
    detail = "" if is_known else missed.detail
    reason = ": ".join(filter(None, (_MISSED.get(missed.why, missed.why), detail)))
    if not missed.subscription:
        return f"not published: {reason}"
    ids = f" ({id_list(missed.artifacts)})" if missed.artifacts else ""
    return f"not delivered to {missed.subscription}: {reason}{ids}"


def pending_text(record: WaitingRecord) -> str:
    """Return which artifacts have not woken their agent yet, and what they wait for."""
    verb = "waits" if len(record.artifacts) == 1 else "wait"
    return f"{record.subscription}: {ref_list(record.artifacts)} {verb} {record.what}"


def timer_text(data: TimerSet) -> str:
    """Return what a timer of a board does, and when."""
    kind, _, rest = data.id.partition(":")
    what = _TIMERS.get(kind, kind).format(rest.rpartition(":")[0])
    return f"{what} at {at_time(data.at)}"


def slice_text(record: SliceRecord) -> str:
    """Return how many items a provider returned, and how long that took."""
    return f"{counted(len(record.items), 'item')} from {record.provider} ({record.ms:g} ms)"


def audience_text(seen: Audience, now: int) -> str:
    """Return who can see an artifact."""
    names = ", ".join(seen.names)
    text = {
        "public": "public",
        "private": f"private to {names}",
        "labelled": f"for agents with all of the labels {names}",
        "tenant": f"for the tenant {names}",
    }.get(seen.policy, "hidden: its visibility is unknown")
    if now >= seen.visible_at:
        return text
    return f"{text}, visible in {(seen.visible_at - now) / 1000:g} s"


def artifact_page(
    found: StoredArtifact, consumed: Iterable[Consumption], now: int, streams: Streams
) -> str:
    """Return everything about one artifact."""
    artifact = found.artifact
    page = Page(streams)
    page.title(f"{artifact.type} {artifact.id}")
    facts = {
        "by": artifact.by,
        "created": at_time(artifact.created_at),
        "correlation": artifact.correlation,
        "partition": artifact.partition,
        "tags": ", ".join(artifact.tags),
        "visible": audience_text(found.audience, now),
        "version": str(found.version),
        "event": f"{found.seq} of run {found.run}",
    }
    page.lines(f"{name:<11} {value}" for name, value in facts.items() if value)
    woken = [f"{use.agent} in turn {use.turn} of run {use.run}" for use in consumed]
    page.lines(f"{'woke':<11} {agent}" for agent in woken or ["no agent"])
    page.title("Payload")
    page.text(json.dumps(artifact.payload, indent=2, ensure_ascii=False), 2)
    return str(page)


def add_board(page: Page, board: BoardRun) -> None:
    """Add what happened on a board outside of turns."""
    page.title("Board")
    page.line(f"correlation {board.correlation}")
    if board.collects:
        page.line(f"collects artifacts of all correlations for {board.collects}")
    if board.schedule:
        page.line(f"keeps the schedule of {board.schedule}")
    page.lines(_published(record) for record in board.published)
    page.lines(f"from another run: {_published(record)}" for record in board.arrived)
    page.lines(missed_text(record) for record in board.missed)
    page.lines(pending_text(record) for record in board.waiting)


def add_board_turn(page: Page, board: BoardTurn, margin: int) -> None:
    """Add what woke an agent, and what it was shown."""
    changed = ", changed by components" if board.inputs_changed else ""
    page.line(f"woken by {ref_list(board.inputs)} ({board.subscription}){changed}", margin)
    if board.verdict != "continue":
        page.line(
            ": ".join(filter(None, (f"components say {board.verdict}", board.detail))), margin
        )
    for part in board.slices:
        engines = " and ".join(str(at + 1) for at in part.engines)
        whose = f" of engine {engines}" if len(board.slices) > 1 else ""
        started = at_time(part.started_at, "%H:%M:%S")
        page.line(f"context{whose}: {slice_text(part)}, asked at {started}", margin)
        for line in _slice_details(part):
            page.line(line, margin + 4, "dim")
    for item in board.left_out:
        page.line(f"left out of call {item.call}: {id_list(item.items)}, {item.reason}", margin)


def _slice_details(record: SliceRecord) -> Iterator[str]:
    if record.instead_of:
        yield f"instead of {record.instead_of}: {record.error}"
    if record.items:
        yield ref_list(record.items)
    if record.redacted:
        yield f"redacted: {', '.join(record.redacted)}"
    if record.foreign:
        yield f"dropped {counted(record.foreign, 'item')} that the agent may not see"


def add_board_outcome(page: Page, board: BoardTurn, margin: int) -> None:
    """Add what a turn published, missed and deferred."""
    page.lines((_published(record) for record in board.published), margin)
    for record in board.missed:
        # The turn itself says why it failed.
        page.line(missed_text(record, is_known=record.why == "failed"), margin)
    if board.deferred_until is not None:
        page.line(f"deferred until {at_time(board.deferred_until, '%H:%M:%S')}", margin)


def _published(record: PublishedRecord) -> str:
    tags = f" tagged {', '.join(record.tags)}" if record.tags else ""
    wakes = f", for {', '.join(record.wakes)}" if record.wakes else ", which wakes no agent"
    return f"{record.by} publishes {record.type} {short_id(record.id)}{tags}{wakes}"
