"""weft board list, show, why and missed: the artifacts of a board, and who sees them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias, TypeVar

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.commands.runs import milliseconds
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.hosting import (
    MAX_NAMED,
    JournalFile,
    Output,
    find_run,
    hosted,
    locate_journal,
)
from weft.cli.pages.board import artifact_page, audience_text, missed_text, short_id
from weft.cli.results import Message, Result, Table
from weft.cli.starting import package_to_run
from weft.cli.streams import Streams, at_time, clean, counted, value_text
from weft.context.slices import Envelope
from weft.engine.events import DeliveryMissed, Event
from weft.errors import UsageError
from weft.ids import nearest
from weft.inspect.board import missed_record
from weft.packages.reader import read_package
from weft.ports.board import StoredArtifact
from weft.runtime.board.code import ArtifactTypes, artifact_types
from weft.runtime.host import Host
from weft.spec.providers import MAX_LIMIT, MAX_OFFSET, FilterConfig, TagFilter
from weft.spec.providers import milliseconds as time_of
from weft.wire.rows import artifact_data, whole_artifact_data

T = TypeVar("T")

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
Names: TypeAlias = tuple[str, ...]


class BoardPackage(NamedTuple):
    """A package that has a board."""

    name: str
    folder: Path
    types: ArtifactTypes
    agents: tuple[str, ...]


def find_board(streams: Streams, typed: str) -> BoardPackage:
    """Return the package of a board."""
    folder = package_to_run(streams, typed)
    spec, name = read_package(folder).spec, folder.resolve().name
    if spec.board is None:
        raise usage(f"{name} has no board", f"run it: weft run {name}")
    agents = tuple(each.agent for each in spec.board.agents)
    return BoardPackage(name, folder, artifact_types(spec, spec.board), agents)


def require_known(what: str, name: str, known: Sequence[str]) -> None:
    """Refuse an agent or artifact type that a board does not have."""
    if name not in known:
        near = nearest(name, known)
        available = f"available: {', '.join(known) or 'none'}"
        raise not_found(
            f"the board has no {what} {name}", f"did you mean {near}?" if near else available
        )


async def find_board_run(host: Host, board: BoardPackage, typed: str) -> str:
    """Return the id of a run of a board."""
    row = await find_run(host, typed)
    if row.workflow != board.name:
        raise usage(f"{row.run} is a run of {row.workflow}", f"name a run of {board.name}")
    return row.run


async def _find_artifact(host: Host, board: BoardPackage, typed: str) -> StoredArtifact:
    """Return an artifact by its id, or by the end of it."""
    with suppress(UsageError):
        return await host.artifact(board.name, typed, scope=LOCAL)
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
    return await host.artifact(board.name, ids[0], scope=LOCAL)


async def _ids_ending_with(host: Host, board: BoardPackage, end: str) -> list[str]:
    ids: dict[str, None] = {}
    for offset in count(step=MAX_LIMIT):
        page, total = await host.artifacts(board.name, scope=LOCAL, offset=offset)
        ids.update((artifact.id, None) for artifact in page if artifact.id.endswith(end))
        if offset + MAX_LIMIT >= total:
            break
    return list(ids)


@dataclass(frozen=True)
class MissedDelivery:
    """Artifacts that were not delivered to a subscription."""

    run: str
    seq: int
    at: int
    subscription: str
    artifacts: tuple[str, ...]
    why: str
    detail: str


def _missed_line(missed: MissedDelivery) -> str:
    text = missed_text(missed.subscription, missed.artifacts, missed.why, missed.detail)
    return clean(f"{missed.run}  {missed.seq}  {at_time(missed.at)}  {text}")


def _artifact_table(found: Sequence[Envelope], total: int, offset: int, *, is_short: bool) -> Table:
    rows = [
        (
            short_id(artifact.id) if is_short else artifact.id,
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
    data = {"artifacts": [artifact_data(each) for each in found], "total": total}
    note = f"{some}{counted(total, 'artifact')}{more}"
    return Table(data, rows, _HEAD, [note], least=_LEAST)


def list_artifacts(  # noqa: PLR0913 - its filters
    name: BoardName,
    /,
    *,
    type_: Annotated[
        Names,
        Parameter(
            name="--type",
            metavar="TYPE",
            help="Only this type; repeatable.",
            consume_multiple=False,
        ),
    ] = (),
    tag: Annotated[
        Names,
        Parameter(help="Only with this tag; repeatable: any of them.", consume_multiple=False),
    ] = (),
    by: Annotated[
        Names,
        Parameter(
            metavar="WHO",
            help="Only published by this agent or user:NAME; repeatable.",
            consume_multiple=False,
        ),
    ] = (),
    correlation: Annotated[
        str | None, Parameter(metavar="ID", help="Only of this correlation.")
    ] = None,
    partition: Annotated[str | None, Parameter(help="Only of this partition.")] = None,
    text: Annotated[str | None, Parameter(help="Only with this text in the payload.")] = None,
    since: Annotated[
        str | None, Parameter(metavar="SPAN|TIME", help="Only newer ones: 2h, or 2026-01-31T12:00.")
    ] = None,
    limit: Annotated[int, Parameter(help="Number of artifacts, newest first.")] = 20,
    offset: Annotated[int, Parameter(help="Number of the newest artifacts to skip.")] = 0,
    visible_to: Annotated[
        str | None, Parameter(metavar="AGENT", help="Only what this agent may see.")
    ] = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """List artifacts, newest first."""
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

    async def read(host: Host) -> Result:
        found, total = await host.artifacts(
            board.name, wanted, scope=LOCAL, agent=visible_to, offset=offset
        )
        return _artifact_table(found, total, offset, is_short=streams.settings.terminal)

    return _with_host(read, streams, journal)


def show(
    name: BoardName, artifact: ArtifactName, /, *, journal: JournalFile = None, streams: Output
) -> Result:
    """Show an artifact: payload, visibility, and the agents it has woken."""
    board = find_board(streams, name)

    async def read(host: Host) -> Result:
        found = await _find_artifact(host, board, artifact)
        used = await host.consumed(board.name, scope=LOCAL, artifact=found.artifact.id)
        consumed = list(used)
        page = artifact_page(found, consumed, _now(), streams)
        return Message({"artifact": whole_artifact_data(found, consumed)}, page)

    return _with_host(read, streams, journal)


def why(
    name: BoardName,
    artifact: ArtifactName,
    agent: Annotated[str, Parameter(help="An agent of the board.")],
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Explain why an agent can or cannot see an artifact."""
    board = find_board(streams, name)
    require_known("agent", agent, board.agents)

    async def read(host: Host) -> Result:
        found = await _find_artifact(host, board, artifact)
        id_ = found.artifact.id
        denied = await host.why(board.name, id_, agent, scope=LOCAL)
        because = denied or audience_text(found.audience, _now())
        why = {"artifact": id_, "agent": agent, "visible": denied is None, "because": because}
        reason = f"cannot see {id_}: {denied}" if denied else f"can see {id_}: it is {because}"
        return Message({"why": why}, clean(f"{agent} {reason}"))

    return _with_host(read, streams, journal)


def missed(
    name: BoardName,
    run: Annotated[str | None, Parameter(help="Only of this run.")] = None,
    /,
    *,
    limit: Annotated[int, Parameter(help="Number of deliveries, newest runs first.")] = 50,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """List artifacts that were not delivered, and why."""
    if limit < 1:
        raise usage(f'invalid value "{limit}" for --limit', "use a number above 0")
    board = find_board(streams, name)

    async def read(host: Host) -> Result:
        found = await _missed(host, board, run, limit + 1)
        notes = [] if found else ["everything was delivered"]
        if len(found) > limit:
            notes.append(f"there are more than these {limit}: use --limit N")
        text = "\n".join(_missed_line(delivery) for delivery in found[:limit])
        return Message({"missed": [asdict(delivery) for delivery in found[:limit]]}, text, notes)

    return _with_host(read, streams, journal)


async def _missed(
    host: Host, board: BoardPackage, typed: str | None, most: int
) -> list[MissedDelivery]:
    if typed is None:
        rows = await host.runs(scope=LOCAL, workflow=board.name, limit=_RUNS)
        runs = [row.run for row in rows]
    else:
        runs = [await find_board_run(host, board, typed)]
    found: list[MissedDelivery] = []
    for run in runs:
        async for event in host.events(run, scope=LOCAL):
            if isinstance(event, Event) and isinstance(event.data, DeliveryMissed):
                record = missed_record(event, event.data)
                found.append(
                    MissedDelivery(
                        run,
                        record.seq,
                        record.at,
                        record.subscription,
                        tuple(record.artifacts),
                        record.why,
                        record.detail,
                    )
                )
        if len(found) >= most:
            break
    return found[:most]


def _with_host(read: Callable[[Host], Awaitable[T]], streams: Streams, journal: Path | None) -> T:
    """Read something from the journal."""
    location = locate_journal(streams, journal, must_exist=True)

    async def work() -> T:
        async with hosted(location, reading=True) as host:
            return await read(host)

    return asyncio.run(work())


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
