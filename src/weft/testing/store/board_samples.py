"""Boards to write into a store under test, without a host, and questions about them."""

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from weft.engine.board.state import BoardState
from weft.engine.board.visibility import Identity
from weft.engine.events import ArtifactPublished, Event, EventData
from weft.engine.rows import Batch, board_index_changes
from weft.engine.state import State, Status
from weft.findings import Json
from weft.ports.board import ArtifactQuery
from weft.ports.store import Store
from weft.testing.store.samples import APP, SampleRun, expect

BOARD: Final = "Board"
LATE: Final = 1_000_000
#: Who reads, where it matters.
ANN: Final = Identity("Ann", frozenset({"red"}), APP)
#: Ways to ask for the same artifacts.
SOME_WAYS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"types": ("Idea",)},
    {"tags": ("t",)},
    {"tags": ("t",), "types": ("Idea",)},
    {"ids": ("same",)},
)
#: What is not given is as here.
ARTIFACT: Final = ArtifactPublished("Idea", None, "Ann", id="")
QUERY: Final = ArtifactQuery(APP, BOARD, None, LATE, ("",))


def published(payload: Json = None, **given: Any) -> ArtifactPublished:  # noqa: ANN401 - its fields
    """Return an artifact."""
    return replace(ARTIFACT, payload=payload, **given)


def query(reader: Identity | None = None, **given: Any) -> ArtifactQuery:  # noqa: ANN401 - its fields
    """Return a question about the board of the samples."""
    return QUERY._replace(reader=reader, **given)


@dataclass
class BoardRun(SampleRun):
    """A run of a board: what its batches write beside the events is worked out as for any run."""

    workflow: str = "Board"
    correlation: str = "c1"
    owner: str = ""

    def writing(self, *data: EventData, at: int = 2000, status: Status = "running") -> Batch:
        """Return the next batch, whose events are all of one time."""
        batch = self.batch(*data, at=at, status=status)
        events = [event._replace(at=at, data=self._with_id(event)) for event in batch.events]
        state = State(
            self.run,
            workflow=self.workflow,
            digest=self.digest,
            app=self.app,
            user=self.user,
            board=BoardState(self.correlation, self.owner),
        )
        return batch._replace(events=events, changes=tuple(board_index_changes(state, events)))

    def _with_id(self, event: Event) -> EventData:
        """Return the data of an event; an artifact without a name is called after its place."""
        data = event.data
        if isinstance(data, ArtifactPublished) and not data.id:
            return replace(data, id=f"{self.run}.{event.seq}")
        return data


class Found(NamedTuple):
    """What a question finds: ids in order, and how many there are in all."""

    ids: list[str]
    total: int | None


async def find(store: Store, asked: ArtifactQuery) -> Found:
    """Ask with a total and without; both must find the same."""
    page = await store.artifacts(asked, count=True)
    again = await store.artifacts(asked)
    expect((again.items, again.total), (page.items, None), f"the same without a total, {asked}")
    return Found([item.artifact.id for item in page.items], page.total)
