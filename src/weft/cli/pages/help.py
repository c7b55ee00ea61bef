"""Help pages: plain columns, wrapped for a terminal and whole when piped."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from weft.cli.streams import Streams

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

#: Names longer than this get a line of their own.
_WIDEST_NAME: Final = 24


@dataclass(frozen=True)
class HelpPage:
    """Prints the parts of a help page as the command-line library hands them over."""

    examples: tuple[str, ...]

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:  # noqa: ARG002
        """Print one list of commands, arguments or options."""
        if not panel.entries:
            return
        rows = [(_label(entry), _description(entry)) for entry in panel.entries]
        width = max(len(label) for label, _ in rows if len(label) <= _WIDEST_NAME)
        _print(f"{panel.title}:")
        for label, text in rows:
            for line in _row(label, text, width, console.width):
                _print(line)
        _print("")

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:  # noqa: ANN401, ARG002
        """Print how the command is written."""
        _print(f"Usage: {str(usage).strip()}\n")

    def render_description(self, console: "Console", options: "ConsoleOptions", text: Any) -> None:  # noqa: ANN401, ARG002
        """Print what the command does, and how it is used."""
        _print(f"{_plain(text)}\n")
        _print("Examples:")
        for example in self.examples:
            _print(f"  {example}")
        _print("")


def _label(entry: "HelpEntry") -> str:
    names = (*entry.positive_shorts, *entry.positive_names)
    label = entry.positional_label or ", ".join(names)
    value = f"{{{'|'.join(entry.choices)}}}" if entry.choices else entry.metavar
    return f"{label} {value}" if value and not entry.positional_label else label


def _description(entry: "HelpEntry") -> str:
    return _plain(entry.description)


def _row(label: str, text: str, width: int, columns: int) -> Iterator[str]:
    margin = " " * (width + 4)
    lines = wrap(text, max(columns - len(margin), 20)) if sys.stdout.isatty() else [text]
    first, *rest = lines or [""]
    if len(label) > width:
        yield f"  {label}"
        yield f"{margin}{first}".rstrip()
    else:
        yield f"  {label:<{width}}  {first}".rstrip()
    yield from (f"{margin}{line}" for line in rest)


def _plain(text: Any) -> str:  # noqa: ANN401 - the library hands over text in wrappers
    return str(getattr(text, "primary_renderable", text) or "").strip()


def _print(line: str) -> None:
    Streams().result(line)
