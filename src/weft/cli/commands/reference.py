"""weft explain, weft schema and weft completion: codes, file formats and shell completion."""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from weft.cli.codes import CODES, FAMILIES, findings_page, nearest_code
from weft.cli.command_line import build_app, describe_commands
from weft.cli.completion import SCRIPTS, codes, schemas
from weft.cli.failure import did_you_mean, not_found, usage
from weft.cli.options import Output, command
from weft.cli.results import Result
from weft.cli.streams import Streams, clean, write_file
from weft.findings import Rule
from weft.ids import nearest
from weft.packages.archive.staging import replace_files
from weft.packages.writer import SCHEMA_NAMES, schema_files

CodeName: TypeAlias = Annotated[str | None, Parameter(completer=codes)]
SchemaName: TypeAlias = Annotated[str | None, Parameter(completer=schemas)]


@command
def explain(
    code: CodeName = None,
    /,
    *,
    all_: bool = False,
    format_: Literal["text", "markdown"] = "text",
    write: Path | None = None,
    streams: Output,
) -> Result:
    """Explain a code: what it means, why it matters, how to fix it.

    Options:
      CODE          A code or a family of codes; default: list all.
      --all         Explain every code.
      --format      Format of --all: text, or a Markdown page.
      --write FILE  Write the page of all codes to this file, as Markdown.

    Examples:
      weft explain NAME001
      weft explain HAND
      weft explain --all --format markdown
    """
    if code is not None and (all_ or write):
        raise usage(f"{code} and all codes exclude each other", "leave one of them out")
    if format_ == "markdown" and not all_:
        raise usage("--format markdown needs --all", "weft explain --all --format markdown")
    if format_ == "markdown" and streams.settings.json:
        raise usage("--json and --format markdown exclude each other", "keep one of them")
    if write:
        write_file(write, findings_page())
        return Result({"file": str(write)}, f"wrote {clean(str(write))}")
    if format_ == "markdown":
        page = findings_page().rstrip()
        return Result({"text": page}, page)
    is_list = not all_ and (code is None or code.upper() in FAMILIES)
    rules = _rules(code)
    if is_list:
        rows = [(entry.code, entry.severity, entry.title) for entry in rules]
        return Result({"codes": rules}, streams.table(rows))
    return Result({"codes": rules}, "\n\n".join(_rule_text(entry, streams) for entry in rules))


def _rules(code: str | None) -> tuple[Rule, ...]:
    if code is None:
        return tuple(CODES.values())
    wanted = code.upper()
    if wanted in CODES:
        return (CODES[wanted],)
    if wanted in FAMILIES:
        return FAMILIES[wanted]
    raise not_found(
        f'unknown code "{code}"',
        *did_you_mean(nearest_code(wanted)),
        "list all codes: weft explain",
    )


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


@command
def schema(
    name: SchemaName = None,
    /,
    *,
    write: Path | None = None,
    streams: Output,  # noqa: ARG001 - given to every command
) -> Result:
    """Print the JSON Schemas of package files.

    Options:
      NAME         A kind of file, such as agents; default: list all.
      --write DIR  Write the schemas, or the one named, to this folder.

    Examples:
      weft schema
      weft schema agents
      weft schema --write schemas
    """
    files = schema_files()
    if name is not None:
        wanted = _schema_file(name)
        files = {wanted: files[wanted]}
    if write is not None:
        replace_files(write, {file: text.encode() for file, text in files.items()})
        paths = [str(write / file) for file in files]
        return Result({"files": paths}, "\n".join(f"wrote {clean(path)}" for path in paths))
    parsed = {file.partition(".")[0]: json.loads(text) for file, text in files.items()}
    if name is None:
        notes = ["\nprint one: weft schema agents\nwrite all: weft schema --write schemas"]
        return Result({"schemas": parsed}, "\n".join(SCHEMA_NAMES), notes)
    return Result({"schemas": parsed}, "".join(files.values()).rstrip())


def _schema_file(name: str) -> str:
    """Return the file of a schema, named by its kind, by its file or by a package file."""
    stem = Path(name).name.partition(".")[0]
    if stem in SCHEMA_NAMES:
        return f"{stem}.schema.json"
    hints = did_you_mean(nearest(name, SCHEMA_NAMES))
    raise not_found(f'unknown schema "{name}"', *hints, "list all: weft schema")


@command
def completion(
    shell: Literal["bash", "zsh", "fish", "powershell", "json"],
    /,
    *,
    streams: Output,  # noqa: ARG001 - given to every command
) -> Result:
    """Print a script that completes weft commands in a shell.

    Options:
      SHELL  The shell; json prints the commands and options as data.

    Examples:
      eval "$(weft completion bash)"      in ~/.bashrc
      eval "$(weft completion zsh)"       in ~/.zshrc, after compinit
      weft completion fish > ~/.config/fish/completions/weft.fish
      weft completion powershell | Out-String | Invoke-Expression      in $PROFILE
    """
    if shell == "json":
        data = describe_commands(build_app())
        return Result(data, json.dumps(data, indent=1))
    return Result({"shell": shell, "script": SCRIPTS[shell]}, SCRIPTS[shell])
