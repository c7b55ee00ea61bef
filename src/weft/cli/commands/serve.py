"""weft serve: the server of a workspace; by default it also performs runs."""

import asyncio
import os
import webbrowser
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from weft.app.folders import NOT_BUILT
from weft.app.settings_file import read_settings
from weft.app.stores import shown_store
from weft.cli.commands.worker import require_models
from weft.cli.failure import usage
from weft.cli.hosting import JournalFile, Output, locate_journal, require_server
from weft.cli.results import Result, document
from weft.cli.stopping import DRAIN_SECONDS, DrainOption, LogOption, print_log, stop_signals
from weft.cli.stopping import drain as drain_host
from weft.cli.streams import Streams, clean, counted, finish


def serve(
    *,
    host: Annotated[
        str | None, Parameter(metavar="ADDRESS", help="Listen here; default: 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, Parameter(metavar="PORT", help="Listen on this port; default: 8765; 0: any.")
    ] = None,
    work: Annotated[
        bool,
        Parameter(
            negative="--no-work", help="Perform runs as well (default); --no-work: workers do."
        ),
    ] = True,
    open_: Annotated[
        bool,
        Parameter(
            name="--open",
            negative="--no-open",
            help="Open the page in a browser (default in a terminal); --no-open: do not.",
        ),
    ] = True,
    drain: DrainOption = DRAIN_SECONDS,
    log_format: LogOption = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Serve the workspace over HTTP until SIGTERM or Ctrl-C."""
    if port is not None and not 0 <= port < 65_536:
        raise usage(f'invalid value "{port}" for --port', "use a port from 0 to 65535")
    require_server()
    # Deferred: only this command needs the server.
    from weft.server.serve import open_server, prepare_process, run_server  # noqa: PLC0415
    from weft.server.settings import server_settings  # noqa: PLC0415

    location = locate_journal(streams, journal)
    environment = read_settings(location.workspace)
    settings = server_settings(environment, host=host, port=port)

    async def serve_until_stopped(note: Callable[[str], None]) -> int:
        opening = open_server(
            location.workspace, settings, environment, journal=location.journal, works=work
        )
        with stop_signals() as stops:
            async with opening as opened:
                store = shown_store(location.address)
                is_built = opened.context.page.is_built
                _print_ready(opened.url, opened.page, store, streams, is_built=is_built)
                if open_ and is_built and streams.settings.terminal:
                    await asyncio.to_thread(webbrowser.open, opened.page)
                await stops.acquire()
                note("stopping; press Ctrl-C again to stop at once")
                opened.context.is_stopping = True
                return await drain_host(opened.context.host, drain, stops)

    prepare_process()
    with print_log(streams, environment, log_format) as note:
        require_models(environment)
        held = run_server(serve_until_stopped(note))
        note(f"stopped: {counted(held, 'run')} released" if work else "stopped")
    return Result()


def _print_ready(url: str, page: str, store: str, streams: Streams, *, is_built: bool) -> None:
    if streams.settings.json:
        ready = {"url": url, "page": page, "store": store, "pid": os.getpid()}
        streams.result(document({"ready": ready}, line=True))
    else:
        shown = page if is_built else NOT_BUILT
        for label, text in (("page", shown), ("API", f"{url}/docs"), ("store", store)):
            streams.result(clean(f"{label:6} {text}"))
    finish()
