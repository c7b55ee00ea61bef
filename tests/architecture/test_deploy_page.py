"""The commands, SQL and service file of the page about deployment work as they stand there."""

import asyncio
import configparser
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from support.page_play import BLOCK, chapter, read_pages
from support.postgres_server import execute, with_database
from weft.app.settings import SETTINGS
from weft.cli.app import main
from weft.packages.workspace import shipped_folder

PAGE = read_pages("deploy.md")
DATABASE = "postgresql://weft_app:change-me@db/weft_runs"
NATS = "nats://nats:4222"

#: The last line that a program prints when it is ready.
READY = {"worker": b"ready: store ", "serve": b"store "}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A workspace with one run, and no settings."""
    shutil.copytree(shipped_folder() / "HelloWorld", tmp_path / "workflows/HelloWorld")
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WEFT_PORT", "0")
    assert main(["run", "HelloWorld", "hi", "--model", "sample", "--quiet"]) in (0, 4)


def blocks(heading, kind):
    return [text for _, of, text in BLOCK.findall(chapter(PAGE, heading)) if of == kind]


def perform(text, monkeypatch, **addresses):
    """Type the lines of a block; addresses of the page stand for those of the test."""
    for line in text.splitlines():
        for address, real in addresses.values():
            line = line.replace(address, real)  # noqa: PLW2901 - the same line
        program, *words = shlex.split(line)
        if program == "export":
            name, _, value = words[0].partition("=")
            assert name in SETTINGS
            monkeypatch.setenv(name, value)
        elif words[0] in READY:
            work(words)
        else:
            assert (program, main(words)) == ("weft", 0), line


def work(words):
    """Start a worker or a server, and stop it when it is ready."""
    command = [sys.executable, "-m", "weft", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        is_ready = any(line.startswith(READY[words[0]]) for line in process.stdout)
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert is_ready, err
    assert process.returncode == 0, err


@contextmanager
def database(server):
    """Create the roles and the database as the page does; yield its address."""
    [sql] = blocks("PostgreSQL", "sql")
    for statement in sql.splitlines():
        try:
            asyncio.run(execute(server, statement))
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            # The reader is one for all databases of a server: another test may have created it.
            assert statement == "CREATE ROLE weft_reader NOLOGIN;"
    try:
        address = urlsplit(with_database(server, "weft_runs"))
        host = address.netloc.rpartition("@")[2]
        yield urlunsplit(address._replace(netloc=f"weft_app:change-me@{host}"))
    finally:
        asyncio.run(execute(server, "DROP DATABASE weft_runs WITH (FORCE)"))
        asyncio.run(execute(server, "DROP ROLE weft_app"))


def test_commands_for_one_machine(shop, monkeypatch):
    [text] = blocks("One machine", "console")
    perform(text, monkeypatch)


@pytest.mark.parametrize(("number", "command"), [(0, "serve --no-work"), (1, "worker")])
def test_service_files_start_the_programs_and_give_them_time_to_drain(number, command):
    text = blocks("One machine", "ini")[number]
    service = configparser.ConfigParser(interpolation=None, strict=False)
    service.read_string(text)
    program, *words = shlex.split(service["Service"]["ExecStart"])
    assert program.endswith("/bin/weft")
    assert words[:-1] == [*command.split(), "--drain"]
    # A server also has 5 s for answers under way.
    assert float(words[-1]) + 5 < float(service["Service"]["TimeoutStopSec"])
    assert set(re.findall(r"^Environment=(\w+)=", text, re.MULTILINE)) <= set(SETTINGS)


def test_commands_for_postgres_and_nats(shop, monkeypatch, postgres_url, nats_url):
    setup, copies = blocks("PostgreSQL", "console")
    [signals] = blocks("NATS", "console")
    with database(postgres_url) as url:
        perform(copies, monkeypatch, store=(DATABASE, url))
    with database(postgres_url) as url:
        perform(setup, monkeypatch, store=(DATABASE, url))
        perform(signals, monkeypatch, store=(DATABASE, url), signal=(NATS, nats_url))


def test_commands_for_backups(shop, monkeypatch):
    for text in blocks("Backup and restore", "console"):
        perform(text, monkeypatch)


def test_every_block_is_tried():
    kinds = [kind for _, kind, _ in BLOCK.findall(PAGE)]
    assert sorted(kinds) == ["console"] * 6 + ["ini", "ini", "sql"]
