"""Starting a run from the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from weft.app.hosts import LOCAL
from weft.cli.answering_models import models_line
from weft.cli.failure import usage
from weft.cli.given_values import read_values
from weft.cli.package_files import placed
from weft.cli.places import locate_package
from weft.cli.run_names import find_run
from weft.cli.streams import Streams, clean
from weft.engine.compiled import compile_workflow
from weft.errors import LinkError
from weft.findings import Json
from weft.packages.reader import read_package
from weft.packages.workspace import find_packages
from weft.runtime.host import Host


def package_to_run(streams: Streams, name: str) -> Path:
    """Return the folder of the package a person wants to run, before anything is opened for it."""
    workspace = streams.settings.workspace
    folder = locate_package(name, workspace)
    if folder.resolve() not in {it.resolve() for it in find_packages(workspace)}:
        raise usage(
            f"{folder} is not in the workspace {workspace.resolve()}",
            "name its workspace: weft --workspace DIR",
        )
    return folder


async def start_run(
    host: Host,
    streams: Streams,
    folder: Path,
    *,
    message: str | None = None,
    given: Sequence[str] = (),
    model: str | None = None,
) -> str:
    """Start a run of a package, and return its identity."""
    values: Mapping[str, Json] = {}
    if given:
        values = read_values(compile_workflow(read_package(folder).spec), given)
    chosen = await model_name(host, model)
    try:
        run = await host.start(
            _name(folder),
            scope=LOCAL,
            message=message,
            values=values,
            model=chosen,
            streamed=True,
        )
    except LinkError as error:
        raise LinkError(str(error), placed(error.findings, folder)) from error
    models = models_line(await host.workflow(run, scope=LOCAL), chosen, begins=True)
    for line in (f"run {run} of {folder.name}", models):
        streams.note(streams.paint_error(clean(line), "dim"))
    return run


async def model_name(host: Host, model: str | None) -> str | None:
    """Return the name of a model; a run to be replayed may be named by a part of its identity."""
    kind, colon, part = (model or "").partition(":")
    if kind == "replay" and colon and part:
        return f"replay:{(await find_run(host, part)).run}"
    return model


def _name(folder: Path) -> str:
    """Return the name of a package, which is that of its folder, however the folder is called."""
    return folder.resolve().name
