"""Options that several commands have, the same in each of them."""

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

#: The option that every command has which works with runs.
JournalFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--journal",
        metavar="FILE",
        help="Keep runs in this file; else in .weft/journal.db of the workspace.",
    ),
]


RUN_HELP = "A run: its name, a unique beginning or end of it, or last."
RunName = Annotated[str, Parameter(help=RUN_HELP)]


#: The option of commands that show or answer what is asked of others than the user of a run.
People: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--as",
        metavar="WHO",
        help="Only what is asked of them: user:NAME, role:NAME or group:NAME; may be repeated.",
        consume_multiple=False,
        negative="",
    ),
]


#: The model of a run that begins, or of a fork.
ModelName: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--model",
        metavar="NAME",
        help="Answers for every agent: PROVIDER:MODEL, sample, you, or replay:RUN.",
    ),
]

Seed: TypeAlias = Annotated[
    int, Parameter(name="--seed", help="Another number makes the model sample reply otherwise.")
]


#: Where generated packages are put.
PackagesFolder: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name=("--output", "-o"),
        metavar="DIR",
        help="The folder for packages; else `workflows` of the workspace.",
    ),
]

#: What a run begins with that is not begun by a chat.
Input: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--input",
        metavar="FILE|NAME=VALUE",
        help="What starts it: the values of a form, the body of a webhook, a changed document.",
        consume_multiple=False,
        negative="",
    ),
]

#: The option with which values are given.
Given: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="NAME=VALUE",
        help="Give a variable a value: text as it is, lists and objects as JSON; may be repeated.",
        consume_multiple=False,
        negative="",
    ),
]
