"""The file that is written when Weft itself fails."""

import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from traceback import format_exception

import weft
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.failure import Exit, Failure
from weft.cli.streams import Streams


def full_story(error: Exception) -> str:
    """Return where an error happened."""
    return "".join(format_exception(error)).rstrip()


def write_report(error: Exception, words: Sequence[str], *, commands: Sequence[str]) -> Path:
    """Write what is needed to find the error, and nothing of what the person works on."""
    folder = Path(tempfile.mkdtemp(prefix="weft-report-"))
    report = folder / "report.txt"
    lines = [
        f"weft {weft.__version__}",
        f"Python {sys.version}",
        f"system {platform.platform()}",
        f"command: {' '.join(['weft', *_without_values(words, commands)])}",
        "",
        full_story(error),
    ]
    report.write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
    return report


def _without_values(words: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Keep the command and the names of options, without the names of packages and files."""
    return [
        word.partition("=")[0] if word.startswith("-") else word if word in commands else "..."
        for word in words
    ]


def bug_failure(error: Exception, words: Sequence[str]) -> Failure:
    """Write a report, and say that Weft itself failed and where the report is."""
    if {"-v", "--verbose"} & set(words):
        Streams().problem(full_story(error))
    try:
        remedy = f"please report it and attach {write_report(error, words, commands=COMMAND_NAMES)}"
    except OSError as refusal:
        remedy = f"please report it; no report could be written: {refusal.strerror}"
    return Failure(
        Exit.BUG,
        f"Weft stopped because of an error of its own ({type(error).__name__})",
        hint=(remedy, "see where it happened: add --verbose"),
    )
