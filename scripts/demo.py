"""Serve a workspace, start a run over HTTP, and print its events.

`make run` calls it with the folder of the demo. It then prints the address of the page; in a
terminal it serves until Ctrl-C, otherwise it stops the server and exits with 0.
"""
# ruff: noqa: INP001, S603, T201 - a program, not a package; it starts only Weft, and prints

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final

import weft
from weft.app.folders import server_file
from weft.cli.pages.events import summary
from weft.client import Client

WORKFLOW: Final = "CustomerSupportRouter"
MESSAGE: Final = "I was charged twice for my subscription"


@contextmanager
def serving(workspace: Path) -> Generator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Start a server on a free port, wait until it is ready, and stop it at the end."""
    words = ["serve", "--workspace", str(workspace), "--port", "0", "--no-open", "--json"]
    command = [sys.executable, "-m", "weft", *words]
    settings = {"WEFT_MODEL": "sample", **os.environ}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as server:
        try:
            first = server.stdout.readline() if server.stdout else ""
            if not first:
                sys.exit(server.wait())  # It has said why on stderr.
            yield server, json.loads(first)["ready"]
        finally:
            server.terminate()


async def run_once(url: str, key: str) -> None:
    """Start a run, and print its events until it waits for the user or has ended."""
    async with Client(url, key=key) as client:
        run = await client.start(WORKFLOW, message=MESSAGE, model="sample")
        print(f"\nrun {run} of {WORKFLOW} over HTTP: {MESSAGE}")
        await client.settled(run)
        workflow = await client.workflow(run)
        async for event in client.events(run):
            if isinstance(event, weft.Event):
                kind = type(event.data).__name__
                print(f"{event.seq:>4}  {kind:<17}  {summary(event, workflow)}".rstrip())


def main() -> None:
    """Show the server."""
    workspace = Path(sys.argv[1])
    with serving(workspace) as (server, ready):
        key = json.loads(server_file(workspace, ready["url"]).read_text(encoding="utf-8"))["key"]
        asyncio.run(run_once(ready["url"], key))
        if sys.stdin.isatty():
            print(f"\npage   {ready['page']}", flush=True)
            print("Ctrl-C stops the server.", flush=True)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # The server gets it, and drains.
            sys.exit(server.wait())
        serve = f"weft serve --workspace {quote(str(workspace))}"
        print(f"\npage   {ready['url']}")  # The token in the other address would be of no use.
        print(f"There is no terminal, so the server stops now. Serve the workspace: {serve}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
