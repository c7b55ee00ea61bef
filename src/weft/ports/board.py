"""Reading a board: artifacts that match a query and that the reader may see."""

from typing import Literal, NamedTuple, TypeAlias

from pydantic_core import to_json

from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.findings import Json

#: Where an artifact stands in the order of a query: its time there, its run and its number.
Place: TypeAlias = tuple[int, str, int]


class StoredArtifact(NamedTuple):
    """An artifact with everything that is known of it."""

    artifact: Artifact
    audience: Audience
    #: Where it stands in the journal.
    run: str
    seq: int
    version: int = 1

    @property
    def appeared_at(self) -> int:
        """From when on readers may see it: it is published, and its delay is over."""
        return max(self.artifact.created_at, self.audience.visible_at)


class ArtifactQuery(NamedTuple):
    """Which artifacts of a board are meant. Whatever is given must hold, one of each tuple."""

    app: str
    board: str
    #: Who reads, and when: what they may not see is as if it were not there. None: an operator.
    reader: Identity | None
    now: int
    #: Of whom: empty for what all users of the tenant share, `user:NAME`. None: an operator.
    owners: tuple[str, ...] | None
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
    #: By `appeared_at`, what appears after `now` is left out; it has no `text`.
    order: Literal["-created_at", "created_at", "appeared_at"] = "-created_at"
    limit: int | None = None
    offset: int = 0
    #: Only what comes after this place in the order.
    after: Place | None = None


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
    """Return whether a text occurs in the compact JSON of a payload, in any case."""
    return text.casefold() in to_json(payload).decode().casefold()
