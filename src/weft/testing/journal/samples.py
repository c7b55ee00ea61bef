"""Runs to write into a journal under test, without an engine."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.engine.events import Event, EventData, MessageShown, Outcome
from weft.engine.rows import Batch, IndexChange, KeptValue, RequestRow, RunRow, TimerRow
from weft.engine.state import Status
from weft.findings import Json
from weft.ports.journal import Journal
from weft.ports.scope import Scope

#: Opens the store under test. A new store for every check, the same one within a check.
OpenJournal: TypeAlias = Callable[[], Awaitable[Journal]]
Check: TypeAlias = Callable[[OpenJournal], Awaitable[None]]

APP: Final = "shop"
USER: Final = "ann"
SCOPE: Final = Scope(APP, USER)


@dataclass
class SampleRun:
    """A run that grows batch by batch."""

    run: str
    app: str = APP
    user: str = USER
    workflow: str = "Support"
    digest: str = "digest-1"
    started_at: int = 1000
    seq: int = 0

    @property
    def scope(self) -> Scope:
        """Whose run it is."""
        return Scope(self.app, self.user)

    def batch(
        self,
        *data: EventData,
        status: Status = "running",
        at: int = 2000,
        sides: tuple[IndexChange, ...] = (),
        package: bytes | None = None,
    ) -> Batch:
        """Return the next batch; the run goes on from there."""
        expected = self.seq
        events = [
            Event(expected + number, at + number, f"agent:{number}", expected, number % 3, item)
            for number, item in enumerate(
                data or (MessageShown(f"{self.run}@{expected}"),), start=1
            )
        ]
        self.seq += len(events)
        return Batch(self.run, expected, events, self.row(status, at), sides, package)

    def row(self, status: Status, at: int) -> RunRow:
        """Return the run as a list would show it now."""
        outcome: Outcome | None = "completed" if status == "ended" else None
        return RunRow(
            run=self.run,
            app=self.app,
            user=self.user,
            workflow=self.workflow,
            digest=self.digest,
            status=status,
            seq=self.seq,
            started_at=self.started_at,
            changed_at=at,
            turns=self.seq // 2,
            calls=self.seq,
            input_tokens=self.seq * 100,
            output_tokens=self.seq * 10,
            cost_usd=self.seq * 0.125,
            unpriced=1,
            uncounted=2,
            preview="Where is my order?",
            outcome=outcome,
            reason="all is said" if outcome else "",
            parent="",
            owner="worker-1" if status == "running" else "",
            batch=f"{self.run}.{self.seq}",
        )

    def request(
        self,
        id_: str,
        *,
        payload: Json = None,
        opened_at: int = 2000,
        expires_at: int | None = None,
        addressee: str = "",
    ) -> RequestRow:
        """Return an open question of this run."""
        tool = None if payload is None else "show_form"
        kind = "chat" if tool is None else "ui"
        return RequestRow(
            id=id_,
            run=self.run,
            app=self.app,
            user=self.user,
            kind=kind,
            agent="Helper",
            tool=tool,
            payload=payload,
            opened_at=opened_at,
            expires_at=expires_at,
            sets=("status",) if tool else (),
            component="Form" if tool else "",
            mode="inline" if tool else "",
            addressee=addressee,
        )

    def timer(self, id_: str, at: int) -> TimerRow:
        """Return something that is due for this run."""
        return TimerRow(id_, self.run, self.app, self.user, at)

    def kept(self, name: str, value: Json) -> KeptValue:
        """Return a value that this run leaves for later runs of its user."""
        return KeptValue(self.app, self.user, self.workflow, name, value)


async def write(journal: Journal, *runs: SampleRun, ended_at: int | None = None) -> None:
    """Append one batch to each run; the last one of it if it ends."""
    for run in runs:
        status = "running" if ended_at is None else "ended"
        await journal.append(run.batch(status=status, at=ended_at or 2000))


def names(rows: list[RunRow]) -> list[str]:
    """Return the identities of runs."""
    return [row.run for row in rows]


def expect(actual: object, wanted: object, what: str) -> None:
    """Fail with both values if they differ."""
    if actual != wanted:
        raise AssertionError(f"{what}: expected {_short(wanted)}, found {_short(actual)}")


async def expect_error(kind: type[Exception], attempt: Awaitable[object], what: str) -> None:
    """Fail if an attempt succeeds; another kind of error passes through."""
    try:
        result = await attempt
    except kind:
        return
    raise AssertionError(f"{what}: expected {kind.__name__}, found {_short(result)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}... ({len(text)} characters)"
