"""The packages of all tenants as they are in their folders now: how runs begin, what is mounted."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from weft.app.workflows import FolderStamp, folder_stamp
from weft.findings import Finding
from weft.packages.archive.importing import finding_at
from weft.packages.reader import read_package
from weft.packages.workspace import PACKAGES, find_packages, tenant_folder
from weft.spec.orchestrator import Orchestrator

_log: Final = logging.getLogger("weft.server")

#: Seconds in which the folders count as known.
CURRENT: Final = 2.0


class InstalledPackage(NamedTuple):
    """A package in a folder."""

    folder: Path
    stamp: FolderStamp
    #: As it is; as it was before, if it cannot be read now.
    orchestrator: Orchestrator
    #: Why it cannot be read; empty if it can.
    error: str = ""

    @property
    def name(self) -> str:
        """The name by which runs of it are started."""
        return self.folder.name


#: The packages of a tenant by name: its own, and those of all tenants.
Installed: TypeAlias = Mapping[str, InstalledPackage]


class InstalledPackages:
    """Reads the packages of all tenants again when their files change."""

    def __init__(self, workspace: Path, apps: Callable[[], Awaitable[list[str]]]) -> None:
        self._workspace = workspace
        self._apps = apps
        self._by_folder: dict[Path, InstalledPackage] = {}
        self._by_app: dict[str, Installed] = {}
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()

    async def of_app(self, app: str) -> Installed:
        """Return the packages of a tenant; none for a tenant that is not known."""
        return (await self.all()).get(app, {})

    async def all(self) -> Mapping[str, Installed]:
        """Return the packages of every tenant, as they were at most two seconds ago."""
        async with self._looking:
            if self._looked_at is None or time.monotonic() - self._looked_at > CURRENT:
                apps = await self._apps()
                self._by_app = await asyncio.to_thread(self._look, apps)
                self._looked_at = time.monotonic()
        return self._by_app

    def _look(self, apps: list[str]) -> dict[str, Installed]:
        known, self._by_folder = self._by_folder, {}
        shared = self._read(find_packages(self._workspace), known)
        found: dict[str, Installed] = {}
        for app in apps:
            folder = tenant_folder(self._workspace, app)
            inner = folder / PACKAGES if folder else None
            own = find_packages(inner) if inner and inner.is_dir() else []
            found[app] = {**shared, **self._read(own, known)} if own else shared
        return found

    def _read(self, folders: list[Path], known: Mapping[Path, InstalledPackage]) -> Installed:
        for folder in folders:
            self._by_folder[folder] = _read(folder.resolve(), known.get(folder))
        return {package.name: package for package in map(self._by_folder.__getitem__, folders)}


def _read(folder: Path, known: InstalledPackage | None) -> InstalledPackage:
    stamp = folder_stamp(folder)
    if known is not None and known.stamp == stamp:
        return known
    package = read_package(folder)
    if "orchestrator" not in package.broken:
        return InstalledPackage(folder, stamp, package.spec.orchestrator)
    faults = [found for found in package.findings if found.severity == "error"]
    error = _text(faults[0], folder) if faults else "it cannot be read"
    _log.error("the package %s is not used as it is now: %s", folder.name, error)
    before = package.spec.orchestrator if known is None else known.orchestrator
    return InstalledPackage(folder, stamp, before, error)


def _text(fault: Finding, folder: Path) -> str:
    """Return an error with its place, which begins with the name of the package."""
    place = finding_at(fault, folder, Path(folder.name)).place
    return f"{place}: {fault.message}"
