"""A journal whose acknowledgements get lost, as when a connection breaks after a commit.

    journal = LossyJournal(MemoryJournal(), lambda number: number % 3 == 0)

What was appended is there; whoever appended it is told that it may be.
"""

from collections.abc import Callable

from weft.engine.rows import Batch
from weft.errors import StoreError
from weft.ports.journal import Journal


class LossyJournal:
    """Writes every batch, and then loses the acknowledgements it is told to.

    `lose` is asked with the number of each batch that was written, from 1 on.
    """

    def __init__(self, journal: Journal, lose: Callable[[int], bool]) -> None:
        self._journal = journal
        self._lose = lose
        #: How many batches were written, and of how many of them the acknowledgement was lost.
        self.written = 0
        self.lost = 0
        self.read = journal.read
        self.follow = journal.follow
        self.run = journal.run
        self.runs = journal.runs
        self.requests = journal.requests
        self.kept = journal.kept
        self.completed = journal.completed
        self.artifacts = journal.artifacts
        self.consumed = journal.consumed
        self.letters = journal.letters
        self.unread = journal.unread
        self.unfinished = journal.unfinished
        self.next_due = journal.next_due
        self.due = journal.due
        self.beat = journal.beat
        self.claim = journal.claim
        self.package = journal.package
        self.prune = journal.prune
        self.close = journal.close

    async def append(self, batch: Batch) -> None:
        """Write a batch; raise StoreError all the same if its acknowledgement is to be lost."""
        await self._journal.append(batch)
        self.written += 1
        if self._lose(self.written):
            self.lost += 1
            raise StoreError("the connection broke", retryable=True, uncertain=True)
