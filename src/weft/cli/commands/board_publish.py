"""weft board publish and flush: publish artifacts, and follow the run that processes them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from weft.app.models import SAMPLE
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
from weft.cli.hosting import JournalFile, RunName, hosted, locate_journal
from weft.cli.options import Output, command
from weft.cli.results import Result, document
from weft.cli.scope import command_scope
from weft.cli.starting import (
    ModelName,
    Seed,
    default_model,
    model_name,
    models_line,
    parse_json,
    placed_findings,
    read_json_file,
    read_pairs,
)
from weft.cli.streams import clean, json_or_text
from weft.engine.events import ArtifactPublished
from weft.findings import Json
from weft.runtime.board.publish import Publication
from weft.runtime.host import Host

#: The first artifact of a run is at most this event: after the start, and the time limit.
_FIRST: Final = 3

_AN_OBJECT: Final = 'write an object: {"title": "News"}'
_EXAMPLE: Final = "write fields, title=News, or one JSON text, or --input FILE"


@command
def publish(  # noqa: PLR0913 - the fields of an artifact
    name: BoardName,
    type_: str,
    /,
    *fields: str,
    input_: Path | None = None,
    tag: tuple[str, ...] = (),
    correlation: str | None = None,
    partition: str = "",
    visibility: str | None = None,
    to: str = "",
    id_: str = "",
    no_wait: bool = False,
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Publish an artifact, and follow its run until it is idle.

    Artifacts go to stdout, events to stderr. With --json, prints one line for the publication,
    one per event and a last one for the run.

    Options:
      TYPE                    The type of the artifact.
      FIELD=VALUE             The payload: fields, or one JSON text.
      --input FILE            The payload as a JSON file.
      --tag TAG               Tag; repeatable.
      --correlation ID        Correlation; default: a new one.
      --partition NAME        Partition of the board.
      --visibility WORD|JSON  Who sees it: public, tenant, or JSON.
      --to AGENT              Deliver it to this agent only.
      --id ID                 Id; publishing it again has no effect.
      --no-wait               Only record it; another process works on it.

    Examples:
      weft board publish News Topic title=Rain
      weft board publish News Topic '{"title": "Rain"}' --tag weather --model sample
      weft board publish News Lead --input lead.json --correlation rain --to Editor
    """
    board = find_board(streams, name)
    payload = _read_payload(board, type_, fields, input_)
    if to:
        require_known("agent", to, board.agents)
    audience = _read_visibility(visibility)
    session = Session(streams, locate_journal(streams, journal))

    async def put(host: Host, usual: str | None) -> Publication:
        with placed_findings(board.folder):
            made = await host.publish(
                board.name, type_, payload,
                scope=command_scope(), tags=tag, visibility=audience, correlation=correlation,
                partition=partition, id=id_, agent=to, model=await model_name(host, model) or usual,
            )  # fmt: skip
        session.run = made.run
        return made

    async def write() -> Result:
        # The model may be known to the worker only.
        async with hosted(session.location, works=False, default_model=SAMPLE) as host:
            made = await put(host, None)
            await host.quiet()
        text = clean(f"published {type_} {made.id} in run {made.run}")
        resume = f"  a worker processes it: weft worker{session.location.options}"
        return Result({"published": made}, text, [resume])

    async def follow(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            made = await put(host, default_model(board.spec, session.location.workspace))
            session.printed = await _event_before(host, made)
            await _print_start(host, made, type_, session)
            return await follow_run(host, session, person)

    return asyncio.run(write()) if no_wait else run_session(session, follow)


async def _print_start(host: Host, made: Publication, type_: str, session: Session) -> None:
    streams = session.streams
    if streams.settings.json:
        streams.result(document({"published": made._asdict()}, line=True))
        return
    workflow = await host.workflow(made.run, scope=command_scope())
    state = await host.state(made.run, scope=command_scope())
    models = models_line(workflow, state.model, begins=not session.printed)
    streams.aside(f"published {type_} {made.id} in run {made.run}", models)


async def _event_before(host: Host, made: Publication) -> int:
    """Return the event after which the run is shown: its start, or the publication."""
    for event in await recorded_events(host, made.run):
        if isinstance(event.data, ArtifactPublished) and event.data.id == made.id:
            return event.seq - 1 if event.seq > _FIRST else 0
    return 0


@command
def flush(
    name: BoardName,
    run: RunName,
    /,
    *,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Process all pending batches now, and follow the run.

    Examples:
      weft board flush News last
    """
    board = find_board(streams, name)
    session = Session(streams, locate_journal(streams, journal, must_exist=True))

    async def work(person: Person) -> Result:
        async with interactive_host(session, person, seed) as host:
            session.run = await find_board_run(host, board, run)
            row = await host.run(session.run, scope=command_scope())
            if row.status == "ended":
                look = f"inspect it: weft inspect {row.run}{session.location.options}"
                raise usage(f"run {row.run} has ended and has no pending batches", look)
            session.printed = row.seq
            async with subscribed(host, row.run, after=row.seq) as news:
                await host.flush(row.run, scope=command_scope())
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
        return parse_json(fields[0], "the payload", _AN_OBJECT)
    properties = _properties(board.types.schemas[type_])
    pairs = read_pairs(fields, "FIELD=VALUE", _EXAMPLE, unique=True)
    return {key: _value(text, properties.get(key, {})) for key, text in pairs}


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
    return cast("Mapping[str, Json]", parse_json(text, "the visibility", _AN_OBJECT))
