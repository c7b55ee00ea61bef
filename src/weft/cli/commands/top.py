"""weft top: the load of a server, or of a store, again and again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from itertools import islice
from typing import Annotated, Final

from cyclopts import Parameter

from weft.app.stores import shown_store
from weft.cli.failure import setup, usage
from weft.cli.hosting import (
    JournalFile,
    Output,
    RunServer,
    ServerUrl,
    connected,
    find_server,
    hosted,
    locate_journal,
)
from weft.cli.pages.load import Load, WorkerLoad
from weft.cli.results import Result
from weft.cli.scope import scope_options
from weft.cli.streams import Streams, counted
from weft.engine.events import Event
from weft.inspect import totals
from weft.inspect.totals import BOUNDS, Durations, Metric, RunTotals, Tally
from weft.ports.scope import Scope
from weft.runtime.host import Host

#: Seconds between two looks.
_PAUSE: Final = 2.0

#: So many runs of a store are counted, the newest ones.
_MOST_RUNS: Final = 100

#: Moves the cursor of a terminal to its beginning, and clears what follows.
_CLEAR: Final = "\x1b[H\x1b[2J"

#: A server with --no-work counts no turns.
_NO_WORK: Final = "; what workers do: weft top in the workspace, or weft worker --metrics"

_METRICS: Final = {
    f"weft_{found.name}": found for found in vars(totals).values() if isinstance(found, Metric)
}


def top(
    *,
    once: Annotated[bool, Parameter(help="Print it once, also in a terminal.")] = False,
    journal: JournalFile = None,
    server: ServerUrl = None,
    streams: Output,
) -> Result:
    """Show workers, runs, turns, tools and models of a server, or of the store."""
    if scope_options():
        raise usage("weft top shows all tenants", "leave out --app and --user")
    named = find_server(streams.settings.workspace, journal, server)
    reading = _of_store(streams, journal) if named is None else _of_server(named)
    is_live = streams.settings.terminal and not once and not streams.settings.json

    async def watch() -> Result:
        async with reading as read:
            while is_live:
                streams.result(f"{_CLEAR}\n{(await read()).page(streams)}")
                streams.note("\nCtrl-C leaves")
                await asyncio.sleep(_PAUSE)
            load = await read()
            return Result(load.data(), load.page(streams))

    return asyncio.run(watch())


@asynccontextmanager
async def _of_server(server: RunServer) -> AsyncGenerator[Callable[[], Awaitable[Load]]]:
    """Yield what reads the metrics of a server."""
    if find_spec("prometheus_client") is None:
        raise setup("no reader of metrics is installed", 'pip install "weft-agents[server]"')
    async with connected(server) as client:

        async def read() -> Load:
            return load_of_metrics(server.url, await client.metrics())

        yield read


def load_of_metrics(url: str, text: str) -> Load:
    """Return the load that the metrics of a server tell."""
    # Deferred: only this command needs it.
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    tally, gauges = Tally(), dict[str, dict[str, float]]()
    for family in text_string_to_metric_families(text):
        metric = _METRICS.get(family.name)
        for sample in family.samples:
            if metric is None:
                owner = sample.labels.get("owner", "")
                gauges.setdefault(sample.name, {})[owner] = sample.value
                continue
            labels = tuple(sample.labels[name] for name in metric.labels)
            if family.type == "counter":
                tally.count(metric, labels, int(sample.value))
                continue
            durations = tally.durations.setdefault(metric, {}).setdefault(labels, Durations())
            if sample.name.endswith("_sum"):
                durations.seconds = sample.value
            elif sample.name.endswith("_bucket"):  # It counts the smaller ones as well.
                place = _BUCKETS[float(sample.labels["le"])]
                durations.counts[place] = int(sample.value) - sum(durations.counts[:place])
    ages = gauges.get("weft_worker_heartbeat_age_seconds", {})
    works = "weft_runs_in_use" in gauges
    return Load(
        source=url,
        counted=f"since it was started{'' if works else _NO_WORK}",
        workers=[
            WorkerLoad(owner, int(runs), ages.get(owner))
            for owner, runs in gauges.get("weft_worker_runs", {}).items()
        ],
        queued=int(gauges.get("weft_runs_waiting", {}).get("", 0)),
        sockets=int(gauges.get("weft_sockets", {}).get("", 0)),
        tally=tally,
    )


_BUCKETS: Final = {bound: place for place, bound in enumerate((*BOUNDS, float("inf")))}


@asynccontextmanager
async def _of_store(
    streams: Streams, journal: str | None
) -> AsyncGenerator[Callable[[], Awaitable[Load]]]:
    """Yield what reads the load of a store: from its workers, and from events of its runs."""
    location = locate_journal(streams, journal, must_exist=True)
    counts, last_read = RunTotals(), dict[tuple[str, str], int]()

    async def read_events(host: Host) -> None:
        """Count the events of the newest runs that were not counted before."""
        rows = [
            row
            for app in await host.apps()
            for row in await host.runs(scope=Scope.operator(app), limit=_MOST_RUNS)
        ]
        newest = sorted(rows, key=lambda row: row.started_at, reverse=True)
        for row in islice(newest, _MOST_RUNS):
            key, scope = (row.app, row.run), Scope.operator(row.app)
            after = last_read.get(key, 0)
            if row.seq > after:
                found = host.events(row.run, scope=scope, after=after, limit=row.seq - after)
                events = [event async for event in found if isinstance(event, Event)]
                counts.add(row.app, row.run, row.workflow, events)
                last_read[key] = row.seq

    async with hosted(location, reading=True) as host:

        async def read() -> Load:
            await read_events(host)
            found = await host.workload()
            return Load(
                source=shown_store(location.address),
                counted=f"the newest {counted(len(last_read), 'run')}",
                workers=[
                    WorkerLoad(
                        each.owner,
                        each.runs,
                        max(found.now - each.seen_at, 0) / 1000 if each.seen_at else None,
                    )
                    for each in found.owners
                ],
                queued=found.waiting,
                sockets=None,
                tally=counts,
            )

        yield read
