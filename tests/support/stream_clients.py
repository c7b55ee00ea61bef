"""Clients that talk in runs while servers die: each comes back where it was, by socket or stream.

A client answers every question of its run, ends the run after some, and keeps every event it gets.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

#: How long a client waits before it comes back.
PAUSE = 0.1

#: The commands of a socket by the path to which the same is posted.
COMMANDS = {"messages": "message", "cancel": "cancel"}

#: What happens when a server is not there, or dies.
GONE = (aiohttp.ClientError, ConnectionError, TimeoutError)


@dataclass
class StreamClient:
    """A user in one run. `urls` are the servers, of which it takes another one after each loss."""

    session: aiohttp.ClientSession
    urls: list[str]
    number: int
    #: How often it answers before it ends the run.
    answers: int
    note: Callable[[], None]
    run: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    losses: int = 0

    @property
    def after(self) -> int:
        """The last event that came."""
        return self.events[-1]["seq"] if self.events else 0

    @property
    def has_ended(self) -> bool:
        """Whether everything came."""
        return bool(self.events) and self.events[-1]["kind"] == "RunEnded"

    async def live(self) -> None:
        """Start the run and follow it to its end, whatever happens to servers."""
        follow = self._by_socket if self.number % 2 else self._by_stream
        while not self.has_ended:
            url = self.urls[(self.number + self.losses) % len(self.urls)]
            try:
                if not self.run:
                    started = {"workflow": "Greeter"}
                    self.run = (await self._post(url, "", started, "start"))["run"]
                await follow(url)
            except GONE:
                self.losses += 1
                await asyncio.sleep(PAUSE)

    async def _by_socket(self, url: str) -> None:
        async with self.session.ws_connect(f"{url}/api/ws", max_msg_size=0) as socket:

            async def command(path: str, body: dict[str, Any], key: str) -> None:
                fields = {"id": key, "cmd": COMMANDS[path], "run": self.run, **body}
                await socket.send_json(fields)

            follow = {"id": "follow", "cmd": "follow", "run": self.run, "after": self.after}
            await socket.send_json(follow)
            if self.after:
                await self._answer(command)
            async for message in socket:
                for frame in json.loads(message.data):
                    if frame["kind"] == "ack" and not frame["ok"]:
                        raise AssertionError(frame)
                    if frame["kind"] == "ping":
                        await socket.send_json({"cmd": "pong"})
                    if self._take(frame):
                        await self._answer(command)
                if self.has_ended:
                    return
        raise ConnectionError("the socket was closed")

    async def _by_stream(self, url: str) -> None:
        async def post(path: str, body: dict[str, Any], key: str) -> None:
            await self._post(url, path, body, key)

        headers = {"Last-Event-ID": str(self.after)}
        address = f"{url}/api/runs/{self.run}/stream"
        async with self.session.get(address, headers=headers) as answer:
            answer.raise_for_status()
            if self.after:
                await self._answer(post)
            async for line in lines_of(answer):
                if line.startswith("data: ") and self._take(json.loads(line[6:])):
                    await self._answer(post)
                if self.has_ended:
                    return
        raise ConnectionError("the stream was closed")

    def _take(self, frame: dict[str, Any]) -> bool:
        """Keep an event; tell whether it is a question."""
        assert frame["kind"] != "snapshot_needed"
        if "ts" not in frame:
            return False
        assert frame["seq"] == self.after + 1, f"event {frame['seq']} came after {self.after}"
        assert frame["run"] == self.run
        self.events.append(frame)
        self.note()
        return frame["kind"] == "RequestOpened"

    async def _answer(self, send: Callable[..., Any]) -> None:
        """Answer the question that is open, or end the run; sent again, it counts once."""
        opened = sum(event["kind"] == "RequestOpened" for event in self.events)
        answered = sum(event["kind"] == "RequestAnswered" for event in self.events)
        if opened == answered or self.has_ended:
            return
        if answered == self.answers:
            await send("cancel", {"mode": "now"}, "cancel")
        else:
            text = f"{self.number} says {answered}"
            await send("messages", {"text": text}, f"message {answered}")

    async def _post(self, url: str, path: str, body: dict[str, Any], key: str) -> Any:
        address = f"{url}/api/runs/{self.run}/{path}" if path else f"{url}/api/runs"
        headers = {"Idempotency-Key": f"{self.number} {key}"}
        async with self.session.post(address, json=body, headers=headers) as answer:
            if answer.status >= 500:
                raise ConnectionError(await answer.text())
            assert answer.status < 300, await answer.text()
            return await answer.json()


async def lines_of(answer: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """Yield the lines of a stream."""
    async for line in answer.content:
        yield line.decode().rstrip("\n")
