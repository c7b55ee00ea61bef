"""The entry point: carries out a command and turns whatever happens into an exit code."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from weft.cli.commands.table import COMMANDS
from weft.cli.failure import Exit, Failure, failure_of
from weft.cli.settings import fallback_settings, library_completes
from weft.cli.streams import OutputLost, Streams, finish, prepare, silence
from weft.errors import WeftError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Nothing raises.

    Without words it is given those of the process, which ends here if it was interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    outcome: Exit | None = None
    while True:
        try:
            if outcome is None:
                outcome = _outcome(words)
            if outcome == Exit.INTERRUPTED and argv is None:
                _end_process(outcome)
        except KeyboardInterrupt:  # another one, while the first was reported
            outcome = Exit.INTERRUPTED
        else:
            return outcome


def _outcome(words: list[str]) -> Exit:
    prepare()
    try:
        return _carry_out(words)
    except KeyboardInterrupt:
        Streams().problem("stopped")
        return Exit.INTERRUPTED
    except OutputLost as error:
        return _print_failure(error.failure, json=False)


def _end_process(outcome: Exit) -> NoReturn:
    """End without delay: in the moment Python takes to close, another Ctrl-C would kill it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OutputLost):
        finish()
    os._exit(outcome)


def _carry_out(words: list[str]) -> Exit:
    try:
        # Both deferred, so that Ctrl-C while they load is met here as well.
        if words[:1] == ["__complete"] and not library_completes():
            from weft.cli.completion import answer  # noqa: PLC0415

            Streams().result(answer(words[1:]))
            outcome = Exit.DONE
        else:
            from weft.cli.command_line import run  # noqa: PLC0415

            outcome = run(words)
    except OutputLost:
        raise
    except BrokenPipeError:  # from the library, which prints candidates for completion itself
        silence(sys.stdout)
        outcome = Exit.DONE
    except (WeftError, OSError) as error:
        outcome = _print_failure(_with_page(failure_of(error), words), json=_asks_for_json(words))
    except Exception as error:  # noqa: BLE001 - the outermost place: nobody sees a traceback unasked
        # Deferred: this never happens.
        from weft.cli.bug_report import bug_failure  # noqa: PLC0415

        outcome = _print_failure(bug_failure(error, words), json=_asks_for_json(words))
    finish()
    return outcome


def _print_failure(failure: Failure, *, json: bool) -> Exit:
    """Print why a command ends."""
    # Deferred: only a command that fails pays for it.
    from weft.cli.formats.documents import failure_document  # noqa: PLC0415
    from weft.cli.formats.findings_text import failure_text  # noqa: PLC0415

    streams = Streams(fallback_settings(json=json))
    if json:
        streams.result(failure_document(failure))
    else:
        streams.problem(failure_text(failure, streams.paint_error, streams.error_columns))
    return failure.exit


def _with_page(failure: Failure, words: list[str]) -> Failure:
    """Name the help page of a command that was used wrongly."""
    if failure.exit != Exit.USAGE:
        return failure
    return replace(failure, more=" ".join(["weft", *_used_command(words), "--help"]))


def _used_command(words: list[str]) -> list[str]:
    """Return the command that was used, and which part of it; nothing if there is none."""
    for place, word in enumerate(words):
        command = next((it for it in COMMANDS if it.name == word), None)
        if command is not None:
            parts = {it.name for it in command.parts}
            return [word, *[it for it in words[place + 1 :] if it in parts][:1]]
    return []


def _asks_for_json(words: list[str]) -> bool:
    """Tell whether a program is listening; the command itself may not have been understood."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairs
