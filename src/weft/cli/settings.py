"""The settings of one command: its global options, joined with what the environment says."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final, TextIO

from weft.cli.failure import not_found, setup, usage
from weft.environment import read_environment

#: The folder that makes a folder a workspace.
PACKAGES: Final = "workflows"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every command."""

    #: The folder whose packages the commands work on, as seen from the current folder.
    workspace: Path = Path()
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    #: Whether a person looks at stdout, and whether colour may be used there and on stderr.
    terminal: bool = False
    color: bool = False
    error_color: bool = False
    #: How wide text may run where a person reads it.
    columns: int = 80


def read_settings(
    *,
    workspace: Path | None = None,
    json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    no_color: bool = False,
) -> Settings:
    """Join the global options with what the environment says."""
    if quiet and verbose:
        raise usage("--quiet and --verbose contradict each other", "keep one of them")
    if workspace is not None and not workspace.is_dir():
        make = f"make one: weft init {quote(str(workspace))}"
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
    """Return the folder the command was given in, which may have been removed since."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        fact = "the current folder no longer exists"
        raise setup(fact, "go to one that does: cd ~") from error


def fallback_settings(*, json: bool) -> Settings:
    """Return settings for telling that the real ones could not be read."""
    colorful = color_is_welcome() and sys.stderr.isatty()
    return Settings(json=json, error_color=colorful, columns=_columns(sys.stderr))


def library_completes() -> bool:
    """Tell whether a script asks for completion in the longer form only the library answers."""
    return "CYCLOPTS_COMPLETION_WORDS" in read_environment()


def color_is_welcome() -> bool:
    """Tell whether the environment allows colour: NO_COLOR and dumb terminals do not."""
    environment = read_environment()
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _columns(stream: TextIO) -> int:
    """Return the width of the terminal, or of a usual one where there is none; 100 reads best."""
    try:
        return min(os.get_terminal_size(stream.fileno()).columns or 80, 100)
    except OSError:
        return 80


def nearest_workspace(start: Path) -> Path:
    """Find the nearest folder upward that holds `workflows`, else stay where we are.

    The answer is relative, so that the paths in findings stay short and can be opened.
    """
    for steps, folder in enumerate((start, *start.parents)):
        if _is_folder(folder / PACKAGES):
            return Path(*[".."] * steps)
    return Path()


def _is_folder(path: Path) -> bool:
    """Tell whether a folder is there; one that may not be looked at is as good as none."""
    try:
        return path.is_dir()
    except PermissionError:
        return False
