"""Webhooks begin one run for each delivery; requests that are not right are refused."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.server_play import Reply, Server, serving
from support.start_play import make_started, runs_of, send_hook, until_runs
from weft.server.codes import HTTP_RULES
from weft.server.signatures import WINDOW, sign
from weft.server.starts import hooks
from weft.testing.clock import ManualClock

SECRET, NEXT_SECRET = "first secret", "next secret"
ENVIRONMENT = {"ORDERS_SECRET": f"{SECRET}, {NEXT_SECRET}"}

#: The codes that `weft explain` knows.
EXPLAINED = {rule.code for rule in HTTP_RULES}

HOOK = "/hooks/local/orders/new"


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hooks")
    hook = {"type": "webhook", "path": "orders/new", "secret_env": "ORDERS_SECRET"}
    make_started(folder, "Orders", hook)
    make_started(folder, "Unset", {"type": "webhook", "secret_env": "NOT_SET"})
    make_started(folder, "Talk")
    own = folder / "apps" / "shop"
    make_started(own, "Orders", hook)
    (own / "secrets.json").write_text(json.dumps({"ORDERS_SECRET": "of the shop"}))
    return folder


@pytest.fixture(scope="module")
def server(workspace: Path, clock: ManualClock) -> Iterator[Server]:
    with serving(workspace, ENVIRONMENT, clock=clock) as server:
        yield server


def is_problem(reply: Reply, status: int, message: str) -> bool:
    """Check that an answer has the shape of problems, with a code that is explained."""
    assert (reply.status, reply.data["code"]) == (status, f"HTTP{status}"), reply.content
    assert {"code", "message", "cause", "hint", "findings"} <= reply.data.keys()
    assert message in reply.data["message"], reply.data
    return reply.data["code"] in EXPLAINED


def now_of(clock: ManualClock) -> float:
    return clock.now() / 1000


def test_path_is_the_address_and_secret_env_names_the_secret(server: Server, clock: ManualClock):
    items = server.get("/api/starts", key=server.key("op", "operator"))["items"]
    trigger = next(each["trigger"] for each in items if each["id"] == "Orders")
    hook = f"/hooks/local/{trigger['path']}"
    secret = ENVIRONMENT[trigger["secret_env"]].partition(",")[0]
    assert send_hook(server, hook, {}, secret=secret, at=now_of(clock)).status == 202
    by_name = send_hook(server, "/hooks/local/Orders", {}, secret=secret, at=now_of(clock))
    assert by_name.status == 401


def test_both_secrets_are_accepted_while_they_are_changed(server: Server, clock: ManualClock):
    before = len(runs_of(server, "Orders"))
    for secret in (SECRET, NEXT_SECRET):
        given = {"changed": True}
        assert send_hook(server, HOOK, given, secret=secret, at=now_of(clock)).status == 202
    until_runs(server, "Orders", before + 2)


def test_repeated_delivery_answers_with_its_run(server: Server, clock: ManualClock):
    before = len(runs_of(server, "Orders"))
    given = {"secret": SECRET, "delivery": "d-1"}
    first = send_hook(server, HOOK, {"order": 1}, at=now_of(clock), **given)
    again = send_hook(server, HOOK, {"order": 1}, at=now_of(clock) + 7, **given)
    assert (first.status, again.status) == (202, 202)
    assert first.data == again.data
    renamed = send_hook(server, HOOK, {"order": 1}, secret=SECRET, delivery="d-2", at=now_of(clock))
    assert renamed.data == first.data, "the request was signed once"
    until_runs(server, "Orders", before + 1)


@pytest.mark.parametrize("hook", [HOOK, "/hooks/local/nothing", "/hooks/local/Talk"])
def test_wrong_signature_and_unknown_webhook_look_the_same(
    server: Server, clock: ManualClock, hook: str
):
    wrong = send_hook(server, hook, {}, secret="guessed", at=now_of(clock))
    assert is_problem(wrong, 401, "the signature does not fit the body and the secret")
    nothing = send_hook(server, hook, {}, signature="t=1")
    assert is_problem(nothing, 401, "must be t=SECONDS,v1=HEX")


def test_changed_body_is_refused(server: Server, clock: ManualClock):
    signature = sign(SECRET, b'{"order": 1}', int(now_of(clock)))
    changed = send_hook(server, HOOK, b'{"order": 9}', signature=signature)
    assert is_problem(changed, 401, "does not fit the body")


@pytest.mark.parametrize("skew", [WINDOW + 1, -WINDOW - 1])
def test_clock_of_the_sender_may_differ_by_five_minutes(
    server: Server, clock: ManualClock, skew: int
):
    late = send_hook(server, HOOK, {}, secret=SECRET, at=now_of(clock) + skew)
    assert is_problem(late, 401, "differs by more than 300 s")
    near = skew - 2 if skew > 0 else skew + 2
    assert send_hook(server, HOOK, {}, secret=SECRET, at=now_of(clock) + near).status == 202


@pytest.mark.parametrize("body", [b"{", b"[1, 2]", b"\xff"])
def test_signed_body_that_is_not_an_object_is_refused(
    server: Server, clock: ManualClock, body: bytes
):
    before = len(runs_of(server, "Orders"))
    refused = send_hook(server, HOOK, body, secret=SECRET, at=now_of(clock))
    assert is_problem(refused, 422, "the body is not")
    assert len(runs_of(server, "Orders")) == before


def test_body_that_is_too_large_is_refused(server: Server, clock: ManualClock):
    limit = server.opened.context.settings.limits.body_bytes
    # The server answers when it has read the header: the body need not be sent.
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0)) as client:
        head = f"POST {HOOK} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {limit + 1}\r\n\r\n"
        client.sendall(head.encode())
        answer = client.makefile("rb").read()
    reply = Reply(int(answer.split()[1]), {}, answer.partition(b"\r\n\r\n")[2])
    assert is_problem(reply, 413, f"larger than {limit} bytes")


def test_secret_of_a_tenant_is_its_own(server: Server, clock: ManualClock):
    server.post("/api/apps", {"app": "shop"}, key=server.key("root", "administrator"))
    hook = "/hooks/shop/orders/new"
    operator = server.key("op", "operator", app="shop")
    server.until("/api/starts", operator, is_so=lambda page: page["items"])
    assert send_hook(server, hook, {}, secret=SECRET, at=now_of(clock)).status == 401
    accepted = send_hook(server, hook, {}, secret="of the shop", at=now_of(clock))
    assert accepted.status == 202
    (run,) = until_runs(server, "Orders", 1, app="shop")
    assert (run["app"], run["user"]) == ("shop", "webhook:Orders")


def test_webhook_without_a_secret_accepts_nothing(server: Server, clock: ManualClock, caplog):
    reply = send_hook(server, "/hooks/local/Unset", {}, secret="", at=now_of(clock))
    assert reply.status == 401
    assert "NOT_SET is not set for tenant local" in caplog.text


def test_refused_requests_have_a_log_of_their_own_and_are_warnings(
    server: Server,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(hooks, "_REFUSED_EVERY", 0)
    caplog.clear()
    key = server.key("op", "operator")

    def shown() -> tuple[list[dict], dict]:
        items = server.get("/api/starts", key=key)["items"]
        start = next(each for each in items if each["id"] == "Orders")
        return server.get("/api/starts/Orders/firings", key=key)["items"], start

    send_hook(server, HOOK, {}, secret=SECRET, delivery="d-8", at=now_of(clock))
    before = shown()
    send_hook(server, HOOK, {}, secret="guessed", delivery="d-9", at=now_of(clock))
    assert shown() == before
    assert before[1]["error"] == ""
    refused = server.get("/api/starts/Orders/firings?refused=true", key=key)["items"]
    assert [each["delivery"] for each in refused].count("d-9") == 1
    assert all("signature" in each["error"] and each["run"] is None for each in refused[:1])
    said = [each for each in caplog.records if "was refused" in each.getMessage()]
    assert said[-1].levelname == "WARNING"
    assert said[-1].getMessage().startswith("a delivery to Orders of tenant local was refused: ")
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
