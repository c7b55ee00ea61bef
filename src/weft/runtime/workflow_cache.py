"""The workflows of a host: found by name as they are now, or by digest as a run needs them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from weakref import WeakValueDictionary

from weft.errors import StoreError, UsageError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.ports.tools import ToolLoader
from weft.runtime.workflow import LINKING, Linking, Workflow, link, unpack

#: Finds the workflow of a name as its package is now. Raises UsageError, CheckFailed, LinkError.
FindWorkflow: TypeAlias = Callable[[str], Awaitable[Workflow]]


class WorkflowCache:
    """Keeps what was linked for as long as a run or a package needs it.

    A changed package is another workflow; its runs do not change. Reading, checking and importing
    happen in threads: no run waits while another package is loaded.
    """

    def __init__(
        self,
        journal: Journal,
        loader: ToolLoader,
        find: FindWorkflow,
        linking: Linking = LINKING,
    ) -> None:
        self._journal = journal
        self._loader = loader
        self._find = find
        self._linking = linking
        self._linked: WeakValueDictionary[str, Workflow] = WeakValueDictionary()
        self._loading: dict[tuple[str, str], asyncio.Task[Workflow]] = {}

    def __len__(self) -> int:
        return len(self._linked)

    async def named(self, name: str) -> Workflow:
        """Return the workflow of a package as it is now."""
        return self._kept(await self._find(name))

    async def of_digest(self, app: str, digest: str) -> Workflow:
        """Return a workflow by its content: a run goes on with the package it was started with."""
        known = self._linked.get(digest)
        if known is not None:
            return known
        key = (app, digest)
        if key not in self._loading:
            self._loading[key] = asyncio.create_task(self._load(app, digest))
            self._loading[key].add_done_callback(lambda _: self._loading.pop(key))
        # Shielded: cancelling one caller must not cancel the loading for the others.
        return await asyncio.shield(self._loading[key])

    async def _load(self, app: str, digest: str) -> Workflow:
        package = await self._journal.package(app, digest)
        if package is None:
            raise StoreError(
                f"the journal has no copy of the package {digest[:12]} that this run was started "
                "with: it is damaged; restore it from a backup"
            )
        return self._kept(await asyncio.to_thread(self._link, package))

    def _link(self, package: bytes) -> Workflow:
        return link(*unpack(package), self._loader, self._linking)

    def _kept(self, workflow: Workflow) -> Workflow:
        return self._linked.setdefault(workflow.digest, workflow)


async def require_completed(journal: Journal, workflow: Workflow, scope: Scope) -> None:
    """Raise UsageError if the user has not yet completed every workflow that one requires."""
    required = workflow.spec.orchestrator.workflow_dependencies.required_workflows
    if not required:
        return
    completed = await journal.completed(scope, required)
    missing = [name for name in required if name not in completed]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        which = "it is" if len(missing) == 1 else "they are"
        raise UsageError(
            f"{workflow.name} starts after {' and '.join(missing)} {are} completed, "
            f"which {which} not for {scope.user}",
            hint=f"run {'it' if len(missing) == 1 else 'them'} first: "
            + ", ".join(f"weft run {name}" for name in missing),
        )
