"""weft board list, show, why and missed: what is on a board, and who sees it."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.boards import (
    ArtifactName,
    BoardName,
    BoardPackage,
    find_artifact,
    find_board,
    find_board_run,
    require_known,
)
from weft.cli.commands.runs import milliseconds
from weft.cli.failure import CommandFailed, Exit, usage
from weft.cli.formats.documents import document
from weft.cli.hosting import JournalLocation, hosted, locate_journal
from weft.cli.options import JournalFile
from weft.cli.pages.board import artifact_page, audience_text, missed_text, short_id
from weft.cli.streams import Streams
from weft.cli.text import at_time, clean, counted, shortened, value_text
from weft.context.slices import Envelope
from weft.engine.events import DeliveryMissed, Event
from weft.findings import Json
from weft.inspect.board import MissedRecord, missed_record
from weft.spec.providers import MAX_LIMIT, MAX_OFFSET, FilterConfig, TagFilter
from weft.spec.providers import milliseconds as time_of
from weft.wire.rows import artifact_data, whole_artifact_data

#: How much of a payload a line shows at least.
_LEAST: Final = 16

#: How many runs are looked at for what was not delivered.
_RUNS: Final = 500

_HEAD: Final = ("ARTIFACT", "TYPE", "BY", "CREATED", "TAGS", "PAYLOAD")

Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


def list_artifacts(  # noqa: PLR0913 - what is looked for, by name
    name: BoardName,
    /,
    *,
    type_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--type",
            metavar="TYPE",
            help="Only of this type; may be repeated.",
            consume_multiple=False,
            negative="",
        ),
    ] = (),
    tag: Annotated[
        tuple[str, ...],
        Parameter(
            help="Only with this tag, or one of several.", consume_multiple=False, negative=""
        ),
    ] = (),
    by: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="WHO",
            help="Only what they published: an agent, or user:NAME.",
            consume_multiple=False,
            negative="",
        ),
    ] = (),
    correlation: Annotated[str | None, Parameter(metavar="ID", help="Only of this one.")] = None,
    partition: Annotated[str | None, Parameter(help="Only of this part of the board.")] = None,
    text: Annotated[str | None, Parameter(help="Only those whose payload contains it.")] = None,
    since: Annotated[
        str | None, Parameter(metavar="SPAN|TIME", help="Only newer ones: 2h, or 2026-01-31T12:00.")
    ] = None,
    limit: Annotated[int, Parameter(help="How many, the newest first.")] = 20,
    offset: Annotated[int, Parameter(help="Leave out so many of the newest.")] = 0,
    as_: Annotated[
        str | None, Parameter(name="--as", metavar="AGENT", help="Only what this agent may see.")
    ] = None,
    journal: JournalFile = None,
    streams: Output,
) -> Exit:
    """List artifacts, newest first."""
    if not 1 <= limit <= MAX_LIMIT:
        raise usage(f"--limit {limit} cannot be shown", f"give a number from 1 to {MAX_LIMIT}")
    for what, given in (("correlation", correlation), ("partition", partition)):
        if given == "":
            raise usage(f"the {what} is empty", f"name one, or leave out --{what}")
    if not 0 <= offset <= MAX_OFFSET:
        raise usage(f"--offset {offset} cannot be shown", "give a number from 0 on")
    board = find_board(streams, name)
    for it in type_:
        require_known("artifacts of the type", it, sorted(board.types.schemas))
    if as_ is not None:
        require_known("agent", as_, board.agents)
    wanted = FilterConfig(
        types=type_, tags=TagFilter(include=tag), producers=by, correlation_id=correlation,
        partition=partition, text=text, since=_time(since), limit=limit,
    )  # fmt: skip
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> tuple[list[Envelope], int]:
        async with hosted(location, reading=True) as host:
            return await host.artifacts(board.name, wanted, scope=LOCAL, agent=as_, offset=offset)

    found, total = asyncio.run(read())
    if streams.settings.json:
        listed: list[Json] = [artifact_data(it) for it in found]
        streams.result(document({"artifacts": listed, "total": total}))
        return Exit.DONE
    _print_list(found, streams)
    shown = f"{len(found)} of " if len(found) < total else ""
    seen = offset + len(found)
    more = f": --offset {seen} shows older ones" if found and seen < total else ""
    streams.note(f"{shown}{counted(total, 'artifact')}{more}")
    return Exit.DONE


def _print_list(found: Sequence[Envelope], streams: Streams) -> None:
    terminal = streams.settings.terminal
    rows = [
        (
            short_id(it.id) if terminal else it.id,
            it.type,
            it.produced_by,
            at_time(time_of(it.created_at), "%m-%d %H:%M:%S"),
            ",".join(it.tags),
            clean(value_text(it.payload)),
        )
        for it in found
    ]
    if terminal and rows:
        rows = [_HEAD, *rows]
        taken = sum(max(len(row[at]) for row in rows) + 2 for at in range(len(_HEAD) - 1))
        room = max(streams.columns - taken, _LEAST)
        rows = [(*row[:-1], shortened(row[-1], room)) for row in rows]
    if rows:
        streams.rows(rows)


def show(
    name: BoardName, artifact: ArtifactName, /, *, journal: JournalFile = None, streams: Output
) -> Exit:
    """Show an artifact with its payload, who may see it, and whom it has woken."""
    board = find_board(streams, name)
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> str:
        async with hosted(location, reading=True) as host:
            found = await find_artifact(host, board, artifact)
            used = await host.consumed(board.name, scope=LOCAL, artifact=found.artifact.id)
            if streams.settings.json:
                return document({"artifact": whole_artifact_data(found, used)})
            return artifact_page(found, used, _now(), streams)

    streams.result(asyncio.run(read()))
    return Exit.DONE


def why(
    name: BoardName,
    artifact: ArtifactName,
    agent: Annotated[str, Parameter(help="An agent of the board.")],
    /,
    *,
    journal: JournalFile = None,
    streams: Output,
) -> Exit:
    """Say why an agent can or cannot see an artifact."""
    board = find_board(streams, name)
    require_known("agent", agent, board.agents)
    location = locate_journal(streams, journal, must_exist=True)

    async def read() -> tuple[str, str | None, str]:
        async with hosted(location, reading=True) as host:
            found = await find_artifact(host, board, artifact)
            id_ = found.artifact.id
            denied = await host.why(board.name, id_, agent, scope=LOCAL)
            return id_, denied, audience_text(found.audience, _now())

    id_, denied, seen = asyncio.run(read())
    if streams.settings.json:
        told = {"artifact": id_, "agent": agent, "visible": denied is None}
        streams.result(document({"why": {**told, "because": denied or seen}}))
    else:
        verb, reason = ("cannot", denied) if denied else ("can", f"it is {seen}")
        streams.result(clean(f"{agent} {verb} see {id_}: {reason}"))
    return Exit.DONE


def missed(
    name: BoardName,
    run: Annotated[str | None, Parameter(help="Only of this run.")] = None,
    /,
    *,
    limit: Annotated[int, Parameter(help="How many, those of the newest runs first.")] = 50,
    journal: JournalFile = None,
    streams: Output,
) -> Exit:
    """List what was published and did not come to anything, and why."""
    if limit < 1:
        raise usage(f"--limit {limit} would show nothing", "give a number above 0")
    board = find_board(streams, name)
    location = locate_journal(streams, journal, must_exist=True)
    found = asyncio.run(_missed(location, board, run, limit + 1))
    if streams.settings.json:
        listed: list[Json] = [{"run": at, **_missed_data(it)} for at, it in found[:limit]]
        streams.result(document({"missed": listed}))
        return Exit.DONE
    for at, it in found[:limit]:
        head = f"{at}  {it.seq}  {at_time(it.at)}"
        said = missed_text(it.subscription, it.artifacts, it.why, it.detail)
        streams.result(clean(f"{head}  {said}"))
    if not found:
        streams.note("everything was delivered")
    if len(found) > limit:
        streams.note(f"there are more than these {limit}: --limit N shows more")
    return Exit.DONE


def _missed_data(it: MissedRecord) -> dict[str, Json]:
    return {
        "seq": it.seq,
        "at": it.at,
        "subscription": it.subscription,
        "artifacts": list(it.artifacts),
        "why": it.why,
        "detail": it.detail,
    }


async def _missed(
    location: JournalLocation, board: BoardPackage, typed: str | None, most: int
) -> list[tuple[str, MissedRecord]]:
    async with hosted(location, reading=True) as host:
        if typed is None:
            rows = await host.runs(scope=LOCAL, workflow=board.name, limit=_RUNS)
            runs = [it.run for it in rows]
        else:
            runs = [await find_board_run(host, board, typed)]
        found: list[tuple[str, MissedRecord]] = []
        for run in runs:
            found += [
                (run, missed_record(event, event.data))
                async for event in host.events(run, scope=LOCAL)
                if isinstance(event, Event) and isinstance(event.data, DeliveryMissed)
            ]
            if len(found) >= most:
                break
        return found[:most]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _time(text: str | None) -> datetime | None:
    """Read a time, or a span of time before now."""
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
        raise usage(f'"{text}" is no time', "write 30m, 2h, 7d, or 2026-01-31T12:00") from None
