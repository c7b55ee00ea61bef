"""What the command-line library refuses, in the words of Weft."""

from collections.abc import Iterable
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

from weft.cli.failure import Exit, Failure
from weft.ids import nearest

#: What people call some commands elsewhere.
_OTHER_WORDS: Final = {
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
    "fork": "replay RUN --fork TURN",
    "help": "--help",
    "version": "--version",
}
#: Commands people expect because other tools have them.
_LATER: Final = frozenset({"serve"})


def usage_failure(
    error: CycloptsError, *, commands: Iterable[str], options: Iterable[str], group: str = ""
) -> Failure:
    """Say what could not be understood and what was probably meant.

    `options` are those that stand with every command; `group` stands before the commands, if
    they are parts of another.
    """
    fact, hints = _explain(
        error, [f"{group}{command}" for command in commands], list(options), group
    )
    return Failure(Exit.USAGE, fact, hint=tuple(hints))


def _explain(
    error: CycloptsError, commands: list[str], options: list[str], group: str
) -> tuple[str, Iterable[str]]:
    match error:
        case UnknownCommandError(unused_tokens=[str(word), *_]) if word.startswith("-"):
            return f"there is no option {word}", _meant(word, options)
        case UnknownCommandError(unused_tokens=[str(word), *_]):
            return f'there is no command "{word}"', _meant_command(f"{group}{word}", commands)
        case UnknownOptionError():
            word = error.token.keyword or error.token.value
            own = [name for argument in error.argument_collection for name in argument.names]
            return f"there is no option {word}", _meant(word, [*own, *options])
        case MissingArgumentError():
            return _missing(error), _how_to_give(error)
        case CoercionError(token=Token() as token):
            return _wrong_value(token, error.target_type)
        case RepeatArgumentError():
            return f"{error.token.keyword} is given twice", ("keep one of them",)
        case UnusedCliTokensError(unused_tokens=[str(word), *_]):
            return f'there is nothing "{word}" could stand for here', ()
        case _:
            error.verbose = False
            return str(error).rstrip("."), ()


def _missing(error: MissingArgumentError) -> str:
    if error.keyword:
        return f"{error.keyword} needs a value"
    name = error.argument.name if error.argument else "a word"
    return f"{name if name.startswith('-') else name.upper()} is missing"


def _how_to_give(error: MissingArgumentError) -> list[str]:
    """Show how an option is written whose value is missing."""
    wanted = error.argument.parameter.metavar if error.argument else None
    return [f"write {error.keyword} {wanted}"] if error.keyword and wanted else []


def _wrong_value(token: Token, wanted: type | None) -> tuple[str, Iterable[str]]:
    value, name = token.value, token.keyword
    fact = f'"{value}" is no value of {name}' if name else f'"{value}" is not known here'
    if get_origin(wanted) is not Literal:
        return fact, [f"write {name} alone"] if wanted is bool else []
    choices = [str(choice) for choice in get_args(wanted)]
    return fact, [*_meant(value, choices), f"choose one of: {', '.join(choices)}"]


def _meant_command(word: str, commands: list[str]) -> list[str]:
    if word in _LATER:
        return ["this version works in the terminal; it has no server and no generator yet"]
    if word in _OTHER_WORDS:
        return [f"did you mean weft {_OTHER_WORDS[word]}?"]
    return [f"did you mean weft {command}?" for command in [nearest(word, commands)] if command]


def _meant(word: str, candidates: Iterable[str]) -> list[str]:
    return [f"did you mean {found}?" for found in [nearest(word, candidates)] if found]
