"""The page about starts: its package works on a server, and its tables are complete."""

import json
import re
import shutil
from http.client import HTTPConnection
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from support.page_play import BLOCK, read_example, read_pages
from support.server_play import PATIENCE, Server, serving
from support.start_play import until_runs
from weft.server.extensions.access import ExtensionHost
from weft.server.signatures import WINDOW
from weft.spec.orchestrator import Start

ROOT = Path(__file__).parents[2]
PAGE = read_pages("starts.md")


def call(server: Server, method: str, path: str, key: str, body: object = None) -> object:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, json.dumps(body), headers)
        return json.load(connection.getresponse())
    finally:
        connection.close()


def test_package_of_the_page_is_the_shipped_one_and_the_sender_works(tmp_path: Path, capsys):
    page = read_example(PAGE)
    assert len(page.files) == 3
    assert page.files == {name: (ROOT / name).read_text("utf-8") for name in page.files}
    copied = shutil.copytree(ROOT / "examples" / "starts", tmp_path / "starts")
    (sender,) = [text for name, kind, text in BLOCK.findall(PAGE) if kind == "python" and not name]
    (secret,) = re.findall(r"^SHOP_SECRET=(\S+) ", PAGE, re.MULTILINE)
    with serving(copied, {"SHOP_SECRET": secret}) as server:
        program = compile(sender.replace("http://127.0.0.1:8765", server.url), "starts.md", "exec")
        exec(program, {})
        exec(program, {})  # The same delivery.
        first, second = capsys.readouterr().out.split()
        assert first == second
        until_runs(server, "OrderIntake", 1)
        operator = server.key("op", "operator")
        found = call(server, "GET", f"/x/OrderIntake/orders/{first}", operator)
        assert isinstance(found, dict)
        assert found["order"] == first
        states = [each["state"] for each in server.get("/api/extensions", key=operator)["items"]]
        assert states == ["running", "running"]
        developer = server.key("dev", "developer")
        (webhook,) = read_example(PAGE).definitions
        server.post("/api/webhooks", webhook, key=developer, status=201)


def test_every_kind_of_start_and_method_of_the_host_is_on_the_page():
    union, _ = get_args(Start)
    for kind in get_args(union):
        assert f"| `{kind.model_fields['type'].default}` |" in PAGE
        for field in kind.model_fields:
            assert field == "type" or f"`{field}`" in PAGE, field
    for name in vars(ExtensionHost):
        assert name.startswith("_") or f"`{name}" in PAGE, name
    assert f"more than {WINDOW} seconds" in PAGE
