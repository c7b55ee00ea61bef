"""The entry point: runs a command and turns every outcome into an exit code."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from weft.cli.commands.table import COMMANDS
from weft.cli.failure import Exit, Failure, failure_of
from weft.cli.settings import fallback_settings
from weft.cli.streams import OutputLost, Streams, finish, prepare
from weft.errors import WeftError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Nothing raises.

    Without `argv`, the arguments of the process are used, and an interrupted process ends here.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    outcome: Exit | None = None
    while True:
        try:
            if outcome is None:
                outcome = _outcome(words)
            if outcome in (Exit.INTERRUPTED, Exit.TERMINATED) and argv is None:
                _end_process(outcome)
        except KeyboardInterrupt:  # another one, while the first was reported
            outcome = Exit.INTERRUPTED
        else:
            return outcome


def _outcome(words: list[str]) -> Exit:
    prepare()
    try:
        return _run(words)
    except KeyboardInterrupt:
        Streams().problem("stopped")
        return Exit.INTERRUPTED
    except OutputLost as error:
        return _print_failure(error.failure, json=False)


def _end_process(outcome: Exit) -> NoReturn:
    """End without delay: while Python shuts down, another Ctrl-C would kill it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OutputLost):
        finish()
    os._exit(outcome)


def _run(words: list[str]) -> Exit:
    try:
        # Both deferred, so that Ctrl-C while they load is handled here as well.
        if words[:1] == ["__complete"]:
            from weft.cli.completion import answer  # noqa: PLC0415

            Streams().result(answer(words[1:]))
            outcome = Exit.DONE
        else:
            from weft.cli.command_line import run  # noqa: PLC0415

            outcome = run(words)
    except OutputLost:
        raise
    except (WeftError, OSError) as error:
        outcome = _print_failure(_with_help(failure_of(error), words), json=_wants_json(words))
    except Exception as error:  # noqa: BLE001 - the outermost handler: no traceback unless asked for
        # Deferred: rarely needed.
        from weft.cli.error_reports import bug_failure  # noqa: PLC0415

        outcome = _print_failure(bug_failure(error, words), json=_wants_json(words))
    finish()
    return outcome


def _print_failure(failure: Failure, *, json: bool) -> Exit:
    # Deferred: only a command that fails needs it.
    from weft.cli.results import print_failure  # noqa: PLC0415

    return print_failure(failure, Streams(fallback_settings(json=json)))


def _with_help(failure: Failure, words: list[str]) -> Failure:
    """Name the help page of a command whose command line is invalid."""
    if failure.exit != Exit.USAGE:
        return failure
    return replace(failure, more=" ".join(["weft", *_used_command(words), "--help"]))


def _used_command(words: list[str]) -> list[str]:
    """Return the command and the subcommand on a command line; empty if there is none."""
    for place, word in enumerate(words):
        command = next((each for each in COMMANDS if each.name == word), None)
        if command is not None:
            parts = {part.name for part in command.parts}
            return [word, *[each for each in words[place + 1 :] if each in parts][:1]]
    return []


def _wants_json(words: list[str]) -> bool:
    """Return whether JSON is asked for; the command line itself may be invalid."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairs
