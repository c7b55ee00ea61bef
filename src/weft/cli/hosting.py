"""The journal and the host of a command, and how people name runs and requests."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias, cast

from cyclopts import Parameter
from pydantic_core import from_json

import weft
from weft.adapters.models.recorded import Ask
from weft.adapters.sqlite_file import IN_MEMORY, is_on_read_only_disk
from weft.app.folders import SERVER_ROLES, server_file
from weft.app.hosts import open_host
from weft.app.settings_file import read_settings
from weft.app.stores import is_postgres, shown_store, store_address
from weft.cli.failure import CommandFailed, Exit, Failure, not_found, remedy, setup, usage
from weft.cli.paths import how_to_start
from weft.cli.scope import (
    command_scope,
    command_user,
    is_on_server,
    scope_options,
    set_server_scope,
)
from weft.cli.streams import Streams, output_kept
from weft.engine.rows import RequestRow, RunRow
from weft.errors import AccessDenied, PortError, RunGivenUp, StoreError, WeftError
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.runs.ownership import is_alive

if TYPE_CHECKING:
    from weft.client import Client

#: The streams of a command, which are not an option.
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]

JournalFile: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--journal",
        metavar="FILE",
        help="Journal file or postgresql:// address; default: WEFT_STORE, else .weft/journal.db.",
    ),
]

RUN_HELP: Final = "A run: its id, a unique beginning or end of it, its correlation, or last."
RunName: TypeAlias = Annotated[str, Parameter(help=RUN_HELP)]

ServerUrl: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--server",
        metavar="URL",
        help="Use the runs of this server; default: WEFT_SERVER; its key: WEFT_SERVER_KEY.",
    ),
]

People: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--as",
        metavar="WHO",
        help="Act as user:NAME, role:NAME or group:NAME: only their requests; repeatable.",
        consume_multiple=False,
    ),
]


#: The roles of keys that commands accept: these see the packages and all events of runs.
VIEWERS: Final = frozenset({"developer", "administrator"})

MAKE_KEY: Final = "weft keys create --role developer --role operator"


class RunServer(NamedTuple):
    """A server that holds the runs of a command."""

    url: str
    #: Finds the key: one that a server has left is another one after a restart.
    key: Callable[[], str]
    #: Whether the command line names it, and not the environment.
    is_named: bool
    #: Tells the person that the server is away, and is back.
    note: Callable[[str], None] | None = None

    @property
    def options(self) -> str:
        """The option that names it for another command, after a space."""
        return f" --server {quote(self.url)}" if self.is_named else ""


@dataclass(frozen=True, slots=True)
class JournalLocation:
    """The workspace, and the file, the PostgreSQL database or the server that holds its runs."""

    workspace: Path
    #: As named on the command line.
    journal: str | None
    server: RunServer | None = None

    @property
    def address(self) -> str:
        """The file, or the address of the database; raises UsageError for any other address."""
        return store_address(read_settings(self.workspace), self.workspace, self.journal)

    @property
    def file(self) -> Path | None:
        """The journal file; None if the runs are in PostgreSQL or on a server."""
        if self.server is not None or is_postgres(self.address):
            return None
        return Path(self.address)

    @property
    def blocked(self) -> str:
        """Why no journal can be at this path; empty if one can."""
        file = self.file
        if file is None:
            return ""
        if file.is_dir():
            return f"{file} is a folder; the journal is a file"
        if file.parent.exists() and not file.parent.is_dir():
            return f"{file.parent} is a file; the journal needs a folder"
        return ""

    @property
    def is_missing(self) -> bool:
        """Whether the journal is a file that does not exist."""
        return self.file is not None and not self.file.is_file()

    @property
    def options(self) -> str:
        """The options that lead another command to the same runs, each after a space."""
        return self.places + scope_options()

    @property
    def places(self) -> str:
        """The options that name the workspace and the journal, without a password."""
        if self.server is not None:
            return ""  # The options of the scope name it.
        upward = not self.workspace.parts or set(self.workspace.parts) == {".."}
        places = "" if upward else f" --workspace {quote(str(self.workspace))}"
        if self.journal is not None:
            places += f" --journal {quote(shown_store(self.journal))}"
        return places


def locate_journal(
    streams: Streams, journal: str | None, *, must_exist: bool = False
) -> JournalLocation:
    """Return where the runs of a command are; `must_exist` refuses a journal without runs."""
    location = JournalLocation(streams.settings.workspace, journal)
    if location.address == IN_MEMORY:
        where = "WEFT_STORE=" if journal is None else "--journal "
        raise usage(
            f"{where}{IN_MEMORY} keeps nothing after the command ends",
            "name a file: --journal FILE",
        )
    if location.blocked:
        raise setup(location.blocked, "move it away, or name a file: --journal FILE")
    if must_exist and location.is_missing:
        raise not_found(
            f"there are no runs: {location.file} does not exist",
            how_to_start(location.workspace),
            "or name the folder with your packages: weft --workspace DIR",
        )
    return location


def locate_runs(
    streams: Streams, journal: str | None, server: str | None, *, must_exist: bool = False
) -> JournalLocation:
    """Return where the runs of a command are, which may be on a server.

    The command then acts for the user of the key.
    """
    workspace = streams.settings.workspace
    found = find_server(workspace, journal, server)
    if found is None:
        return locate_journal(streams, journal, must_exist=must_exist)
    found = found._replace(note=streams.note)
    set_server_scope(asyncio.run(_scope_of(found, streams)), found.options)
    return JournalLocation(workspace, None, found)


def require_server() -> None:
    """Raise CommandFailed if the libraries of the server are not installed."""
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "jwt", "aiohttp")):
        raise setup(
            "the server is not installed",
            'install it in the folder of the sources: pip install ".[server,models]"',
            "print all commands: weft --help",
        )


def find_server(workspace: Path, journal: str | None, server: str | None) -> RunServer | None:
    """Return the server that --server or WEFT_SERVER names; None if --journal is given instead."""
    if server is not None and journal is not None:
        raise usage("--server and --journal exclude each other", "keep one of them")
    settings = read_settings(workspace)
    url = server
    if server is None and journal is None:
        url = settings.get("WEFT_SERVER") or None
    if url is None:
        return None
    if find_spec("aiohttp") is None:
        raise setup("no client is installed", 'install it: pip install "weft-agents[models]"')
    # Deferred: most commands need no client.
    from weft.client.connection import address_of  # noqa: PLC0415

    url = address_of(url)
    given = settings.get("WEFT_SERVER_KEY")
    return RunServer(url, lambda: given or _local_key(workspace, url), is_named=server is not None)


def _local_key(workspace: Path, url: str) -> str:
    """Return the key that a running server of the workspace has left for its user, or nothing."""
    try:
        found = from_json(server_file(workspace, url).read_bytes())
    except (OSError, ValueError):
        return ""
    return found["key"] if found.get("url") == url else ""


async def _scope_of(server: RunServer, streams: Streams) -> Scope:
    """Return the scope of the key; raises CommandFailed if it is not for developers."""
    async with connected(server) as client:
        me = await client.me()
    if VIEWERS.isdisjoint(me["roles"]):
        raise setup(
            f"the key of {me['user']} is for: {', '.join(me['roles']) or 'nothing'}; "
            "commands show what only developers may see",
            f"use another one in WEFT_SERVER_KEY: {MAKE_KEY}",
        )
    if me["version"] != weft.__version__:
        streams.note(other_version(me["version"]))
    addressed = tuple(role for role in me["roles"] if role not in SERVER_ROLES)
    return Scope(me["app"], me["user"], addressed, tuple(me["groups"]))


def other_version(version: str) -> str:
    """Return that a server has another version of Weft than this command."""
    return f"the server has Weft {version}, and this is {weft.__version__}"


@asynccontextmanager
async def connected(server: RunServer) -> AsyncGenerator["Client"]:
    """Open a client of a server; an error names the command that finds the cause."""
    # Deferred: most commands need no client.
    from weft.client import Client  # noqa: PLC0415

    try:
        async with Client(server.url, key=server.key, note=server.note) as client:
            yield client
    except PortError as error:
        raise setup(str(error), f"find the cause: weft doctor{server.options}") from error
    except AccessDenied as error:
        raise not_found(
            str(error), f"see who the key is for: weft doctor{server.options}"
        ) from error


@asynccontextmanager
async def hosted(
    location: JournalLocation,
    *,
    seed: int = 0,
    person: Ask | None = None,
    works: bool = True,
    reading: bool = False,
    default_model: str = "",
) -> AsyncGenerator[Host]:
    """Open the host of a workspace; without `works` it performs nothing, it only appends.

    A host for `reading` also shows runs whose code is not available, such as runs of a script.
    A client of a server has the methods of a host that commands use.
    """
    if location.server is not None:
        if seed:
            raise usage("--seed is for runs in this process", "leave out --seed, or --server")
        with output_kept():
            async with connected(location.server) as client:
                yield cast("Host", client)  # tests/server/test_client.py compares the methods.
        return
    # Without a person, runs are only read: this works on a read-only file system as well.
    file = location.file
    read_only = person is None and not location.is_missing and is_on_read_only_disk(str(file))
    try:
        host = await open_host(
            location.workspace,
            journal=file if read_only else location.journal,
            seed=seed,
            person=person,
            works=works,
            reading=reading,
            default_model=default_model,
            reads_replies=True,
        )
        with output_kept():
            async with host:
                yield host
    except StoreError as error:
        raise store_failure(error, location) from error
    except RunGivenUp as error:
        resume = f"after fixing this, continue with: weft runs resume {error.run}{location.options}"
        hint = (_doctor(location), resume)
        raise CommandFailed(Failure(Exit.SETUP, error.fact, hint=hint, run=error.run)) from error


def store_failure(error: StoreError, location: JournalLocation) -> WeftError:
    """Return the failure of a command whose store cannot be used."""
    cause = error.__cause__
    if isinstance(cause, OSError) and remedy(cause):
        return error
    return setup(str(error), _doctor(location))


def _doctor(location: JournalLocation) -> str:
    return f"find the cause: weft doctor{location.options}"


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
    host: Host, typed: str, scope: Scope | None = None, *, workflow: str | None = None
) -> RunRow:
    """Return the run that a person names; `last` may be limited to the runs of a workflow."""
    scope = scope or command_scope()
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
        raise not_found(
            f'there is no run "{typed}"', f"list the runs: weft runs list{scope_options(scope)}"
        )
    if len(found) > 1:
        named = ", ".join(row.run for row in found[:MAX_NAMED])
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise usage(f'"{typed}" matches {len(found)} runs', f"write more of the id: {named}{more}")
    return found[0]


def acting_as(who: tuple[str, ...]) -> Scope:
    """Return the scope of a command: the local user, or the user, roles and groups of --as."""
    if is_on_server():
        if who:
            raise usage("with --server, the key says who you are", "leave out --as")
        return command_scope()
    named: dict[str, list[str]] = {"user": [], "role": [], "group": []}
    for person in who:
        kind, _, name = person.partition(":")
        if kind not in named or not name.strip():
            raise usage(
                f'invalid value "{person}" for --as', "write user:NAME, role:NAME or group:NAME"
            )
        named[kind].append(name)
    users = named["user"] or [command_user()]
    if len(users) > 1:
        raise usage(f"--as names {len(users)} users", "name one user, and any roles and groups")
    return Scope(command_scope().app, users[0], tuple(named["role"]), tuple(named["group"]))


def is_asked_of(request: RequestRow, people: Scope) -> bool:
    """Return whether a request is addressed to a scope; acting as others excludes one's own."""
    if people != command_scope():
        return request.addressee in people.addresses
    return command_scope().answers(request.app, request.user, request.addressee)


async def find_request(
    host: Host,
    row: RunRow,
    typed: str | None,
    location: JournalLocation,
    people: Scope | None = None,
) -> RequestRow:
    """Return the open request that a person names by the end of its id, or the only one."""
    people = people or command_scope()
    everything = await host.requests(scope=command_scope(), run=row.run)
    asked = [request for request in everything if is_asked_of(request, people)]
    if not everything:
        workflow = await host.workflow(row.run, scope=command_scope())
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
    you = ", ".join(people.addresses) if people != command_scope() else "you"
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
    """Return whether a run is unfinished and no process works on it."""
    return row.status == "running" and not is_alive(row, time.time_ns() // 1_000_000)


def how_to_resume(row: RunRow, location: JournalLocation) -> str:
    """Return the command that continues a running run, or watches the worker that has it."""
    if is_stopped(row):
        return f"no process works on it; continue: weft runs resume {row.run}{location.options}"
    return f"worker {row.owner} works on it; watch: weft runs tail {row.run}{location.options}"


async def _matching(host: Host, name: str, scope: Scope) -> list[RunRow]:
    """Return the runs whose id begins or ends like this; else the newest of each board by name."""
    found: list[RunRow] = []
    named: dict[str, RunRow] = {}
    before: str | None = None
    while page := await host.runs(scope=scope, before=before, limit=_PAGE):
        for row in page:
            if row.run.lower() == name:
                return [row]
            if row.run.lower().startswith(name) or row.run.lower().endswith(name):
                found.append(row)
            elif row.name.lower().endswith(f"/{name}"):  # The newest comes first.
                named.setdefault(row.name, row)
        before = page[-1].run
    return found or list(named.values())
