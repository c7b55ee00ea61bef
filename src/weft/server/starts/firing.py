"""Starts of tenants: what is known of each, and the runs that they begin."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from weft.errors import ConflictError, NotFoundError, StoreError, WeftError
from weft.findings import Json
from weft.ids import derived_id, suggestion
from weft.ports.clock import Clock
from weft.ports.records import Record, Records
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.server.records import RecordLog
from weft.server.starts.packages import InstalledPackages
from weft.spec.orchestrator import (
    ChatStart,
    DatabaseStart,
    FormStart,
    ScheduleStart,
    WebhookStart,
)

_log: Final = logging.getLogger("weft.server")

#: The records of starts, and the first part of the names of their logs.
START: Final = "start"
FIRING: Final = "firing"
REFUSAL: Final = "refusal"

Trigger: TypeAlias = FormStart | ScheduleStart | DatabaseStart | WebhookStart
State: TypeAlias = dict[str, Json]


class Start(NamedTuple):
    """How the runs of a workflow begin for a tenant. The name of the workflow is its id."""

    app: str
    workflow: str
    trigger: Trigger
    #: Why the package cannot be read now.
    error: str = ""

    @property
    def user(self) -> str:
        """Whose the runs are that no person begins."""
        return f"{self.trigger.type}:{self.workflow}"

    @property
    def log(self) -> str:
        """The name of the log of its firings."""
        return f"{FIRING}:{self.workflow}"

    @property
    def refusals(self) -> str:
        """The name of the log of what was refused: everyone can fill it."""
        return f"{REFUSAL}:{self.workflow}"

    def run_id(self, at: int, *parts: object) -> str:
        """Return the id of the run that belongs to a time and values: the same for the same."""
        return derived_id(at, self.trigger.type, self.app, self.workflow, *parts)


class Starts:
    """The starts of all tenants, with their state and their logs in the records."""

    def __init__(
        self, host: Host, records: Records, clock: Clock, packages: InstalledPackages
    ) -> None:
        self.packages = packages
        self.clock = clock
        self.records = records
        self.logs = RecordLog(records)
        self.host = host

    async def all(self) -> list[Start]:
        """Return the starts of all tenants."""
        found = await self.packages.all()
        return [start for app in found for start in await self.of_app(app)]

    async def of_app(self, app: str) -> list[Start]:
        """Return the starts of a tenant, by name; a chat is not one of them."""
        return [
            Start(app, name, package.orchestrator.trigger, package.error)
            for name, package in sorted((await self.packages.of_app(app)).items())
            if not isinstance(package.orchestrator.trigger, ChatStart)
        ]

    async def of_type(self, type_: type) -> list[Start] | None:
        """Return all starts with one kind of trigger; None if they cannot be read."""
        try:
            return [start for start in await self.all() if isinstance(start.trigger, type_)]
        except (WeftError, OSError) as error:
            _log.warning("the starts could not be read: %s", error)
            return None

    async def find(self, app: str, workflow: str) -> Start:
        """Return a start; raises NotFoundError."""
        starts = {start.workflow: start for start in await self.of_app(app)}
        if workflow in starts:
            return starts[workflow]
        raise NotFoundError(
            f"there is no start {workflow}", hint=suggestion(workflow, sorted(starts))
        )

    async def hook(self, app: str, path: str) -> Start | None:
        """Return the start whose webhook has a path: its own, or else the name of the workflow."""
        for start in await self.of_app(app):
            trigger = start.trigger
            if isinstance(trigger, WebhookStart) and path == (trigger.path or start.workflow):
                return start
        return None

    async def state(self, start: Start) -> Mapping[str, Json]:
        """Return what is recorded of a start."""
        record = await self.records.record(start.app, START, start.workflow)
        return {} if record is None else record.value

    async def update(self, start: Start, change: Callable[[State], None]) -> State:
        """Change what is recorded of a start, whatever other processes do at the same time."""
        while True:
            record = await self.records.record(start.app, START, start.workflow)
            before: Mapping[str, Json] = {} if record is None else record.value
            state = dict(before)
            change(state)
            if state == before or await self._write(start, record, state):
                return state

    async def _write(self, start: Start, record: Record | None, state: State) -> bool:
        if record is None:
            return await self.records.add_record(start.app, START, start.workflow, state)
        return await self.records.put_record(
            start.app, START, start.workflow, state, version=record.version
        )

    async def fire(
        self,
        start: Start,
        run: str,
        *,
        at: int,
        by: str,
        user: str | None = None,
        input: Mapping[str, Json] | None = None,  # noqa: A002 - what it is
        **details: Json,
    ) -> bool:
        """Begin a run, unless it was begun before; return whether it is new.

        What happens is in the log. Raises what kept the run from starting.
        """
        scope = Scope(start.app, user or start.user)
        try:
            await self.host.start(start.workflow, scope=scope, input=input, run=run)
        except ConflictError:  # By another process, or before this one was started again.
            is_new = False
        except WeftError as error:
            with suppress(StoreError):  # The log of the server has it as well.
                await self.note(start, by=by, error=str(error), log="", **details)
            raise
        else:
            is_new = True
        await self.logs.add(
            start.app, start.log, at, run, {"by": by, "run": run, "error": "", **details}
        )
        return is_new

    async def note(self, start: Start, *, by: str, error: str, **details: Json) -> None:
        """Log why a start began no run."""
        _log.error("the start %s of tenant %s failed: %s", start.workflow, start.app, error)
        await self._note(start, start.log, {"by": by, "run": None, "error": error, **details})

    async def note_refused(self, start: Start, error: str, delivery: str) -> None:
        """Log why a request to a webhook was refused: no error, for anyone can send one."""
        text = "a delivery to %s of tenant %s was refused: %s"
        _log.warning(text, start.workflow, start.app, error)
        entry = {"by": "webhook", "run": None, "error": error, "delivery": delivery}
        await self._note(start, start.refusals, entry)

    async def _note(self, start: Start, log: str, entry: Mapping[str, Json]) -> None:
        await self.logs.add(start.app, log, self.clock.now(), self.clock.new_id(), entry)

    async def last(self, start: Start) -> Mapping[str, Any] | None:
        """Return the last firing of a start."""
        page = await self.logs.page(start.app, start.log, limit=1)
        return page[0].value if page else None
