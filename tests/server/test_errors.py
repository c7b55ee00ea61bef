"""Errors of the API: each has a code that `weft explain` knows, and names no folder."""

import json
import re
import socket
from contextlib import ExitStack, contextmanager
from urllib.parse import quote, urlsplit

import pytest
from websockets.sync.client import connect

from support.desk_play import make_desk
from support.package_play import BROKEN, GREETER, write
from support.server_play import serving
from weft.server.codes import HTTP_RULES
from weft.server.problems import Folders
from weft.server.routing import PROBLEMS
from weft.server.settings import Limits, ServerSettings

LIMITS = Limits(body_seconds=0.5, sockets=1)


def named(name, files, **more):
    orchestrator = files["orchestrator.json"].replace("Greeter", name)
    return {**files, "orchestrator.json": orchestrator, **more}


TOOL = {
    "tool_type": "Agent_Tool",
    "agent": "Host",
    "file": "wave.py",
    "function": "wave",
    "description": "Waves.",
}
#: Packages that cannot be used, by what is wrong with them.
PACKAGES = {
    "Wrong": named("Wrong", BROKEN),
    "Unreadable": named("Unreadable", GREETER, **{"agents.json": "{"}),
    "Scheduled": named("Scheduled", GREETER, **{"orchestrator.json": "{"}),
    "Linked": named("Linked", GREETER),
    "Code": named(
        "Code",
        GREETER,
        **{
            "tools.json": json.dumps({"tools": [TOOL]}),
            "tools/wave.py": 'raise OSError(__file__)\n\n\ndef wave():\n    """Wave."""\n',
        },
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with packages that cannot be used."""
    workspace = tmp_path_factory.mktemp("workspace")
    make_desk(workspace)
    for name, files in PACKAGES.items():
        write(workspace / "workflows" / name, files)
    (workspace / "workflows" / "Linked" / "link.txt").symlink_to(workspace / "outside.txt")
    with serving(workspace, settings=ServerSettings(port=0, limits=LIMITS)) as server:
        yield server


def everyone(server):
    return server.key("root", "administrator", "developer", "operator", "end_user")


#: Bodies that are right for some route and wrong for all others.
BODIES = (
    None,
    {},
    {"workflow": "NAME", "message": "hi", "force": True},
    {"type": "NAME", "data": {}},
    {"content": "x", "digest": None},
)


@pytest.mark.parametrize("name", [*PACKAGES, "Nothing", "a b\u00e9"])
def test_no_answer_names_a_folder_of_the_server(server, name):
    key = everyone(server)
    for path, methods in server.document["paths"].items():
        filled = re.sub(r"\{\w+\}", quote(name, safe=""), path)
        for method in methods:
            for query in ("", f"?workflow={quote(name)}"):
                for body in BODIES if method in ("post", "put") else BODIES[:1]:
                    text = json.dumps(body).replace("NAME", name).encode()
                    reply = server.call(
                        method.upper(),
                        filled + query,
                        None if body is None else text,
                        key=key,
                        headers={"Content-Type": "application/json"},
                    )
                    # A code and a message are required of every error by `call`.
                    assert reply.status not in (500, 503), (method, filled, reply.content)


def test_error_of_code_names_its_file_from_the_workspace_on(server):
    body = {"workflow": "Code", "message": "hi"}
    said = server.post("/api/runs", body, key=everyone(server), status=422)
    assert "wave.py" in json.dumps(said)


def test_errors_on_sockets_name_no_folder(server):
    headers = {"Authorization": f"Bearer {everyone(server)}"}
    url = server.url.replace("http", "ws") + "/api/ws"
    with connect(url, additional_headers=headers, proxy=None) as socket_:
        socket_.send(json.dumps({"id": "1", "cmd": "start", "workflow": "Code", "message": "hi"}))
        [ack] = json.loads(socket_.recv(20))
    assert (ack["kind"], ack["ok"], ack["problem"]["code"]) == ("ack", False, "HTTP422")
    assert "wave.py" in json.dumps(ack)
    assert str(server.opened.context.workspace) not in json.dumps(ack)


def test_folders_are_hidden_in_texts(tmp_path):
    folders = Folders(tmp_path)
    assert folders.hide(f"cannot read {tmp_path}/workflows/a.json") == (
        "cannot read workflows/a.json"
    )
    assert folders.hide(f"cannot write {tmp_path}: full") == "cannot write the workspace: full"
    assert folders.hide("POST /api/packages") == "POST /api/packages"


# -- codes


def raw(server, *parts):
    """Send bytes, and return the status and the problem of the answer."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
        connection.sendall(b"\r\n".join(parts))
        content = b""
        while piece := connection.recv(65_536):
            content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), json.loads(body)


@contextmanager
def stream(server, path):
    """Keep a stream open."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
        key = everyone(server)
        lines = (f"GET {path} HTTP/1.1", f"host: {where.netloc}", f"authorization: Bearer {key}")
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        assert b" 200 " in connection.recv(100)
        yield


def test_every_code_is_answered_and_explained(server, monkeypatch):
    key, host = everyone(server), b"host: 127.0.0.1"
    found = {}

    def call(*request, **options):
        reply = server.call(*request, **options)
        found[reply.status] = reply.data

    def send(*parts):
        status, problem = raw(server, *parts)
        found[status] = problem

    call("POST", "/api/runs", b"{", key=key, headers={"Content-Type": "application/json"})
    call("GET", "/api/me")
    call("POST", "/api/runs", {}, key=key, headers={"Origin": "https://elsewhere.example"})
    call("GET", "/api/nothing", key=key)
    call("DELETE", "/api/workflows", key=key)
    call("GET", "/api/me", headers={"Host": "attacker.example"})
    call("POST", "/api/runs", {"workflow": 3}, key=key)
    body = {"content": "x", "digest": None}
    call("PUT", "/api/workflows/Desk/files/agents.json", body, key=key)
    send(b"POST /api/session HTTP/1.1", host, b"content-length: 10", b"", b"{")
    send(b"POST /api/session HTTP/1.1", host, b"content-length: 9000000", b"", b"")
    send(b"GET /" + b"a" * 9_000 + b" HTTP/1.1", host, b"", b"")
    send(b"GET /healthz HTTP/1.1", host, b"x: " + b"a" * 40_000, b"", b"")
    with ExitStack() as stack:
        path = "/api/boards/NewsDesk/changes?stream=true"
        stack.enter_context(stream(server, path))
        call("GET", path, key=key)
    context = server.opened.context
    with monkeypatch.context() as patch:
        patch.setattr(context, "is_stopping", True)
        call("GET", "/readyz")
    with monkeypatch.context() as patch:
        patch.setattr(context.host, "runs", None)
        call("GET", "/api/runs", key=key)
    of_routers = {"HTTP502"}  # They are those of packages: test_extensions.py.
    codes = {problem["code"] for problem in found.values()}
    assert codes == {rule.code for rule in HTTP_RULES} - of_routers
    assert found.keys() == PROBLEMS.keys()
    for status, problem in found.items():
        assert problem["code"] == f"HTTP{status}"
        assert set(problem) >= {"code", "message", "cause", "hint", "findings"}


# -- what is wrong with a body


def refusal(server, body, content_type="application/json"):
    headers = {"Content-Type": content_type} if content_type else {}
    reply = server.call("POST", "/api/runs", body, key=everyone(server), headers=headers)
    return reply.status, reply.data


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded"])
def test_json_that_is_not_sent_as_such_is_refused_with_the_header_to_send(server, content_type):
    status, problem = refusal(server, b'{"workflow": "Desk"}', content_type)
    assert (status, problem["message"]) == (422, "the body was not sent as JSON")
    assert problem["hint"] == ["send Content-Type: application/json"]


def test_invalid_json_body_is_refused_with_line_and_column(server):
    status, problem = refusal(server, b'{\n  "workflow": Desk}')
    assert (status, problem["message"]) == (400, "the body is not valid JSON")
    assert problem["cause"] == ["body, line 2, column 15: expecting value"]


def test_unknown_fields_are_refused_with_the_known_ones(server):
    key = everyone(server)
    reply = server.call("POST", "/api/runs/x/fork", {"turn": 1, "values": {}}, key=key)
    assert (reply.status, reply.data["cause"]) == (
        422, ["body: unknown fields: values; known: turn, at, edits, message, model"],
    )  # fmt: skip
    reply = server.call("GET", "/api/boards/NewsDesk/artifacts?kind=x", key=key)
    assert reply.status == 422
    assert reply.data["cause"][0].startswith("query: unknown fields: kind; known: type, tag, ")
    status, problem = refusal(server, b'{"\\ud800{known}": 1}')
    assert (status, problem["code"]) == (422, "HTTP422")


def test_wrong_values_are_named_with_their_place(server):
    status, problem = refusal(server, b'{"message": 3}')
    assert status == 422
    assert problem["cause"] == [
        "body.workflow: field required",
        "body.message: input should be a valid string",
    ]
