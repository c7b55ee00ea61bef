"""The packages of a workspace on disk, as workflows: read, checked and linked when they change."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from weft.check.run import check
from weft.check.subject import Profile, Subject
from weft.errors import CheckFailed, UsageError
from weft.ids import nearest
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.packages.workspace import EVERYWHERE, find_packages, shipped_folder
from weft.ports.tools import ToolLoader
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
        self._folders: dict[str, Path] = {}
        self._workflows: dict[Path, tuple[FolderStamp, Workflow]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def __call__(self, name: str) -> Workflow:
        """Return the workflow of a package as it is now; what has changed is read in a thread.

        Raises UsageError if there is no such package, CheckFailed if it has errors, LinkError if
        its code cannot be loaded.
        """
        known = self._current(name)
        if known is not None:
            return known
        async with self._locks.setdefault(name, asyncio.Lock()):
            return self._current(name) or await asyncio.to_thread(self._read, name)

    def _current(self, name: str) -> Workflow | None:
        """Return the workflow of a package if that has not changed since it was read."""
        folder = self._folders.get(name)
        look, workflow = self._workflows.get(folder, ((), None)) if folder else ((), None)
        return workflow if folder and look and look == _folder_stamp(folder) else None

    def _read(self, name: str) -> Workflow:
        folder = self._folders.get(name)
        look = _folder_stamp(folder) if folder else ()
        if folder is None or not look:
            folder = self._folders[name] = self._folder(name)
            look = _folder_stamp(folder)
        workflow = self._open(folder)
        self._workflows[folder] = look, workflow
        return workflow

    def _folder(self, name: str) -> Path:
        folders = {folder.resolve().name: folder for folder in find_packages(self._workspace)}
        if name not in folders and name in EVERYWHERE:
            return shipped_folder() / name
        if name not in folders:
            near = nearest(name, folders)
            there = f"available: {', '.join(sorted(folders))}" if folders else "there is none"
            raise UsageError(
                f"there is no package {name} in {self._workspace}",
                hint=f"did you mean {near}?" if near else there,
            )
        return folders[name]

    def _open(self, folder: Path) -> Workflow:
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
        return workflow


class CodeWorkflow:
    """Finds the one workflow that a program defines in code, as it is whenever a run begins."""

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

    async def __call__(self, name: str) -> Workflow:
        """Return the workflow; raises CheckFailed if it has errors, LinkError as a package does."""
        if name != self._name:
            raise UsageError(f"unknown workflow {name}", hint=f"available: {self._name}")
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
    """Raise CheckFailed if something keeps a workflow from running."""
    errors = tuple(finding for finding in check(Subject(spec)) if finding.severity == "error")
    if errors:
        raise CheckFailed(f"{name} cannot run", errors)


def _folder_stamp(folder: Path) -> FolderStamp:
    """Look at the files of a package without opening any; nothing if it is not there any more."""
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
