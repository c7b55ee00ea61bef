"""weft worker: claim runs of all tenants, and work on them until the process is stopped."""

import asyncio
import gc
import logging
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from weft.adapters.system_clock import SystemClock
from weft.app.folders import JOURNAL
from weft.app.models import is_own_model, open_registry
from weft.app.settings_file import read_settings
from weft.app.stores import shown_store
from weft.cli.failure import not_found, setup, usage
from weft.cli.hosting import (
    JournalFile,
    JournalLocation,
    Output,
    hosted,
    locate_journal,
    require_server,
)
from weft.cli.results import Result, document
from weft.cli.scope import scope_options
from weft.cli.stopping import DRAIN_SECONDS, DrainOption, LogOption, print_log, stop_signals
from weft.cli.stopping import drain as drain_host
from weft.cli.streams import Streams, clean, counted, finish
from weft.errors import SetupError, UsageError
from weft.packages.workspace import APPS, PACKAGES

_log: Final = logging.getLogger("weft")


def worker(
    *,
    drain: DrainOption = DRAIN_SECONDS,
    metrics: Annotated[
        str | None,
        Parameter(metavar="HOST:PORT", help="Answer Prometheus here, such as 127.0.0.1:9464."),
    ] = None,
    log_format: LogOption = None,
    journal: JournalFile = None,
    streams: Output,
) -> Result:
    """Work on runs of all tenants until SIGTERM or Ctrl-C."""
    if metrics is not None:
        require_server()
        host, _, port = metrics.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise usage(f'invalid value "{metrics}" for --metrics', "write HOST:PORT")
    if scope_options():
        raise usage("a worker works on runs of all tenants", "leave out --app and --user")
    location = locate_journal(streams, journal)
    usual = location.workspace / JOURNAL
    if location.file == usual and location.is_missing and not _has_packages(location.workspace):
        raise not_found(
            f"{location.workspace.resolve()} has no packages and no runs",
            "name the folder that contains `workflows`: weft worker --workspace DIR",
        )
    settings = read_settings(location.workspace)
    with print_log(streams, settings, log_format) as note:
        require_models(settings)
        gc.set_threshold(50_000, 20, 20)  # Waiting runs would be examined again and again.
        held = asyncio.run(_work(location, streams, drain, metrics))
        note(f"stopped: {counted(held, 'run')} released for other workers")
    return Result()


def require_models(settings: Mapping[str, str]) -> None:
    """Refuse settings that name unknown models; warn of a missing model or key."""
    names = [("WEFT_MODEL", settings.get("WEFT_MODEL", ""))]
    if not names[0][1]:
        _log.warning("no model is set: set WEFT_MODEL, or name a model in each package or run")
    registry, fallbacks = open_registry(settings, SystemClock())
    names += (("WEFT_FALLBACK_MODEL", name) for name in fallbacks.values())
    for setting, name in names:
        try:
            if name and not is_own_model(name):
                registry.model(name)
        except SetupError as error:  # Tenants may have a key of their own.
            _log.warning("%s: %s; %s", setting, error, error.hint)
        except UsageError as error:
            raise setup(f"{setting} is not valid: {error}", error.hint or "") from error


def _has_packages(workspace: Path) -> bool:
    return (workspace / PACKAGES).is_dir() or (workspace / APPS).is_dir()


async def _work(
    location: JournalLocation, streams: Streams, seconds: float, metrics: str | None
) -> int:
    """Work until the process is stopped; return how many runs are left to other workers."""
    with stop_signals() as stops:
        async with hosted(location) as host, AsyncExitStack() as stack:
            if metrics is not None:
                # Deferred: only the server needs it.
                from weft.server.metrics import serving_metrics  # noqa: PLC0415

                await stack.enter_async_context(serving_metrics(host, metrics))
            await host.recover()
            _print_ready(location, host.owner, streams)
            await stops.acquire()
            return await drain_host(host, seconds, stops)


def _print_ready(location: JournalLocation, owner: str, streams: Streams) -> None:
    store, pid = shown_store(location.address), os.getpid()
    if streams.settings.json:
        ready = {"store": store, "owner": owner, "pid": pid}
        streams.result(document({"ready": ready}, line=True))
    else:
        streams.result(clean(f"ready: store {store}, owner {owner}, pid {pid}"))
    finish()
