"""The workflows of a host: found by name as they are now, or by digest as a run needs them."""

from collections.abc import Callable
from typing import TypeAlias

from weft.errors import UsageError
from weft.ports.journal import Journal
from weft.ports.tools import ToolLoader
from weft.runtime.workflow import Workflow, link, unpack

#: Finds the workflow of a name as its package is now. Raises UsageError, CheckFailed, LinkError.
FindWorkflow: TypeAlias = Callable[[str], Workflow]


class WorkflowCache:
    """Keeps what was linked. A changed package is another workflow; its runs do not change."""

    def __init__(self, journal: Journal, loader: ToolLoader, find: FindWorkflow) -> None:
        self._journal = journal
        self._loader = loader
        self._find = find
        self._linked: dict[str, Workflow] = {}

    def named(self, name: str) -> Workflow:
        """Return the workflow of a package as it is now."""
        workflow = self._find(name)
        return self._linked.setdefault(workflow.digest, workflow)

    async def of_digest(self, digest: str) -> Workflow:
        """Return a workflow by its content: a run goes on with the package it was started with."""
        if digest not in self._linked:
            package = await self._journal.package(digest)
            if package is None:
                raise UsageError(f"the package {digest[:12]} of this run is not kept any more")
            self._linked[digest] = link(*unpack(package), self._loader)
        return self._linked[digest]
