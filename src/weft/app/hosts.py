"""Hosts on workspaces, for programs and scripts."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, overload

from weft.adapters.memory import MemoryJournal
from weft.adapters.models.person import Ask
from weft.adapters.models.usage import Price
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.system_clock import SystemClock
from weft.app.context_log import log_context
from weft.app.flows import AnswerPerson, AnyFlow, FlowResult, run_flow, until_rest
from weft.app.folders import JOURNAL, LOCAL, make_folder, refuse_package
from weft.app.installation import linking_of, profile_of
from weft.app.models import ModelChoice, open_registry
from weft.app.outside import Adapters, open_outside
from weft.app.settings import durability_of, tool_limits
from weft.app.workflows import WorkspaceWorkflows
from weft.engine.state import State
from weft.environment import read_environment
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Durability, Journal
from weft.ports.model import Model
from weft.runtime.host import Host

StateT = TypeVar("StateT")


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
    collections: Adapters | None = None,
    reading: bool = False,
    default_model: str = "",
) -> Host:
    """Open a host for the packages of a workspace. Close it, or use it with `async with`.

    Runs are kept in `.weft/journal.db` of the workspace; `journal` names another file, or
    ":memory:". Keys, addresses and the settings of `weft.app.settings` come from `environment`,
    by default that of the process, and so does whether this is production, unless it is said here.
    `person` answers for the model `you`; `seed` makes the replies
    of `sample` others; `prices` are dollars for a million tokens, in and out, by model;
    `dispatcher` lets other processes work on runs; `collections` says what searches which
    collection, by its class or its name. A host for `reading` shows runs whose code cannot be
    found here, and does not work on them. `default_model` answers for agents that name no model
    where WEFT_MODEL is not set; without one such a run is refused.
    """
    _refuse_no_folder(Path(workspace))
    if journal is None:
        refuse_package(Path(workspace), "runs")
    settings = read_environment() if environment is None else environment
    log_context(settings)
    clock = SystemClock()
    linking = replace(linking_of(settings, production), reading=reading)
    outside = open_outside(Path(workspace), settings, clock, collections)
    loader = PythonToolLoader(tool_limits(settings))
    registry, fallbacks = open_registry(settings, clock, person=person, prices=prices)
    kept = await _open_journal(Path(workspace), journal, durability_of(settings, durability))
    models = ModelChoice(
        registry,
        default=settings.get("WEFT_MODEL", ""),
        last_resort=default_model,
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


@overload
def run(
    workflow: str,
    message: str | None = None,
    *,
    workspace: str | Path | None = None,
    values: Mapping[str, Json] | None = None,
    model: str | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> State: ...
@overload
def run(
    workflow: AnyFlow,
    message: StateT,
    *,
    workspace: str | Path | None = None,
    model: str | Model | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> FlowResult[StateT]: ...
def run(
    workflow: str | AnyFlow,
    message: Any = None,
    *,
    workspace: str | Path | None = None,
    values: Mapping[str, Json] | None = None,
    model: str | Model | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> Any:
    """Run a workflow from a script, and return its state when it has ended or waits for a person.

    A package of the workspace by its name, with the first message; or a flow of `weft.flow`, with
    the state it begins with: its result has `outcome` and, as `output`, the state at its end. A
    flow is kept in memory, unless a workspace or a journal is given.

    `answer` is asked for every question to a person; without it the first question is the end.
    """
    if not isinstance(workflow, str):
        if values is not None:
            raise UsageError("a flow begins with a state", hint="give it in place of values")
        whole = run_flow(
            workflow,
            message,
            workspace=workspace,
            journal=journal,
            model=model,
            collections=collections,
            answer=answer,
        )
        hint = "await weft.flow.run_flow(flow, state), which takes the same"
    else:
        hint = "use: async with await weft.open_host(...) as host"
        whole = _run_package(
            workflow, message, workspace or ".", journal, values, model, answer, collections
        )
    return _to_end(whole, hint)


async def _run_package(
    workflow: str,
    message: str | None,
    workspace: str | Path,
    journal: str | Path | None,
    values: Mapping[str, Json] | None,
    model: Any,  # noqa: ANN401 - a name; the host says so where it is none
    answer: AnswerPerson | None,
    collections: Adapters | None,
) -> State:
    async with await open_host(workspace, journal=journal, collections=collections) as host:
        run = await host.start(workflow, scope=LOCAL, message=message, values=values, model=model)
        return await until_rest(host, run, answer)


def _to_end(work: Coroutine[Any, Any, Any], hint: str) -> Any:  # noqa: ANN401 - what the work returns
    if _in_loop():
        work.close()
        told = "weft.run is for scripts, and here an event loop is running already"
        raise UsageError(told, hint=hint)
    return asyncio.run(work)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
