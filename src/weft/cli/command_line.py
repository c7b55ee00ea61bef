"""The command line of `weft`: parses words, runs a command and prints its result.

A command is imported when it is used, so that help pages stay fast.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter as Signature
from inspect import iscoroutine
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Final, get_origin

from cyclopts import App, CycloptsError, Group, Parameter

import weft
from weft.cli import options
from weft.cli.commands.table import COMMAND_NAMES, COMMANDS, Command, HelpText, read_docstring
from weft.cli.failure import CommandFailed, Exit
from weft.cli.settings import read_settings
from weft.cli.streams import Streams, clean

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_WEFT: Final = read_docstring(
    """Check, run, inspect and ship packages of language-model agents.

    Exit codes: 0 done, 1 findings or a failed run, 2 invalid command line, 3 problem with the
    setup, 4 a run waits for a person, 6 not found, 7 the target already exists, 70 bug in Weft,
    130 stopped with Ctrl-C, 143 stopped by SIGTERM.

    Without a command, `weft` in a terminal serves the workspace: see `weft serve --help`.

    Examples:
      weft init shop
      weft check shop
      weft chat HelloWorld --model sample
      weft explain NAME001
      weft check --help
    """
)

_GLOBAL_GROUP: Final = Group("Global options", sort_key=9)
_GLOBAL: Final = Parameter(group=_GLOBAL_GROUP)

#: Names longer than this get a line of their own on a help page.
_WIDEST_NAME: Final = 24
#: The width of a help page in a file or pipe, and the greatest width in a terminal.
_PIPED_WIDTH: Final = 80
_MAX_WIDTH: Final = 100


def build_app() -> App:
    """Return the command line."""
    app = App(
        name="weft",
        usage="",
        help=_WEFT.text,
        version=f"weft {weft.__version__}",
        help_format="plaintext",
        help_formatter=HelpPage(lambda: _WEFT, lambda: "weft COMMAND [OPTIONS]"),
        default_parameter=Parameter(negative=""),
        group_arguments=Group("Arguments", sort_key=1),
        group_parameters=Group("Options", sort_key=2),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )
    for flag, text in (("--help", "Print this page."), ("--version", "Print the version.")):
        app[flag].group = _GLOBAL_GROUP
        app[flag].help = text
    _add_commands(app, COMMANDS, "weft")
    app.meta.suppress_keyboard_interrupt = False
    app.meta.default(_launcher(app))
    return app


def _add_commands(app: App, commands: Sequence[Command], before: str) -> None:
    for order, command in enumerate(commands):
        line = f"{before} {command.name}"
        settings: dict[str, Any] = {
            "name": command.name,
            "help": command.summary(line.removeprefix("weft ")),
            "sort_key": order,
            "usage": "",
            "help_formatter": HelpPage(command.page, partial(_usage, app, command, line)),
        }
        if command.parts:
            group = App(**settings)
            _add_commands(group, command.parts, line)
            app.command(group)
        else:
            app.command(command.target, **settings)


def _usage(app: App, command: Command, line: str) -> str:
    """Return the usage line of a command, made from its arguments."""
    if command.parts:
        return f"{line} COMMAND [OPTIONS]"
    words: list[str] = []
    for argument in _arguments(app[command.name]):
        name = argument.names[0]
        if argument.index is None:
            words += [f"{name} {argument.parameter.metavar}"] if argument.required else []
            continue
        is_list = argument.field_info.kind is Signature.VAR_POSITIONAL
        is_list = is_list or get_origin(argument.hint) is tuple
        shown = f"{name.upper()}..." if is_list else name.upper()
        words.append(shown if argument.required else f"[{shown}]")
    return " ".join([line, *words, "[OPTIONS]"])


def _arguments(app: App) -> list[Any]:
    """Return the arguments of a command, without the streams that are passed to it."""
    found = app.assemble_argument_collection(parse_docstring=False)
    return [argument for argument in found if argument.parse and argument.show]


def describe_commands(app: App) -> dict[str, dict[str, Any]]:
    """Return the options of every command for `completion.json`; the empty name is global.

    The arguments of a command have the empty name as well.
    """
    described = {"": _describe(_arguments(app.meta))}
    described[""] |= {flag: {"help": app[flag].help} for flag in ("--help", "--version")}
    for command in COMMANDS:
        for part in command.parts or (None,):
            path = command.name if part is None else f"{command.name} {part.name}"
            target = app[command.name] if part is None else app[command.name][part.name]
            page = (part or command).page()
            described[path] = {"help": page.text.partition("\n\n")[0].replace("\n", " ")}
            described[path] |= _describe(_arguments(target))
    return described


def _describe(arguments: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for argument in arguments:
        data: dict[str, Any] = {"help": argument.parameter.help or ""}
        if argument.hint is not bool:
            data["takes_value"] = True
        if argument.parameter.completer:
            data["completer"] = argument.parameter.completer.__name__
        elif choices := argument.get_choices():
            data["choices"] = list(choices)
        if argument.index is None:
            names = [name for name in argument.names if name not in argument.negatives]
            found |= dict.fromkeys(names, data)
        elif "completer" in data or "choices" in data:
            found[""] = data
    return found


def run(words: Sequence[str]) -> Exit:
    """Run a command."""
    if set(words) == {"--version", "--json"}:  # the library would print it as text
        # Deferred: rarely used.
        from weft.cli.results import document  # noqa: PLC0415

        Streams().result(document({"version": weft.__version__}))
        return Exit.DONE
    app = build_app()
    try:
        return app.meta(words) or Exit.DONE
    except CycloptsError as error:
        # Deferred: only an invalid command line needs it.
        from weft.cli.error_reports import usage_failure  # noqa: PLC0415

        arguments = app.meta.assemble_argument_collection()
        names = [name for argument in arguments for name in argument.names]
        before = error.command_chain or ()
        group = next((each for each in COMMANDS if each.parts and each.name in before), None)
        failure = usage_failure(
            error,
            commands=[part.name for part in group.parts] if group else COMMAND_NAMES,
            options=[*names, "--help", "--version"],
            group=f"{group.name} " if group else "",
        )
        raise CommandFailed(failure) from error


def _launcher(commands: App) -> Callable[..., Exit]:
    """Return the function that reads global options, wherever they are, and calls a command."""

    @options.command
    def launch(
        *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        workspace: Annotated[Path | None, _GLOBAL] = None,
        app: Annotated[str | None, _GLOBAL] = None,
        user: Annotated[str | None, _GLOBAL] = None,
        json: Annotated[bool, _GLOBAL] = False,
        quiet: Annotated[bool, _GLOBAL] = False,
        verbose: Annotated[bool, _GLOBAL] = False,
        no_color: Annotated[bool, _GLOBAL] = False,
    ) -> Exit:
        """Run a command with the global options.

        Options:
          --workspace DIR  Folder that contains `workflows`; default: the nearest one upward.
          --app NAME       Tenant of the runs and packages; default: local.
          --user NAME      User of the tenant; default: me.
          --json           Print JSON: one document, or one line per event.
          -q, --quiet      Print results and errors only.
          -v, --verbose    Print details on stderr.
          --no-color       Print without colour; NO_COLOR has the same effect.
        """
        if not words and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
            commands.help_print([])
            return Exit.USAGE
        called, bound, _ = commands.parse_args(words or ("serve",))
        if called == commands.help_print:  # a group of commands, alone
            called(*bound.args, **bound.kwargs)
            return Exit.USAGE
        settings = read_settings(
            workspace=workspace, json=json, quiet=quiet, verbose=verbose, no_color=no_color
        )
        streams = Streams(settings)
        streams.detail(clean(f"workspace: {settings.workspace.resolve()}"))
        # Deferred: help pages print no result.
        from weft.cli.results import logged, print_result  # noqa: PLC0415
        from weft.cli.scope import set_scope  # noqa: PLC0415

        set_scope(app, user)

        with logged(streams):
            result = called(*bound.args, **bound.kwargs, streams=streams)
            if iscoroutine(result):
                # Deferred: help pages do not need it.
                import asyncio  # noqa: PLC0415

                result = asyncio.run(result)
            return print_result(result, streams)

    return launch


@dataclass(frozen=True)
class HelpPage:
    """Prints the parts of a help page that the command-line library passes to it."""

    #: Both are called when the page is printed: they may have to import the command.
    page: Callable[[], HelpText]
    usage: Callable[[], str]

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:  # noqa: ARG002
        """Print one list of commands, arguments or options."""
        if not panel.entries:
            return
        rows = [(_label(entry), _plain(entry.description)) for entry in panel.entries]
        width = max(len(label) for label, _ in rows if len(label) <= _WIDEST_NAME)
        _print(f"{panel.title}:")
        for label, text in rows:
            for line in _row(label, text, width, _page_width(console)):
                _print(line)
        _print("")

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:  # noqa: ANN401, ARG002
        """Print the usage line."""
        _print(f"Usage: {self.usage()}\n")

    def render_description(self, console: "Console", options: "ConsoleOptions", text: Any) -> None:  # noqa: ANN401, ARG002
        """Print what the command does, and examples."""
        page = self.page()
        for paragraph in page.text.split("\n\n"):
            _print("\n".join(_wrapped(paragraph, _page_width(console))) + "\n")
        _print("Examples:")
        for example in page.examples:
            _print(f"  {example}")
        _print("")


def _page_width(console: "Console") -> int:
    return min(console.width, _MAX_WIDTH) if console.is_terminal else _PIPED_WIDTH


def _wrapped(paragraph: str, columns: int) -> Iterator[str]:
    """Wrap a paragraph; indented lines are a list and stay as they are."""
    text: list[str] = []
    for line in paragraph.splitlines():
        if line.startswith("  "):
            yield from wrap(" ".join(text), columns)
            text = []
            yield line
        else:
            text.append(line)
    yield from wrap(" ".join(text), columns)


def _label(entry: "HelpEntry") -> str:
    names = (*entry.positive_shorts, *entry.positive_names)
    label = entry.positional_label or ", ".join(names)
    value = f"{{{'|'.join(entry.choices)}}}" if entry.choices else entry.metavar
    return f"{label} {value}" if value and not entry.positional_label else label


def _row(label: str, text: str, width: int, columns: int) -> Iterator[str]:
    margin = " " * (width + 4)
    first, *rest = wrap(text, max(columns - len(margin), 20)) or [""]
    if len(label) > width:
        yield f"  {label}"
        yield f"{margin}{first}".rstrip()
    else:
        yield f"  {label:<{width}}  {first}".rstrip()
    yield from (f"{margin}{line}" for line in rest)


def _plain(text: Any) -> str:  # noqa: ANN401 - the library passes text in wrappers
    return str(getattr(text, "primary_renderable", text) or "").strip()


def _print(line: str) -> None:
    Streams().result(line)
