"""Hosts for the packages of a workspace and for workflows in code, with the ports they use."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from weft.adapters.files import WorkspaceFiles
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.models.recorded import Ask
from weft.adapters.models.usage import Price
from weft.adapters.otel.tracer import RunTracer
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.services.http_services import HttpServices
from weft.adapters.system_clock import SystemClock
from weft.app.documents import documents_of
from weft.app.embeddings import find_embedder
from weft.app.folders import JOURNAL, LOCAL, refuse_package
from weft.app.installation import TRUTHY, is_installed, linking_of, log_context, profile_of
from weft.app.models import ModelChoice, open_registry, open_tenant_registries
from weft.app.settings import allowed_hosts, durability_of, tool_limits
from weft.app.settings_file import read_settings
from weft.app.stores import open_store
from weft.app.tenants import TenantSettings
from weft.app.workflows import CodeWorkflow, WorkspaceWorkflows
from weft.environment import read_environment
from weft.errors import UsageError
from weft.ports import retrieval as searched
from weft.ports.clock import Clock
from weft.ports.external import ExternalPorts
from weft.ports.model import Model
from weft.ports.retrieval import Embedder, Retrievers, VectorSearchAdapter
from weft.ports.store import Durability
from weft.runtime.flow.retrieval import RetrieverRegistry
from weft.runtime.host import Host
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import OneModel

__all__ = ["JOURNAL", "LOCAL", "Adapters", "open_code_host", "open_host", "open_outside"]

#: The adapter that searches a collection, by the collection's class or name.
Adapters: TypeAlias = Mapping[type[searched.Collection] | str, VectorSearchAdapter[Any]]

_log: Final = logging.getLogger("weft.tracing")

#: Variables of OpenTelemetry. All others, such as headers and batches, its library reads itself.
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
TRACES_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
DISABLED: Final = "OTEL_SDK_DISABLED"
CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


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
    works: bool = True,
    collections: Adapters | None = None,
    reading: bool = False,
    default_model: str = "",
    reads_replies: bool = False,
) -> Host:
    """Open a host for the packages of a workspace. Close it, or use it with `async with`.

    `journal` names another file than `.weft/journal.db` of the workspace, ":memory:", or a
    PostgreSQL database (postgresql://...); WEFT_STORE does the same for all hosts.
    `environment` has the keys, addresses and settings, by default those of the process.
    `production` overrides the setting ENVIRONMENT. `person` replies for the model `you`. `seed`
    varies the replies of the model `sample`. `prices` are dollars for a million input and output
    tokens, by model. Without `works` the host performs nothing: workers do. `collections` are
    adapters by collection. With `reading`, it shows runs without their code and performs nothing.
    `default_model` replies for agents without a model if WEFT_MODEL is not set; without one such
    a run is refused. With `reads_replies`, a model may be `replay:FILE.yaml`.
    """
    folder = Path(workspace)
    _require_folder(folder)
    if journal is None:
        refuse_package(folder, "runs")
    clock = SystemClock()
    tenants = TenantSettings(
        folder, read_settings(folder) if environment is None else environment, clock
    )
    settings = tenants.shared
    log_context(settings)
    linking = replace(linking_of(settings, production), reading=reading)
    outside = replace(open_outside(folder, settings, clock, collections), environment_of=tenants)
    loader = PythonToolLoader(tool_limits(settings))
    registry, fallbacks = open_registry(settings, clock, person=person, prices=prices)
    opened = await open_store(
        settings,
        clock,
        workspace=folder,
        journal=journal,
        durability=durability_of(settings, durability),
    )
    models = ModelChoice(
        registry,
        of_tenant=open_tenant_registries(tenants, clock, person=person, prices=prices),
        default=settings.get("WEFT_MODEL", ""),
        last_resort=default_model,
        seed=seed,
        read_run=opened.store.read,
        fallbacks=fallbacks,
        reads_files=reads_replies,
    )
    host = Host(
        store=opened.store,
        live=opened.live,
        vault=opened.vault,
        models=models,
        loader=loader,
        clock=clock,
        find=WorkspaceWorkflows(folder, loader, profile_of(settings, production), linking),
        works=works,
        environment=settings,
        outside=outside,
        linking=linking,
    )
    return host if reading else trace_runs(host, settings)


async def open_code_host(  # noqa: PLR0913 - its settings, all by name
    name: str,
    build: Callable[[], WorkflowSpec],
    objects: Mapping[str, object],
    *,
    workspace: str | Path | None = None,
    journal: str | Path | None = None,
    model: str | Model | None = None,
    clock: Clock | None = None,
    embedder: Embedder | None = None,
    collections: Adapters | None = None,
) -> Host:
    """Open a host for a workflow in code; it is built whenever a run begins.

    `objects` are what only this process has, by name. Runs are in memory unless a workspace or a
    journal is given. `model` replies for every agent that names none; a model object replies for
    all. `embedder` replaces the one of the settings. `collections` are adapters by collection.
    """
    folder = None if workspace is None else Path(workspace)
    clock = clock or SystemClock()
    found = read_environment() if folder is None else read_settings(folder)
    tenants = TenantSettings(folder, found, clock)
    settings = tenants.shared
    linking = replace(linking_of(settings), objects=objects)
    loader = PythonToolLoader(tool_limits(settings))
    if folder is not None:
        outside = open_outside(folder, settings, clock, collections)
    else:
        outside = ExternalPorts(environment=settings, retrievers=retrievers_of(collections))
    outside = replace(outside, embedder=embedder or find_embedder(settings), environment_of=tenants)
    registry, fallbacks = open_registry(settings, clock)
    opened = await open_store(
        settings, clock, workspace=folder, journal=journal, durability=durability_of(settings)
    )
    if model is None or isinstance(model, str):
        default = model or settings.get("WEFT_MODEL", "")
        models = ModelChoice(
            registry,
            of_tenant=open_tenant_registries(tenants, clock),
            default=default,
            seed=0,
            read_run=opened.store.read,
            fallbacks=fallbacks,
        )
    else:
        models = OneModel(model)
    host = Host(
        store=opened.store,
        live=opened.live,
        vault=opened.vault,
        models=models,
        loader=loader,
        clock=clock,
        find=CodeWorkflow(name, build, loader, linking),
        environment=settings,
        outside=outside,
        linking=linking,
    )
    return trace_runs(host, settings)


def trace_runs(host: Host, settings: Mapping[str, str]) -> Host:
    """Send the spans of the runs of a host to the collector that the settings name, if any.

    A variable may be meant for other programs: one that does not work here is a warning.
    """
    named = settings.get(TRACES_ENDPOINT) or settings.get(ENDPOINT)
    exporter = settings.get(EXPORTER) or ("otlp" if named else "none")
    protocol = settings.get(TRACES_PROTOCOL) or settings.get(PROTOCOL) or "http/protobuf"
    if exporter == "none" or settings.get(DISABLED, "").strip().lower() == "true":
        return host
    if exporter != "otlp":
        _log.warning("no spans are sent: %s is otlp or none, not %s", EXPORTER, exporter)
    elif protocol != "http/protobuf":
        _log.warning("no spans are sent: %s is http/protobuf, not %s", PROTOCOL, protocol)
    elif not is_installed("opentelemetry"):
        _log.warning('no spans are sent: install "weft-agents[otel]"')
    else:
        _send_spans(host, settings)
    return host


def _send_spans(host: Host, settings: Mapping[str, str]) -> None:
    # Deferred: only for those who have a collector.
    from weft.adapters.otel.exporter import SpanSender  # noqa: PLC0415

    base = settings.get(ENDPOINT)
    endpoint = settings.get(TRACES_ENDPOINT) or (base and f"{base.rstrip('/')}/v1/traces")
    content = settings.get(CONTENT, "").strip().lower() in TRUTHY
    sender = SpanSender(endpoint, content=content)
    tracer = RunTracer(host, sender.send, content=content)

    async def close() -> None:
        tracer.close()
        await sender.close()

    host.observe(tracer.observe)
    host.on_close(close)


def _require_folder(workspace: Path) -> None:
    if not workspace.is_dir():
        raise UsageError(
            f"there is no folder {workspace}", hint="name the folder that contains `workflows`"
        )


def retrievers_of(collections: Adapters | None, others: Retrievers | None = None) -> Retrievers:
    """Return the adapters of collections: those given, then others."""
    registry = RetrieverRegistry(others)
    for collection, adapter in (collections or {}).items():
        registry.register(collection, adapter)
    return registry


def open_outside(
    workspace: Path,
    settings: Mapping[str, str],
    clock: Clock,
    collections: Adapters | None = None,
) -> ExternalPorts:
    """Return the ports of a workspace; each is imported and opened when it is first used.

    Raises UsageError for settings that can never work.
    """
    return ExternalPorts(
        documents=documents_of(workspace, settings),
        services=HttpServices(clock, allowed_hosts(settings)),
        files=WorkspaceFiles(workspace),
        servers=McpToolServers(clock=clock, environment=settings),
        embedder=find_embedder(settings),
        retrievers=retrievers_of(collections, LazyCollections(workspace, settings)),
        folder=str(workspace),
        environment=settings,
    )


class LazyCollections:
    """The collections of a workspace, opened with the first search."""

    def __init__(self, workspace: Path, settings: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._settings = settings
        self._opened: Retrievers | None = None

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return the adapter of a collection; None if there is no such collection."""
        return self._all().adapter(app, collection)

    def names(self, app: str) -> Sequence[str]:
        """Return the names of a tenant's collections."""
        return self._all().names(app)

    def _all(self) -> Retrievers:
        if self._opened is None:
            # Deferred: most workflows search nothing.
            from weft.app.collections import open_collections  # noqa: PLC0415

            self._opened = open_collections(self._workspace, environment=self._settings)
        return self._opened

    async def close(self) -> None:
        """Close the collections if they were opened."""
        if self._opened is not None:
            await self._opened.close()
