"""The packages of a workspace on disk, as workflows: read, checked and linked when they change."""

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from weft.check.run import check
from weft.check.subject import Profile, Subject
from weft.errors import CheckFailed, DeclarationError, LinkError, NotFoundError
from weft.ids import nearest
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.packages.workspace import (
    EVERYWHERE,
    find_packages,
    packages_of,
    shipped_folder,
    tenant_package,
)
from weft.ports.tools import ToolLoader
from weft.runtime.importing import ImportThreads
from weft.runtime.workflow import LINKING, Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec, digest

_log: Final = logging.getLogger("weft.context")

#: Every file of a package with its size and the time it was last written.
FolderStamp: TypeAlias = tuple[tuple[str, int, int], ...]


class WorkspaceWorkflows:
    """Finds workflows by the names of their packages. A package is read again when it changed."""

    def __init__(
        self, workspace: Path, loader: ToolLoader, profile: Profile, linking: Linking = LINKING
    ) -> None:
        self._workspace = workspace
        self._loader = loader
        self._profile: Profile = profile
        self._linking = linking
        self._threads = ImportThreads(linking.seconds)
        self._folders: dict[str, Path] = {}
        self._workflows: dict[Path, tuple[FolderStamp, Workflow]] = {}
        #: Why a package that was changed is not used as it is now.
        self._refused: dict[Path, tuple[FolderStamp, DeclarationError]] = {}
        self._locks: dict[Path | str, asyncio.Lock] = {}

    async def __call__(self, app: str, name: str) -> Workflow:
        """Return the current workflow of a package; a changed one is read in a thread.

        A tenant's own package comes before the one of all tenants. If a changed package has errors
        or its code cannot be loaded, the last good version remains in use. Raises UsageError if
        there is no such package, CheckFailed if it has errors, LinkError if its code cannot be
        loaded.
        """
        own = tenant_package(self._workspace, app, name)
        known = self._current(own or self._folders.get(name))
        if known is not None:
            return known
        async with self._locks.setdefault(own or name, asyncio.Lock()):
            known = self._current(own or self._folders.get(name))
            return known or await self._read(app, name, own)

    def problem(self, folder: Path) -> DeclarationError | None:
        """Return why starts use an earlier version of a package; None if they do not."""
        used, _ = self._workflows.get(folder, ((), None))
        refused, error = self._refused.get(folder, ((), None))
        return error if used != refused == folder_stamp(folder) else None

    def _current(self, folder: Path | None) -> Workflow | None:
        """Return the workflow of a package if it has not changed since it was read, or refused."""
        if folder is None:
            return None
        look, workflow = self._workflows.get(folder, ((), None))
        refused, _ = self._refused.get(folder, ((), None))
        now = folder_stamp(folder)
        return workflow if now and now in (look, refused) else None

    async def _read(self, app: str, name: str, own: Path | None) -> Workflow:
        folder = own or self._folders.get(name)
        look = folder_stamp(folder) if folder else ()
        if folder is None or not look:
            folder = self._folders[name] = await asyncio.to_thread(self._shared_folder, app, name)
            look = folder_stamp(folder)
        read = partial(self._open, folder, look)
        try:
            return await self._threads.run((folder, look), name, read)
        except (CheckFailed, LinkError) as error:
            _, workflow = self._workflows.get(folder, ((), None))
            if workflow is None:
                raise
            self._refused[folder] = look, error
            _log.warning("%s: the last good version remains in use: %s", name, error)
            return workflow

    def _shared_folder(self, app: str, name: str) -> Path:
        """Return the folder of a package that every tenant may use."""
        folders = {folder.resolve().name: folder for folder in find_packages(self._workspace)}
        if name not in folders and name in EVERYWHERE:
            return shipped_folder() / name
        if name not in folders:
            known = packages_of(self._workspace, app)
            near = nearest(name, known)
            there = f"available: {', '.join(sorted(known))}" if known else "there is none"
            raise NotFoundError(
                f"there is no package {name}",
                hint=f"did you mean {near}?" if near else there,
            )
        return folders[name]

    def _open(self, folder: Path, look: FolderStamp) -> Workflow:
        package = read_package(folder)
        refuse_errors(
            package,
            profile=self._profile,
            kinds=self._linking.kinds,
            suppressed=self._linking.suppressed,
        )
        workflow = link(package.spec, package.code, self._loader, self._linking)
        if workflow.suppressed:
            hidden = ", ".join(sorted(workflow.suppressed))
            _log.info("%s: suppressed here: %s", workflow.name, hidden)
        self._workflows[folder] = look, workflow
        return workflow


class CodeWorkflow:
    """Finds the workflow that a program defines in code, built when a run starts."""

    def __init__(
        self, name: str, build: Callable[[], WorkflowSpec], loader: ToolLoader, linking: Linking
    ) -> None:
        self._name = name
        self._build = build
        self._loader = loader
        self._linking = linking
        self._last: WorkflowSpec | None = None
        self._digest = ""
        self._workflow: Workflow | None = None

    async def __call__(self, app: str, name: str) -> Workflow:  # noqa: ARG002 - one for all tenants
        """Return the workflow; raises CheckFailed if it has errors, LinkError as a package does."""
        if name != self._name:
            raise NotFoundError(f"unknown workflow {name}", hint=f"available: {self._name}")
        spec = self._build()
        if spec is not self._last or self._workflow is None:
            key = digest(spec, {})
            if key != self._digest or self._workflow is None:
                _refuse_errors(name, spec)
                self._workflow = link(spec, {}, self._loader, self._linking)
                self._digest = key
            self._last = spec
        return self._workflow


def _refuse_errors(name: str, spec: WorkflowSpec) -> None:
    """Raise CheckFailed if a workflow has errors."""
    errors = tuple(finding for finding in check(Subject(spec)) if finding.severity == "error")
    if errors:
        raise CheckFailed(f"{name} cannot run", errors)


def folder_stamp(folder: Path) -> FolderStamp:
    """Return size and time of each file of a package; empty if it does not exist any more."""
    found: list[tuple[str, int, int]] = []
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        stat = entry.stat(follow_symlinks=False)
                        found.append((entry.path, stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            continue
    return tuple(sorted(found))
