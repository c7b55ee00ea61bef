"""The methods of a host that are about boards, performed by a server."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json, to_jsonable_python

from weft.client.connection import Connection
from weft.engine.board.state import Artifact
from weft.ports.scope import Scope
from weft.runtime.board.publish import Publication
from weft.spec.board import Visibility


class BoardClient:
    """Publishes and reads artifacts; what the key may not see is as if it were not there."""

    _connection: Connection

    async def publish(  # noqa: PLR0913 - as a host
        self,
        workflow: str,
        type: str,  # noqa: A002 - as a host calls it
        payload: object,
        *,
        scope: Scope | None = None,
        tags: Iterable[str] = (),
        visibility: Visibility | Mapping[str, object] | None = None,
        correlation: str | None = None,
        partition: str = "",
        id: str = "",  # noqa: A002 - as a host calls it
        agent: str = "",
    ) -> Publication:
        """Put an artifact on a board and return where it is; it returns when that is written.

        With an `id`, publishing it again changes nothing; the server gives it a name of its own.
        """
        del scope
        body = {
            "type": type,
            "payload": to_jsonable_python(payload),
            "tags": list(tags),
            "visibility": to_jsonable_python(visibility),
            "correlation": correlation,
            "partition": partition,
            "agent": agent,
        }
        found = await self._connection.post(_path(workflow, "artifacts"), body, key=id or None)
        return Publication(found["artifact"], found["run"], found["correlation"])

    async def artifact(
        self, workflow: str, artifact: str, *, scope: Scope | None = None
    ) -> Artifact:
        """Return an artifact; developers get its visibility, too."""
        del scope
        return _artifact(await self._connection.get(_path(workflow, "artifacts", artifact)))

    async def artifacts(  # noqa: PLR0913 - one for each filter
        self,
        workflow: str,
        *,
        types: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
        producers: tuple[str, ...] = (),
        correlation: str | None = None,
        partition: str | None = None,
        since: int | None = None,
        text: str | None = None,
        limit: int = 50,
    ) -> list[Artifact]:
        """Return the newest artifacts that the key may see, and that all filters fit."""
        wanted = {
            "type": types,
            "tag": tags,
            "producer": producers,
            "correlation": correlation,
            "partition": partition,
            "since": since,
            "text": text,
        }
        found = self._connection.items(_path(workflow, "artifacts"), wanted, limit=limit)
        return [_artifact(each) async for each in found]

    async def follow_board(
        self, workflow: str, *, after: str = ""
    ) -> AsyncGenerator[tuple[str, Artifact | None]]:
        """Yield what appears on a board after a cursor, for ever, each with where to go on.

        None in place of an artifact says that runs were removed: some may have been missed.
        """
        path = _path(workflow, "changes")
        async for cursor, data in self._connection.messages(path, after):
            frame: Mapping[str, Any] = from_json(data)
            if frame["kind"] in ("artifact", "gap"):
                found = frame.get("artifact")
                yield cursor, None if found is None else _artifact(found)

    async def run_of(self, workflow: str, correlation: str, *, scope: Scope | None = None) -> str:
        """Return the run of a correlation: the open one, or the newest that has ended."""
        del scope
        path = f"/api/correlations/{quote(correlation, safe='')}"
        return (await self._connection.get(path, workflow=workflow))["run"]

    async def why(
        self, workflow: str, artifact: str, agent: str, *, scope: Scope | None = None
    ) -> str | None:
        """Say why an agent may not see an artifact now, or None if it may."""
        del scope
        path = _path(workflow, "artifacts", artifact, "why")
        return (await self._connection.get(path, agent=agent))["reason"]


def _artifact(data: Mapping[str, Any]) -> Artifact:
    """Return an artifact; its visibility is None where the server does not show it."""
    return Artifact(
        data["id"],
        data["type"],
        data["payload"],
        data["produced_by"],
        tuple(data["tags"]),
        data["partition_key"] or "",
        data["correlation_id"],
        data["created_at"],
        data.get("visibility"),
    )


def _path(workflow: str, *parts: str) -> str:
    return "/".join(("/api/boards", *(quote(part, safe="") for part in (workflow, *parts))))
