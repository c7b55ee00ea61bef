"""The workflows of a host: the current one by name, and that of a run by digest."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from weakref import WeakValueDictionary

from weft.errors import StoreError, UsageError
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.ports.tools import ToolLoader
from weft.runtime.importing import ImportThreads
from weft.runtime.workflow import LINKING, Linking, Workflow, hidden_sources, link, unpack

#: Finds the workflow that a tenant knows by a name, as its package is now. Raises UsageError,
#: CheckFailed, LinkError.
FindWorkflow: TypeAlias = Callable[[str, str], Awaitable[Workflow]]


class WorkflowCache:
    """Holds linked workflows as long as a run or package needs them.

    A changed package is another workflow; its runs do not change. Reading, checking and importing
    happen in threads: no run waits while another package is loaded.
    """

    def __init__(
        self,
        store: Store,
        loader: ToolLoader,
        find: FindWorkflow,
        linking: Linking = LINKING,
    ) -> None:
        self._store = store
        self._loader = loader
        self.find = find
        self._linking = linking
        self._threads = ImportThreads(linking.seconds)
        self._linked: WeakValueDictionary[str, Workflow] = WeakValueDictionary()
        self._loading: dict[tuple[str, str], asyncio.Task[Workflow]] = {}

    def __len__(self) -> int:
        return len(self._linked)

    async def named(self, app: str, name: str) -> Workflow:
        """Return the workflow that a tenant knows by a name, as its package is now."""
        return self._kept(await self.find(app, name))

    async def of_digest(self, app: str, digest: str) -> Workflow:
        """Return the workflow of a digest: a run continues with the package it was started with."""
        known = self._linked.get(digest)
        if known is not None:
            return known
        key = (app, digest)
        if key not in self._loading:
            self._loading[key] = asyncio.create_task(self._load(app, digest))
            self._loading[key].add_done_callback(lambda _: self._loading.pop(key))
        # Shielded: cancelling one caller must not cancel the loading for the others.
        return await asyncio.shield(self._loading[key])

    async def of_package(self, content: bytes) -> Workflow:
        """Return the workflow of a packed package."""
        made = await asyncio.to_thread(lambda: link(*unpack(content), self._loader, self._linking))
        return self._kept(made)

    async def _load(self, app: str, digest: str) -> Workflow:
        package = await self._store.package(app, digest)
        if package is None:
            raise StoreError(
                f"the store has no copy of the package {digest[:12]} that this run was started "
                "with: it is damaged; restore it from a backup"
            )
        key, name = (app, digest), f"the package {digest[:12]}"
        return self._kept(await self._threads.run(key, name, lambda: self._link(package, digest)))

    def _link(self, package: bytes, digest: str) -> Workflow:
        """Link a package with the same hidden variables as when its run began."""
        linking = replace(self._linking, suppressed=hidden_sources(digest))
        return link(*unpack(package), self._loader, linking)

    def _kept(self, workflow: Workflow) -> Workflow:
        return self._linked.setdefault(workflow.digest, workflow)


async def require_completed(store: Store, workflow: Workflow, scope: Scope) -> None:
    """Raise UsageError if the user has not yet completed every workflow that one requires."""
    required = workflow.spec.orchestrator.workflow_dependencies.required_workflows
    if not required:
        return
    completed = await store.completed(scope, required)
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
