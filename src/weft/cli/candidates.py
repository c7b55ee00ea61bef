"""What a shell may offer for a word that is not typed out yet."""

from pathlib import Path

from cyclopts.completion import CompletionContext

from weft.cli.codes import CODES, FAMILIES
from weft.cli.settings import PACKAGES, nearest_workspace


def package_names(context: CompletionContext) -> list[str]:  # noqa: ARG001 - the library's signature
    """Offer the packages of the workspace by name; nothing is read, as the person is waiting."""
    folder = nearest_workspace(Path.cwd()) / PACKAGES
    return sorted(it.name for it in folder.iterdir()) if folder.is_dir() else []


def codes(context: CompletionContext) -> dict[str, str]:  # noqa: ARG001
    """Offer every code with its title, and the families."""
    return {**dict.fromkeys(FAMILIES, "family"), **{it.code: it.title for it in CODES.values()}}
