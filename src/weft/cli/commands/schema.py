"""weft schema and weft completion: what lets editors and shells complete what is typed."""

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from weft.cli.command_line import build_app
from weft.cli.completion import schemas
from weft.cli.failure import Exit, not_found
from weft.cli.formats.documents import document
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.ids import nearest
from weft.packages.archive.staging import replace_files
from weft.packages.writer import SCHEMA_NAMES, schema_files


def schema(
    name: Annotated[
        str | None,
        Parameter(
            help="A kind of file, such as agents; all are listed if not given.", completer=schemas
        ),
    ] = None,
    /,
    *,
    write: Annotated[
        Path | None,
        Parameter(help="Write the schemas, or the one named, to this folder.", metavar="DIR"),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Print, list or write the JSON Schemas of package files."""
    files = schema_files()
    if name is not None:
        wanted = _file(name)
        files = {wanted: files[wanted]}
    if write is not None:
        _write(write, files, streams)
    elif streams.settings.json:
        listed = {file.partition(".")[0]: json.loads(text) for file, text in files.items()}
        streams.result(document({"schemas": listed}))
    elif name is not None:
        streams.result("".join(files.values()).rstrip())
    else:
        streams.result("\n".join(SCHEMA_NAMES))
        streams.note("\nprint one: weft schema agents\nwrite all: weft schema --write schemas")
    return Exit.DONE


def _file(name: str) -> str:
    """Return the file of a schema, whether named by its kind, by the file or by what it is for."""
    stem = Path(name).name.partition(".")[0]
    if stem in SCHEMA_NAMES:
        return f"{stem}.schema.json"
    meant = nearest(name, SCHEMA_NAMES)
    hints = [f"did you mean {meant}?"] if meant else []
    raise not_found(f'there is no schema "{name}"', *hints, "list all: weft schema")


def _write(folder: Path, files: dict[str, str], streams: Streams) -> None:
    replace_files(folder, {file: text.encode() for file, text in files.items()})
    written = [str(folder / file) for file in files]
    if streams.settings.json:
        streams.result(document({"files": written}))
    else:
        streams.result("\n".join(f"wrote {clean(file)}" for file in written))


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], Parameter(help="The shell to write for.")
    ],
    /,
    *,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Print a script that lets a shell complete weft commands."""
    script = build_app().generate_completion(prog_name="weft", shell=shell).rstrip()
    as_data = streams.settings.json
    streams.result(document({"shell": shell, "script": script}) if as_data else script)
    return Exit.DONE
