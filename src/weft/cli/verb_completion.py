"""weft completion: a script with which a shell completes weft commands."""

from typing import Annotated, Literal

from cyclopts import Parameter

from weft.cli.command_line import build_app
from weft.cli.exits import Exit
from weft.cli.machine_formats import document
from weft.cli.streams import Streams


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
