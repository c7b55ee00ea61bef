"""Tracing: the spans of runs, from the events that this process writes."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from weft.engine.events import Event, RunEnded
from weft.errors import WeftError
from weft.inspect.spans import RunSpans, Span
from weft.ports.scope import Scope
from weft.ports.store import RunKey
from weft.runtime.host import Host
from weft.runtime.runs.decision import Decision
from weft.runtime.workflow import Workflow

_log: Final = logging.getLogger("weft.tracing")

#: Runs whose spans under way are remembered; those of others are read again from their events.
MAX_RUNS: Final = 5_000


@dataclass(slots=True)
class _Traced:
    """A run: the last event that its spans know, and what waits until they know more."""

    spans: RunSpans
    seq: int = 0
    waiting: list[Decision] = field(default_factory=list[Decision])
    #: Reads the events that others have written.
    reading: asyncio.Task[None] | None = None


class RunTracer:
    """Exports each span when it ends: the process that writes the last event of a span exports it.

    Of a run that another process has worked on, the earlier events are read, without delaying the
    run: they say what is under way. Ids follow from the events, so its trace goes on.
    """

    def __init__(self, host: Host, export: Callable[[str, Span], None], *, content: bool) -> None:
        """`export` gets the tenant and a span."""
        self._host = host
        self._export = export
        self._content = content
        self._runs: OrderedDict[RunKey, _Traced] = OrderedDict()

    def observe(self, workflow: Workflow, decision: Decision) -> None:
        """Add what was written to a run."""
        key = (decision.state.app, decision.state.run)
        traced = self._runs.get(key)
        if traced is None:
            spans = RunSpans(*key, models=workflow.models, content=self._content)
            traced = self._runs[key] = _Traced(spans)
            if len(self._runs) > MAX_RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(key)
        if traced.reading is None and decision.events[0].seq == traced.seq + 1:
            self._add(key, traced, decision)
            return
        traced.waiting.append(decision)
        if traced.reading is None:
            traced.reading = asyncio.create_task(self._read(key, traced))

    def close(self) -> None:
        """Read nothing more."""
        for traced in self._runs.values():
            if traced.reading is not None:
                traced.reading.cancel()

    def _add(self, key: RunKey, traced: _Traced, decision: Decision) -> None:
        for event in decision.events:
            assembly = decision.assemblies.get(event.seq) if self._content else None
            for span in traced.spans.add(event, assembly and assembly.messages):
                self._export(key[0], span)
            traced.seq = event.seq
            if isinstance(event.data, RunEnded):
                self._runs.pop(key, None)

    async def _read(self, key: RunKey, traced: _Traced) -> None:
        """Add the events that others have written, then what waits."""
        try:
            while traced.waiting:
                missing = traced.waiting[0].events[0].seq - 1 - traced.seq
                if missing > 0:
                    await self._add_missing(key, traced, missing)
                self._add(key, traced, traced.waiting.pop(0))
        except WeftError as error:  # With the next event, all are read again.
            _log.warning("spans of run %s are lost: %s", key[1], error)
            self._runs.pop(key, None)
        finally:
            traced.reading = None

    async def _add_missing(self, key: RunKey, traced: _Traced, count: int) -> None:
        """Add events without exporting the spans that they end: those were exported."""
        app, run = key
        found = self._host.events(run, scope=Scope.operator(app), after=traced.seq, limit=count)
        async for event in found:
            if isinstance(event, Event):
                traced.spans.add(event)
                traced.seq = event.seq
