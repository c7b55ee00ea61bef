"""The host a verb works with: that of the workspace, with the runs it keeps."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.adapters.models.person import Ask
from weft.adapters.sqlite.errors import on_read_only_disk
from weft.app.hosts import JOURNAL, open_host
from weft.cli.failure import not_found, remedy, setup, usage
from weft.cli.own_output import output_kept
from weft.cli.package_files import DetailLog
from weft.cli.places import how_to_start
from weft.cli.streams import Streams
from weft.errors import RunGivenUp, StoreError
from weft.runtime.host import Host

#: The option that every verb has which works with runs.
JournalFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--journal",
        metavar="FILE",
        help="Keep runs in this file; else in .weft/journal.db of the workspace.",
    ),
]

#: What a program may name instead of a file, and SQLite as well: runs that nobody keeps.
_IN_MEMORY: Final = Path(":memory:")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the packages are and where the runs are kept."""

    workspace: Path
    journal: Path | None

    @property
    def file(self) -> Path:
        """The file the runs are in."""
        return self.workspace / JOURNAL if self.journal is None else self.journal

    @property
    def blocked(self) -> str:
        """What stands where runs are to be kept and is not theirs; nothing if all is well."""
        if self.file.is_dir():
            return f"{self.file} is a folder, and runs are kept in a file"
        folder = self.file.parent
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file, and runs are kept in a folder"
        return ""

    @property
    def options(self) -> str:
        """The options that lead another command to the same runs, with a space before each."""
        given = {"--workspace": self.workspace, "--journal": self.journal}
        return "".join(
            f" {name} {quote(str(path))}"
            for name, path in given.items()
            if path is not None and path.parts and not _is_upward(path)
        )


def place_of(streams: Streams, journal: Path | None, *, must_exist: bool = False) -> Place:
    """Return where a verb works; `must_exist` refuses a place where no run was ever kept."""
    if journal == _IN_MEMORY:
        raise usage(
            "--journal :memory: would leave nothing to look at when the command has ended",
            "name a file: --journal FILE",
        )
    place = Place(streams.settings.workspace, journal)
    if place.blocked:
        raise setup(place.blocked, "move it away, or name a file: --journal FILE")
    if must_exist and not place.file.is_file():
        raise not_found(
            f"no run was kept in {place.file} so far",
            how_to_start(place.workspace),
            "or name the folder with your packages: weft --workspace DIR",
        )
    # What the layers below log is told by the verb as well, in plain words.
    handler = DetailLog(streams) if streams.settings.verbose else logging.NullHandler()
    logging.getLogger("weft").handlers = [handler]
    return place


@asynccontextmanager
async def hosted(place: Place, *, seed: int = 0, person: Ask | None = None) -> AsyncGenerator[Host]:
    """Open the host of a workspace, and close it in any case."""
    # Without a person runs are looked at, and that can be done where no folder can be made.
    looking = person is None and place.file.is_file() and on_read_only_disk(place.file)
    journal = place.file if looking else place.journal
    try:
        host = await open_host(place.workspace, journal=journal, seed=seed, person=person)
        with output_kept():
            async with host:
                yield host
    except StoreError as error:
        behind = error.__cause__
        if isinstance(behind, OSError) and remedy(behind):
            raise
        raise setup(str(error), _look(place)) from error
    except RunGivenUp as error:
        resume = f"when that is mended, go on with: weft runs resume {error.run}{place.options}"
        raise setup(error.fact, _look(place), resume) from error


def _look(place: Place) -> str:
    return f"see what is wrong: weft doctor{place.options}"


def _is_upward(path: Path) -> bool:
    """Tell whether a workspace is one that is found from here without being named."""
    return set(path.parts) == {".."}
