"""The file that is written when Weft itself fails."""

import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from traceback import format_exception

import weft


def full_story(error: Exception) -> str:
    """Return where an error happened."""
    return "".join(format_exception(error)).rstrip()


def write_report(error: Exception, words: Sequence[str], *, verbs: Sequence[str]) -> Path:
    """Write what is needed to find the error, and nothing of what the person works on."""
    folder = Path(tempfile.mkdtemp(prefix="weft-report-"))
    report = folder / "report.txt"
    lines = [
        f"weft {weft.__version__}",
        f"Python {sys.version}",
        f"system {platform.platform()}",
        f"command: {' '.join(['weft', *_without_values(words, verbs)])}",
        "",
        full_story(error),
    ]
    report.write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
    return report


def _without_values(words: Sequence[str], verbs: Sequence[str]) -> list[str]:
    """Keep the verb and the names of options; names of packages and files are nobody's business."""
    return [
        word.partition("=")[0] if word.startswith("-") else word if word in verbs else "..."
        for word in words
    ]
