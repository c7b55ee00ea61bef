"""Hosts on workspaces, for programs and scripts."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from weft.adapters.memory import MemoryJournal
from weft.adapters.models.person import Ask
from weft.adapters.models.usage import Price
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.system_clock import SystemClock
from weft.app.context_log import log_context
from weft.app.folders import make_folder, refuse_package
from weft.app.linking import linking_of
from weft.app.models import NO_MODEL, ModelChoice
from weft.app.outside import open_outside
from weft.app.profile import profile_of
from weft.app.registries import open_registry
from weft.app.settings import durability_of, tool_limits
from weft.app.workflows import WorkspaceWorkflows
from weft.engine.rows import RequestRow
from weft.engine.state import State
from weft.environment import read_environment
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Durability, Journal
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer

#: Whose runs they are where nobody says so: one person on one machine.
LOCAL: Final = Scope("local", "me")

#: Where a workspace keeps its runs; the folder is not for version control.
JOURNAL: Final = Path(".weft") / "journal.db"


async def open_host(  # noqa: PLR0913 - its settings, all by name
    workspace: str | Path = ".",
    *,
    journal: str | Path | None = None,
    durability: Durability | None = None,
    environment: Mapping[str, str] | None = None,
    production: bool | None = None,
    seed: int = 0,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
    dispatcher: Dispatcher | None = None,
) -> Host:
    """Open a host for the packages of a workspace. Close it, or use it with `async with`.

    Runs are kept in `.weft/journal.db` of the workspace; `journal` names another file, or
    ":memory:". Keys, addresses and the settings of `weft.app.settings` come from `environment`,
    by default that of the process, and so does whether this is production, unless it is said here.
    `person` answers for the model `you`; `seed` makes the replies
    of `sample` others; `prices` are dollars for a million tokens, in and out, by model;
    `dispatcher` lets other processes work on runs.
    """
    _refuse_no_folder(Path(workspace))
    if journal is None:
        refuse_package(Path(workspace), "runs")
    settings = read_environment() if environment is None else environment
    log_context(settings)
    clock = SystemClock()
    linking = linking_of(settings, production)
    outside = open_outside(Path(workspace), settings, clock)
    loader = PythonToolLoader(tool_limits(settings))
    registry, fallbacks = open_registry(settings, clock, person=person, prices=prices)
    kept = await _open_journal(Path(workspace), journal, durability_of(settings, durability))
    models = ModelChoice(
        registry,
        default=settings.get("WEFT_MODEL") or NO_MODEL,
        seed=seed,
        read_run=kept.read,
        fallbacks=fallbacks,
    )
    return Host(
        journal=kept,
        models=models,
        loader=loader,
        clock=clock,
        find=WorkspaceWorkflows(Path(workspace), loader, profile_of(settings, production), linking),
        dispatcher=dispatcher,
        environment=settings,
        outside=outside,
        linking=linking,
    )


def run(
    workflow: str,
    message: str | None = None,
    *,
    workspace: str | Path = ".",
    values: Mapping[str, Json] | None = None,
    model: str | None = None,
    journal: str | Path | None = None,
    answer: Callable[[RequestRow], Json] | None = None,
) -> State:
    """Run a workflow from a script, and return its state when it has ended or waits.

    `answer` is asked for every question to a person; without it the first question is the end.
    """

    async def whole() -> State:
        async with await open_host(workspace, journal=journal) as host:
            id_ = await host.start(
                workflow, scope=LOCAL, message=message, values=values, model=model
            )
            while (await host.settled(id_, scope=LOCAL)).status == "waiting" and answer:
                for request in await host.requests(scope=LOCAL, run=id_):
                    await host.deliver(id_, Answer(request.id, answer(request)), scope=LOCAL)
            return await host.state(id_, scope=LOCAL)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole())
    raise UsageError(
        "weft.run is for scripts, and here an event loop is running already",
        hint="use: async with await weft.open_host(...) as host",
    )


def _refuse_no_folder(workspace: Path) -> None:
    if not workspace.is_dir():
        raise UsageError(
            f"there is no folder {workspace}", hint="name the folder that contains `workflows`"
        )


async def _open_journal(
    workspace: Path, journal: str | Path | None, durability: Durability
) -> Journal:
    if journal == ":memory:":
        return MemoryJournal()
    path = workspace / JOURNAL if journal is None else Path(journal)
    if journal is None:
        make_folder(path.parent, "runs")
    return await SqliteJournal.open(path, durability=durability)
