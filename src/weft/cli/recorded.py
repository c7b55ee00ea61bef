"""A run as it stands in the journal, with the workflow it was started with."""

from dataclasses import dataclass

from weft.app.hosts import LOCAL
from weft.cli.run_names import find_run
from weft.engine.events import Event
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run, all of its events and its workflow."""

    run: str
    events: list[Event]
    workflow: Workflow


async def read_recorded(host: Host, typed: str) -> Recorded:
    """Read the run a person means."""
    row = await find_run(host, typed)
    workflow = await host.workflow(row.run, scope=LOCAL)
    told = [it async for it in host.events(row.run, scope=LOCAL)]
    return Recorded(row.run, [it for it in told if isinstance(it, Event)], workflow)
