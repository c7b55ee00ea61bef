"""The host a command works with: that of the workspace, and the runs it keeps."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

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

#: What a program may name instead of a file, and SQLite as well: runs that nobody keeps.
_IN_MEMORY: Final = Path(":memory:")


@dataclass(frozen=True, slots=True)
class JournalLocation:
    """Where the packages are and where the runs are kept."""

    workspace: Path
    journal: Path | None

    @property
    def file(self) -> Path:
        """The file the runs are in."""
        return self.workspace / JOURNAL if self.journal is None else self.journal

    @property
    def blocked(self) -> str:
        """What stands where runs are to be kept and is not theirs; nothing if all is well."""
        if self.file.is_dir():
            return f"{self.file} is a folder, and runs are kept in a file"
        folder = self.file.parent
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file, and runs are kept in a folder"
        return ""

    @property
    def options(self) -> str:
        """The options that lead another command to the same runs, with a space before each."""
        given = {"--workspace": self.workspace, "--journal": self.journal}
        return "".join(
            f" {name} {quote(str(path))}"
            for name, path in given.items()
            if path is not None and path.parts and not _is_upward(path)
        )


def locate_journal(
    streams: Streams, journal: Path | None, *, must_exist: bool = False
) -> JournalLocation:
    """Return where a command works; `must_exist` refuses a place where no run was ever kept."""
    if journal == _IN_MEMORY:
        raise usage(
            "--journal :memory: would leave nothing to look at when the command has ended",
            "name a file: --journal FILE",
        )
    location = JournalLocation(streams.settings.workspace, journal)
    if location.blocked:
        raise setup(location.blocked, "move it away, or name a file: --journal FILE")
    if must_exist and not location.file.is_file():
        raise not_found(
            f"no run was kept in {location.file} so far",
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
    """Open the host of a workspace, and close it in any case; without `works` it only writes.

    For `reading` it also shows runs whose code cannot be found here, such as those of a script.
    """
    # Without a person runs are looked at, and that can be done where no folder can be made.
    looking = person is None and location.file.is_file() and on_read_only_disk(location.file)
    journal = location.file if looking else location.journal
    try:
        host = await open_host(
            location.workspace,
            journal=journal,
            seed=seed,
            person=person,
            dispatcher=None if works else _Nobody(),
            reading=reading,
            default_model=SAMPLE,
        )
        with output_kept():
            async with host:
                yield host
    except StoreError as error:
        behind = error.__cause__
        if isinstance(behind, OSError) and remedy(behind):
            raise
        raise setup(str(error), _look(location)) from error
    except RunGivenUp as error:
        resume = f"after fixing this, continue with: weft runs resume {error.run}{location.options}"
        hint = (_look(location), resume)
        raise CommandFailed(Failure(Exit.SETUP, error.fact, hint=hint, run=error.run)) from error


class _Nobody:
    """The dispatcher of a process that works on nothing: whoever resumes a run does."""

    def mine(self, run: RunKey) -> bool:  # noqa: ARG002 - whichever it is
        return False

    async def wake(self, run: RunKey) -> None:
        """Leave it: the journal says that there is something to do."""

    async def serve(self, work: Callable[[RunKey], Awaitable[None]]) -> None:
        """Nobody asks for that."""

    async def close(self) -> None:
        """Nothing is open."""


def _look(location: JournalLocation) -> str:
    return f"see what is wrong: weft doctor{location.options}"


def _is_upward(path: Path) -> bool:
    """Tell whether a workspace is one that is found from here without being named."""
    return set(path.parts) == {".."}


#: How much of an identity is shown in a list: the end, since beginnings are those of the time.
SHORT: Final = 8

#: How many runs are looked at when a part of an identity is given.
_PAGE: Final = 500

#: No more than this many candidates are named.
MOST_NAMED: Final = 4


def short(run: str) -> str:
    """Return the part of an identity that tells it from others."""
    return run[-SHORT:]


async def find_run(host: Host, typed: str, scope: Scope = LOCAL) -> RunRow:
    """Return the run a person means."""
    name = typed.strip().lower()
    if not name:
        raise usage("the name of the run is empty", "name a run, or `last`")
    if name == "last":
        newest = await host.runs(scope=scope, limit=1)
        if not newest:
            raise not_found("there is no run yet", "start one: weft run NAME hello")
        return newest[0]
    found = await _matching(host, name, scope)
    if not found:
        raise not_found(f'there is no run "{typed}"', "list the runs: weft runs list")
    if len(found) > 1:
        named = ", ".join(row.run for row in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise usage(
            f'"{typed}" could be one of {len(found)} runs', f"write more of it: {named}{more}"
        )
    return found[0]


def acting_as(who: tuple[str, ...]) -> Scope:
    """Return who looks at runs and answers: the person at this machine, or whom it is as."""
    named: dict[str, list[str]] = {"user": [], "role": [], "group": []}
    for it in who:
        kind, _, name = it.partition(":")
        if kind not in named or not name.strip():
            raise usage(f'"{it}" names nobody', "write user:NAME, role:NAME or group:NAME")
        named[kind].append(name)
    users = named["user"] or [LOCAL.user]
    if len(users) > 1:
        raise usage(f"--as names {len(users)} users", "a person is one of them, and has any roles")
    return Scope(LOCAL.app, users[0], tuple(named["role"]), tuple(named["group"]))


def is_asked_of(request: RequestRow, people: Scope) -> bool:
    """Tell whether a question is theirs: for whoever acts as others, only what these are asked."""
    if people != LOCAL:
        return request.addressee in people.addresses
    return LOCAL.answers(request.app, request.user, request.addressee)


async def answer_schemas(host: Host, requests: Iterable[RequestRow]) -> Schemas:
    """Return what answers each of some questions, as far as their packages can be loaded."""
    found: dict[str, JsonMap | None] = {}
    for request in requests:
        with suppress(WeftError):  # A list is a list though one of its packages is damaged.
            workflow = await host.workflow(request.run, scope=LOCAL)
            form = workflow.forms.get(request.tool or "")
            found[request.id] = form.answer_schema if form else None
    return found


async def find_request(
    host: Host, row: RunRow, typed: str | None, location: JournalLocation, people: Scope = LOCAL
) -> RequestRow:
    """Return the open question of a run that a person means: by its end, or the only one."""
    everything = await host.requests(scope=LOCAL, run=row.run)
    asked = [it for it in everything if is_asked_of(it, people)]
    if not everything:
        workflow = await host.workflow(row.run, scope=LOCAL)
        raise _asks_nothing(row, location, flow=workflow.compiled.flow is not None)
    if not asked:
        raise _asks_others(row, everything, people)
    matching = [it for it in asked if typed is None or it.id.endswith(typed)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(it.id for it in asked)
    if matching:
        raise usage(f"run {row.run} asks {len(matching)} questions", f"name one of: {names}")
    raise not_found(f'run {row.run} has no open question "{typed}"', f"it asks: {names}")


def _asks_others(row: RunRow, asked: Sequence[RequestRow], people: Scope) -> CommandFailed:
    whom = sorted({it.addressee for it in asked if it.addressee})
    you = ", ".join(people.addresses) if people != LOCAL else "you"
    hints = [f"answer as one of them: --as {quote(it)}" for it in whom] or ["leave out --as"]
    return usage(f"run {row.run} asks {', '.join(whom) or 'its user'}, and not {you}", *hints)


def _asks_nothing(row: RunRow, location: JournalLocation, *, flow: bool) -> CommandFailed:
    if row.status == "ended":
        look = f"look at it: weft inspect {row.run}{location.options}"
        return usage(f"run {row.run} has ended, and asks nothing", look)
    if row.status == "waiting" and flow:
        follow = f"follow it: weft runs resume {row.run}{location.options}"
        return usage(f"run {row.run} waits for its next attempt, and asks nothing", follow)
    if row.status == "waiting":
        publish = f"publish something: weft board publish {row.workflow} TYPE key=value"
        return usage(f"run {row.run} is idle, and asks nothing", publish)
    tail = f"wait until it asks: weft runs tail {row.run}{location.options}"
    return usage(
        f"run {row.run} has something to do, and asks nothing at present",
        *([how_to_resume(row, location)] if is_stopped(row) else [tail]),
    )


def is_stopped(row: RunRow) -> bool:
    """Tell whether a run has something to do and no process works on it."""
    return row.status == "running" and not is_alive(row, time.time_ns() // 1_000_000)


def how_to_resume(row: RunRow, location: JournalLocation) -> str:
    """Name the command that continues a run which has something to do."""
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
