"""A host for tests: one model answers for everybody, and nothing outlives the test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.adapters.memory import MemoryJournal
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.system_clock import SystemClock
from weft.errors import UsageError
from weft.packages import reader
from weft.packages.reader import Package
from weft.packages.review import refuse_errors
from weft.ports.clock import Clock
from weft.ports.dispatcher import Dispatcher
from weft.ports.journal import Journal
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.runtime.external_ports import Outside
from weft.runtime.host import Host
from weft.runtime.workflow import LINKING, Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec

NO_CODE: Final[Mapping[str, bytes]] = {}


class OneModel:
    """Gives the same model to every agent of every run."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:  # noqa: ARG002 - one for all
        """Return the model, whatever name is asked for."""
        return self._model

    async def close(self) -> None:
        """Nothing is open."""


def host_for(  # noqa: PLR0913 - its ports, all by name
    spec: WorkflowSpec,
    model: Model,
    *,
    code: Mapping[str, bytes] = NO_CODE,
    journal: Journal | None = None,
    clock: Clock | None = None,
    dispatcher: Dispatcher | None = None,
    environment: Mapping[str, str] | None = None,
    outside: Outside | None = None,
    linking: Linking = LINKING,
) -> Host:
    """Return a host that runs one workflow with one model, in memory unless told otherwise."""
    loader = PythonToolLoader()
    workflow = link(spec, code, loader, linking)

    async def find(_: str) -> Workflow:
        return workflow

    return Host(
        journal=journal or MemoryJournal(),
        models=OneModel(model),
        loader=loader,
        clock=clock or SystemClock(),
        find=find,
        dispatcher=dispatcher,
        environment=environment,
        outside=outside,
        linking=linking,
    )


def read_package(folder: str | Path) -> Package:
    """Read a package that can run.

    Raises UsageError if there is no such folder, CheckFailed with all findings if it has errors.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="name the folder of a package")
    package = reader.read_package(path)
    refuse_errors(package)
    return package
