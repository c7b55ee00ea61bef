"""Hosts for workflows that a program defines in code."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from weft.adapters.memory import MemoryJournal
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.system_clock import SystemClock
from weft.app.embeddings import find_embedder
from weft.app.installation import linking_of
from weft.app.models import ModelChoice, open_registry
from weft.app.outside import Adapters, open_outside, retrievers_of
from weft.app.settings import durability_of, tool_limits
from weft.check.run import check
from weft.check.subject import Subject
from weft.environment import read_environment
from weft.errors import CheckFailed, UsageError
from weft.ports.clock import Clock
from weft.ports.embeddings import Embedder
from weft.ports.journal import Journal
from weft.ports.model import Model
from weft.runtime.external_ports import Outside
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow, link
from weft.spec.workflow import WorkflowSpec, digest
from weft.testing.hosts import OneModel


def _refuse_errors(name: str, spec: WorkflowSpec) -> None:
    """Raise CheckFailed if something keeps a workflow from running."""
    errors = tuple(finding for finding in check(Subject(spec)) if finding.severity == "error")
    if errors:
        told = "; ".join(f"{finding.place}: {finding.message}" for finding in errors)
        raise CheckFailed(f"{name} cannot run: {told}", errors)


async def open_code_host(  # noqa: PLR0913 - its settings, all by name
    name: str,
    build: Callable[[], WorkflowSpec],
    objects: Mapping[str, object],
    *,
    workspace: str | Path | None = None,
    journal: str | Path = ":memory:",
    model: str | Model | None = None,
    clock: Clock | None = None,
    embedder: Embedder | None = None,
    collections: Adapters | None = None,
) -> Host:
    """Open a host for a workflow as it is whenever a run begins.

    `objects` is what only this process has, by name; `model` answers for every agent that names
    none, or is a model itself and answers for all. Meanings are compared with `embedder`, or else
    with what the settings say; `collections` says what searches which.
    """
    settings = read_environment()
    time = clock or SystemClock()
    linking = replace(linking_of(settings), objects=objects)
    loader = PythonToolLoader(tool_limits(settings))
    kept: Journal
    if journal == ":memory:":
        kept = MemoryJournal()
    else:
        kept = await SqliteJournal.open(Path(journal), durability=durability_of(settings, None))
    if workspace is not None:
        outside = open_outside(Path(workspace), settings, time, collections)
    else:
        outside = Outside(environment=settings, retrievers=retrievers_of(collections))
    outside = replace(outside, embedder=embedder or find_embedder(settings))
    if model is None or isinstance(model, str):
        registry, fallbacks = open_registry(settings, time, person=None, prices=None)
        default = model or settings.get("WEFT_MODEL", "")
        models = ModelChoice(
            registry, default=default, seed=0, read_run=kept.read, fallbacks=fallbacks
        )
    else:
        models = OneModel(model)
    known: dict[str, Workflow] = {}
    last: WorkflowSpec | None = None

    async def find(wanted: str) -> Workflow:
        nonlocal last
        if wanted != name:
            raise UsageError(f"there is no workflow {wanted} here", hint=f"there is {name}")
        spec = build()
        if spec is last:
            return next(iter(known.values()))
        key = digest(spec, {})
        if key not in known:
            _refuse_errors(name, spec)
            known.clear()  # Runs of an earlier one keep it for as long as they need it.
            known[key] = link(spec, {}, loader, linking)
        last = spec
        return known[key]

    return Host(
        journal=kept,
        models=models,
        loader=loader,
        clock=time,
        find=find,
        environment=settings,
        outside=outside,
        linking=linking,
    )
