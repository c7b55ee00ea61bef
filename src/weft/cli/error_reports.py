"""Failures for what the command-line library refuses, and for bugs in Weft itself."""

import platform
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from traceback import format_exception
from typing import Final, Literal, get_args, get_origin

from cyclopts.exceptions import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.token import Token

import weft
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.failure import Exit, Failure, did_you_mean
from weft.cli.streams import Streams
from weft.ids import nearest

#: Other words that people use for commands.
_SYNONYMS: Final = {
    "create": "new",
    "add": "new",
    "validate": "check",
    "lint": "check",
    "fix": "check --fix",
    "rule": "explain",
    "draw": "diagram",
    "graph": "diagram",
    "upgrade": "migrate",
    "schemas": "schema",
    "pack": "export",
    "install": "import",
    "start": "run",
    "talk": "chat",
    "ps": "runs list",
    "logs": "runs tail",
    "resume": "runs resume",
    "cancel": "runs cancel",
    "answer": "runs answer",
    "backup": "store backup FILE",
    "work": "worker",
    "server": "serve",
    "ui": "serve",
    "status": "top",
    "monitor": "top",
    "runs backup": "store backup FILE",
    "prune": "runs delete --older-than SPAN",
    "fork": "replay RUN --fork TURN",
    "design": "generate",
    "collections": "collection list",
    "runs prune": "runs delete --older-than SPAN",
    "runs remove": "runs delete --older-than SPAN",
    "collection remove": "collection delete NAME",
    "documents remove": "documents delete COLLECTION KEY",
    "help": "--help",
    "version": "--version",
}


def usage_failure(
    error: CycloptsError, *, commands: Iterable[str], options: Iterable[str], group: str = ""
) -> Failure:
    """Return what is wrong with a command line, and what was probably meant.

    `options` are the global options; `group` is the command whose subcommands `commands` are.
    """
    message, hints = _explain(
        error, [f"{group}{command}" for command in commands], list(options), group
    )
    return Failure(Exit.USAGE, message, hint=tuple(hints))


def _explain(
    error: CycloptsError, commands: list[str], options: list[str], group: str
) -> tuple[str, Iterable[str]]:
    match error:
        case UnknownCommandError(unused_tokens=[str(word), *_]) if word.startswith("-"):
            return f"unknown option {word}", did_you_mean(nearest(word, options))
        case UnknownCommandError(unused_tokens=[str(word), *_]):
            return f'unknown command "{word}"', _suggest_command(f"{group}{word}", commands)
        case UnknownOptionError():
            word = error.token.keyword or error.token.value
            own = [name for argument in error.argument_collection for name in argument.names]
            near = did_you_mean(nearest(word, [*own, *options]))
            # The model of a server or worker is a setting of its environment.
            return f"unknown option {word}", [
                "set WEFT_MODEL=sample"
            ] if word == "--model" else near
        case MissingArgumentError():
            return _missing(error)
        case CoercionError(token=Token() as token):
            return _invalid_value(token, error.target_type)
        case RepeatArgumentError():
            return f"{error.token.keyword} is given twice", ("keep one of them",)
        case UnusedCliTokensError(unused_tokens=[str(), *_] as words):
            listed = ", ".join(f'"{word}"' for word in words)
            what = "unexpected argument" if len(words) == 1 else "unexpected arguments"
            return f"{what} {listed}", ("put text of several words in quotes: 'first second'",)
        case _:
            error.verbose = False
            return str(error).rstrip("."), ()


def _missing(error: MissingArgumentError) -> tuple[str, Iterable[str]]:
    if not error.keyword:
        name = error.argument.name if error.argument else "an argument"
        return f"{name if name.startswith('-') else name.upper()} is missing", ()
    metavar = error.argument.parameter.metavar if error.argument else None
    hints = [f"write {error.keyword} {metavar}"] if metavar else []
    return f"{error.keyword} needs a value", hints


def _invalid_value(token: Token, wanted: type | None) -> tuple[str, Iterable[str]]:
    value, name = token.value, token.keyword
    message = f'invalid value "{value}"' + (f" for {name}" if name else "")
    if get_origin(wanted) is not Literal:
        hints = {bool: f"write {name} alone", int: "use a whole number", float: "use a number"}
        return message, [hints[wanted]] if wanted in hints else []
    choices = [str(choice) for choice in get_args(wanted)]
    return message, [*did_you_mean(nearest(value, choices)), f"choose one of: {', '.join(choices)}"]


def _suggest_command(word: str, commands: list[str]) -> list[str]:
    if word in _SYNONYMS:
        return [f"did you mean weft {_SYNONYMS[word]}?"]
    near = nearest(word, commands)
    return did_you_mean(near and f"weft {near}")


def bug_failure(error: Exception, words: Sequence[str]) -> Failure:
    """Write a report about a bug in Weft, and return the failure that names it."""
    if {"-v", "--verbose"} & set(words):
        Streams().problem(_traceback(error))
    try:
        remedy = f"please report it and attach {_write_report(error, words)}"
    except OSError as refusal:
        remedy = f"please report it; the report could not be written: {refusal.strerror}"
    return Failure(
        Exit.BUG,
        f"Weft failed unexpectedly ({type(error).__name__})",
        hint=(remedy, "print the traceback: add --verbose"),
    )


def _write_report(error: Exception, words: Sequence[str]) -> Path:
    """Write what is needed to find the bug, and nothing of the user's work."""
    report = Path(tempfile.mkdtemp(prefix="weft-report-")) / "report.txt"
    lines = [
        f"weft {weft.__version__}",
        f"Python {sys.version}",
        f"system {platform.platform()}",
        f"command: {' '.join(['weft', *_without_values(words)])}",
        "",
        _traceback(error),
    ]
    report.write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
    return report


def _traceback(error: Exception) -> str:
    return "".join(format_exception(error)).rstrip()


def _without_values(words: Sequence[str]) -> list[str]:
    """Keep the command and the names of options, without names of packages and files."""
    return [
        word.partition("=")[0] if word.startswith("-") else word if word in COMMAND_NAMES else "..."
        for word in words
    ]
