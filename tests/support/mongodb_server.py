"""A MongoDB server for tests: the one that is named, or SecantusDB in a process of its own.

`WEFT_TEST_MONGODB_URL` names a server, and no database of it: every test makes its own.

SecantusDB is never imported: it is a program in an environment of its own, and is spoken to over
the wire only.
"""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from uuid import uuid4

from pymongo import MongoClient

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv-mongodb" / "bin" / "secantusd-py"

#: Seconds for the server to come up or to go.
START_SECONDS = 60.0
END_SECONDS = 10.0


@contextmanager
def mongodb_server(folder: Path) -> Generator[str]:
    """Yield the address of a server."""
    named = os.environ.get("WEFT_TEST_MONGODB_URL")
    if named:
        yield named
        return
    if not PROGRAM.exists():
        raise AssertionError(f"{PROGRAM} is missing: `make test` installs it")
    options = ["--host", "127.0.0.1", "--port", "0", "--sync-on-commit", "--cache-size", "64M"]
    server = subprocess.Popen(
        [PROGRAM, *options, "--storage-path", folder],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield f"mongodb://127.0.0.1:{_port(server)}"
    finally:
        server.terminate()
        try:
            server.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


@contextmanager
def empty_database(server: str) -> Generator[str]:
    """Yield the address of a new database, and remove it afterwards."""
    base, mark, options = server.partition("?")
    name = f"weft_{uuid4().hex}"
    yield f"{base.rstrip('/')}/{name}{mark}{options}"
    with MongoClient(server) as client:
        client.drop_database(name)


def _port(server: subprocess.Popen[str]) -> str:
    """Wait for the line that says where the server listens; ends a server that does not come up."""
    too_late = Timer(START_SECONDS, server.kill)
    too_late.start()
    said: list[str] = []
    try:
        for line in server.stdout or ():
            said.append(line)
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                return found[1]
    finally:
        too_late.cancel()
    raise AssertionError(f"the MongoDB server did not start: {''.join(said)}")
