"""The settings of one command: its global options and the environment."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final, TextIO

from weft.cli.failure import not_found, setup, usage
from weft.environment import read_environment

#: The folder inside a workspace that holds its packages.
PACKAGES: Final = "workflows"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of every command."""

    #: The folder that contains `workflows`, relative to the current folder.
    workspace: Path = Path()
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    #: Whether stdout is a terminal, and whether stdout and stderr have colour.
    terminal: bool = False
    color: bool = False
    error_color: bool = False
    #: The width of the terminal.
    columns: int = 80


def read_settings(
    *,
    workspace: Path | None = None,
    json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    no_color: bool = False,
) -> Settings:
    """Return the settings from the global options and the environment."""
    if quiet and verbose:
        raise usage("--quiet and --verbose exclude each other", "keep one of them")
    if workspace is not None and not workspace.is_dir():
        make = f"create one: weft init {quote(str(workspace))}"
        raise not_found(
            f"the workspace {workspace} is not a folder",
            f"name the folder that contains {PACKAGES}" if workspace.exists() else make,
        )
    colorful = not no_color and color_is_welcome()
    return Settings(
        workspace=nearest_workspace(current_folder()) if workspace is None else workspace,
        json=json,
        quiet=quiet,
        verbose=verbose,
        terminal=sys.stdout.isatty(),
        color=colorful and sys.stdout.isatty(),
        error_color=colorful and sys.stderr.isatty(),
        columns=_columns(sys.stdout),
    )


def current_folder() -> Path:
    """Return the current folder, which may have been deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise setup("the current folder no longer exists", "change to another: cd ~") from error


def fallback_settings(*, json: bool) -> Settings:
    """Return the settings for reporting a failure."""
    colorful = color_is_welcome() and sys.stderr.isatty()
    return Settings(json=json, error_color=colorful, columns=_columns(sys.stderr))


def color_is_welcome() -> bool:
    """Return whether the environment allows colour: NO_COLOR and TERM=dumb do not."""
    environment = read_environment()
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _columns(stream: TextIO) -> int:
    """Return the width of the terminal, at most 100; 80 without a terminal."""
    try:
        return min(os.get_terminal_size(stream.fileno()).columns or 80, 100)
    except OSError:
        return 80


def nearest_workspace(start: Path) -> Path:
    """Return the nearest folder upward that contains `workflows`, or the current folder.

    The path is relative, so that the paths in findings are short and can be opened.
    """
    for steps, folder in enumerate((start, *start.parents)):
        if _is_folder(folder / PACKAGES):
            return Path(*[".."] * steps)
    return Path()


def _is_folder(path: Path) -> bool:
    """Return whether a folder exists and is accessible."""
    try:
        return path.is_dir()
    except PermissionError:
        return False
