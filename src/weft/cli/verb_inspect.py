"""weft inspect: what happened in a run and why; what an agent saw at a turn."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from pydantic_core import to_jsonable_python

from weft.cli.exits import Exit
from weft.cli.failure import usage
from weft.cli.hosting import JournalFile, Place, hosted, place_of
from weft.cli.inspect_page import run_page
from weft.cli.machine_formats import document
from weft.cli.recorded import Recorded, read_recorded
from weft.cli.streams import Streams
from weft.cli.turn_page import comparison_page, turn_page
from weft.inspect.comparison import compare_turns
from weft.inspect.run import inspect_run
from weft.inspect.turn import inspect_turn


def inspect(
    run: Annotated[
        str,
        Parameter(help="A run: its name, a unique beginning or end of it, or last; @N is a turn."),
    ],
    /,
    *,
    against: Annotated[
        int | None,
        Parameter(metavar="TURN", help="Compare the turn with this one, which is the earlier one."),
    ] = None,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Say what happened in a run, or show exactly what an agent was sent in a turn."""
    name, at, turn = run.partition("@")
    if at and not turn.isdecimal():
        raise usage(f'"{turn}" is not the number of a turn', "write RUN@1 for the first turn")
    if against is not None and not at:
        raise usage("--against compares two turns", f"name the other one: {name}@2 --against 1")
    place = place_of(streams, journal, must_exist=True)
    recorded = asyncio.run(_read(place, name))
    if not at:
        return _print_run(recorded, place, streams)
    return _print_turn(recorded, int(turn), against, streams)


async def _read(place: Place, name: str) -> Recorded:
    async with hosted(place) as host:
        return await read_recorded(host, name)


def _print_run(recorded: Recorded, place: Place, streams: Streams) -> Exit:
    told = inspect_run(recorded.workflow, recorded.run, recorded.events)
    if streams.settings.json:
        streams.result(document({"inspection": to_jsonable_python(told)}))
    else:
        streams.result(run_page(told, streams))
        if told.turns:
            command = f"weft inspect {recorded.run}@1{place.options}"
            streams.note(f"\nsee what an agent was sent: {command}")
    return Exit.DONE


def _print_turn(recorded: Recorded, turn: int, against: int | None, streams: Streams) -> Exit:
    told = inspect_turn(recorded.workflow, recorded.run, recorded.events, turn)
    if against is None:
        if streams.settings.json:
            streams.result(document({"turn": to_jsonable_python(told)}))
        else:
            streams.result(turn_page(told, streams))
        return Exit.DONE
    other = inspect_turn(recorded.workflow, recorded.run, recorded.events, against)
    compared = compare_turns(other, told)
    if streams.settings.json:
        streams.result(document({"comparison": to_jsonable_python(compared)}))
    else:
        streams.result(comparison_page(compared, streams))
    return Exit.DONE
