"""weft emit: what a package declares, written as code."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.cli.failure import Exit
from weft.cli.formats.documents import document
from weft.cli.paths import locate_package
from weft.cli.streams import Streams, write_file
from weft.cli.text import clean
from weft.packages import emit
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors


def assemblers(
    name: Annotated[str, Parameter(help="A package by name, or its folder.")],
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(name=("--output", "-o"), metavar="FILE", help="Write the code to this file."),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Write what the steps of a flow are shown as Python classes."""
    package = read_package(locate_package(name, streams.settings.workspace))
    refuse_errors(package)
    text = emit.assemblers(package.spec).rstrip("\n")
    if output is not None:
        write_file(output, text + "\n")
    if streams.settings.json:
        file = None if output is None else str(output)
        streams.result(document({"name": package.name, "file": file, "text": text}))
    elif output is None:
        streams.result(text)
    else:
        streams.result(f"wrote {clean(str(output))}")
    return Exit.DONE
