"""Starting a run from the command line: its package, its values, its first message."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Final, cast

from weft.app.folders import LOCAL
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.hosting import find_run
from weft.cli.models import models_line
from weft.cli.paths import locate_package
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.engine.compile import compile_workflow
from weft.engine.compiled import CompiledWorkflow
from weft.engine.rows import RunRow
from weft.errors import ExpressionError, LinkError
from weft.findings import Finding, Json
from weft.ids import nearest
from weft.packages.reader import read_package
from weft.packages.workspace import EVERYWHERE, find_packages
from weft.runtime.host import Host
from weft.spec.type_meaning import coerce_text
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr, print_type
from weft.spec.workflow import digest

#: How much of a digest is shown.
_SHORT: Final = 8


def package_to_run(streams: Streams, name: str) -> Path:
    """Return the folder of the package a person wants to run, before anything is opened for it."""
    workspace = streams.settings.workspace
    folder = locate_package(name, workspace)
    if name in EVERYWHERE:
        return folder
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
    values: Mapping[str, Json] | None = None,
    input_: Mapping[str, Json] | None = None,
    model: str | None = None,
) -> str:
    """Start a run of a package, and return its identity.

    Values are `given` as they are typed, or as they are.
    """
    if given:
        values = read_values(compile_workflow(read_package(folder).spec), given)
    chosen = await model_name(host, model)
    with placed_findings(folder):
        run = await host.start(
            _name(folder),
            scope=LOCAL,
            message=message,
            values=values,
            input=input_,
            model=chosen,
            streamed=True,
        )
    models = models_line(await host.workflow(run, scope=LOCAL), chosen, begins=True)
    for line in filter(None, (f"run {run} of {folder.name}", models)):
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


@contextmanager
def placed_findings(folder: Path) -> Generator[None]:
    """Let what cannot be linked be told with the files of its package."""
    try:
        yield
    except LinkError as error:
        findings = tuple(_placed(it, folder) for it in error.findings)
        raise LinkError(str(error), findings) from error


def _placed(finding: Finding, folder: Path) -> Finding:
    """Return a finding about code of a package, with its file named from the current folder on."""
    file = folder / finding.place.file
    if not file.is_file():
        return finding
    return replace(finding, place=replace(finding.place, file=str(file)))


def read_message(text: str, *hint: str) -> str:
    """Return a message; `hint` is what to do about an empty one."""
    if not text.strip():
        raise usage("the message is empty", *hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # So Python marks bytes of a command line that the encoding of the terminal does not have.
        raise usage(
            "the message is not valid Unicode text", "let Python read UTF-8: export PYTHONUTF8=1"
        ) from error
    return text


def read_input(given: Sequence[str]) -> Mapping[str, Json] | None:
    """Return what a run begins with: a file of JSON, or fields one by one."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return _input_file(Path(given[0]))
    fields: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(f'"{pair}" is no field', "write --input FILE, or --input NAME=VALUE")
        try:
            fields[name] = json.loads(text)
        except ValueError:
            fields[name] = text
    return fields


def _input_file(file: Path) -> Mapping[str, Json]:
    try:
        found: object = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise not_found(f"{file} cannot be read: {error.strerror}", "name a JSON file") from error
    except ValueError as error:
        raise usage(f"{file} is no JSON: {error}", "write an object, such as {...}") from error
    if not isinstance(found, dict):
        raise usage(f"{file} holds no object", 'write fields: {"name": "value"}')
    return cast("dict[str, Json]", found)


def read_values(compiled: CompiledWorkflow, given: Sequence[str]) -> Mapping[str, Json]:
    """Return the values, each as the type of its variable wants it."""
    values: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(f'"{pair}" gives no variable a value', "write --set NAME=VALUE")
        if name in values:
            raise usage(f"{name} is given twice", "keep one of them")
        values[name] = _value(compiled, name, text)
    return values


def _value(compiled: CompiledWorkflow, name: str, text: str) -> Json:
    variable = compiled.variables.get(name)
    if variable is None:
        near = nearest(name, compiled.variables)
        there = f"available: {', '.join(compiled.variables) or 'none'}"
        raise not_found(f"there is no variable {name}", f"did you mean {near}?" if near else there)
    try:
        return coerce_text(variable.type, text, models=compiled.models)
    except ExpressionError as error:
        raise _unfit(name, variable.type, error.hint or "write a value of this type") from error


def _unfit(name: str, type_: TypeExpr, remedy: str) -> CommandFailed:
    chosen = type_.of if isinstance(type_, OptionalOf) else type_
    if isinstance(chosen, LiteralOf):
        words = [it if isinstance(it, str) else json.dumps(it) for it in chosen.values]
        return usage(
            f"the value given for {name} is not one of: {', '.join(words)}",
            f"write one of them: --set {quote(f'{name}={words[0]}')}",
        )
    return usage(
        f"the value given for {name} does not fit its type {print_type(type_)}",
        f"{remedy}: --set {name}=VALUE",
    )


def warn_if_changed(streams: Streams, row: RunRow) -> None:
    """Say so if the package of a run is there and is not what the run was started with."""
    folders = {it.resolve().name: it for it in find_packages(streams.settings.workspace)}
    folder = folders.get(row.workflow)
    if folder is None:
        return
    if digest_on_disk(folder) != row.digest:
        kept = row.digest[:_SHORT]
        note = f"the package {row.workflow} has changed since; this run keeps {kept}"
        streams.note(streams.paint_error(clean(note), "yellow"))


def digest_on_disk(folder: Path) -> str:
    """Return the digest of a package as it is now, with errors or without."""
    package = read_package(folder)
    return digest(package.spec, package.code)
