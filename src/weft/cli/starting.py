"""Starting a run from the command line: its package, its model, its values, its first message."""

import asyncio
import json
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, NamedTuple, TypeAlias, cast

from cyclopts import Parameter

from weft.app.models import SAMPLE, default_model_of
from weft.app.replies import is_replies_file
from weft.app.settings_file import read_settings
from weft.cli.failure import CommandFailed, not_found, remedy, usage
from weft.cli.hosting import RunServer, connected, find_run
from weft.cli.paths import locate_package
from weft.cli.scope import command_scope, is_on_server
from weft.cli.streams import Streams, clean, json_or_text
from weft.engine.compile import compile_workflow
from weft.engine.compiled import CompiledWorkflow
from weft.engine.rows import RunRow
from weft.environment import read_environment
from weft.errors import AccessDenied, ExpressionError, LinkError, NotFoundError
from weft.findings import Json
from weft.ids import suggestion
from weft.packages.reader import read_package
from weft.packages.workspace import EVERYWHERE, packages_of
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow, asked_models, package_digest
from weft.spec.type_meaning import coerce_text
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr, print_type
from weft.spec.workflow import WorkflowSpec, digest

#: The model of a new run, or of a fork.
ModelName: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--model",
        metavar="NAME",
        help="Model of every agent: PROVIDER:MODEL, sample, you, replay:RUN, or replay:FILE.yaml.",
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

#: The name of stdin in place of a file.
_STDIN: Final = Path("-")

#: How much of a digest is shown.
_SHORT: Final = 8

#: The note on replies from a file.
_WRITTEN: Final = "replies from a file"

#: Models whose replies no language model makes. Their replies are marked, and arrive whole.
_BADGED: Final = {
    "sample": "made-up replies",
    "designer": "fixed rules, no language model",
    "you": "you type the replies",
    "replay": "replies of an earlier run",
}


def model_of(workflow: Workflow, agent: str, named: str | None) -> str:
    """Return the name of the model of an agent; `named` is the model of the run."""
    here = "" if is_on_server() else read_environment().get("WEFT_MODEL")
    usual = here or default_model_of(workflow.spec)
    return named or workflow.models[agent] or usual


def is_badged(model: str) -> bool:
    """Return whether the replies of a model are marked, because no language model makes them."""
    return model.partition(":")[0] in _BADGED


def models_line(workflow: Workflow, named: str | None, *, begins: bool) -> str:
    """Return the models of a run in one line; empty if none is known here."""
    found = (model_of(workflow, agent, named) for agent in workflow.models)
    names = dict.fromkeys(filter(None, found))
    if not names:
        return ""
    kinds = {name.partition(":")[0] for name in names}
    notes = [note for kind, note in _BADGED.items() if kind in kinds]
    if any(map(is_replies_file, names)):
        notes = [_WRITTEN if note == _BADGED["replay"] else note for note in notes]
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
    known = packages_of(workspace, command_scope().app).values()
    if folder.resolve() not in {package.resolve() for package in known}:
        raise usage(
            f"{folder} is not in the workspace {workspace.resolve()}",
            "name its workspace: weft --workspace DIR",
        )
    return folder


class Runnable(NamedTuple):
    """A package to run: one in a folder, or one of a server."""

    name: str
    spec: WorkflowSpec
    folder: Path | None = None


def find_runnable(streams: Streams, name: str, server: RunServer | None = None) -> Runnable:
    """Return a package to run, of the workspace or of a server."""
    if server is not None:
        return Runnable(name, asyncio.run(_spec_on(server, name)))
    folder = package_to_run(streams, name)
    return Runnable(package_name(folder), read_package(folder).spec, folder)


async def _spec_on(server: RunServer, name: str) -> WorkflowSpec:
    async with connected(server) as client:
        try:
            return (await client.current_workflow(name)).spec
        except (AccessDenied, NotFoundError) as error:
            known = ", ".join(await client.workflow_names())
            raise not_found(
                f"{server.url} has no workflow {name}", f"available: {known or 'none'}"
            ) from error


async def start_run(
    host: Host,
    streams: Streams,
    package: Runnable,
    *,
    message: str | None = None,
    given: Sequence[str] = (),
    values: Mapping[str, Json] | None = None,
    input_: Mapping[str, Json] | None = None,
    model: str | None = None,
) -> str:
    """Start a run of a package, and return its id; `given` are values as typed by a person."""
    if given:
        values = read_values(compile_workflow(package.spec), given)
    chosen = await model_name(host, model)
    if package.folder is not None:
        chosen = chosen or default_model(package.spec, streams.settings.workspace)
    with placed_findings(package.folder) if package.folder is not None else nullcontext():
        run = await host.start(
            package.name,
            scope=command_scope(),
            message=message,
            values=values,
            input=input_,
            model=chosen,
            streamed=True,
        )
    models = models_line(await host.workflow(run, scope=command_scope()), chosen, begins=True)
    streams.aside(f"run {run} of {package.name}", models)
    return run


def package_name(folder: Path) -> str:
    """Return the name of a package, whose folder may be named by another path, such as `.`."""
    return folder.resolve().name


def default_model(spec: WorkflowSpec, workspace: Path) -> str | None:
    """Return the model that a new run is started with if none is named: made-up replies.

    It is written down, so that no run of others ever gets made-up replies.
    """
    usual = read_settings(workspace).get("WEFT_MODEL") or default_model_of(spec)
    return SAMPLE if not usual and set(asked_models(spec)) == {None} else None


async def model_name(host: Host, model: str | None) -> str | None:
    """Return the full name of a model; a run to replay may be named by a part of its id."""
    kind, colon, part = (model or "").partition(":")
    if kind == "replay" and colon and part and not is_replies_file(part):
        return f"replay:{(await find_run(host, part)).run}"
    return model


@contextmanager
def placed_findings(folder: Path) -> Generator[None]:
    """Report link errors with the paths of the package files."""
    try:
        yield
    except LinkError as error:
        files = {finding: folder / finding.place.file for finding in error.findings}
        findings = tuple(
            replace(finding, place=replace(finding.place, file=str(file)))
            if file.is_file()
            else finding
            for finding, file in files.items()
        )
        raise LinkError(str(error), findings) from error


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
    return parse_json(read_text_file(file, hint), str(file), hint)


def parse_json(text: str, what: str, hint: str) -> Json:
    """Return the value of a JSON text; `what` names the text."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise usage(f"{what} is not valid JSON: {error}", hint) from error


def read_text_file(file: Path, hint: str) -> str:
    """Return the text of a file, or of stdin (-)."""
    try:
        raw = sys.stdin.buffer.read() if file == _STDIN else file.read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not UTF-8 text", "save the file as UTF-8") from error
    except OSError as error:
        hint = hint if isinstance(error, FileNotFoundError) else remedy(error) or hint
        raise not_found(f"cannot read {file}: {error.strerror}", hint) from error


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
    pairs = read_pairs(given, "--input", "write --input FILE, or --input NAME=VALUE")
    return {name: json_or_text(text) for name, text in pairs}


def read_values(compiled: CompiledWorkflow, given: Sequence[str]) -> Mapping[str, Json]:
    """Return values of variables, each converted to the type of its variable."""
    pairs = read_pairs(given, "--set", "write --set NAME=VALUE", unique=True)
    return {name: _value(compiled, name, text) for name, text in pairs}


def read_pairs(
    pairs: Sequence[str], option: str, hint: str, *, unique: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the names and values of NAME=VALUE pairs; `unique` refuses a name given twice."""
    known: set[str] = set()
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            where = f" for {option}" if option else ""
            raise usage(f'invalid value "{pair}"{where}', hint)
        if unique and name in known:
            raise usage(f"{name} is given twice", "keep one of them")
        known.add(name)
        yield name, text


def _value(compiled: CompiledWorkflow, name: str, text: str) -> Json:
    variable = compiled.variables.get(name)
    if variable is None:
        raise not_found(f"unknown variable {name}", suggestion(name, compiled.variables))
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
    """Warn if the package of a run has changed since the run started; not for a server's."""
    here = {} if is_on_server() else packages_of(streams.settings.workspace, row.app)
    folder = here.get(row.workflow)
    package = None if folder is None else read_package(folder)
    changed = package and digest(package.spec, package.code) != package_digest(row.digest)
    if changed:
        pinned = row.digest[:_SHORT]
        note = f"the package {row.workflow} has changed; this run continues with version {pinned}"
        streams.note(streams.paint_error(clean(note), "yellow"))
