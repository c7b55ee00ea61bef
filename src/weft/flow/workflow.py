"""A flow in a program."""

from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from weft.dsl.flow import WorkflowBuilder
from weft.dsl.objects import keep_objects
from weft.errors import UsageError
from weft.packages.writer import write_package
from weft.spec.workflow import WorkflowSpec

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T", bound=BaseModel)


class Workflow(WorkflowBuilder[S], Generic[S]):
    """Typed steps over a shared state, which is a pydantic model."""

    @classmethod
    def create(cls, name: str, state: type[T], *, description: str = "") -> "Workflow[T]":
        """Create a workflow with a shared state; continue with `start_with`."""
        return Workflow(name, state, description=description)

    def build(self) -> WorkflowSpec:
        """Return the spec, as package files would give it. In this process it runs like the flow.

        Raises CheckFailed with all findings if it has errors.
        """
        spec = super().build()
        keep_objects(spec, self.objects)
        return spec

    def save(self, folder: str | Path) -> None:
        """Write the flow as a new package. Raises UsageError if files cannot express it.

        Its code is not copied: the files name functions and classes as module:name. Where the
        package runs, these modules must be importable, or be copied into its folder.
        """
        spec = self.build()
        local = list(self._shared.objects.table)
        if local:
            raise UsageError(
                f"only this process has {', '.join(local)}",
                hint="move it into a module that can be imported; let it read keys itself",
            )
        write_package(Path(folder), spec, {})
