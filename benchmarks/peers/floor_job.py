"""The floor: the job written by hand with asyncio and aiohttp, and nothing that it does not need.

With `--journal sqlite` everything that happens is written to SQLite before the next step, which is
the floor for durable runs.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from floor_store import Keep, Row, keep_nothing, open_store
from job import (
    HANDOFF_TEXT,
    MODEL,
    REVIEWER,
    ROUTER,
    SPECIALIST,
    TOOL_SCHEMA,
    Outcome,
    question,
    status_of,
)
from measure import Job, Options, main

Message = dict[str, Any]


class Desk:
    """One conversation: its messages, its one variable and what happened."""

    def __init__(self, session: aiohttp.ClientSession, url: str, keep: Keep, number: int) -> None:
        self._session = session
        self._url = url
        self._keep = keep
        self._run = f"run-{number}"
        self._written = 0
        self.messages: list[Message] = []
        self.variables: dict[str, str] = {}
        self.calls = 0
        self.tool_runs = 0

    async def record(self, *events: tuple[str, Any]) -> None:
        """Write what happened, in order, before anything follows from it."""
        rows: list[Row] = []
        for kind, data in events:
            self._written += 1
            rows.append((self._run, self._written, kind, json.dumps(data)))
        await self._keep(rows)

    async def hear(self, text: str) -> None:
        """Take the message of the customer."""
        message = {"role": "user", "content": text}
        self.messages.append(message)
        await self.record(("message", message))

    async def turn(self, agent: str, prompt: str, tools: list[Any] | None = None) -> str:
        """Let one agent answer, doing the tools it asks for until it has no more wishes."""
        while True:
            reply = await self._ask(prompt, tools)
            self.messages.append(reply)
            await self.record(("reply", {"agent": agent, **reply}))
            if not reply.get("tool_calls"):
                return reply["content"]
            for call in reply["tool_calls"]:
                await self._use(call)

    async def _ask(self, prompt: str, tools: list[Any] | None) -> Message:
        body: dict[str, Any] = {
            "model": MODEL,
            "messages": [{"role": "system", "content": prompt}, *self.messages],
        }
        if tools:
            body["tools"] = tools
        async with self._session.post(self._url, data=json.dumps(body).encode()) as response:
            response.raise_for_status()
            self.calls += 1
            return json.loads(await response.read())["choices"][0]["message"]

    async def _use(self, call: dict[str, Any]) -> None:
        arguments = json.loads(call["function"]["arguments"])
        status = status_of(arguments["order"])
        self.tool_runs += 1
        self.variables["order_status"] = status
        result = {"role": "tool", "tool_call_id": call["id"], "content": status}
        self.messages.append(result)
        await self.record(("result", result), ("variable", {"order_status": status}))


@asynccontextmanager
async def open_desks(
    options: Options, make: type[Desk] = Desk
) -> AsyncIterator[Callable[[int], Desk]]:
    """Open what the jobs share: one pool of connections and, where asked for, one database."""
    url = f"{options.base_url}/chat/completions"
    store = open_store() if options.journal == "sqlite" else keep_nothing()
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    async with store as keep, aiohttp.ClientSession(connector=connector, headers=headers) as http:
        yield lambda number: make(http, url, keep, number)


async def do(desk: Desk, number: int) -> Outcome:
    """Do one job."""
    await desk.hear(question(number))
    if await desk.turn("router", ROUTER) == HANDOFF_TEXT:
        await desk.turn("specialist", SPECIALIST, [TOOL_SCHEMA])
    verdict = await desk.turn("reviewer", REVIEWER.format(**desk.variables))
    return Outcome(desk.calls, desk.tool_runs, desk.variables.get("order_status"), verdict)


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Give every job a desk of its own."""
    async with open_desks(options) as desk:
        yield lambda number: do(desk(number), number)


if __name__ == "__main__":
    main("floor", open_job, journals=("memory", "sqlite"))
