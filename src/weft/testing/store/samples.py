"""Runs to write into a store under test, without an engine."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import uuid4

from weft.engine.events import Event, EventData, MessageShown, Outcome, RunStarted
from weft.engine.rows import Batch, CarriedValue, IndexChange, Mail, RequestRow, RunRow
from weft.engine.state import Status
from weft.engine.timers import NEVER
from weft.findings import Json
from weft.ports.scope import Scope
from weft.ports.store import Store

APP: Final = "shop"
USER: Final = "ann"
SCOPE: Final = Scope(APP, USER)
OPERATOR: Final = Scope.operator(APP)

#: The worker that writes where it does not matter which.
ME: Final = "worker-1"


#: Opens the store under test: a new one for every check, the same one within a check. It takes
#: `dead_after`, the milliseconds without a heartbeat after which an owner is dead.
OpenStore: TypeAlias = Callable[..., Awaitable[Store]]

#: What must hold of a store, and of several stores over one database.
Check: TypeAlias = Callable[[Store], Awaitable[None]]
SharedCheck: TypeAlias = Callable[[OpenStore], Awaitable[None]]


@dataclass
class SampleRun:
    """A run that grows batch by batch."""

    run: str
    app: str = APP
    user: str = USER
    workflow: str = "Support"
    digest: str = "digest-1"
    started_at: int = 1
    seq: int = 0
    name: str = ""

    @property
    def scope(self) -> Scope:
        """Whose run it is."""
        return Scope(self.app, self.user)

    def batch(
        self,
        *data: EventData,
        status: Status = "running",
        at: int = 2000,
        changes: Iterable[IndexChange] = (),
        package: bytes | None = None,
        due_at: int = NEVER,
        held: bool = False,
        direct: bool = False,
    ) -> Batch:
        """Return the next batch of the run."""
        events = self.events(data or (MessageShown(f"{self.run}@{self.seq}"),), at)
        expected, self.seq = self.seq, self.seq + len(events)
        row = self.row(status, at)
        return Batch(self.run, expected, events, row, tuple(changes), package, due_at, held, direct)

    def empty(self, *changes: IndexChange) -> Batch:
        """Return a batch without events."""
        return Batch(self.run, self.seq, (), self.row("running", 2000), changes)

    def events(self, data: Iterable[EventData], at: int) -> list[Event]:
        """Return the next events."""
        return [
            Event(self.seq + number, at + number, f"agent:{number}", self.seq, number % 3, item)
            for number, item in enumerate(data, start=1)
        ]

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
            unpriced_calls=1,
            unmetered_calls=2,
            preview="Where is my order?",
            outcome=outcome,
            reason="all is said" if outcome else "",
            parent="",
            batch=uuid4().hex,
            name=self.name,
        )

    def request(
        self, id_: str, *, payload: Json = None, opened_at: int = 2000, addressee: str = ""
    ) -> RequestRow:
        """Return an open request of this run."""
        tool = None if payload is None else "show_form"
        return RequestRow(
            id=id_,
            run=self.run,
            app=self.app,
            user=self.user,
            kind="chat" if tool is None else "ui",
            agent="Helper",
            tool=tool,
            payload=payload,
            opened_at=opened_at,
            expires_at=opened_at + 100 if tool else None,
            sets=("status",) if tool else (),
            component="Form" if tool else "",
            mode="inline" if tool else "",
            addressee=addressee,
        )

    def carried(self, name: str, value: Json) -> CarriedValue:
        """Return a value that this run leaves for later runs of its user."""
        return CarriedValue(self.app, self.user, self.workflow, name, value)


def mail(to: str, id_: str, *, app: str = APP, named: bool = False, request: str = "") -> Mail:
    """Return mail for a run, or for the run of a name."""
    start = RunStarted("Support", "digest-1", app, USER, {}, correlation=to) if named else None
    return Mail(app, to, id_, f"user:{USER}", MessageShown(f"mail {id_}"), start, request)


async def write(store: Store, *runs: SampleRun, ended_at: int | None = None) -> None:
    """Append one batch to each run; the last one of it if it ends."""
    for run in runs:
        status = "running" if ended_at is None else "ended"
        await store.append(run.batch(status=status, at=ended_at or 2000), owner=ME)


def names(rows: Iterable[RunRow]) -> list[str]:
    """Return the ids of runs."""
    return [row.run for row in rows]


def expect(actual: object, wanted: object, what: str) -> None:
    """Fail with both values if they differ."""
    if actual != wanted:
        raise AssertionError(f"{what}: expected {_short(wanted)}, found {_short(actual)}")


async def expect_error(kind: type[Exception], attempt: Awaitable[object], what: str) -> None:
    """Fail if an attempt succeeds, or raises an error of another kind."""
    try:
        result = await attempt
    except Exception as error:
        if type(error) is not kind:
            raise AssertionError(f"{what}: expected {kind.__name__}, found {error!r}") from error
        return
    raise AssertionError(f"{what}: expected {kind.__name__}, found {_short(result)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}... ({len(text)} characters)"
