"""What it costs to deliver the events of runs to many sockets, beside a bare FastAPI socket.

A gateway has 2,000 open sockets that follow 500 runs; a worker in a second process performs the
runs, with a model that takes 4 s. Each client checks that it gets every event of its run once and
in order. Then a bare FastAPI server sends the same frames to as many sockets at the same times,
each as a message of its own; and once more, the very same messages. CPU is that of the process of
each server. Pieces of streamed text count as events. Delivery is counted from the time of an event
in the journal to its arrival.

Usage: python benchmarks/sockets.py [--enforce] [--sockets N] [--runs N] [--seconds S]
"""

import argparse
import asyncio
import base64
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pydantic_core import from_json, to_json

ROOT: Final = Path(__file__).parents[1]
PYTHON: Final = sys.executable
TICK: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")

LATENCY_MS: Final = 4000
#: Seconds before anything is measured: more than one model call.
WARM_UP: Final = 6.0

P99_BUDGET_MS: Final = 250
MEMORY_BUDGET_KB: Final = 60
CPU_BUDGET_US: Final = 30
RATIO_BUDGET: Final = 1.5

WORDS: Final = "The order was found, it was sent yesterday and will arrive tomorrow at noon. " * 3

PACKAGE: Final = {
    "orchestrator": {"workflow_name": "Talk", "initial_agent": "Ann", "max_turns": 500},
    "agents": {
        "agents": [
            {
                "agent_name": name,
                "prompt_sections": [
                    {"id": "role", "heading": "[ROLE]", "content": f"Talk. [[say {WORDS}]]"}
                ],
            }
            for name in ("Ann", "Ben")
        ]
    },
    "context_variables": {
        "context_variables": {
            "definitions": {
                "done": {
                    "type": "bool",
                    "source": {
                        "type": "derived",
                        "default": False,
                        "triggers": [
                            {"type": "agent_text", "agent": "Ann", "match": {"equals": "BYE"}}
                        ],
                    },
                }
            }
        }
    },
    "handoffs": {
        "handoff_rules": [
            {"source_agent": "Ann", "target_agent": "terminate", "condition": "done"},
            {"source_agent": "Ann", "target_agent": "Ben"},
            {"source_agent": "Ben", "target_agent": "Ann"},
        ]
    },
}


class Delivered(NamedTuple):
    """One message that a client got: when, how many events it had, and its text."""

    at: float
    events: int
    text: bytes


class Client(asyncio.Protocol):
    """A socket by hand: parsing must not cost more than sending."""

    def __init__(self, key: str, receive: Callable[["Client", bytes], None]) -> None:
        self.seq = 0
        self.run = ""
        self.faults: list[str] = []
        self.is_open = asyncio.get_running_loop().create_future()
        self._key = key
        self._receive = receive
        self._buffer = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a socket."""
        self._transport = transport
        nonce = base64.b64encode(os.urandom(16)).decode()
        self._transport.write(
            f"GET /api/ws HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
            f"connection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: {nonce}\r\n"
            f"sec-websocket-extensions: permessage-deflate\r\n"
            f"authorization: Bearer {self._key}\r\n\r\n".encode()
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Report a socket that was refused."""
        if not self.is_open.done():
            self.is_open.set_exception(exc or ConnectionError("the socket was refused"))

    def data_received(self, data: bytes) -> None:
        """Read the frames that have arrived whole."""
        buffer = self._buffer
        buffer += data
        if not self.is_open.done():
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not buffer.startswith(b"HTTP/1.1 101"):
                self.is_open.set_exception(ConnectionError(bytes(buffer[:200])))
                return
            del buffer[: end + 4]
            self.is_open.set_result(None)
        while len(buffer) >= 2:
            size, begin = buffer[1], 2
            if size >= 126:
                begin = 4 if size == 126 else 10
                if len(buffer) < begin:
                    return
                size = int.from_bytes(buffer[2:begin])
            if len(buffer) < begin + size:
                return
            kind, content = buffer[0], bytes(buffer[begin : begin + size])
            del buffer[: begin + size]
            if kind == 0x81:
                self._receive(self, content)
            else:
                self.faults.append(f"frame {kind:#x}: {content[:100]!r}")

    def send(self, **command: object) -> None:
        """Send a command."""
        content = to_json({"v": 1, "id": os.urandom(8).hex(), **command})
        size = len(content)
        head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + size.to_bytes(2)
        self._transport.write(head + b"\0\0\0\0" + content)  # A mask of zeros changes nothing.

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()


class Process:
    """A process whose CPU and memory are measured."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self.popen = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> str:
        """Return the first line that it prints."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline().strip()
        if not line:
            sys.exit(f"cannot measure: {self.popen.args} did not start")
        return line

    def cpu(self) -> float:
        """Return the CPU seconds of all its threads."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> int:
        """Return the bytes of memory that it occupies."""
        return int(Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1]) * PAGE

    def stop(self) -> None:
        """Stop it."""
        self.popen.send_signal(signal.SIGTERM)
        try:
            self.popen.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.popen.kill()


class Figures(NamedTuple):
    """What was measured of one server."""

    events: int
    messages: int
    cpu: float
    idle_kb: float
    p50_ms: float
    p99_ms: float

    @property
    def cpu_us(self) -> float:
        """CPU in microseconds for each event that was delivered."""
        return self.cpu / self.events * 1e6


@asynccontextmanager
async def sockets(
    port: int, key: str, count: int, receive: Callable[[Client, bytes], None]
) -> AsyncIterator[list[Client]]:
    """Open sockets, fifty at a time."""
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    for begin in range(0, count, 50):
        opened = await asyncio.gather(
            *(
                loop.create_connection(lambda: Client(key, receive), "127.0.0.1", port)
                for _ in range(min(50, count - begin))
            )
        )
        clients += (client for _, client in opened)
        await asyncio.gather(*(client.is_open for _, client in opened))
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def post(url: str, key: str, body: object) -> dict[str, Any]:
    """Send a request to the gateway."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with urlopen(Request(url, to_json(body), headers), timeout=60) as answer:
        return json.load(answer)


async def measure_weft(options: argparse.Namespace, workspace: Path) -> tuple[Figures, Any]:
    """Measure the gateway; return the figures, and what was sent to whom and when."""
    model = Process(
        [PYTHON, str(ROOT / "benchmarks/mock_server.py"), "--latency-ms", str(LATENCY_MS)]
    )
    environment = {
        "WEFT_MODEL": "openai:mock",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{model.ready()}/v1",
        "OPENAI_API_KEY": "none",
    }
    weft = [PYTHON, "-m", "weft"]
    where = ["--workspace", str(workspace)]
    gateway = Process(
        [*weft, "--json", "serve", *where, "--no-work", "--no-open", "--port", "0"], **environment
    )
    worker = Process([*weft, "--json", "worker", *where], **environment)
    try:
        url = json.loads(gateway.ready())["ready"]["url"]
        worker.ready()
        file = f".weft/server-{urlsplit(url).port}.json"
        key = json.loads((workspace / file).read_text())["key"]
        return await measure_gateway(options, gateway, url, key)
    finally:
        for process in (gateway, worker, model):
            process.stop()


async def measure_gateway(
    options: argparse.Namespace, gateway: Process, url: str, key: str
) -> tuple[Figures, Any]:
    """Let clients follow runs, and measure the gateway meanwhile."""
    delays: list[float] = []
    delivered: list[tuple[int, Delivered]] = []
    numbers: dict[Client, int] = {}
    is_measured = False

    def receive(client: Client, text: bytes) -> None:
        now = time.time() * 1000
        frames = from_json(text)
        for frame in frames:
            seq = frame.get("seq")
            if "ts" in frame:
                if seq != client.seq + 1 or frame["run"] != client.run:
                    client.faults.append(f"event {seq} of {frame['run']} after {client.seq}")
                client.seq = seq
                if is_measured:
                    delays.append(now - frame["ts"])
            elif frame["kind"] == "ping":
                client.send(cmd="pong")
            elif frame["kind"] not in ("caught_up", "delta") and not frame.get("ok"):
                client.faults.append(str(frame))
        events = sum(map(is_delivered, frames))
        if is_measured and events:
            delivered.append((numbers[client], Delivered(now / 1000, events, text)))

    runs = [
        (await asyncio.to_thread(post, f"{url}/api/runs", key, {"workflow": "Talk", "force": True}))
        for _ in range(options.runs)
    ]
    names = [run["run"] for run in runs]
    before = gateway.memory()
    async with sockets(int(url.rpartition(":")[2]), key, options.sockets, receive) as clients:
        for number, client in enumerate(clients):
            numbers[client] = number
            client.run = names[number % len(names)]
            client.send(cmd="follow", run=client.run, after=0)
        await asyncio.sleep(3)
        idle_kb = (gateway.memory() - before) / len(clients) / 1024
        sending, seen = gateway.cpu(), sum(client.seq for client in clients)
        for client in clients[: len(names)]:
            client.send(cmd="message", run=client.run, text="Where is my order?")
            await asyncio.sleep(WARM_UP / 2 / len(names))  # The calls are spread evenly.
        sending = gateway.cpu() - sending
        seen = sum(client.seq for client in clients) - seen
        await asyncio.sleep(WARM_UP / 2 + LATENCY_MS / 1000)
        cpu, is_measured = gateway.cpu(), True
        await asyncio.sleep(options.seconds)
        cpu, is_measured = gateway.cpu() - cpu, False
        faults = [fault for client in clients for fault in client.faults]
        behind = [client.seq for client in clients if client.seq < 10]
    if faults or behind:
        sys.exit(f"cannot measure: {len(faults)} faults ({faults[:3]}), {len(behind)} behind")
    delays.sort()
    events = sum(each.events for _, each in delivered)
    message_us = (sending - seen * cpu / events) / len(names) * 1e6
    print(f"  CPU for each message of a client, without delivery: {message_us:.0f} us")
    figures = Figures(
        events,
        len(delivered),
        cpu,
        idle_kb,
        delays[len(delays) // 2],
        delays[len(delays) * 99 // 100],
    )
    return figures, delivered


async def measure_bare(
    options: argparse.Namespace, workspace: Path, delivered: list[tuple[int, Delivered]]
) -> Figures:
    """Let a bare server send the same messages to as many sockets, at the same times."""
    first = delivered[0][1].at
    plan = [(each.at - first, number, each.text.decode()) for number, each in delivered]
    file = workspace / "plan.json"
    file.write_bytes(to_json(plan))
    bare = Process([PYTHON, __file__, "--bare", str(file)])
    received = 0

    def receive(_client: Client, text: bytes) -> None:
        nonlocal received
        received += sum(map(is_delivered, from_json(text)))

    try:
        port = int(bare.ready())
        before = bare.memory()
        async with sockets(port, "", options.sockets, receive) as clients:
            await asyncio.sleep(3)
            idle_kb = (bare.memory() - before) / len(clients) / 1024
            cpu = bare.cpu()
            clients[0].send(cmd="begin")
            total = sum(each.events for _, each in delivered)
            for _ in range(round((options.seconds + 60) * 10)):
                await asyncio.sleep(0.1)
                if received >= total:
                    break
            cpu = bare.cpu() - cpu
        if received != total:
            sys.exit(f"cannot measure: the bare server delivered {received} of {total} events")
        return Figures(total, len(delivered), cpu, idle_kb, 0, 0)
    finally:
        bare.stop()


def frames_of(message: Delivered) -> list[Delivered]:
    """Return each frame of a message as a message."""
    frames = from_json(message.text)
    return [Delivered(message.at, int(is_delivered(each)), to_json([each])) for each in frames]


def is_delivered(frame: dict[str, Any]) -> bool:
    """Return whether a frame is an event, or a piece of streamed text."""
    return "ts" in frame or frame.get("kind") == "delta"


def serve_bare(file: Path) -> None:
    """Run the bare server: it sends what a plan says, from the first message that comes."""
    import gc  # noqa: PLC0415 - of this process only

    import uvicorn  # noqa: PLC0415
    from fastapi import FastAPI, WebSocket, WebSocketDisconnect  # noqa: PLC0415

    gc.set_threshold(50_000, 20, 20)
    plan: list[tuple[float, int, str]] = from_json(file.read_bytes())
    gc.collect()
    gc.freeze()
    app = FastAPI()
    queues: list[asyncio.Queue[str]] = []
    playing: set[asyncio.Task[None]] = set()

    async def play() -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for at, number, text in plan:
            wait = begun + at - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            queues[number].put_nowait(text)

    @app.websocket("/api/ws")
    async def _socket(websocket: WebSocket) -> None:
        await websocket.accept()
        queue: asyncio.Queue[str] = asyncio.Queue()
        queues.append(queue)

        async def pump() -> None:
            while True:
                await websocket.send_text(await queue.get())

        pumping = asyncio.create_task(pump())
        try:
            while True:
                await websocket.receive_text()
                playing.add(asyncio.create_task(play()))
        except WebSocketDisconnect:
            pumping.cancel()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print(self.servers[0].sockets[0].getsockname()[1], flush=True)

    config = uvicorn.Config(
        app, port=0, ws="websockets-sansio", ws_per_message_deflate=False, ws_ping_interval=None,
        log_config=None, access_log=False, backlog=2048,
    )  # fmt: skip
    Server(config).run()


def make_workspace(folder: Path) -> None:
    """Write the package."""
    package = folder / "workflows" / "Talk"
    package.mkdir(parents=True)
    for name, content in PACKAGE.items():
        (package / f"{name}.json").write_text(json.dumps(content))


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sockets", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--enforce", action="store_true")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.bare:
        serve_bare(options.bare)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        make_workspace(workspace)
        weft, delivered = asyncio.run(measure_weft(options, workspace))
        frames = [(number, one) for number, each in delivered for one in frames_of(each)]
        bare = asyncio.run(measure_bare(options, workspace, frames))
        joined = asyncio.run(measure_bare(options, workspace, delivered))
    ratio = weft.cpu_us / bare.cpu_us
    rate = weft.events / options.seconds
    print(
        f"{options.sockets:,} sockets follow {options.runs} runs, a model that takes "
        f"{LATENCY_MS / 1000:g} s: {rate:,.0f} events/s in {weft.messages / options.seconds:,.0f} "
        "messages/s"
    )
    print(
        f"  delivery: p50 {weft.p50_ms:.0f} ms, p99 {weft.p99_ms:.0f} ms (budget {P99_BUDGET_MS})"
    )
    print(
        f"  memory of an idle socket: {weft.idle_kb:.1f} KB (budget {MEMORY_BUDGET_KB}), "
        f"bare {bare.idle_kb:.1f} KB"
    )
    print(
        f"  CPU for each event: {weft.cpu_us:.1f} us (budget {CPU_BUDGET_US}), "
        f"bare {bare.cpu_us:.1f} us: ratio {ratio:.2f} (budget {RATIO_BUDGET}); "
        f"bare with the messages of Weft {joined.cpu_us:.1f} us"
    )
    within = (
        weft.p99_ms < P99_BUDGET_MS
        and weft.idle_kb <= MEMORY_BUDGET_KB
        and weft.cpu_us <= CPU_BUDGET_US
        and ratio <= RATIO_BUDGET
    )
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    sys.exit(main())
