"""Commands that run until they are stopped: a first signal drains, a second one stops at once."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.app.logs import LogFormat, json_logs, log_format
from weft.cli.failure import usage
from weft.cli.streams import Streams, clean_lines
from weft.runtime.host import Host

#: The option of commands that run until they are stopped.
LogOption: TypeAlias = Annotated[
    LogFormat | None,
    Parameter(
        name="--log-format",
        help="Print the log as text (warnings) or as JSON (one object per line); default: text.",
    ),
]


def _require_seconds(_type: object, seconds: float) -> None:
    if not seconds >= 0:
        raise usage(f'invalid value "{seconds:g}" for --drain', "use a number of seconds from 0 on")


DRAIN_SECONDS: Final = 10.0
DrainOption: TypeAlias = Annotated[
    float,
    Parameter(
        name="--drain",
        metavar="SECONDS",
        help="Time to finish what is under way when it is stopped.",
        validator=_require_seconds,
    ),
]


@contextmanager
def stop_signals() -> Generator[asyncio.Semaphore]:
    """Yield a semaphore that each SIGTERM and each Ctrl-C releases."""
    stops = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stops.release)
    try:
        yield stops
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def drain(host: Host, seconds: float, stops: asyncio.Semaphore) -> int:
    """Finish what is under way, at most so many seconds or until another signal.

    Returns how many runs the host still holds.
    """
    draining = asyncio.create_task(host.drain(seconds))
    again = asyncio.create_task(stops.acquire())
    await asyncio.wait({draining, again}, return_when=asyncio.FIRST_COMPLETED)
    held = draining.result() if draining.done() else await host.drain(0)
    for task in (draining, again):
        task.cancel()
    await asyncio.gather(draining, again, return_exceptions=True)
    return held


@contextmanager
def print_log(
    streams: Streams, settings: Mapping[str, str], given: LogFormat | None
) -> Generator[Callable[[str], None]]:
    """Print the log as JSON; or warnings, without --verbose as well, which prints all of it.

    Yields what prints a note in the same format.
    """
    if log_format(settings, given) == "json":
        with json_logs(sys.stderr, settings):
            yield logging.getLogger("weft").info
        return
    handler = _Warnings(streams)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("weft")
    if not streams.settings.verbose:
        logger.addHandler(handler)
    try:
        yield streams.note
    finally:
        logger.removeHandler(handler)


class _Warnings(logging.Handler):
    """Prints log records as problems."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record, without its traceback: --verbose prints that."""
        level = record.levelname.lower()
        self._streams.problem(clean_lines(f"{level}: {record.getMessage()}"))
