"""docs/api.md is what the server does: its routes are generated, its examples are sent."""

import json
import re
import runpy
from pathlib import Path

import pytest

from support.package_play import GREETER, write
from support.server_play import serving
from weft.server.app import openapi_document

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```http\n(.*?)```(?:\n\n```json\n(.*?)```)?", PAGE, re.DOTALL)


def test_page_has_the_routes_of_the_server():
    with_routes = runpy.run_path(str(ROOT / "scripts" / "api_page.py"))["with_routes"]
    assert with_routes(PAGE) == PAGE, "run `make generate`"


def test_names_of_types_are_different():
    assert "__" not in PAGE


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with the workflow of the examples."""
    workspace = tmp_path_factory.mktemp("workspace")
    orchestrator = GREETER["orchestrator.json"].replace("Greeter", "HelloWorld")
    files = {**GREETER, "orchestrator.json": orchestrator}
    write(workspace / "workflows" / "HelloWorld", files)
    with serving(workspace) as server:
        yield server


@pytest.mark.parametrize(("request_text", "answer"), EXAMPLES)
def test_examples_are_answered_as_shown(server, request_text, answer):
    head, _, body = request_text.partition("\n\n")
    line, *lines = head.splitlines()
    headers = dict(each.split(": ", 1) for each in lines)
    assert headers.pop("Authorization") == "Bearer KEY"
    headers["Content-Type"] = "application/json"
    method, path = line.split(" ")
    key = server.key("ada", "developer")
    reply = server.call(method, path, body.encode() or None, key=key, headers=headers)
    if not answer:
        assert reply.status == 200
        return
    shown = json.loads(answer)
    if "code" in shown:
        assert reply.data == shown
    else:
        assert reply.status < 300
        assert reply.data.keys() == shown.keys()


def test_routes_that_accept_a_key_are_named():
    section = PAGE.split("\n## Repeated requests\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = [route for row in rows for route in re.findall(r"`([A-Z]+ /[^`]+)`", row)]
    accepting = [
        f"{method.upper()} {path}"
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
        if any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", ()))
    ]
    assert sorted(named) == sorted(accepting)


def test_second_delete_finds_nothing_and_second_write_of_a_file_is_a_conflict(server):
    key = server.key("ada", "developer")
    server.call("PUT", "/api/documents/Orders/1", {"open": True}, key=key)
    hook = server.call("POST", "/api/webhooks", {"url": "https://example.org/"}, key=key).data
    for path in ("/api/documents/Orders/1", f"/api/webhooks/{hook['id']}"):
        assert [server.call("DELETE", path, key=key).status for _ in range(2)] == [200, 404]
    file = {"content": "A greeter.", "digest": None}
    path = "/api/workflows/HelloWorld/files/README.md"
    assert [server.call("PUT", path, file, key=key).status for _ in range(2)] == [200, 409]


def test_every_part_of_the_page_has_its_example():
    assert len(EXAMPLES) == 3
