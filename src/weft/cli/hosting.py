"""The journal and the host of a command, and how people name runs and requests."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.adapters.models.recorded import Ask
from weft.adapters.sqlite.errors import on_read_only_disk
from weft.app.hosts import JOURNAL, LOCAL, open_host
from weft.app.models import SAMPLE
from weft.cli.failure import CommandFailed, Exit, Failure, not_found, remedy, setup, usage
from weft.cli.paths import how_to_start
from weft.cli.streams import Streams, output_kept
from weft.engine.rows import RequestRow, RunRow
from weft.errors import RunGivenUp, StoreError, WeftError
from weft.ports.dispatcher import RunKey
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.worker import is_alive
from weft.spec.part import JsonMap
from weft.wire.rows import Schemas

#: The streams of a command, which are not an option.
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]

JournalFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--journal",
        metavar="FILE",
        help="Journal file; default: .weft/journal.db in the workspace.",
    ),
]

RUN_HELP: Final = "A run: its id, a unique beginning or end of it, or last."
RunName: TypeAlias = Annotated[str, Parameter(help=RUN_HELP)]

People: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--as",
        metavar="WHO",
        help="Act as user:NAME, role:NAME or group:NAME: only their requests; repeatable.",
        consume_multiple=False,
    ),
]

#: SQLite's name for a database that is not kept in a file.
_IN_MEMORY: Final = Path(":memory:")


@dataclass(frozen=True, slots=True)
class JournalLocation:
    """The workspace, and the file that holds its runs."""

    workspace: Path
    journal: Path | None

    @property
    def file(self) -> Path:
        """The journal file."""
        return self.workspace / JOURNAL if self.journal is None else self.journal

    @property
    def blocked(self) -> str:
        """Why no journal can be at this path; empty if one can."""
        if self.file.is_dir():
            return f"{self.file} is a folder; the journal is a file"
        folder = self.file.parent
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file; the journal needs a folder"
        return ""

    @property
    def options(self) -> str:
        """The options that lead another command to the same runs, each after a space."""
        given = {"--workspace": self.workspace, "--journal": self.journal}
        return "".join(
            f" {name} {quote(str(path))}"
            for name, path in given.items()
            if path is not None and path.parts and not _is_upward(path)
        )


def locate_journal(
    streams: Streams, journal: Path | None, *, must_exist: bool = False
) -> JournalLocation:
    """Return where the runs of a command are; `must_exist` refuses a journal without runs."""
    if journal == _IN_MEMORY:
        raise usage(
            "--journal :memory: keeps nothing after the command ends", "name a file: --journal FILE"
        )
    location = JournalLocation(streams.settings.workspace, journal)
    if location.blocked:
        raise setup(location.blocked, "move it away, or name a file: --journal FILE")
    if must_exist and not location.file.is_file():
        raise not_found(
            f"there are no runs: {location.file} does not exist",
            how_to_start(location.workspace),
            "or name the folder with your packages: weft --workspace DIR",
        )
    return location


@asynccontextmanager
async def hosted(
    location: JournalLocation,
    *,
    seed: int = 0,
    person: Ask | None = None,
    works: bool = True,
    reading: bool = False,
) -> AsyncGenerator[Host]:
    """Open the host of a workspace; without `works` it performs nothing, it only appends.

    A host for `reading` also shows runs whose code is not available, such as runs of a script.
    """
    # Without a person, runs are only read: this works on a read-only file system as well.
    read_only = person is None and location.file.is_file() and on_read_only_disk(location.file)
    try:
        host = await open_host(
            location.workspace,
            journal=location.file if read_only else location.journal,
            seed=seed,
            person=person,
            dispatcher=None if works else _NoWorkDispatcher(),
            reading=reading,
            default_model=SAMPLE,
        )
        with output_kept():
            async with host:
                yield host
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and remedy(cause):
            raise
        raise setup(str(error), _doctor(location)) from error
    except RunGivenUp as error:
        resume = f"after fixing this, continue with: weft runs resume {error.run}{location.options}"
        hint = (_doctor(location), resume)
        raise CommandFailed(Failure(Exit.SETUP, error.fact, hint=hint, run=error.run)) from error


class _NoWorkDispatcher:
    """The dispatcher of a process that performs nothing: a later `runs resume` does."""

    def mine(self, run: RunKey) -> bool:  # noqa: ARG002 - the signature of the port
        return False

    async def wake(self, run: RunKey) -> None:
        """Do nothing: the journal records what is to be done."""

    async def serve(self, work: Callable[[RunKey], Awaitable[None]]) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def _doctor(location: JournalLocation) -> str:
    return f"find the cause: weft doctor{location.options}"


def _is_upward(path: Path) -> bool:
    """Tell whether a workspace is found from the current folder without being named."""
    return set(path.parts) == {".."}


#: The length of a short run id: its end, because ids begin with the time.
SHORT: Final = 8

#: How many runs are read at once to find one by a part of its id.
_PAGE: Final = 500

#: At most so many candidates are named.
MAX_NAMED: Final = 4


def short(run: str) -> str:
    """Return the distinctive part of a run id."""
    return run[-SHORT:]


async def find_run(
    host: Host, typed: str, scope: Scope = LOCAL, *, workflow: str | None = None
) -> RunRow:
    """Return the run that a person names; `last` may be limited to the runs of a workflow."""
    name = typed.strip().lower()
    if not name:
        raise usage("the run is empty", "name a run, or `last`")
    if name == "last":
        newest = await host.runs(scope=scope, workflow=workflow, limit=1)
        if not newest:
            start = "weft generate 'BRIEF'" if workflow else "weft run NAME hello"
            what = f"run of {workflow}" if workflow else "run"
            raise not_found(f"there is no {what} yet", f"start one: {start}")
        return newest[0]
    found = await _matching(host, name, scope)
    if not found:
        raise not_found(f'there is no run "{typed}"', "list the runs: weft runs list")
    if len(found) > 1:
        named = ", ".join(row.run for row in found[:MAX_NAMED])
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise usage(f'"{typed}" matches {len(found)} runs', f"write more of the id: {named}{more}")
    return found[0]


def acting_as(who: tuple[str, ...]) -> Scope:
    """Return the scope of a command: the local user, or the user, roles and groups of --as."""
    named: dict[str, list[str]] = {"user": [], "role": [], "group": []}
    for person in who:
        kind, _, name = person.partition(":")
        if kind not in named or not name.strip():
            raise usage(
                f'invalid value "{person}" for --as', "write user:NAME, role:NAME or group:NAME"
            )
        named[kind].append(name)
    users = named["user"] or [LOCAL.user]
    if len(users) > 1:
        raise usage(f"--as names {len(users)} users", "name one user, and any roles and groups")
    return Scope(LOCAL.app, users[0], tuple(named["role"]), tuple(named["group"]))


def is_asked_of(request: RequestRow, people: Scope) -> bool:
    """Tell whether a request is addressed to a scope; acting as others excludes one's own."""
    if people != LOCAL:
        return request.addressee in people.addresses
    return LOCAL.answers(request.app, request.user, request.addressee)


async def answer_schemas(host: Host, requests: Iterable[RequestRow]) -> Schemas:
    """Return the answer schemas of requests, as far as their packages can be loaded."""
    found: dict[str, JsonMap | None] = {}
    for request in requests:
        with suppress(WeftError):  # One damaged package must not prevent a list.
            workflow = await host.workflow(request.run, scope=LOCAL)
            form = workflow.forms.get(request.tool or "")
            found[request.id] = form.answer_schema if form else None
    return found


async def find_request(
    host: Host, row: RunRow, typed: str | None, location: JournalLocation, people: Scope = LOCAL
) -> RequestRow:
    """Return the open request that a person names by the end of its id, or the only one."""
    everything = await host.requests(scope=LOCAL, run=row.run)
    asked = [request for request in everything if is_asked_of(request, people)]
    if not everything:
        workflow = await host.workflow(row.run, scope=LOCAL)
        raise _no_request(row, location, flow=workflow.compiled.flow is not None)
    if not asked:
        raise _asks_others(row, everything, people)
    matching = [request for request in asked if typed is None or request.id.endswith(typed)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(request.id for request in asked)
    if matching:
        raise usage(f"run {row.run} has {len(matching)} open requests", f"name one of: {names}")
    raise not_found(f'run {row.run} has no open request "{typed}"', f"open requests: {names}")


def _asks_others(row: RunRow, asked: Sequence[RequestRow], people: Scope) -> CommandFailed:
    whom = sorted({request.addressee for request in asked if request.addressee})
    you = ", ".join(people.addresses) if people != LOCAL else "you"
    hints = [f"answer as one of them: --as {quote(who)}" for who in whom] or ["leave out --as"]
    return usage(f"run {row.run} asks {', '.join(whom) or 'its user'}, not {you}", *hints)


def _no_request(row: RunRow, location: JournalLocation, *, flow: bool) -> CommandFailed:
    if row.status == "ended":
        look = f"inspect it: weft inspect {row.run}{location.options}"
        return usage(f"run {row.run} has ended and has no open request", look)
    if row.status == "waiting" and flow:
        follow = f"follow it: weft runs resume {row.run}{location.options}"
        return usage(f"run {row.run} waits for its next attempt; it has no open request", follow)
    if row.status == "waiting":
        publish = f"publish something: weft board publish {row.workflow} TYPE key=value"
        return usage(f"run {row.run} is idle; it has no open request", publish)
    tail = f"wait for a request: weft runs tail {row.run}{location.options}"
    return usage(
        f"run {row.run} is running; it has no open request at present",
        *([how_to_resume(row, location)] if is_stopped(row) else [tail]),
    )


def is_stopped(row: RunRow) -> bool:
    """Tell whether a run is unfinished and no process works on it."""
    return row.status == "running" and not is_alive(row, time.time_ns() // 1_000_000)


def how_to_resume(row: RunRow, location: JournalLocation) -> str:
    """Return the command that continues a running run."""
    command = f"weft runs resume {row.run}"
    if is_stopped(row):
        return f"no process works on it; continue: {command}{location.options}"
    return f"another process works on it; take it over: {command} --take-over{location.options}"


async def _matching(host: Host, name: str, scope: Scope) -> list[RunRow]:
    found: list[RunRow] = []
    before: str | None = None
    while page := await host.runs(scope=scope, before=before, limit=_PAGE):
        for row in page:
            if row.run.lower() == name:
                return [row]
            if row.run.lower().startswith(name) or row.run.lower().endswith(name):
                found.append(row)
        before = page[-1].run
    return found
