"""weft run: one run of a workflow, to its end or to a question nobody is there to answer."""

from typing import Annotated

from cyclopts import Parameter

from weft.cli.candidates import package_names
from weft.cli.conversing import Session
from weft.cli.exits import Exit
from weft.cli.given_values import Given
from weft.cli.going_along import go_along, host_for
from weft.cli.hosting import JournalFile, place_of
from weft.cli.messages import read_message
from weft.cli.model_options import ModelName, Seed
from weft.cli.person import Person
from weft.cli.run_end import work_on
from weft.cli.starting import package_to_run, start_run
from weft.cli.streams import Streams


def run(
    name: Annotated[str, Parameter(help="The package to run, by name.", completer=package_names)],
    message: Annotated[str | None, Parameter(help="What the user says first.")] = None,
    /,
    *,
    given: Given = (),
    model: ModelName = None,
    seed: Seed = 0,
    journal: JournalFile = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Start a workflow and go along with it."""
    if message is not None:
        read_message(message, "say something, or leave it out and the workflow begins without")
    folder = package_to_run(streams, name)
    session = Session(streams, place_of(streams, journal))

    async def work(person: Person) -> Exit:
        async with host_for(session, person, seed) as host:
            session.run = await start_run(
                host, streams, folder, message=message, given=given, model=model
            )
            return await go_along(host, session, person)

    return work_on(session, work)
