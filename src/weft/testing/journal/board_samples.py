"""Runs of boards to write into a journal under test, without a host."""

from dataclasses import dataclass

from weft.engine.board_rows import board_sides
from weft.engine.board_state import BoardState
from weft.engine.events import EventData
from weft.engine.rows import Batch
from weft.engine.state import State, Status
from weft.testing.journal.samples import SampleRun


@dataclass
class BoardRun(SampleRun):
    """A run of a board: what its batches write beside the events is worked out as for any run."""

    workflow: str = "Board"
    correlation: str = "c1"

    def writing(self, *data: EventData, at: int = 2000, status: Status = "running") -> Batch:
        """Return the next batch, whose events are all of one time."""
        batch = self.batch(*data, at=at, status=status)
        events = [it._replace(at=at) for it in batch.events]
        state = State(
            self.run,
            workflow=self.workflow,
            digest=self.digest,
            app=self.app,
            user=self.user,
            board=BoardState(self.correlation),
        )
        return batch._replace(events=events, sides=tuple(board_sides(state, events)))
