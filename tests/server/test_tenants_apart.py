"""Whatever a caller names, only what is the caller's own is found: over all paths and commands.

What belongs to others is answered exactly like what does not exist.
"""

import json
import re
from http.client import HTTPConnection
from typing import get_args
from urllib.parse import quote, urlsplit

import pytest

from support.server_play import PATIENCE, Reply
from support.socket_play import Socket
from support.tenants_world import ROLES, UNKNOWN, fill, session, staff, tenants, without
from weft.app.folders import LOCAL
from weft.server.identity import Role
from weft.server.live.commands import AnyCommand
from weft.server.routing import ROLES_KEY

#: What is ada's own in a tenant, and what only staff has to do with.
PRIVATE = ("run", "request", "artifact", "correlation", "cursor")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with tenants(tmp_path_factory.mktemp("tenants"), "shop", "clinic") as found:
        yield found


@pytest.fixture(scope="module")
def server(world):
    return world[0]


@pytest.fixture(scope="module")
def shop(world):
    return world[1][0]


#: What changes by itself, does not end, or logs webhooks that were refused.
UNSTEADY = {
    "/metrics", "/docs", "/api/runs/{run}/stream", "/api/boards/{workflow}/changes",
    "/api/starts", "/api/starts/{id}/firings",
}  # fmt: skip


def operations(document):
    return [(method, path) for path, methods in document["paths"].items() for method in methods]


def ask(server, method, path, ids, *, key="", headers=None) -> Reply:
    filled = fill(server.document, method, path, ids)
    given = {**filled.headers, **(headers or {})}
    reply = server.call(method.upper(), filled.path, filled.body, key=key, headers=given)
    assert reply.status < 500, f"{method} {path}: {reply.content!r}"
    return reply


def plain(reply, ids):
    """Return an answer without the ids that the request named."""
    text = reply.content.decode("utf-8", "replace")
    for value in sorted(map(str, vars(ids).values()), key=len, reverse=True):
        text = text.replace(value, "ID") if len(value) > 3 else text
    # What is made has a new id, or is that of an earlier request.
    return (2, "") if reply.status < 300 else (reply.status, text)


def everything(server, ids):
    """Return all that a tenant has, as its staff reads it."""
    boss = staff(server, ids.app)
    return {
        path: re.sub(rb'"last_used_at":(\d+|null)|"changes":"\w+"', b"", reply.content)
        for method, path in operations(server.document)
        if method == "get" and path not in UNSTEADY
        for reply in [ask(server, method, path, ids, key=boss)]
    }


#: Ways to claim to be somebody else, besides a key of one's own.
def disguise(server, ids):
    return {
        "Cookie": session(server, ids.app, "ada", *ROLES),
        "X-Forwarded-User": "ada",
        "X-Weft-App": ids.app,
        "X-Original-URL": "/api/keys",
        "X-HTTP-Method-Override": "DELETE",
        "Idempotency-Key": "ada's",
    }


def test_the_walk_finds_what_there_is(server, shop):
    """Otherwise nothing below could fail."""
    boss = staff(server, shop.app)
    found = everything(server, shop) | {"": server.call("GET", "/api/starts", key=boss).content}
    missing = {path for path, content in found.items() if b'"code":"HTTP404"' in content}
    # There is neither a design nor a component.
    assert {path for path in missing if not re.search("/(plans|components)/", path)} == set()
    text = b"".join(found.values()).decode("utf-8", "replace")
    for canary in ("about", "prompt", "user", "document", "hook", "key", "ada-message", "ada-note"):
        assert f"canary-shop-{canary}" in text, canary
    assert "/hooks/shop/shop/orders" in text


@pytest.mark.parametrize("roles", [("end_user",), ROLES], ids=["user", "staff"])
def test_another_tenant_finds_nothing(server, shop, roles):
    key = server.key("mallory", *roles, app="clinic")
    before = everything(server, shop)
    headers = disguise(server, shop)
    for method, path in operations(server.document):
        given = {} if path == "/api/session" else headers
        reply = ask(server, method, path, shop, key=key, headers=given)
        unknown = ask(server, method, path, UNKNOWN, key=key, headers=given)
        assert b"canary-shop" not in hidden(reply, shop), f"{method} {path}"
        assert plain(reply, shop) == plain(unknown, UNKNOWN), f"{method} {path}"
    assert everything(server, shop) == before, "something was changed"


def hidden(reply, ids):
    """Return an answer without what the request itself had named."""
    content = reply.content
    for value in (ids.user, ids.correlation):
        content = content.replace(value.encode(), b"")
    return content


def test_another_user_finds_nothing_of_ada(server, shop):
    key = server.key("bob", "end_user", app="shop")
    before = everything(server, shop)
    nobody = without(shop, *PRIVATE)
    for method, path in operations(server.document):
        reply = ask(server, method, path, shop, key=key)
        unknown = ask(server, method, path, nobody, key=key)
        assert b"canary-shop-ada" not in hidden(reply, shop), f"{method} {path}"
        assert plain(reply, shop) == plain(unknown, nobody), f"{method} {path}"
    after = everything(server, shop)
    changed = {path for path in before if before[path] != after[path]}
    # What he may do for himself: start runs and publish.
    own = {"/api/runs", "/api/boards/{workflow}/artifacts", "/api/agents", "/api/requests"}
    assert changed <= own


@pytest.mark.parametrize("role", [role for role in ROLES if role != "administrator"])
def test_forbidden_routes_look_missing(server, shop, role):
    key = server.key("sam", role, app="shop")
    nothing = server.call("GET", "/api/nothing", key=key)
    closed = 0
    for method, path in operations(server.document):
        allowed = server.document["paths"][path][method][ROLES_KEY]
        if "public" in allowed or role in allowed:
            continue
        reply = ask(server, method, path, shop, key=key)
        assert (reply.status, reply.content) == (404, nothing.content), f"{method} {path}"
        closed += 1
    assert closed > 5
    assert role in get_args(Role)


def test_without_a_valid_key_every_path_is_closed(server, shop):
    cookie = {"Cookie": session(server, "shop", "ada", *ROLES)}
    for method, path in operations(server.document):
        if "public" in server.document["paths"][path][method][ROLES_KEY]:
            continue
        for key, headers in (("", {}), ("weft_0123456789ab_x", cookie), ("a.b.c", {})):
            reply = ask(server, method, path, shop, key=key, headers=headers)
            unknown = ask(server, method, path, UNKNOWN, key=key, headers=headers)
            assert reply.status == 401, f"{method} {path}"
            assert reply.content == unknown.content


def test_other_spellings_of_a_path_find_nothing(server, shop):
    run = shop.run
    key = server.key("mallory", *ROLES, app="clinic")
    for path in (
        f"/api/runs/{run}/", f"//api/runs/{run}", f"/api//runs/{run}", f"/api/./runs/{run}",
        f"/api/runs/../runs/{run}", f"/api/runs/%2e%2e/runs/{run}", f"/api/runs/x%2f..%2f{run}",
        f"/API/runs/{run}", f"/api/runs/{run.upper()}", f"/api/runs/{run}%00", f"/api/runs/{run};a",
        f"/api/runs/{run}%20", f"/api/runs/shop%2f{run}", f"/api/runs/{run}?app=shop",
        f"/api/runs/{run}#x", "/api/runs/%", "/api/runs/%2A", "/api/runs/*", "/api/runs/' OR 1=1--",
        "/api/workflows/..%2f..%2fapps%2fshop%2fworkflows%2fshopDesk",
        "/api/workflows/shopDesk/files/..%2f..%2fshop%2fshopDesk%2fagents.json",
        "/api/workflows/clinicDesk/files/../../../../apps/shop/workflows/shopDesk/agents.json",
        "/api/workflows/clinicDesk/files/%2e%2e/%2e%2e/%2e%2e/shop/workflows/shopDesk/agents.json",
        "/api/workflows/clinicDesk/files//etc/passwd",
        "/api/workflows/..%2f.weft/files/journal.db",
        f"/hooks/shop/../../api/runs/{run}", f"/docs/../api/runs/{run}",
    ):  # fmt: skip
        reply = server.call("GET", quote(path, safe="/%?#;'*=&"), key=key)
        assert reply.status in (400, 404, 405, 422), (path, reply.content)
        assert b"canary" not in reply.content, path


def test_cursors_keys_and_ids_of_others_are_of_no_use(server, shop):
    mallory = server.key("mallory", *ROLES, app="clinic")
    bob = server.key("bob", "end_user", app="shop")
    ada = server.key("ada", "end_user", app="shop")
    body = {"workflow": "shopDesk", "message": "canary-shop-ada-first"}
    headers = {"Idempotency-Key": "once"}
    first = server.call("POST", "/api/runs", body, key=ada, headers=headers).data["run"]
    second = server.call("POST", "/api/runs", body, key=bob, headers=headers)
    assert (second.status, second.data["run"] != first) == (201, True)
    same = {"workflow": "clinicDesk", "message": "hello", "run": first}
    made = server.call("POST", "/api/runs", same, key=mallory, headers=headers)
    assert (made.status, made.data["run"]) == (201, first), "the ids of tenants are apart"
    texts = [server.call("GET", f"/api/runs/{first}/events", key=key) for key in (mallory, ada)]
    assert [b"canary-shop-ada-first" in text.content for text in texts] == [False, True]
    for path in ("/api/requests", "/api/runs"):
        reply = server.call("GET", f"{path}?cursor={shop.cursor}", key=mallory)
        assert b"canary-shop" not in reply.content


COMMANDS = {
    "follow": {"run": "{run}"},
    "follow_board": {"workflow": "{workflow}"},
    "unfollow": {"run": "{run}"},
    "message": {"run": "{run}", "text": "x"},
    "answer": {"run": "{run}", "request": "{request}", "value": "x"},
    "cancel_request": {"run": "{run}", "request": "{request}"},
    "cancel": {"run": "{run}"},
    "retry": {"run": "{run}"},
    "fork": {"run": "{run}", "turn": 1},
    "start": {"workflow": "{workflow}", "force": True},
    "pong": {},
}


@pytest.mark.parametrize(
    ("app", "roles"), [("clinic", ROLES), ("shop", ("end_user",))], ids=["tenant", "user"]
)
def test_sockets_find_nothing_of_others(server, shop, app, roles):
    known = {get_args(each.model_fields["cmd"].annotation)[0] for each in get_args(AnyCommand)}
    assert known == set(COMMANDS), "a command is not tested"
    key = server.key("mallory", *roles, app=app)
    before = everything(server, shop)
    nobody = UNKNOWN if app == "clinic" else without(shop, *PRIVATE)
    found = []
    with Socket(server.url, key) as opened:
        for cmd, fields in COMMANDS.items():
            if cmd == "pong" or (app == "shop" and cmd == "start"):
                continue
            for ids in (shop, nobody):
                given = {
                    name: value.format(**vars(ids)) if isinstance(value, str) else value
                    for name, value in fields.items()
                }
                answer = {**opened.do(cmd, **given), "id": ""}
                text = json.dumps(answer)
                for value in (ids.request, ids.run, ids.workflow):
                    text = text.replace(value, "ID")
                found.append(text)
            assert found[-1] == found[-2], cmd
        assert "canary" not in json.dumps(opened.frames)
        assert not opened.events
    assert everything(server, shop) == before


def test_roles_hold_for_commands(server, shop):
    with Socket(server.url, server.key("root2", "administrator", app="shop")) as all_roles:
        assert all_roles.do("follow", run=shop.run)["ok"]
    with Socket(server.url, server.key("ada", "end_user", app="shop")) as user:
        assert user.do("fork", run=shop.run, turn=1)["problem"]["code"] == "HTTP404"
        problem = user.do("start", workflow="shopDesk", values={"a": 1})["problem"]
        assert problem["code"] == "HTTP422"
    assert LOCAL.app not in ("shop", "clinic")


def test_two_hosts_in_one_request_are_refused(server):
    """A proxy and the server must not each read another one."""
    for head in (
        "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: elsewhere.example\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1@elsewhere.example\r\n\r\n",
        (
            "POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n"
            "transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
    ):
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
        connection.connect()
        connection.sock.sendall(head.encode())
        status = int(connection.sock.recv(1000).split(b" ")[1])
        connection.close()
        assert status in (400, 421), head
