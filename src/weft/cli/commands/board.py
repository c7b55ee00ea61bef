"""weft board list, show, why and missed: the artifacts of a board, and who sees them."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

from cyclopts import Parameter

from weft.cli.commands.runs import milliseconds
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.hosting import MAX_NAMED, JournalFile, find_run, hosted, locate_journal
from weft.cli.options import Output, command, require_positive
from weft.cli.pages.board import artifact_page, audience_text, missed_text, short_id
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import package_to_run
from weft.cli.streams import Streams, at_time, clean, counted, value_text
from weft.engine.events import DeliveryMissed, Event
from weft.errors import UsageError
from weft.ids import suggestion
from weft.inspect.board import MissedRecord
from weft.inspect.steps import record_of
from weft.packages.reader import read_package
from weft.ports.board import StoredArtifact
from weft.runtime.board.code import ArtifactTypes, artifact_types
from weft.runtime.host import Host
from weft.spec.providers import MAX_LIMIT, MAX_OFFSET, FilterConfig, TagFilter
from weft.spec.providers import milliseconds as time_of
from weft.spec.workflow import WorkflowSpec
from weft.wire.rows import artifact_data, whole_artifact_data

#: The least width of a payload in a table.
_LEAST: Final = 16

#: How many runs are searched for missed deliveries.
_RUNS: Final = 500

_HEAD: Final = ("ARTIFACT", "TYPE", "BY", "CREATED", "TAGS", "PAYLOAD")

BoardName: TypeAlias = Annotated[
    str, Parameter(name="NAME", help="The name of the package of the board.")
]
ArtifactName: TypeAlias = Annotated[
    str, Parameter(name="ARTIFACT", help="The id of an artifact, or the end of it.")
]


class BoardPackage(NamedTuple):
    """A package that has a board."""

    name: str
    folder: Path
    types: ArtifactTypes
    agents: tuple[str, ...]
    spec: WorkflowSpec


def find_board(streams: Streams, typed: str) -> BoardPackage:
    """Return the package of a board."""
    folder = package_to_run(streams, typed)
    package, name = read_package(folder), folder.resolve().name
    spec = package.spec
    if "board" in package.broken:
        raise usage(f"the board of {name} cannot be read", f"see why: weft check {name}")
    if spec.board is None:
        raise usage(f"{name} has no board", f"run it: weft run {name}")
    agents = tuple(each.agent for each in spec.board.agents)
    return BoardPackage(name, folder, artifact_types(spec, spec.board), agents, spec)


def require_known(what: str, name: str, known: Sequence[str]) -> None:
    """Refuse an agent or artifact type that a board does not have."""
    if name not in known:
        raise not_found(f"the board has no {what} {name}", suggestion(name, known))


async def find_board_run(host: Host, board: BoardPackage, typed: str) -> str:
    """Return the id of a run of a board."""
    row = await find_run(host, typed)
    if row.workflow != board.name:
        raise usage(f"{row.run} is a run of {row.workflow}", f"name a run of {board.name}")
    return row.run


async def _find_artifact(host: Host, board: BoardPackage, typed: str) -> StoredArtifact:
    """Return an artifact by its id, or by the end of it."""
    with suppress(UsageError):
        return await host.artifact(board.name, typed, scope=command_scope())
    ids = await _ids_ending_with(host, board, typed) if typed else []
    if not ids:
        see = f"list them: weft board list {board.name}"
        raise not_found(f"there is no artifact {typed} on the board {board.name}", see)
    if len(ids) > 1:
        named = ", ".join(ids[:MAX_NAMED])
        more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
        raise usage(
            f'"{typed}" matches {len(ids)} artifacts', f"write more of the id: {named}{more}"
        )
    return await host.artifact(board.name, ids[0], scope=command_scope())


async def _ids_ending_with(host: Host, board: BoardPackage, end: str) -> list[str]:
    ids: dict[str, None] = {}
    for offset in count(step=MAX_LIMIT):
        page, total = await host.artifacts(board.name, scope=command_scope(), offset=offset)
        ids.update((artifact.id, None) for artifact in page if artifact.id.endswith(end))
        if offset + MAX_LIMIT >= total:
            break
    return list(ids)


@command
async def list_artifacts(  # noqa: PLR0913 - its filters
    name: BoardName,
    /,
    *,
    type_: tuple[str, ...] = (),
    tag: tuple[str, ...] = (),
    by: tuple[str, ...] = (),
    correlation: str | None = None,
    partition: str | None = None,
    text: str | None = None,
    since: str | None = None,
    limit: int = 20,
    offset: int = 0,
    visible_to: str | None = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """List artifacts, newest first.

    Options:
      --type TYPE         Only this type; repeatable.
      --tag TAG           Only with this tag; repeatable: any of them.
      --by WHO            Only published by this agent or user:NAME; repeatable.
      --correlation ID    Only of this correlation.
      --partition NAME    Only of this partition.
      --text TEXT         Only with this text in the payload.
      --since SPAN|TIME   Only newer ones: 2h, or 2026-01-31T12:00.
      --limit N           Number of artifacts, newest first.
      --offset N          Number of the newest artifacts to skip.
      --visible-to AGENT  Only what this agent may see.

    Examples:
      weft board list News
      weft board list News --type Lead --visible-to Editor --since 2h
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise usage(f'invalid value "{limit}" for --limit', f"use a number from 1 to {MAX_LIMIT}")
    for what, given in (("correlation", correlation), ("partition", partition)):
        if given == "":
            raise usage(f"the {what} is empty", f"name one, or leave out --{what}")
    if not 0 <= offset <= MAX_OFFSET:
        raise usage(f'invalid value "{offset}" for --offset', "use a number from 0 on")
    board = find_board(streams, name)
    for each in type_:
        require_known("artifact type", each, sorted(board.types.schemas))
    if visible_to is not None:
        require_known("agent", visible_to, board.agents)
    wanted = FilterConfig(
        types=type_, tags=TagFilter(include=tag), producers=by, correlation_id=correlation,
        partition=partition, text=text, since=_time(since), limit=limit,
    )  # fmt: skip
    async with hosted(locate_journal(streams, journal, must_exist=True), reading=True) as host:
        found, total = await host.artifacts(
            board.name, wanted, scope=command_scope(), agent=visible_to, offset=offset
        )
    rows = [
        (
            short_id(artifact.id) if streams.settings.terminal else artifact.id,
            artifact.type,
            artifact.produced_by,
            at_time(time_of(artifact.created_at), "%m-%d %H:%M:%S"),
            ",".join(artifact.tags),
            value_text(artifact.payload),
        )
        for artifact in found
    ]
    seen = offset + len(rows)
    some = f"{len(rows)} of " if len(rows) < total else ""
    more = f": --offset {seen} shows older ones" if rows and seen < total else ""
    note = f"{some}{counted(total, 'artifact')}{more}"
    data = {"artifacts": [artifact_data(each) for each in found], "total": total}
    return Result(data, streams.table(rows, head=_HEAD, least=_LEAST), [note])


@command
async def show(
    name: BoardName, artifact: ArtifactName, /, *, journal: JournalFile = None, streams: Output
) -> Result:
    """Show an artifact: payload, visibility, and the agents it has woken.

    Examples:
      weft board show News 4qdfmj41.12
    """
    board = find_board(streams, name)
    async with hosted(locate_journal(streams, journal, must_exist=True), reading=True) as host:
        found = await _find_artifact(host, board, artifact)
        used = await host.consumed(board.name, scope=command_scope(), artifact=found.artifact.id)
    consumed = list(used)
    page = artifact_page(found, consumed, _now(), streams)
    return Result({"artifact": whole_artifact_data(found, consumed)}, page)


@command
async def why(
    name: BoardName,
    artifact: ArtifactName,
    agent: str,
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Explain why an agent can or cannot see an artifact.

    Options:
      AGENT  An agent of the board.

    Examples:
      weft board why News 4qdfmj41.12 Editor
    """
    board = find_board(streams, name)
    require_known("agent", agent, board.agents)
    async with hosted(locate_journal(streams, journal, must_exist=True), reading=True) as host:
        found = await _find_artifact(host, board, artifact)
        id_ = found.artifact.id
        denied = await host.why(board.name, id_, agent, scope=command_scope())
    because = denied or audience_text(found.audience, _now())
    why = {"artifact": id_, "agent": agent, "visible": denied is None, "because": because}
    reason = f"cannot see {id_}: {denied}" if denied else f"can see {id_}: it is {because}"
    return Result({"why": why}, clean(f"{agent} {reason}"))


@command
async def missed(
    name: BoardName,
    run: str | None = None,
    /,
    *,
    limit: int = 50,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """List artifacts that were not delivered, and why.

    Options:
      RUN        Only of this run.
      --limit N  Number of deliveries, newest runs first.

    Examples:
      weft board missed News
      weft board missed News last
    """
    require_positive(limit)
    board = find_board(streams, name)
    async with hosted(locate_journal(streams, journal, must_exist=True), reading=True) as host:
        found = await _missed(host, board, run, limit + 1)
    notes = [] if found else ["everything was delivered"]
    if len(found) > limit:
        notes.append(f"there are more than these {limit}: use --limit N")
    lines = [
        clean(f"{run}  {record.seq}  {at_time(record.at)}  {missed_text(record)}")
        for run, record in found[:limit]
    ]
    data = [{"run": run, **asdict(record)} for run, record in found[:limit]]
    return Result({"missed": data}, "\n".join(lines), notes)


async def _missed(
    host: Host, board: BoardPackage, typed: str | None, most: int
) -> list[tuple[str, MissedRecord]]:
    """Return the missed deliveries of a run, or of all, each with its run."""
    if typed is None:
        rows = await host.runs(scope=command_scope(), workflow=board.name, limit=_RUNS)
        runs = [row.run for row in rows]
    else:
        runs = [await find_board_run(host, board, typed)]
    found: list[tuple[str, MissedRecord]] = []
    for run in runs:
        found += [
            (run, record_of(MissedRecord, event))
            async for event in host.events(run, scope=command_scope())
            if isinstance(event, Event) and isinstance(event.data, DeliveryMissed)
        ]
        if len(found) >= most:
            break
    return found[:most]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _time(text: str | None) -> datetime | None:
    """Return a time, or the time a span before now."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(milliseconds=_span(text))
    return found if found.tzinfo else found.astimezone()


def _span(text: str) -> int:
    try:
        return milliseconds(text)
    except CommandFailed:
        hint = "write 30m, 2h, 7d, or 2026-01-31T12:00"
        raise usage(f'invalid value "{text}" for --since', hint) from None
