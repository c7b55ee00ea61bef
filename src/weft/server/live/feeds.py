"""Everything that is delivered live: one feed for each run that is followed, and who follows."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from weft.engine.rows import RunRow
from weft.errors import AccessDenied
from weft.ports.scope import Scope
from weft.ports.store import RunKey
from weft.runtime.host import Host
from weft.server.identity import Principal, TooMany
from weft.server.live.feed import Feed
from weft.server.live.frames import snapshot_needed
from weft.server.live.ring import Outlet, Viewer

#: Seconds that a run is followed after its last viewer has left, and between two looks for such.
LINGER: Final = 30.0
_LOOK: Final = 5.0

#: The code with which sockets are closed when the server stops, and the reason.
STOPPING: Final = (1012, "the server is stopping; connect again")


class Feeds:
    """The feeds of the runs that are followed, and the connections that follow them."""

    def __init__(self, host: Host, most_connections: int) -> None:
        self._host = host
        self._most = most_connections
        self._feeds: dict[RunKey, Feed] = {}
        self._outlets: set[Outlet] = set()
        self._connections: Counter[tuple[str, str]] = Counter()

    @property
    def connections(self) -> int:
        """How many sockets and streams are open."""
        return len(self._outlets)

    @contextmanager
    def connected(self, caller: Principal) -> Generator[Outlet]:
        """Return the outlet of a connection; raises TooMany for a caller who has enough of them."""
        who = (caller.app, caller.user)
        if self._connections[who] >= self._most:
            raise TooMany(
                f"the caller has {self._most} connections", hint="close some of them first"
            )
        outlet = Outlet()
        self._outlets.add(outlet)
        self._connections[who] += 1
        try:
            yield outlet
        finally:
            self._outlets.discard(outlet)
            self._connections[who] -= 1
            if not self._connections[who]:
                del self._connections[who]

    async def _require(self, caller: Principal, run: str) -> RunRow:
        """Return a run of the caller's; raises AccessDenied for a foreign one."""
        row = await self._host.run(run, scope=caller.scope)
        if not caller.scope.covers(row.app, row.user):  # One that asks the caller something.
            raise AccessDenied(f"run {run} belongs to another user")
        return row

    async def follow(self, caller: Principal, run: str, outlet: Outlet, after: int) -> "Following":
        """Send everything of a run after an event to an outlet; raises AccessDenied."""
        row = await self._require(caller, run)
        key, seq = (row.app, run), row.seq
        workflow = await self._host.workflow(run, scope=Scope.operator(caller.app))
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(self._host, workflow, row)
        if after > max(seq, feed.seq):  # Of another store, or of a run that was deleted.
            after = seq
            outlet.put(snapshot_needed(run, seq))
        return Following(feed, feed.add(caller, outlet, after))

    def stop(self) -> None:
        """Close all connections: the server is stopping."""
        for outlet in self._outlets:
            outlet.close(*STOPPING)

    async def sweep(self) -> None:
        """Stop following runs without viewers, until cancelled; then stop following all."""
        try:
            while True:
                await asyncio.sleep(_LOOK)
                before = asyncio.get_running_loop().time() - LINGER
                for key, feed in list(self._feeds.items()):
                    if not feed.drop_rings(before):
                        feed.close()
                        del self._feeds[key]
        finally:
            self.stop()
            for feed in self._feeds.values():
                feed.close()


class Following(NamedTuple):
    """A run that a connection follows."""

    feed: Feed
    viewer: Viewer

    @property
    def is_finished(self) -> bool:
        """Whether the connection has everything of a run that has ended."""
        return self.feed.is_finished(self.viewer)

    def end(self) -> None:
        """Follow the run no more."""
        self.feed.remove(self.viewer)
