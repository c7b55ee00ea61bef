"""What callers see of boards: artifacts and changes, by one rule for all ways to them."""

import logging
from contextlib import aclosing
from typing import Any, Final, cast

from weft.engine.board.visibility import Identity
from weft.errors import AccessDenied, CheckFailed, LinkError, UsageError
from weft.ports.board import ArtifactPage, Place, StoredArtifact
from weft.ports.scope import Scope
from weft.runtime.board.change_log import ChangePage
from weft.runtime.board.reading import envelope
from weft.runtime.host import Host
from weft.server.identity import Principal
from weft.server.live.frames import control_frame
from weft.server.live.ring import UNREADABLE, Outlet
from weft.server.parameters import cursor_of, parts_of
from weft.wire.rows import artifact_data

_log: Final = logging.getLogger("weft.server")


class BoardView:
    """A board as a caller sees it.

    Developers read everything of the tenant. Others read what is shared or their own, as a reader
    with their name, as it stands in `produced_by`, and with their labels.
    """

    def __init__(self, host: Host, caller: Principal, workflow: str) -> None:
        self.host = host
        self.caller = caller
        self.workflow = workflow
        self.scope, self.reader = Scope.operator(caller.app), None
        if not caller.sees_all:
            labels = frozenset(caller.labels)
            self.scope = caller.person
            self.reader = Identity(f"user:{caller.user}", labels, caller.app)

    async def require(self) -> None:
        """Raise NotFoundError for a workflow that does not exist, UsageError for one without board.

        One that cannot run now may have been different when something was published.
        """
        try:
            found = await self.host.current_workflow(self.workflow, app=self.caller.app)
        except (CheckFailed, LinkError):
            return
        if found.spec.board is None:
            raise UsageError(
                f"{self.workflow} has no board", hint="start a run of it: POST /api/runs"
            )

    async def require_part(self, correlation: str) -> None:
        """Raise AccessDenied for a correlation to which the caller gave nothing.

        What the caller gave may be for agents only.
        """
        if self.reader is None:
            return
        given = await self.host.artifact_page(
            self.workflow,
            scope=self.scope,
            reader=None,
            correlation=correlation,
            producers=(self.reader.agent,),
            limit=1,
        )
        if not given.items:
            raise AccessDenied(f"correlation {correlation} belongs to others")

    async def artifacts(self, **wanted: Any) -> ArtifactPage:  # noqa: ANN401 - filters of the host
        """Return a page of the artifacts that the caller may see."""
        return await self.host.artifact_page(
            self.workflow, scope=self.scope, reader=self.reader, **wanted
        )

    async def changes(self, after: str | None, limit: int) -> ChangePage:
        """Return what has appeared after a cursor."""
        place = place_of(after)
        await self.require()
        return await self.host.board_changes(
            self.workflow, scope=self.scope, reader=self.reader, after=place, limit=limit
        )

    async def send(self, after: str | None, outlet: Outlet) -> None:
        """Send what has appeared after a cursor, and what appears from now on, without end.

        Without a cursor it begins with the oldest change. A gap says that changes may be gone.
        """
        pages = self.host.follow_board(
            self.workflow, scope=self.scope, reader=self.reader, after=place_of(after)
        )
        try:
            async with aclosing(pages):
                async for page in pages:
                    if page.gap:
                        await self._send(outlet, "gap", after or "")
                    for found in page.items:
                        shown = shown_artifact(found)
                        await self._send(outlet, "artifact", cursor_after(found), artifact=shown)
        except Exception as error:  # noqa: BLE001 - closes the connection
            _log.warning("the board of %s cannot be followed: %s", self.workflow, error)
            outlet.close(*UNREADABLE)

    async def _send(self, outlet: Outlet, kind: str, cursor: str, **shown: object) -> None:
        frame = control_frame(kind, workflow=self.workflow, cursor=cursor, **shown)
        await outlet.offer(frame._replace(cursor=cursor))


def shown_artifact(found: StoredArtifact) -> dict[str, Any]:
    """Return an artifact as those see it who may."""
    return artifact_data(envelope(found))


def place_of(cursor: str | None) -> Place | None:
    """Return the place that a cursor names. Raises UsageError."""
    return None if cursor is None else cast("Place", parts_of(cursor, int, str, int))


def cursor_after(found: StoredArtifact) -> str:
    """Return where the changes after an artifact begin."""
    return cursor_of(found.appeared_at, found.run, found.seq)
