"""The board as it is read: artifacts by what they are, and only those the reader may see."""

from typing import Literal, NamedTuple, Protocol

from pydantic_core import to_json

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.engine.rows import Letter
from weft.findings import Json


class StoredArtifact(NamedTuple):
    """An artifact with everything that is known of it."""

    artifact: Artifact
    audience: Audience
    #: Where it stands in the journal.
    run: str
    seq: int
    version: int = 1


class ArtifactQuery(NamedTuple):
    """Which artifacts of a board are meant. Whatever is given must hold, one of each tuple."""

    app: str
    board: str
    #: Who reads, and when: what they may not see is as if it were not there. None: an operator.
    reader: Identity | None
    now: int
    types: tuple[str, ...] = ()
    #: At least one of these tags; none of these; all of these.
    tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    all_tags: tuple[str, ...] = ()
    producers: tuple[str, ...] = ()
    correlation: str | None = None
    partition: str | None = None
    #: Milliseconds: from the first on, and before the second.
    since: int | None = None
    until: int | None = None
    #: Occurs in the payload as `payload_holds` says.
    text: str | None = None
    ids: tuple[str, ...] | None = None
    order: Literal["-created_at", "created_at"] = "-created_at"
    limit: int | None = None
    offset: int = 0


class ArtifactPage(NamedTuple):
    """Some artifacts in order, and how many there are in all; None if it was not requested."""

    items: list[StoredArtifact]
    total: int | None = None


class Consumption(NamedTuple):
    """An agent was woken by an artifact."""

    agent: str
    artifact: str
    run: str
    turn: int
    at: int


def payload_holds(payload: Json, text: str) -> bool:
    """Tell whether a text occurs in a payload as it is written as compact JSON, in any case."""
    return text.casefold() in to_json(payload).decode().casefold()


class BoardStore(Protocol):
    """What a journal keeps of boards; every journal is one."""

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        """Return artifacts by time, those of one time by run and number; or all that backwards.

        An id that was given twice, in two runs, is that of two artifacts.
        """
        ...

    async def consumed(
        self, app: str, board: str, *, agent: str | None = None, artifact: str | None = None,
        limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        """Return who was woken by what, newest first; of one time by run, turn, agent, artifact."""
        ...

    async def letters(self, app: str, to: str, *, limit: int = 100) -> list[Letter]:
        """Return the letters to the runs of a collection, in the order they were written."""
        ...

    async def unread(self) -> list[tuple[str, str]]:
        """Return where there are letters, as tenant and collection."""
        ...
