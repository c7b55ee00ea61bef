"""The client: the methods of a host, performed by a server."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import quote

from pydantic_core import from_json, to_json

from weft.client.boards import BoardClient
from weft.client.connection import Connection
from weft.client.decoding import delta_of, event_of, request_of, row_of, workflow_of
from weft.engine.events import KINDS, Event
from weft.engine.reduce import fold
from weft.engine.rows import OpenRequest, RunRow
from weft.engine.state import State
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.live import Delta
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, CancelRequest, Signal, Stop, UserMessage
from weft.runtime.workflow import Workflow

#: The most events that the server gives at once.
_EVENTS: Final = 1000

#: Kinds of frames that stand for no event: live text.
_DELTAS: Final = ("delta", "retry", "progress")

#: Seconds between an event and a look whether its run has become idle.
_MOMENT: Final = 0.05

#: How many workflows of runs are kept.
_KEPT: Final = 100


class Client(BoardClient):
    """Does what a host does, on a server. Close it, or use it as an async context manager.

    The key says who calls; a `scope` limits lists to its user. States, workflows and typed events
    are for developers; `frames` are events as any caller may see them.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | Callable[[], str] = "",
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Connect with the first request. Raises UsageError for an invalid address.

        A function that returns the key is called again when the server refuses the key. `note` is
        told when the server does not answer, and when it answers again.
        """
        self._connection = Connection(url, key, note)
        self._workflows: dict[str, Workflow] = {}

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    async def me(self) -> Mapping[str, Any]:
        """Return who calls: app, user, roles and groups; and the version of the server."""
        return await self._connection.get("/api/me")

    async def require_alive(self) -> None:
        """Raise PortError if the address is not that of a Weft server that answers."""
        await self._connection.get("/healthz")

    async def require_ready(self) -> None:
        """Raise PortError if runs cannot be started now: the store fails, or the server stops."""
        await self._connection.get("/readyz")

    async def doctor(self) -> list[Mapping[str, Any]]:
        """Return what the server checks itself, and its settings: for operators."""
        return (await self._connection.get("/api/doctor"))["checks"]

    async def metrics(self) -> str:
        """Return the metrics as text for Prometheus: for programs on its machine, and operators."""
        return (await self._connection.read("/metrics")).decode()

    # -- runs

    async def start(
        self,
        workflow: str,
        *,
        scope: Scope | None = None,
        message: str | None = None,
        values: Mapping[str, Json] | None = None,
        input: Mapping[str, Json] | None = None,  # noqa: A002 - as a host calls it
        model: str | None = None,
        run: str | None = None,
        streamed: bool = True,
    ) -> str:
        """Start a run and return its id; it continues on the server.

        A server buffers streamed text for every run: `streamed` changes nothing.
        """
        del scope, streamed
        body = {"workflow": workflow, "message": message, "values": values, "input": input}
        found = await self._connection.post("/api/runs", {**body, "model": model, "run": run})
        return found["run"]

    async def deliver(self, run: str, signal: Signal, *, scope: Scope | None = None) -> None:
        """Deliver a signal to a run; return when it is durable."""
        del scope
        path = _path(run)
        match signal:
            case UserMessage(text=text, id=id_):
                await self._connection.post(f"{path}/messages", {"text": text}, key=id_)
            case Answer(request=request, value=value):
                await self._connection.post(f"{path}/answers/{_quoted(request)}", {"value": value})
            case CancelRequest(request=request):
                await self._connection.delete(f"{path}/answers/{_quoted(request)}")
            case Stop(mode=mode):
                await self._connection.post(f"{path}/cancel", {"mode": mode})

    async def fork(
        self,
        run: str,
        *,
        turn: int,
        scope: Scope | None = None,
        values: Mapping[str, Json] | None = None,
        message: str | None = None,
        model: str | None = None,
        streamed: bool = True,
    ) -> str:
        """Repeat a turn of a run, with other values or another model, as a new run.

        `message` replaces what the user said before the turn.
        """
        del scope, streamed
        body = {"turn": turn, "edits": dict(values or {}), "message": message, "model": model}
        return (await self._connection.post(f"{_path(run)}/fork", body))["run"]

    async def wake(self, run: str, *, scope: Scope | None = None) -> None:
        """Continue a run now if it has stopped."""
        row = await self.run(run, scope=scope)
        if row.status != "ended":
            await self._connection.post(f"{_path(run)}/retry")

    async def resume(
        self,
        run: str,
        *,
        scope: Scope | None = None,
        take_over: bool = False,
        streamed: bool = True,
    ) -> None:
        """Continue a run whose process has died."""
        del streamed
        if take_over:
            raise UsageError(
                "a client cannot take over a run of a live process",
                hint="leave it out: the server takes over the runs of dead processes",
            )
        await self.wake(run, scope=scope)

    # -- reading

    async def run(self, run: str, *, scope: Scope | None = None) -> RunRow:
        """Return the summary of a run. Raises AccessDenied if there is none for this key."""
        del scope
        return row_of(await self._connection.get(_path(run)))

    async def runs(
        self,
        *,
        scope: Scope | None = None,
        status: Literal["running", "waiting", "ended"] | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
        only_own: bool = False,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` continues after the last run of a page.

        The first page of a user also has the runs of others that ask this user something, unless
        `only_own` is set.
        """
        user = None if scope is None else scope.user
        wanted = {"status": status, "workflow": workflow, "user": user}
        rows = self._connection.items("/api/runs", wanted, limit=limit, cursor=before)
        found = [row_of(row) async for row in rows]
        if user is None or before is not None or only_own:
            return found
        known = {row.run for row in found}
        asked = dict.fromkeys(each.run for each in await self.requests(scope=scope))
        others = [await self.run(each) for each in asked if each not in known]
        found += (
            row
            for row in others
            if row.user != user
            and status in (None, row.status)
            and workflow in (None, row.workflow)
        )
        return sorted(found, key=lambda row: row.started_at, reverse=True)[:limit]

    async def requests(
        self,
        *,
        scope: Scope | None = None,
        run: str | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int | None = None,
    ) -> list[OpenRequest]:
        """Return the open requests, oldest first, each with the schema of its answer.

        `after` is the time, run and id of the last one of a page. Those of a user are the ones of
        the user's runs and those addressed to the user.
        """
        person = None if scope is None or scope.user is None else scope
        if run is None:
            own = {"for": None if person is None else "me"}
            shown = self._connection.items("/api/requests", own)
            found = [request_of(each) async for each in shown]
        else:
            answer = await self._connection.get(_path(run))
            found = [request_of(each) for each in answer["requests"]]
            if person is not None:
                found = [each for each in found if _concerns(person, each)]
        if after is not None:
            found = [each for each in found if (each.opened_at, each.run, each.id) > after]
        return found[:limit]

    async def workflow(self, run: str, *, scope: Scope | None = None) -> Workflow:
        """Return the workflow a run was started with. Its code stays on the server."""
        del scope
        if run not in self._workflows:
            found = await self._connection.get(f"{_path(run)}/package")
            package = to_json({"spec": found["spec"], "code": found["code"]})
            made = await asyncio.to_thread(workflow_of, package, found["digest"], found["tools"])
            while len(self._workflows) >= _KEPT:
                del self._workflows[next(iter(self._workflows))]
            self._workflows[run] = made
        return self._workflows[run]

    async def current_workflow(self, name: str, *, app: str | None = None) -> Workflow:
        """Return the workflow of a name, as its package is now. Its code stays on the server."""
        del app
        found = await self._connection.get(f"/api/workflows/{_quoted(name)}")
        package = to_json({"spec": found["spec"], "code": {}})
        return await asyncio.to_thread(workflow_of, package, found["digest"], {})

    async def workflow_names(self) -> list[str]:
        """Return the names of the workflows that the caller can run."""
        return [each["name"] for each in (await self._connection.get("/api/workflows"))["items"]]

    async def state(self, run: str, *, scope: Scope | None = None, at: int | None = None) -> State:
        """Return the state of a run, now or after an earlier event; secrets are hidden."""
        workflow = await self.workflow(run, scope=scope)
        events = [] if at == 0 else await self._events(run, limit=at)
        return fold(workflow.compiled, run, events)

    async def events(
        self,
        run: str,
        *,
        scope: Scope | None = None,
        after: int = 0,
        limit: int | None = None,
        follow: bool = False,
    ) -> AsyncGenerator[Event | Delta]:
        """Yield the events of a run after a number; with `follow`, until the run has ended.

        While following, streamed text is yielded as it arrives, and none after the whole reply.
        """
        del scope
        if not follow:
            for event in await self._events(run, after=after, limit=limit):
                yield event
            return
        async for frame in self.frames(run, after=after, follow=True):
            yield delta_of(frame) if frame["kind"] in _DELTAS else event_of(frame)

    async def frames(
        self, run: str, *, after: int = 0, limit: int | None = None, follow: bool = False
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield events as JSON, as the caller may see them; with `follow` also live text.

        End users get those events and fields that are for users.
        """
        if not follow:
            async for frame in self._page(run, after, limit):
                yield frame
            return
        ended = False
        while True:
            found = self._connection.messages(f"{_path(run)}/stream", str(after))
            async for number, data in found:
                frame: Mapping[str, Any] = from_json(data)
                if frame["kind"] == "snapshot_needed":  # Too much came at once: read it.
                    missed = self._page(run, after, frame["seq"] - after)
                    after = frame["seq"]
                    async for each in missed:
                        yield each
                        ended = ended or each["kind"] == "RunEnded"
                elif frame["kind"] in KINDS or frame["kind"] in _DELTAS:
                    after = max(after, int(number or 0))
                    yield frame
                    ended = ended or frame["kind"] == "RunEnded"
            # The server has ended the stream: with the run, or because it stops.
            if ended:
                return
            ended = (await self.run(run)).status == "ended"

    async def settled(self, run: str, *, scope: Scope | None = None) -> RunRow:
        """Return when a run waits for a person or has ended; a board, when it is idle.

        A run that waits for a timer only, such as that of a retry, is not settled.
        """
        return await self._wait(run, is_settled=True, scope=scope)

    async def idle(self, run: str, *, scope: Scope | None = None) -> RunRow:
        """Return when a run waits for a person or a timer, or has ended."""
        return await self._wait(run, is_settled=False, scope=scope)

    async def settled_state(self, run: str, *, scope: Scope | None = None) -> State:
        """Return the state of a run when it waits for a person or has ended."""
        await self.settled(run, scope=scope)
        return await self.state(run, scope=scope)

    async def quiet(self) -> None:
        """Return at once: the server works on runs, and this process does not."""

    async def close(self) -> None:
        """Close the connections. No run is stopped."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # -- parts

    async def _wait(self, run: str, *, is_settled: bool, scope: Scope | None) -> RunRow:
        del scope
        while True:
            data = await self._connection.get(_path(run))
            row = row_of(data)
            is_timed = data.get("due_at") is not None and not data["requests"] and not row.name
            if row.status == "ended" or (row.status == "waiting" and not (is_settled and is_timed)):
                return row
            frames = self.frames(run, after=row.seq, follow=True)
            try:
                async for frame in frames:
                    if frame["kind"] not in _DELTAS:
                        break
            finally:
                await frames.aclose()
            await asyncio.sleep(_MOMENT)

    async def _events(self, run: str, *, after: int = 0, limit: int | None = None) -> list[Event]:
        return [event_of(frame) async for frame in self._page(run, after, limit)]

    async def _page(
        self, run: str, after: int, limit: int | None
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield recorded events; `limit` counts the hidden ones as well."""
        left = limit
        while left is None or left > 0:
            size = _EVENTS if left is None else min(left, _EVENTS)
            page = await self._connection.get(f"{_path(run)}/events", after=after, limit=size)
            for frame in page["items"]:
                yield frame
            if page["next"] is None:
                return
            after, left = page["next"], None if left is None else left - size


def _concerns(person: Scope, request: OpenRequest) -> bool:
    is_own = person.covers(request.app, request.user)
    return is_own or request.addressee in person.addresses


def _path(run: str) -> str:
    return f"/api/runs/{_quoted(run)}"


def _quoted(name: str) -> str:
    return quote(name, safe="")
