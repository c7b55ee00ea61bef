"""weft explain, weft schema and weft completion: codes, file formats and shell completion."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from weft.cli.codes import CODES, FAMILIES, findings_page, nearest_code
from weft.cli.command_line import build_app, describe_commands
from weft.cli.completion import SCRIPTS, codes, schemas
from weft.cli.failure import not_found, usage
from weft.cli.results import Message, Result, Table
from weft.cli.streams import Streams, clean, write_file
from weft.findings import Rule
from weft.ids import nearest
from weft.packages.archive.staging import replace_files
from weft.packages.writer import SCHEMA_NAMES, schema_files


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
        return Message({"file": str(write)}, f"wrote {clean(str(write))}")
    if form == "markdown":
        page = findings_page().rstrip()
        return Message({"text": page}, page)
    is_list = not all_codes and (code is None or code.upper() in FAMILIES)
    rules = _rules(code)
    if is_list:
        rows = [(entry.code, entry.severity, entry.title) for entry in rules]
        return Table({"codes": rules}, rows)
    return Message({"codes": rules}, "\n\n".join(_rule_text(entry, streams) for entry in rules))


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
        paths = [str(write / file) for file in files]
        return Message({"files": paths}, "\n".join(f"wrote {clean(path)}" for path in paths))
    parsed = {file.partition(".")[0]: json.loads(text) for file, text in files.items()}
    if name is None:
        notes = ["\nprint one: weft schema agents\nwrite all: weft schema --write schemas"]
        return Message({"schemas": parsed}, "\n".join(SCHEMA_NAMES), notes)
    return Message({"schemas": parsed}, "".join(files.values()).rstrip())


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
        data = describe_commands(build_app())
        return Message(data, json.dumps(data, indent=1))
    return Message({"shell": shell, "script": SCRIPTS[shell]}, SCRIPTS[shell])
