"""weft diagram: a drawing of a workflow."""

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from weft.cli.completion import package_names
from weft.cli.failure import Exit, usage
from weft.cli.formats.documents import document
from weft.cli.paths import locate_package
from weft.cli.streams import Streams, write_file
from weft.cli.text import clean
from weft.diagrams import Form, Kind, draw
from weft.errors import PackageError
from weft.findings import is_error
from weft.packages.reader import read_package

#: The language that the ending of a file asks for; a file without one is as good as any.
_ENDINGS: Final[dict[str, Form]] = {
    "": "mermaid",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".txt": "ascii",
}


def diagram(
    name: Annotated[
        str, Parameter(help="A package by name, or its folder.", completer=package_names)
    ],
    /,
    *,
    kind: Annotated[
        Kind, Parameter(help="Who can follow whom, or a conversation in time.")
    ] = "graph",
    form: Annotated[
        Form | None,
        Parameter(
            name="--format",
            help="The language of the drawing; else by the ending of FILE, or mermaid.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Parameter(name=("--output", "-o"), metavar="FILE", help="Write the drawing to this file."),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Draw a workflow."""
    form = form or _form_of(output)
    package = read_package(locate_package(name, streams.settings.workspace))
    errors = tuple(finding for finding in package.findings if is_error(finding))
    if errors:
        raise PackageError(f"{package.folder} cannot be drawn before it can be read", errors)
    text = draw(package.spec, kind=kind, form=form).rstrip("\n")
    if output is not None:
        write_file(output, text + "\n")
    if streams.settings.json:
        file = None if output is None else str(output)
        content = {"name": package.name, "kind": kind, "format": form, "file": file}
        streams.result(document({**content, "text": text}))
    elif output is None:
        streams.result(text)
    else:
        streams.result(f"wrote {clean(str(output))}")
    return Exit.DONE


def _form_of(output: Path | None) -> Form:
    """Return the language that the name of a file asks for."""
    ending = output.suffix.lower() if output else ""
    if ending not in _ENDINGS:
        known = ", ".join(f"{it} ({form})" for it, form in _ENDINGS.items() if it)
        raise usage(
            f'no drawing is made for files that end in "{ending}"',
            f"use one of these endings: {known}",
            "or name the language: --format",
        )
    return _ENDINGS[ending]
