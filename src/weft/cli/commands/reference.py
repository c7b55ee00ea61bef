"""weft explain, weft schema and weft completion: codes, file formats and shell completion."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from weft.cli.codes import CODES, FAMILIES, findings_page, nearest_code
from weft.cli.command_line import build_app, describe_commands
from weft.cli.completion import SCRIPTS, codes, schemas
from weft.cli.failure import not_found, usage
from weft.cli.results import Hidden, Result
from weft.cli.streams import Streams, clean, write_file
from weft.findings import Json, Rule
from weft.ids import nearest
from weft.packages.archive.staging import replace_files
from weft.packages.writer import SCHEMA_NAMES, schema_files


@dataclass(frozen=True)
class Explained(Result):
    """What codes mean."""

    codes: tuple[Rule, ...]
    is_list: Hidden[bool]

    def show(self, streams: Streams) -> None:
        """Print a table, or the whole text of every code."""
        if self.is_list:
            streams.rows([(entry.code, entry.severity, entry.title) for entry in self.codes])
        else:
            streams.result("\n\n".join(_rule_text(entry, streams) for entry in self.codes))


@dataclass(frozen=True)
class WrittenFiles(Result):
    """The files that a command wrote."""

    files: tuple[str, ...]

    def show(self, streams: Streams) -> None:
        """Print one line per file."""
        streams.result("\n".join(f"wrote {clean(file)}" for file in self.files))


@dataclass(frozen=True)
class WrittenFile(Result):
    """The file that a command wrote."""

    file: Path

    def show(self, streams: Streams) -> None:
        """Print its path."""
        streams.result(f"wrote {clean(str(self.file))}")


@dataclass(frozen=True)
class Text(Result):
    """Text that is printed as it is."""

    text: str

    def show(self, streams: Streams) -> None:
        """Print it."""
        streams.result(self.text)


@dataclass(frozen=True)
class Schemas(Result):
    """JSON Schemas by kind of file."""

    schemas: Mapping[str, Json]
    texts: Hidden[tuple[str, ...]]
    is_list: Hidden[bool]

    def show(self, streams: Streams) -> None:
        """Print the names of all schemas, or the text of one."""
        if self.is_list:
            streams.result("\n".join(SCHEMA_NAMES))
            streams.note("\nprint one: weft schema agents\nwrite all: weft schema --write schemas")
        else:
            streams.result("".join(self.texts).rstrip())


@dataclass(frozen=True)
class Script(Result):
    """A completion script."""

    shell: str
    script: str

    def show(self, streams: Streams) -> None:
        """Print it."""
        streams.result(self.script)


def explain(
    code: Annotated[
        str | None,
        Parameter(help="A code or a family of codes; default: list all.", completer=codes),
    ] = None,
    /,
    *,
    all_codes: Annotated[bool, Parameter(name="--all", help="Explain every code.")] = False,
    form: Annotated[
        Literal["text", "markdown"],
        Parameter(name="--format", help="Format of --all: text, or a Markdown page."),
    ] = "text",
    write: Annotated[
        Path | None,
        Parameter(help="Write the page of all codes to this file, as Markdown.", metavar="FILE"),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Result:
    """Explain a code, or list all codes."""
    if code is not None and (all_codes or write):
        raise usage(f"{code} and all codes exclude each other", "leave one of them out")
    if form == "markdown" and not all_codes:
        raise usage("--format markdown needs --all", "weft explain --all --format markdown")
    if form == "markdown" and streams.settings.json:
        raise usage("--json and --format markdown exclude each other", "keep one of them")
    if write:
        write_file(write, findings_page())
        return WrittenFile(write)
    if form == "markdown":
        return Text(findings_page().rstrip())
    is_list = not all_codes and (code is None or code.upper() in FAMILIES)
    return Explained(_rules(code), is_list)


def _rules(code: str | None) -> tuple[Rule, ...]:
    if code is None:
        return tuple(CODES.values())
    wanted = code.upper()
    if wanted in CODES:
        return (CODES[wanted],)
    if wanted in FAMILIES:
        return FAMILIES[wanted]
    near = nearest_code(wanted)
    hints = [f"did you mean {near}?"] if near else []
    raise not_found(f'unknown code "{code}"', *hints, "list all codes: weft explain")


def _rule_text(entry: Rule, streams: Streams) -> str:
    paint = streams.paint
    style = "bold red" if entry.severity == "error" else "bold yellow"
    parts = [
        f"{paint(f'{entry.severity}[{entry.code}]', style)}: {paint(entry.title, 'bold')}",
        "",
        streams.prose(entry.why),
        "",
        paint("To fix it:", "cyan"),
        streams.prose(entry.fix),
        "",
        paint("Example:", "cyan"),
        *(f"  {line}" for line in entry.example.splitlines()),
    ]
    return "\n".join(parts)


def schema(
    name: Annotated[
        str | None,
        Parameter(help="A kind of file, such as agents; default: list all.", completer=schemas),
    ] = None,
    /,
    *,
    write: Annotated[
        Path | None,
        Parameter(help="Write the schemas, or the one named, to this folder.", metavar="DIR"),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],  # noqa: ARG001 - given to every command
) -> Result:
    """Print, list or write the JSON Schemas of package files."""
    files = schema_files()
    if name is not None:
        wanted = _schema_file(name)
        files = {wanted: files[wanted]}
    if write is not None:
        replace_files(write, {file: text.encode() for file, text in files.items()})
        return WrittenFiles(tuple(str(write / file) for file in files))
    parsed = {file.partition(".")[0]: json.loads(text) for file, text in files.items()}
    return Schemas(parsed, tuple(files.values()), is_list=name is None)


def _schema_file(name: str) -> str:
    """Return the file of a schema, named by its kind, by its file or by a package file."""
    stem = Path(name).name.partition(".")[0]
    if stem in SCHEMA_NAMES:
        return f"{stem}.schema.json"
    near = nearest(name, SCHEMA_NAMES)
    hints = [f"did you mean {near}?"] if near else []
    raise not_found(f'unknown schema "{name}"', *hints, "list all: weft schema")


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell", "json"],
        Parameter(help="The shell; json prints the commands and options as data."),
    ],
    /,
    *,
    streams: Annotated[Streams, Parameter(parse=False)],  # noqa: ARG001 - given to every command
) -> Result:
    """Print a script that completes weft commands in a shell."""
    if shell == "json":
        return Text(json.dumps(describe_commands(build_app()), indent=1))
    return Script(shell, SCRIPTS[shell])
