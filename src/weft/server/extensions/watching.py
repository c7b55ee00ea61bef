"""The extensions of all packages of a server: loaded at its start, and again when files change."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from weft.errors import WeftError
from weft.packages.workspace import tenant_package
from weft.runtime.host import Host
from weft.server.background import running, stop
from weft.server.extensions.package import PackageExtensions
from weft.server.extensions.routers import RouterApp
from weft.server.starts.packages import CURRENT, InstalledPackage, InstalledPackages

_log: Final = logging.getLogger("weft.server")

#: Seconds for which the start of a server waits for code that takes long to load.
_PATIENCE: Final = 5.0


class Extensions:
    """Loads the extensions of packages.

    Each package is loaded in a task of its own: one that hangs or fails does not stop the others.
    """

    def __init__(self, host: Host, packages: InstalledPackages, workspace: Path) -> None:
        self._host = host
        self._packages = packages
        self._workspace = workspace
        self._by_folder: dict[Path, PackageExtensions] = {}
        self._by_app: dict[str, dict[str, PackageExtensions]] = {}
        self._updating: dict[Path, asyncio.Task[None]] = {}

    def of_app(self, app: str) -> Mapping[str, PackageExtensions]:
        """Return the packages of a tenant that have extensions, by name."""
        return self._by_app.get(app, {})

    def router(self, app: str, name: str, path: str) -> RouterApp | None:
        """Return the routers that answer a path of a tenant's package."""
        package = self.of_app(app).get(name)
        return None if package is None else package.router(path)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Load extensions when they change, and run their services, as long as the block lasts."""
        await self._look()
        if self._updating:
            await asyncio.wait(self._updating.values(), timeout=_PATIENCE)
        try:
            async with running(self._watch()):
                yield
        finally:
            await stop([*self._updating.values()])
            await asyncio.gather(*(package.stop() for package in self._by_folder.values()))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(CURRENT)
            await self._look()

    async def _look(self) -> None:
        try:
            found = await self._packages.all()
        except (WeftError, OSError) as error:
            _log.warning("the packages could not be read: %s", error)
            return
        known, self._by_folder, self._by_app = self._by_folder, {}, {}
        for app, packages in found.items():
            mine = self._by_app[app] = {}
            for package in packages.values():
                of_package = known.get(package.folder) or self._by_folder.get(package.folder)
                if of_package is None and not package.orchestrator.runtime_extensions:
                    continue
                of_package = of_package or self._new(app, package)
                mine[package.name] = of_package
                self._by_folder[package.folder] = of_package
                self._update(of_package, app, package)
        for folder, package in known.items():
            if folder not in self._by_folder:
                await package.stop()

    def _new(self, app: str, package: InstalledPackage) -> PackageExtensions:
        own = tenant_package(self._workspace, app, package.name)
        is_own = own is not None and own.resolve() == package.folder
        return PackageExtensions(package.name, app if is_own else "", self._host)

    def _update(self, of_package: PackageExtensions, app: str, package: InstalledPackage) -> None:
        folder = package.folder
        if folder not in self._updating and not of_package.is_current(package):
            task = asyncio.create_task(of_package.update(app, package))
            self._updating[folder] = task
            task.add_done_callback(lambda done: self._updated(folder, done))

    def _updated(self, folder: Path, task: asyncio.Task[None]) -> None:
        self._updating.pop(folder, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the extensions of %s were not loaded", folder.name, exc_info=error)
