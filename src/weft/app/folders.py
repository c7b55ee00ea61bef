"""The folder in which a workspace keeps its runs and documents."""

from pathlib import Path
from typing import Final

from weft.errors import StoreError, UsageError
from weft.packages.workspace import PACKAGES, is_package
from weft.ports.scope import Scope

#: The default scope: one person on one machine.
LOCAL: Final = Scope("local", "me")

#: The journal of a workspace; its folder is not for version control.
JOURNAL: Final = Path(".weft") / "journal.db"


def refuse_package(folder: Path, what: str) -> None:
    """Refuse to store things in a package: they would be exported with it."""
    if not is_package(folder):
        return
    around = folder.resolve().parent
    workspace = around.parent if around.name == PACKAGES else around
    raise UsageError(
        f"{folder} is a package, and {what} are kept in a workspace",
        hint=f"name the workspace: {workspace}",
    )


def make_folder(folder: Path, what: str) -> None:
    """Create the folder of Weft's files in a workspace, excluded from version control."""
    try:
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{what} cannot be kept in {folder} ({error.strerror}); make the workspace writable, "
            "or name a file elsewhere"
        ) from error
