"""Following a run: its events, and the words that are spoken meanwhile, in order."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from weft.engine.events import Event, ModelFailed, ModelReplied
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.runs.live_stream import (
    Delta,
    Ended,
    ModelRetry,
    News,
    Speech,
    TextDelta,
    ToolProgress,
)
from weft.runtime.worker import Worker


@dataclass(frozen=True, slots=True)
class Follower:
    """Shows a run to somebody as it goes on."""

    _journal: Journal
    _worker: Worker
    _speech: Speech

    async def follow(self, run: str, scope: Scope, after: int) -> AsyncIterator[Event | Delta]:
        """Yield events and pieces of text in order: a piece after the event that allowed it."""
        key = (scope.app, run)
        early: list[Delta] = []
        replied: set[int] = set()
        with self._speech.listening(key) as news:
            pump = asyncio.create_task(_pump(self._journal.follow(scope, run, after=after), news))
            try:
                while True:
                    if news.empty() and self._worker.is_given_up(key):
                        for event in await self._journal.read(scope, run, after=after):
                            yield event
                        self._worker.raise_if_given_up(key)
                    item = await news.get()
                    if isinstance(item, Event):
                        yield item
                        after = item.seq
                        if isinstance(item.data, ModelReplied | ModelFailed):
                            replied.add(item.cause)
                        ready = [it for it in early if it.call <= after]
                        early = [it for it in early if it.call > after]
                    elif isinstance(item, TextDelta | ModelRetry | ToolProgress):
                        ready = [item] if item.call <= after else []
                        early += [] if ready else [item]
                    elif isinstance(item, Ended):
                        await pump  # which raises what kept it from going on
                        return
                    else:
                        continue
                    for delta in ready:
                        if delta.call not in replied:
                            yield delta
            finally:
                pump.cancel()
                await asyncio.gather(pump, return_exceptions=True)


async def _pump(events: AsyncIterator[Event], news: News) -> None:
    try:
        async for event in events:
            await news.put(event)
    except Exception:  # told to whoever follows; one that has left reads nothing any more
        await news.put(Ended())
        raise
    await news.put(Ended())
