"""The pages about the server say what it does: limits, roles, frames, codes and paths."""

import re
from typing import get_args

from support.page_play import read_pages
from weft.app.settings import SETTINGS
from weft.server.app import openapi_document
from weft.server.auth.tokens import ALGORITHMS
from weft.server.identity import ROLES
from weft.server.live import socket
from weft.server.live.commands import AnyCommand
from weft.server.live.feeds import STOPPING
from weft.server.live.ring import MAX_BYTES, MAX_FRAMES
from weft.server.routing import ROLES_KEY
from weft.server.settings import PORT, Limits
from weft.server.signatures import WINDOW

SERVER, SECURITY = read_pages("server.md"), read_pages("security.md")
ROWS = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", SERVER, re.MULTILINE))
DOCUMENT = openapi_document()


def test_limits():
    limits = Limits()
    wanted = {
        "header": f"{limits.header_bytes >> 10} KiB, complete after {limits.header_seconds:g} s",
        "address": f"{limits.url_bytes >> 10} KiB",
        "body": f"{limits.body_bytes >> 20} MiB, complete after {limits.body_seconds:g} s "
        "and 1 s for each 50 kB",
        "body with files (packages, documents)": f"{limits.upload_bytes >> 20} MiB",
        "frame of a socket": f"{limits.frame_bytes >> 10} KiB",
        "connections without a complete header": f"{limits.half_open}, or a quarter of the "
        "descriptors of the process",
        "sockets and streams of one caller": f"{limits.sockets:,}",
        "runs and boards that one socket follows": f"{socket.MOST_FOLLOWED:,}",
    }
    assert {name: ROWS[name] for name in wanted} == wanted
    assert f"at most {MAX_FRAMES} frames or {MAX_BYTES >> 10} KiB" in SERVER
    assert f"by {WINDOW} s" in SECURITY
    assert f"--port {PORT}" in SERVER


def test_roles_commands_and_codes():
    assert [name.strip("`") for name in ROWS if name.strip("`") in ROLES] == list(ROLES)
    commands = {get_args(each.model_fields["cmd"].annotation)[0] for each in get_args(AnyCommand)}
    assert set(re.findall(r'"cmd": "(\w+)"', SERVER)) <= commands
    codes = {socket.NOT_VALID[0], socket.SILENT[0], STOPPING[0]}
    assert {int(code) for code in re.findall(r"with (1\d{3})", SERVER)} == codes | {1009}
    assert ", ".join(ALGORITHMS[:2]) in SECURITY.replace("\n", " ")


def test_paths_and_settings_exist():
    paths = {re.sub(r"\{\w+\}", "RUN", path) for path in DOCUMENT["paths"]} | {"/openapi.json"}
    named = set(re.findall(r"`(?:[A-Z]+ )?(/[\w./]+)`", SERVER + SECURITY))
    assert named - paths == {"/api/ws"}
    assert set(re.findall(r"\bWEFT_[A-Z_]+", SERVER + SECURITY)) <= set(SETTINGS)


def test_public_paths_are_named():
    public = {
        path
        for path, methods in DOCUMENT["paths"].items()
        for operation in methods.values()
        if "public" in operation[ROLES_KEY]
    }
    row = next(line for line in SECURITY.splitlines() if line.startswith("| everyone else"))
    others = {"/api/session", "/hooks/{app}/{path}", "/metrics"}
    assert public - others == set(re.findall(r"`(/\w+)`", row)), "a new public path"
