"""The command line of `weft`; what a verb needs is imported when the verb is used."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Group, Parameter

import weft
from weft.cli.exits import Exit
from weft.cli.failure import CommandFailed
from weft.cli.help_page import HelpPage
from weft.cli.settings import read_settings
from weft.cli.streams import Streams, clean
from weft.cli.verbs import VERB_NAMES, VERBS

_ABOUT: Final = """Check, draw and ship packages of language-model agents.

Exit codes: 0 done, 1 findings, 2 wrong usage, 3 a problem with the setup, 6 not found,
7 something else is already there, 70 an error in Weft, 130 stopped with Ctrl-C."""

_EXAMPLES: Final = (
    "weft init shop",
    "weft check shop",
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
    for order, verb in enumerate(VERBS):
        app.command(
            verb.target,
            name=verb.name,
            help=verb.help,
            sort_key=order,
            usage=f"weft {verb.name} {verb.usage}",
            help_formatter=HelpPage(verb.examples),
        )
    app.meta.suppress_keyboard_interrupt = False
    app.meta.default(_launcher(app))
    return app


def run(words: Sequence[str]) -> Exit:
    """Carry out a command."""
    app = build_app()
    try:
        return app.meta(words) or Exit.DONE
    except CycloptsError as error:
        # Deferred: only a command that was not understood needs it.
        from weft.cli.usage import usage_failure  # noqa: PLC0415

        options = [name for it in app.meta.assemble_argument_collection() for name in it.names]
        failure = usage_failure(error, verbs=VERB_NAMES, options=[*options, "--help", "--version"])
        raise CommandFailed(failure) from error


def _launcher(app: App) -> Callable[..., Exit]:
    """Return the function that reads the global options, wherever they stand, and calls a verb."""

    def launch(
        *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        workspace: Annotated[
            Path | None,
            _GLOBAL,
            Parameter(
                help="The folder with `workflows`; else the nearest one upward.", metavar="DIR"
            ),
        ] = None,
        json: Annotated[bool, _GLOBAL, Parameter(help="Print one JSON document.")] = False,
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
        verb, bound, _ = app.parse_args(words)
        settings = read_settings(
            workspace=workspace, json=json, quiet=quiet, verbose=verbose, no_color=no_color
        )
        streams = Streams(settings)
        streams.detail(clean(f"workspace: {settings.workspace.resolve()}"))
        return verb(*bound.args, **bound.kwargs, streams=streams)

    return launch
