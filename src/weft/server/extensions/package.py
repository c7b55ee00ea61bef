"""The extensions of one package: loaded from the code that its runs use, whenever it changes."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter

from weft.adapters.python_tools.calling import reporting_failures
from weft.app.workflows import FolderStamp
from weft.errors import ToolError, UsageError, WeftError
from weft.ports.tools import Call
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.server.extensions.access import ExtensionHost
from weft.server.extensions.routers import RouterApp
from weft.server.extensions.services import Service, ServiceState, call_code
from weft.server.starts.packages import InstalledPackage
from weft.spec.orchestrator import RuntimeExtension

_log: Final = logging.getLogger("weft.server")

#: Seconds until the extensions of a package with errors are loaded again.
_RETRY: Final = 10.0


@dataclass
class Extension:
    """A declared extension and what was made of it."""

    declared: RuntimeExtension
    #: Where its code is from, if it could be loaded; the code is kept as long as the workflow is.
    workflow: Workflow | None = None
    router: APIRouter | None = None
    service: Service | None = None
    #: Why it could not be loaded, or why the router of an earlier version answers.
    fault: str = ""

    @property
    def state(self) -> ServiceState:
        """Whether it works now."""
        if self.service is not None:
            return self.service.state
        return "failed" if self.router is None else "running"

    @property
    def error(self) -> str:
        """Why it does not work."""
        return self.fault or ("" if self.service is None else self.service.error)


class PackageExtensions:
    """The extensions of one package; `app` is the tenant whose own it is, or empty."""

    def __init__(self, name: str, app: str, host: Host) -> None:
        self.name = name
        self.extensions: list[Extension] = []
        #: Why the package cannot be loaded as it is now.
        self.error = ""
        self._host = host
        self._access = ExtensionHost(host, app)
        self._stamp: FolderStamp | None = None
        self._again_at = 0.0
        self._workflow: Workflow | None = None
        self._routers: Mapping[str, RouterApp] = {}

    def is_current(self, package: InstalledPackage) -> bool:
        """Tell whether the files are those that were loaded."""
        has_failed = self.error and asyncio.get_running_loop().time() >= self._again_at
        return package.stamp == self._stamp and not has_failed

    def router(self, path: str) -> RouterApp | None:
        """Return the routers for a path: those with the longest prefix of it."""
        parts = path.split("/")
        prefixes = ("/".join(parts[:end]) for end in range(len(parts), -1, -1))
        return next((self._routers[each] for each in prefixes if each in self._routers), None)

    async def update(self, app: str, package: InstalledPackage) -> None:
        """Load the extensions with the code of a tenant's runs; keep them if it has errors."""
        self._stamp = package.stamp
        self._again_at = asyncio.get_running_loop().time() + _RETRY
        try:
            workflow = await self._host.current_workflow(self.name, app=app)
        except WeftError as error:
            if self.error != str(error):
                _log.error("the extensions of %s cannot be loaded: %s", self.name, error)
            self.error = str(error)
            if self._workflow is None:
                declared = package.orchestrator.runtime_extensions
                self.extensions = [Extension(each, fault=self.error) for each in declared]
            return
        self.error = package.error
        if self._workflow is None or workflow.digest != self._workflow.digest:
            await self._replace(workflow)

    async def stop(self) -> None:
        """Stop the services and answer no more requests."""
        self._routers = {}
        await self._stop_services()

    async def _stop_services(self) -> None:
        services = [each.service for each in self.extensions if each.service is not None]
        await asyncio.gather(*(service.stop() for service in services))

    async def _replace(self, workflow: Workflow) -> None:
        declared = workflow.spec.orchestrator.runtime_extensions
        found = await asyncio.gather(*(self._load(workflow, each) for each in declared))
        routers = _mounted(self.name, found)
        await self._stop_services()  # The routers before answer until the new ones do.
        self._workflow, self.extensions, self._routers = workflow, found, routers
        for each in found:
            if each.fault:
                _log.error("the extension %s failed: %s", self._title(each), each.fault)
            if each.service is not None:
                each.service.start()

    async def _load(self, workflow: Workflow, declared: RuntimeExtension) -> Extension:
        made = Extension(declared, workflow)
        names = {self.name, workflow.spec.orchestrator.workflow_name}
        reference = _in_package(declared.entrypoint, names)
        try:
            found = (await self._host.objects(workflow, [reference]))[reference]
            if declared.kind == "api_router":
                made.router = await self._router(workflow, declared, found)
            else:
                made.service = Service(self._title(made), found, workflow.tools, self._access)
        except WeftError as error:
            made.fault = str(error)
            for each in self.extensions:  # The router of the version before goes on.
                if each.router is not None and each.declared == declared:
                    made.router, made.workflow = each.router, each.workflow
        return made

    async def _router(
        self, workflow: Workflow, declared: RuntimeExtension, found: object
    ) -> APIRouter:
        if callable(found) and not isinstance(found, APIRouter):
            found = await call_code(workflow.tools, declared.entrypoint, found, self._access)
        if not isinstance(found, APIRouter):
            raise UsageError(
                f"{declared.entrypoint} gives a {type(found).__name__}, which is not an APIRouter",
                hint="return an APIRouter of FastAPI",
            )
        # FastAPI says what is wrong with a router when it is used.
        with reporting_failures(Call(declared.entrypoint, log_name=f"the router of {self.name}")):
            RouterApp(self.name, declared.prefix or "", public=False).add(found)
        return found

    def _title(self, extension: Extension) -> str:
        return f"{extension.declared.entrypoint} of {self.name}"


def _mounted(name: str, extensions: list[Extension]) -> dict[str, RouterApp]:
    """Return the routers of a package by their prefix."""
    mounted: dict[str, RouterApp] = {}
    for each in extensions:
        if each.router is None:
            continue
        prefix, is_public = each.declared.prefix or "", each.declared.public
        known = mounted.setdefault(prefix, RouterApp(name, prefix, public=is_public))
        if known.public != is_public:
            each.fault = "a public router and another one have the same prefix: change one of them"
            continue
        with suppress(ToolError):  # It was tried before.
            known.add(each.router)
    return mounted


def _in_package(entrypoint: str, names: set[str]) -> str:
    """Return an entry point that is named from the workspace as named from the package.

    >>> _in_package("workflows.Desk.tools.api:get_router", {"Desk"})
    'tools.api:get_router'
    """
    first, _, rest = entrypoint.partition(".")
    package, _, inner = rest.partition(".")
    return inner if first == "workflows" and package in names and inner else entrypoint
