"""Starting a run from the command line: its package, its model, its values, its first message."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias, cast

from cyclopts import Parameter

from weft.app.folders import LOCAL
from weft.app.models import default_model_of
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.hosting import find_run
from weft.cli.paths import locate_package
from weft.cli.streams import Streams, clean, json_or_text
from weft.engine.compile import compile_workflow
from weft.engine.compiled import CompiledWorkflow
from weft.engine.rows import RunRow
from weft.environment import read_environment
from weft.errors import ExpressionError, LinkError
from weft.findings import Finding, Json
from weft.ids import nearest
from weft.packages.reader import read_package
from weft.packages.workspace import EVERYWHERE, find_packages
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.spec.type_meaning import coerce_text
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr, print_type
from weft.spec.workflow import digest

#: The model of a new run, or of a fork.
ModelName: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--model",
        metavar="NAME",
        help="Model of every agent: PROVIDER:MODEL, sample, you, or replay:RUN.",
    ),
]

Seed: TypeAlias = Annotated[int, Parameter(name="--seed", help="Random seed for the sample model.")]

#: The input of a run that no chat message starts.
Input: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--input",
        metavar="FILE|NAME=VALUE",
        help="Input: the values of a form, the body of a webhook, or a changed document.",
        consume_multiple=False,
    ),
]

#: Values of variables.
Given: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="NAME=VALUE",
        help="Set a variable: text as it is, lists and objects as JSON; repeatable.",
        consume_multiple=False,
    ),
]

#: How much of a digest is shown.
_SHORT: Final = 8

#: Models whose replies no language model makes. Their replies are marked, and arrive whole.
_BADGED: Final = {
    "sample": "made-up replies",
    "designer": "fixed rules, no language model",
    "you": "you type the replies",
    "replay": "replies of an earlier run",
}


def model_of(workflow: Workflow, agent: str, named: str | None) -> str:
    """Return the name of the model of an agent; `named` is the model of the run."""
    usual = read_environment().get("WEFT_MODEL") or default_model_of(workflow.spec)
    return named or workflow.models[agent] or usual


def is_badged(model: str) -> bool:
    """Tell whether the replies of a model are marked, because no language model makes them."""
    return model.partition(":")[0] in _BADGED


def models_line(workflow: Workflow, named: str | None, *, begins: bool) -> str:
    """Return the models of a run in one line; empty if it has none."""
    names = dict.fromkeys(model_of(workflow, agent, named) for agent in workflow.models)
    if not names:
        return ""
    kinds = {name.partition(":")[0] for name in names}
    notes = [note for kind, note in _BADGED.items() if kind in kinds]
    if notes and begins:
        notes.append("choose another with --model")
    line = f"model{'s' if len(names) > 1 else ''}: {', '.join(names)}"
    return f"{line} ({'; '.join(notes)})" if notes else line


def package_to_run(streams: Streams, name: str) -> Path:
    """Return the folder of a package to run, which must be in the workspace."""
    workspace = streams.settings.workspace
    folder = locate_package(name, workspace)
    if name in EVERYWHERE:
        return folder
    if folder.resolve() not in {package.resolve() for package in find_packages(workspace)}:
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
    """Start a run of a package, and return its id; `given` are values as typed by a person."""
    if given:
        values = read_values(compile_workflow(read_package(folder).spec), given)
    chosen = await model_name(host, model)
    with placed_findings(folder):
        run = await host.start(
            _package_name(folder),
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


def _package_name(folder: Path) -> str:
    """Return the name of a package, whose folder may be named by another path, such as `.`."""
    return folder.resolve().name


async def model_name(host: Host, model: str | None) -> str | None:
    """Return the full name of a model; a run to replay may be named by a part of its id."""
    kind, colon, part = (model or "").partition(":")
    if kind == "replay" and colon and part:
        return f"replay:{(await find_run(host, part)).run}"
    return model


@contextmanager
def placed_findings(folder: Path) -> Generator[None]:
    """Report link errors with the paths of the package files."""
    try:
        yield
    except LinkError as error:
        findings = tuple(_placed(finding, folder) for finding in error.findings)
        raise LinkError(str(error), findings) from error


def _placed(finding: Finding, folder: Path) -> Finding:
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
        # Python marks bytes of a command line that the terminal's encoding does not have.
        raise usage(
            "the message is not valid Unicode text", "use UTF-8: export PYTHONUTF8=1"
        ) from error
    return text


def read_json_file(file: Path, hint: str) -> Json:
    """Return the JSON in a file."""
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise not_found(f"cannot read {file}: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not UTF-8 text", "save the file as UTF-8") from error
    except ValueError as error:
        raise usage(f"{file} is not valid JSON: {error}", hint) from error


def read_input(given: Sequence[str]) -> Mapping[str, Json] | None:
    """Return the input of a run: a JSON file, or fields."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        file = Path(given[0])
        found = read_json_file(file, "name a file with a JSON object, such as {...}")
        if not isinstance(found, dict):
            raise usage(f"{file} is not a JSON object", 'write fields: {"name": "value"}')
        return cast("dict[str, Json]", found)
    fields: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(
                f'invalid value "{pair}" for --input', "write --input FILE, or --input NAME=VALUE"
            )
        fields[name] = json_or_text(text)
    return fields


def read_values(compiled: CompiledWorkflow, given: Sequence[str]) -> Mapping[str, Json]:
    """Return values of variables, each converted to the type of its variable."""
    values: dict[str, Json] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise usage(f'invalid value "{pair}" for --set', "write --set NAME=VALUE")
        if name in values:
            raise usage(f"{name} is given twice", "keep one of them")
        values[name] = _value(compiled, name, text)
    return values


def _value(compiled: CompiledWorkflow, name: str, text: str) -> Json:
    variable = compiled.variables.get(name)
    if variable is None:
        near = nearest(name, compiled.variables)
        known = f"available: {', '.join(compiled.variables) or 'none'}"
        raise not_found(f"unknown variable {name}", f"did you mean {near}?" if near else known)
    try:
        return coerce_text(variable.type, text, models=compiled.models)
    except ExpressionError as error:
        raise _wrong_type(name, variable.type, error.hint or "write such a value") from error


def _wrong_type(name: str, type_: TypeExpr, remedy: str) -> CommandFailed:
    chosen = type_.of if isinstance(type_, OptionalOf) else type_
    if isinstance(chosen, LiteralOf):
        words = [value if isinstance(value, str) else json.dumps(value) for value in chosen.values]
        return usage(
            f"invalid value for {name}: expected one of {', '.join(words)}",
            f"for example: --set {quote(f'{name}={words[0]}')}",
        )
    return usage(
        f"invalid value for {name}: expected {print_type(type_)}", f"{remedy}: --set {name}=VALUE"
    )


def warn_if_changed(streams: Streams, row: RunRow) -> None:
    """Warn if the package of a run has changed since the run started."""
    folders = {
        folder.resolve().name: folder for folder in find_packages(streams.settings.workspace)
    }
    folder = folders.get(row.workflow)
    if folder is not None and digest_on_disk(folder) != row.digest:
        pinned = row.digest[:_SHORT]
        note = f"the package {row.workflow} has changed; this run continues with version {pinned}"
        streams.note(streams.paint_error(clean(note), "yellow"))


def digest_on_disk(folder: Path) -> str:
    """Return the digest of a package as it is on disk, with or without errors."""
    package = read_package(folder)
    return digest(package.spec, package.code)
