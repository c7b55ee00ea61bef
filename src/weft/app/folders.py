"""Where a workspace stores its runs and documents, their default owner, and the built page."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from weft.errors import StoreError, UsageError
from weft.packages.workspace import PACKAGES, is_package
from weft.ports.scope import Scope

#: The default scope: one person on one machine.
LOCAL_USER: Final = "me"
LOCAL: Final = Scope("local", LOCAL_USER)

#: The journal of a workspace; its folder is not for version control.
JOURNAL: Final = Path(".weft") / "journal.db"

#: The built web page: inside the package, also in a clone of the sources.
PAGE: Final = Path(__file__).parents[1] / "page"

#: What every address of the page answers with.
INDEX: Final = "index.html"

BUILD: Final = "make web"
NOT_BUILT: Final = f"The page is not built; run {BUILD}"

#: The roles that a server knows; any other role is one that questions are addressed to.
SERVER_ROLES: Final = ("end_user", "developer", "operator", "administrator")


def server_file(workspace: Path, url: str) -> Path:
    """Return where programs of the same user find the key of the server with this address."""
    return workspace / ".weft" / f"server-{urlsplit(url).port}.json"


def refuse_package(folder: Path, what: str) -> None:
    """Refuse to store things in a package: they would be exported with it."""
    if not is_package(folder):
        return
    around = folder.resolve().parent
    workspace = around.parent if around.name == PACKAGES else around
    raise UsageError(
        f"{folder} is a package; {what} are stored in a workspace",
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


def is_built(folder: Path) -> bool:
    """Tell whether a folder holds a built page."""
    return (folder / INDEX).is_file()
