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
from weft.app.models import NO_MODEL, ModelChoice
from weft.app.registries import open_registry
from weft.app.settings import durability_of, tool_limits
from weft.app.workflows import WorkspaceWorkflows
from weft.engine.rows import RequestRow
from weft.engine.state import State
from weft.environment import read_environment
from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.packages.workspace import PACKAGES, is_package
from weft.ports.journal import Durability, Journal
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer

#: Whose runs they are where nobody says so: one person on one machine.
LOCAL: Final = Scope("local", "me")

#: Where a workspace keeps its runs; the folder is not for version control.
JOURNAL: Final = Path(".weft") / "journal.db"


async def open_host(
    workspace: str | Path = ".",
    *,
    journal: str | Path | None = None,
    durability: Durability | None = None,
    environment: Mapping[str, str] | None = None,
    production: bool = False,
    seed: int = 0,
    person: Ask | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Host:
    """Open a host for the packages of a workspace. Close it, or use it with `async with`.

    Runs are kept in `.weft/journal.db` of the workspace; `journal` names another file, or
    ":memory:". Keys, addresses and the settings of `weft.app.settings` come from `environment`,
    by default that of the process. `person` answers for the model `you`; `seed` makes the replies
    of `sample` others; `prices` are dollars for a million tokens, in and out, by model.
    """
    _refuse_no_folder(Path(workspace))
    if journal is None:
        _refuse_package(Path(workspace))
    settings = read_environment() if environment is None else environment
    clock = SystemClock()
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
        find=WorkspaceWorkflows(
            Path(workspace), loader, "production" if production else "development"
        ),
        environment=settings,
        production=production,
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


def _refuse_package(folder: Path) -> None:
    """Refuse to keep runs in a package: they would be exported with it, and be found nowhere."""
    if not is_package(folder):
        return
    around = folder.resolve().parent
    workspace = around.parent if around.name == PACKAGES else around
    raise UsageError(
        f"{folder} is a package, and runs are kept in a workspace",
        hint=f"name the workspace: {workspace}",
    )


async def _open_journal(
    workspace: Path, journal: str | Path | None, durability: Durability
) -> Journal:
    if journal == ":memory:":
        return MemoryJournal()
    path = workspace / JOURNAL if journal is None else Path(journal)
    if journal is None:
        _make_folder(path.parent)
    return await SqliteJournal.open(path, durability=durability)


def _make_folder(folder: Path) -> None:
    """Make the folder of a workspace's runs, and keep it out of version control."""
    try:
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"runs cannot be kept in {folder} ({error.strerror}); make the workspace writable, "
            "or name a file elsewhere"
        ) from error
