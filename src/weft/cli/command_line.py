"""The verbs and global options of `weft`; what a verb needs is imported when it is used."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, CycloptsError, Group, Parameter

import weft
from weft.cli.exits import Exit
from weft.cli.failure import CommandFailed
from weft.cli.help_page import HelpPage
from weft.cli.settings import read_settings
from weft.cli.streams import Streams

_ABOUT: Final = "Check, draw and ship packages of language-model agents."

_EVERYWHERE: Final = Group("Global options", sort_key=9)
_GLOBAL: Final = Parameter(group=_EVERYWHERE)


@dataclass(frozen=True, slots=True)
class _Verb:
    name: str
    usage: str
    help: str
    examples: tuple[str, ...]

    @property
    def target(self) -> str:
        return f"weft.cli.verb_{self.name}:{self.name}{'_' if self.name == 'import' else ''}"


_VERBS: Final = (
    _Verb(
        "init",
        "[DIR] [OPTIONS]",
        "Make a workspace with two example packages.",
        ("weft init shop", "weft init shop --force      write the examples anew"),
    ),
    _Verb(
        "new",
        "NAME [OPTIONS]",
        "Make a package from the template of a pattern.",
        ("weft new Returns --pattern 6", "weft new Returns --pattern FeedbackLoop"),
    ),
    _Verb(
        "check",
        "[PATHS...] [OPTIONS]",
        "Check packages and say how to mend them.",
        (
            "weft check",
            "weft check Returns --fix",
            "weft check --select HAND,EXPO003 --format concise",
            "weft check --format sarif > weft.sarif",
        ),
    ),
    _Verb(
        "explain",
        "[CODE] [OPTIONS]",
        "Explain a code: what it means, why it matters, how to mend it.",
        ("weft explain HAND001", "weft explain HAND", "weft explain --all --format markdown"),
    ),
    _Verb(
        "diagram",
        "NAME [OPTIONS]",
        "Draw a workflow.",
        ("weft diagram Returns", "weft diagram Returns --kind sequence --format svg -o out.svg"),
    ),
    _Verb(
        "migrate",
        "[PATHS...] [OPTIONS]",
        "Rewrite older spellings to the present one.",
        ("weft migrate --dry-run", "weft migrate Returns"),
    ),
    _Verb(
        "schema",
        "[NAME] [OPTIONS]",
        "Print the JSON Schemas of package files.",
        ("weft schema", "weft schema agents", "weft schema --write schemas"),
    ),
    _Verb(
        "export",
        "NAME [OPTIONS]",
        "Write a package to a zip file with a manifest of hashes.",
        ("weft export Returns", "weft export Returns -o returns.zip"),
    ),
    _Verb(
        "import",
        "FILE [OPTIONS]",
        "Install or update a package from a zip file.",
        ("weft import returns.zip --dry-run", "weft import returns.zip"),
    ),
    _Verb(
        "doctor",
        "[OPTIONS]",
        "Look at the setup and name the command that mends it.",
        ("weft doctor",),
    ),
    _Verb(
        "completion",
        "SHELL",
        "Print a script that lets a shell complete weft commands.",
        (
            'eval "$(weft completion bash)"      in ~/.bashrc',
            'eval "$(weft completion zsh)"       in ~/.zshrc, after compinit',
            "weft completion fish > ~/.config/fish/completions/weft.fish",
        ),
    ),
)

VERB_NAMES: Final = tuple(verb.name for verb in _VERBS)


def build_app() -> App:
    """Return the command line."""
    app = App(
        name="weft",
        usage="weft COMMAND [OPTIONS]",
        help=_ABOUT,
        version=f"weft {weft.__version__}",
        help_format="plaintext",
        help_formatter=HelpPage(
            ("weft init shop", "weft check shop", "weft explain HAND001", "weft check --help")
        ),
        default_parameter=Parameter(negative=""),
        group_arguments=Group("Arguments", sort_key=1),
        group_parameters=Group("Options", sort_key=2),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for flag, text in (("--help", "Print this page."), ("--version", "Print the version.")):
        app[flag].group = _EVERYWHERE
        app[flag].help = text
    for order, verb in enumerate(_VERBS):
        app.command(
            verb.target,
            name=verb.name,
            help=verb.help,
            sort_key=order,
            usage=f"weft {verb.name} {verb.usage}",
            help_formatter=HelpPage(verb.examples),
        )

    app.meta.suppress_keyboard_interrupt = False

    @app.meta.default
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
        return verb(*bound.args, **bound.kwargs, streams=Streams(settings))

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
