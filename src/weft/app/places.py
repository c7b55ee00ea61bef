"""Where a workspace keeps its runs, and whose they are."""

from pathlib import Path
from typing import Final

from weft.ports.scope import Scope

#: Whose runs they are where nobody says so: one person on one machine.
LOCAL: Final = Scope("local", "me")

#: Where a workspace keeps its runs; the folder is not for version control.
JOURNAL: Final = Path(".weft") / "journal.db"
