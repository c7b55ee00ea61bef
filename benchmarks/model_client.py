"""What asking a model costs: our client against a bare aiohttp post and json, CPU for CPU.

    python benchmarks/model_client.py [--enforce]

All ask the same mock server, which runs in a process of its own, for the same conversation with the
same tools; rounds take turns, so that a busy machine weighs on each alike. `registry` is a model as
runs use it: with retries, time limit, places and prices around the client. Budget: at most 1.3
times the bare call, streamed or not.
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import aiohttp

from weft.adapters.models.openai_http import ChatModel, Connections, Endpoint
from weft.adapters.models.registry import ModelRegistry
from weft.ports.model import ChatMessage, ModelRequest, ToolSchema

ROUNDS: Final = 5
CALLS: Final = 300
AT_ONCE: Final = (1, 50)
BUDGET: Final = 1.3

SERVER: Final = Path(__file__).with_name("mock_server.py")
WORDS: Final = "[[say All is well with the order, it will arrive on Tuesday before noon.]]"
MESSAGES: Final[list[ChatMessage]] = [
    {"role": "system", "content": "You help customers with their orders. " * 20 + WORDS},
    *[
        {"role": role, "content": "Where is my order, please? " * 5}
        for role in ("user", "assistant", "user")
    ],
]
PARAMETERS: Final = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["order"],
}
TOOLS: Final = tuple(ToolSchema(f"tool_{at}", "Look into it.", PARAMETERS) for at in range(3))
REQUEST: Final = ModelRequest("m", "run", "Helper", 1, 1, "run:1", MESSAGES, TOOLS)
BODY: Final[dict[str, Any]] = {
    "model": "m",
    "messages": MESSAGES,
    "tools": [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": "Look into it.",
                "parameters": PARAMETERS,
            },
        }
        for tool in TOOLS
    ],
    "tool_choice": "auto",
}

Ask = Callable[[], Awaitable[str]]


class RealClock:
    """The time, for retries that do not happen here."""

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """Return a name."""
        return str(self.now())

    async def sleep_until(self, at: int) -> None:
        """Wait."""
        await asyncio.sleep(max(0, at - self.now()) / 1000)


def bare(session: aiohttp.ClientSession, url: str) -> Ask:
    """Ask with aiohttp alone."""

    async def ask() -> str:
        async with session.post(f"{url}/chat/completions", json=BODY) as response:
            data = await response.json()
        return data["choices"][0]["message"]["content"]

    return ask


def bare_stream(session: aiohttp.ClientSession, url: str) -> Ask:
    """Ask with aiohttp alone and read the stream line by line."""
    body = {**BODY, "stream": True, "stream_options": {"include_usage": True}}

    async def ask() -> str:
        text: list[str] = []
        async with session.post(f"{url}/chat/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    text.extend(choice["delta"].get("content") or "" for choice in choices)
        return "".join(text)

    return ask


def ours(model: Any, *, stream: bool) -> Ask:  # noqa: ANN401
    """Ask a model of ours."""
    listen = [].append if stream else None

    async def ask() -> str:
        return (await model.reply(REQUEST, listen)).text

    return ask


async def cpu_us(ask: Ask, at_once: int) -> float:
    """Return the CPU time of one call, in microseconds."""

    async def worker() -> None:
        for _ in range(CALLS // at_once):
            answer = await ask()
            if not answer.startswith("All is well"):
                sys.exit(f"cannot measure: the answer is {answer!r}")

    gc.collect()
    before = time.process_time()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return (time.process_time() - before) / (CALLS // at_once * at_once) * 1e6


async def measure(url: str) -> dict[tuple[str, int], float]:
    """Return the median CPU of every way to ask at every concurrency."""
    connections = Connections()
    registry = ModelRegistry(clock=RealClock(), random=Random(1), settings={})
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = ChatModel(Endpoint(url), "m", connections)
        full = registry.model(f"{url}#m")
        ways = {
            "bare": bare(session, url),
            "client": ours(client, stream=False),
            "registry": ours(full, stream=False),
            "bare stream": bare_stream(session, url),
            "client stream": ours(client, stream=True),
            "registry stream": ours(full, stream=True),
        }
        rounds: dict[tuple[str, int], list[float]] = {}
        for number in range(ROUNDS + 1):
            for at_once in AT_ONCE:
                for name, ask in ways.items():
                    cost = await cpu_us(ask, at_once)
                    if number:  # the first round warms up
                        rounds.setdefault((name, at_once), []).append(cost)
    await connections.close()
    await registry.close()
    return {key: median(costs) for key, costs in rounds.items()}


def report(costs: dict[tuple[str, int], float]) -> bool:
    """Print one line per way and tell whether all are within budget."""
    within = True
    print(f"{'way to ask':<16} {'at once':>8} {'CPU us':>8} {'ratio':>6} {'budget':>7}")
    for (name, at_once), cost in costs.items():
        floor = costs["bare stream" if name.endswith("stream") else "bare", at_once]
        ratio = cost / floor
        within = within and ratio <= BUDGET
        mark = "over" if ratio > BUDGET else ""
        print(f"{name:<16} {at_once:8} {cost:8.0f} {ratio:6.2f} {BUDGET:7.1f} {mark}")
    return within


def main() -> int:
    """Measure, print, and fail on request when the budget is exceeded."""
    parser = ArgumentParser(description="Measure what asking a model costs.")
    parser.add_argument("--enforce", action="store_true", help="exit with 1 over the budget")
    options = parser.parse_args()
    command = (sys.executable, str(SERVER), "--until-eof")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        port = int(server.stdout.readline()) if server.stdout else 0
        costs = asyncio.run(measure(f"http://127.0.0.1:{port}/v1"))
        server.communicate()
    within = report(costs)
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    sys.exit(main())
