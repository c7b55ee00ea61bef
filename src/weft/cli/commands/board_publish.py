"""weft board publish and flush: publish artifacts, and follow the run that processes them."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.cli.chat.conversation import Session, subscribed
from weft.cli.chat.follow_run import follow_run, interactive_host, recorded_events, run_session
from weft.cli.chat.person import Person
from weft.cli.commands.board import (
    BoardName,
    BoardPackage,
    find_board,
    find_board_run,
    require_known,
)
from weft.cli.failure import usage
from weft.cli.hosting import JournalFile, JournalLocation, Output, RunName, hosted, locate_journal
from weft.cli.results import Hidden, Result, document
from weft.cli.starting import (
    ModelName,
    Seed,
    model_name,
    models_line,
    placed_findings,
    read_json_file,
)
from weft.cli.streams import Streams, clean, json_or_text
from weft.engine.events import ArtifactPublished
from weft.findings import Json
from weft.runtime.board.publish import Publication
from weft.runtime.host import Host

#: The first artifact of a run is at most this event: after the start, and the time limit.
_FIRST: Final = 3

_EXAMPLE: Final = "write fields, title=News, or one JSON text, or --input FILE"


@dataclass(frozen=True)
class Published(Result):
    """An artifact that another process will work on."""

    published: Publication
    type_: Hidden[str]
    location: Hidden[JournalLocation]

    def show(self, streams: Streams) -> None:
        """Print the artifact, and the command that works on it."""
        run = self.published.run
        streams.result(clean(f"published {self.type_} {self.published.id} in run {run}"))
        streams.note(f"  work on it: weft runs resume {run}{self.location.options}")


def publish(  # noqa: PLR0913 - the fields of an artifact
    name: BoardName,
    type_: Annotated[str, Parameter(name="TYPE", help="The type of the artifact.")],
    /,
    *fields: Annotated[
        str, Parameter(name="FIELD=VALUE", help="The payload: fields, or one JSON text.")
    ],
    input_: Annotated[
        Path | None, Parameter(name="--input", metavar="FILE", help="The payload as a JSON file.")
    ] = None,
    tag: Annotated[
        tuple[str, ...], Parameter(help="Tag; repeatable.", consume_multiple=False)
    ] = (),
    correlation: Annotated[
        str | None, Parameter(metavar="ID", help="Correlation; default: a new one.")
    ] = None,
    partition: Annotated[str, Parameter(help="Partition of the board.")] = "",
    visibility: Annotated[
        str | None, Parameter(metavar="WORD|JSON", help="Who sees it: public, tenant, or JSON.")
    ] = None,
    to: Annotated[str, Parameter(metavar="AGENT", help="Deliver it to this agent only.")] = "",
    id_: Annotated[
        str, Parameter(name="--id", metavar="ID", help="Id; publishing it again has no effect.")
    ] = "",
    no_wait: Annotated[
        bool, Parameter(help="Only record it; another process works on it.")
    ] = False,
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Publish an artifact, and follow its run until it is idle."""
    board = find_board(streams, name)
    payload = _read_payload(board, type_, fields, input_)
    if to:
        require_known("agent", to, board.agents)
    audience = _read_visibility(visibility)
    session = Session(streams, locate_journal(streams, journal))

    async def put(host: Host) -> Publication:
        with placed_findings(board.folder):
            made = await host.publish(
                board.name, type_, payload,
                scope=LOCAL, tags=tag, visibility=audience, correlation=correlation,
                partition=partition, id=id_, agent=to, model=await model_name(host, model),
            )  # fmt: skip
        session.run = made.run
        return made

    async def write() -> Result:
        async with hosted(session.location, works=False) as host:
            made = await put(host)
            await host.quiet()
        return Published(made, type_, session.location)

    async def follow(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            made = await put(host)
            session.printed = await _event_before(host, made)
            await _print_start(host, made, type_, session)
            return await follow_run(host, session, person)

    return asyncio.run(write()) if no_wait else run_session(session, follow)


async def _print_start(host: Host, made: Publication, type_: str, session: Session) -> None:
    streams = session.streams
    if streams.settings.json:
        streams.result(document({"published": made._asdict()}, line=True))
        return
    workflow = await host.workflow(made.run, scope=LOCAL)
    state = await host.state(made.run, scope=LOCAL)
    models = models_line(workflow, state.model, begins=not session.printed)
    for line in (f"published {type_} {made.id} in run {made.run}", models):
        streams.note(streams.paint_error(clean(line), "dim"))


async def _event_before(host: Host, made: Publication) -> int:
    """Return the event after which the run is shown: its start, or the publication."""
    for event in await recorded_events(host, made.run):
        if isinstance(event.data, ArtifactPublished) and event.data.id == made.id:
            return event.seq - 1 if event.seq > _FIRST else 0
    return 0


def flush(
    name: BoardName,
    run: RunName,
    /,
    *,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Process all pending batches now, and follow the run."""
    board = find_board(streams, name)
    session = Session(streams, locate_journal(streams, journal, must_exist=True))

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            session.run = await find_board_run(host, board, run)
            row = await host.run(session.run, scope=LOCAL)
            if row.status == "ended":
                look = f"inspect it: weft inspect {row.run}{session.location.options}"
                raise usage(f"run {row.run} has ended and has no pending batches", look)
            session.printed = row.seq
            async with subscribed(host, row.run, after=row.seq) as news:
                await host.flush(row.run, scope=LOCAL)
                return await follow_run(host, session, person, news)

    return run_session(session, work)


def _read_payload(
    board: BoardPackage, type_: str, fields: Sequence[str], file: Path | None
) -> Json:
    """Return the payload of an artifact: from fields, one JSON text, or a file."""
    require_known("artifact type", type_, sorted(board.types.schemas))
    if file is not None and fields:
        raise usage("the payload is given twice", "leave out the fields, or --input")
    if file is not None:
        return read_json_file(file, 'name a JSON file, such as {"title": "News"}')
    if len(fields) == 1 and fields[0].lstrip().startswith(("{", "[")):
        return _parse(fields[0], "the payload")
    properties = _properties(board.types.schemas[type_])
    payload: dict[str, Json] = {}
    for pair in fields:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise usage(f'invalid field "{pair}"', _EXAMPLE)
        if key in payload:
            raise usage(f"{key} is given twice", "keep one of them")
        payload[key] = _value(text, properties.get(key, {}))
    return payload


def _parse(text: str, what: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except ValueError as error:
        hint = 'write an object: {"title": "News"}'
        raise usage(f"{what} is not valid JSON: {error}", hint) from error


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a type; the schema of a model refers to its definition."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = schema.get("$defs", {}).get(name, schema)
    return cast("Mapping[str, Any]", found.get("properties", {}))


def _value(text: str, schema: object) -> Json:
    """Return the value of a field; text stays text if the type of the field asks for text."""
    value, types = json_or_text(text), _types(schema)
    return text if "string" in types and _type_of(value) not in types else value


def _types(schema: object) -> set[str]:
    """Return the JSON Schema types that a value may have."""
    if not isinstance(schema, dict):
        return set()
    fields = cast("dict[str, Any]", schema)
    own = fields.get("type", [])
    found = {own} if isinstance(own, str) else set(own)
    return found.union(*(_types(part) for part in fields.get("anyOf", [])))


def _type_of(value: Json) -> str:
    names: dict[type, str] = {
        type(None): "null",
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
    }
    return names.get(type(value), "object")


def _read_visibility(text: str | None) -> Mapping[str, Json] | None:
    """Return the visibility of an artifact as declared; the board validates it."""
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        return {"kind": text.strip()}
    return cast("Mapping[str, Json]", _parse(text, "the visibility"))
