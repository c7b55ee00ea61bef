"""The command line of `weft`; what a command needs is imported when the command is used."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Group, Parameter

import weft
from weft.cli.commands.command import Command
from weft.cli.commands.table import COMMAND_NAMES, COMMANDS
from weft.cli.failure import CommandFailed, Exit
from weft.cli.pages.help import HelpPage
from weft.cli.settings import read_settings
from weft.cli.streams import Streams
from weft.cli.text import clean

_ABOUT: Final = """Check, run, inspect and ship packages of language-model agents.

Exit codes: 0 done, 1 findings or a run that failed, 2 wrong usage, 3 a problem with the setup,
4 a run waits for a person, 6 not found, 7 something else is already there, 70 an error in Weft,
130 stopped with Ctrl-C."""

_EXAMPLES: Final = (
    "weft init shop",
    "weft check shop",
    "weft chat HelloWorld --model sample",
    "weft explain HAND001",
    "weft check --help",
)

_EVERYWHERE: Final = Group("Global options", sort_key=9)
_GLOBAL: Final = Parameter(group=_EVERYWHERE)


def build_app() -> App:
    """Return the command line."""
    app = App(
        name="weft",
        usage="weft COMMAND [OPTIONS]",
        help=_ABOUT,
        version=f"weft {weft.__version__}",
        help_format="plaintext",
        help_formatter=HelpPage(_EXAMPLES),
        default_parameter=Parameter(negative=""),
        group_arguments=Group("Arguments", sort_key=1),
        group_parameters=Group("Options", sort_key=2),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    for flag, text in (("--help", "Print this page."), ("--version", "Print the version.")):
        app[flag].group = _EVERYWHERE
        app[flag].help = text
    _add_commands(app, COMMANDS, "weft")
    app.meta.suppress_keyboard_interrupt = False
    app.meta.default(_launcher(app))
    return app


def _add_commands(app: App, commands: Sequence[Command], before: str) -> None:
    for order, command in enumerate(commands):
        line = f"{before} {command.name}"
        page = HelpPage(command.examples)
        usage = f"{line} {command.usage}"
        if command.parts:
            group = App(
                name=command.name,
                help=command.help,
                sort_key=order,
                usage=usage,
                help_formatter=page,
            )
            _add_commands(group, command.parts, line)
            app.command(group)
            continue
        app.command(
            command.target,
            name=command.name,
            help=command.help,
            sort_key=order,
            usage=usage,
            help_formatter=page,
        )


def run(words: Sequence[str]) -> Exit:
    """Carry out a command."""
    if set(words) == {"--version", "--json"}:  # the library would print it for people
        # Deferred: hardly ever asked for.
        from weft.cli.formats.documents import document  # noqa: PLC0415

        Streams().result(document({"version": weft.__version__}))
        return Exit.DONE
    app = build_app()
    try:
        return app.meta(words) or Exit.DONE
    except CycloptsError as error:
        # Deferred: only a command that was not understood needs it.
        from weft.cli.usage import usage_failure  # noqa: PLC0415

        options = [name for it in app.meta.assemble_argument_collection() for name in it.names]
        before = error.command_chain or ()
        group = next((it for it in COMMANDS if it.parts and it.name in before), None)
        failure = usage_failure(
            error,
            commands=[it.name for it in group.parts] if group else COMMAND_NAMES,
            options=[*options, "--help", "--version"],
            group=f"{group.name} " if group else "",
        )
        raise CommandFailed(failure) from error


def _launcher(app: App) -> Callable[..., Exit]:
    """Return the function that reads global options, wherever they stand, and calls a command."""

    def launch(
        *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        workspace: Annotated[
            Path | None,
            _GLOBAL,
            Parameter(
                help="The folder with `workflows`; else the nearest one upward.", metavar="DIR"
            ),
        ] = None,
        json: Annotated[
            bool, _GLOBAL, Parameter(help="Print JSON: one document, or a line for each event.")
        ] = False,
        quiet: Annotated[
            bool, _GLOBAL, Parameter(name=("--quiet", "-q"), help="Print results and errors only.")
        ] = False,
        verbose: Annotated[
            bool, _GLOBAL, Parameter(name=("--verbose", "-v"), help="Print details on stderr.")
        ] = False,
        no_color: Annotated[
            bool, _GLOBAL, Parameter(help="Use no colour; so does the variable NO_COLOR.")
        ] = False,
    ) -> Exit:
        if not words:
            app.help_print([])
            return Exit.USAGE
        command, bound, _ = app.parse_args(words)
        if command == app.help_print:  # a command that consists of others, alone
            command(*bound.args, **bound.kwargs)
            return Exit.USAGE
        settings = read_settings(
            workspace=workspace, json=json, quiet=quiet, verbose=verbose, no_color=no_color
        )
        streams = Streams(settings)
        streams.detail(clean(f"workspace: {settings.workspace.resolve()}"))
        # Deferred: help pages log nothing.
        from weft.cli.log import logged  # noqa: PLC0415

        with logged(streams):
            return command(*bound.args, **bound.kwargs, streams=streams)

    return launch
