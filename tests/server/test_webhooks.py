"""Events of runs are sent to webhooks: signed, in order, until they are accepted."""

import time
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from support.hook_receiver import Receiver, receiving
from support.server_play import PATIENCE, Server, serving
from support.start_play import make_started
from weft.errors import StoreError
from weft.server import webhooks


def until(condition: Any) -> None:
    """Wait until it is so."""
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end
        sleep(0.02)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("webhooks")
    for name in ("Orders", "Returns"):
        make_started(folder, name, {"type": "webhook"})
    with serving(folder, {"WEFT_ALLOW_HOSTS": "127.0.0.1"}) as server:
        yield server


@pytest.fixture
def receiver(server: Server) -> Iterator[Receiver]:
    """A receiver; after the test the server has no webhooks."""
    with receiving() as found:
        yield found
        key = server.key("dev", "developer")
        for webhook in server.get("/api/webhooks", key=key)["items"]:
            server.send("DELETE", f"/api/webhooks/{webhook['id']}", key=key)


def add(server: Server, url: str, **wanted: Any) -> dict[str, str]:
    key = server.key("dev", "developer")
    return server.post("/api/webhooks", {"url": url, **wanted}, key=key, status=201)


def begin(server: Server, workflow: str = "Orders") -> str:
    key = server.key("op", "operator")
    run = server.post(f"/api/starts/{workflow}/fire", {}, key=key, status=201)["run"]
    assert server.settled(run, key)["outcome"] == "completed"
    return run


def deliveries(server: Server, id_: str) -> list[dict[str, Any]]:
    key = server.key("dev", "developer")
    return server.get(f"/api/webhooks/{id_}/deliveries", key=key)["items"]


def test_every_event_is_sent_in_order_and_signed(server: Server, receiver: Receiver):
    made = add(server, receiver.url)
    receiver.secret = made["secret"]
    run = begin(server)
    until(lambda: "RunEnded" in receiver.kinds)
    events = server.get(f"/api/runs/{run}/events", key=server.key("dev", "developer"))["items"]
    assert [body["event"] for _, body in receiver.received] == events
    assert [delivery for delivery, _ in receiver.received] == [
        f"{run}:{event['seq']}" for event in events
    ]
    assert {(body["app"], body["workflow"]) for _, body in receiver.received} == {
        ("local", "Orders")
    }
    until(lambda: len(deliveries(server, made["id"])) == len(events))
    assert {each["error"] for each in deliveries(server, made["id"])} == {""}


def test_kinds_and_workflows_choose_events(server: Server, receiver: Receiver):
    add(server, receiver.url, kinds=["RunEnded"], workflows=["Returns"])
    begin(server)
    begin(server, "Returns")
    until(lambda: receiver.received)
    add(server, receiver.url, kinds=["RunStarted"])
    begin(server)
    until(lambda: len(receiver.received) == 2)
    found = [(body["workflow"], body["event"]["kind"]) for _, body in receiver.received]
    assert found == [("Returns", "RunEnded"), ("Orders", "RunStarted")]


def test_event_that_is_not_accepted_is_sent_again(
    server: Server, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "_SOONEST", 50)
    receiver.status = 503
    made = add(server, receiver.url, kinds=["RunStarted", "RunEnded"])
    begin(server)
    until(lambda: len(receiver.received) >= 2)
    assert set(receiver.kinds) == {"RunStarted"}, "later events wait for the first"
    assert "answered 503" in deliveries(server, made["id"])[0]["error"]
    receiver.status = 200
    until(lambda: "RunEnded" in receiver.kinds)
    ids = [delivery for delivery, _ in receiver.received]
    assert len(set(ids)) == 2
    assert deliveries(server, made["id"])[0]["error"] == ""


def test_events_of_a_webhook_that_another_server_has_just_added_are_sent(
    server: Server, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "_SOONEST", 50)
    receiver.status = 503
    add(server, receiver.url, kinds=["RunEnded"])
    begin(server)
    until(lambda: receiver.received)
    known = server.opened.context.host.webhooks
    monkeypatch.setattr(known, "by_app", {})  # As read before it was added.
    monkeypatch.setattr(known, "outdated_at", time.monotonic() + 4)
    receiver.status = 200
    so_far = len(receiver.received)
    until(lambda: len(receiver.received) > so_far)


def test_event_that_is_too_old_is_given_up(
    server: Server, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhooks, "GIVEN_UP", 0)
    receiver.status = 500
    add(server, receiver.url, kinds=["RunStarted", "RunEnded"])
    begin(server)
    until(lambda: receiver.kinds == ["RunStarted", "RunEnded"])


def test_event_that_cannot_be_read_is_given_up_as_well(
    server: Server, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    shown = webhooks.event_data

    def fail(event: Any, run: str, workflow: Any) -> Any:
        if type(event.data).__name__ == "RunStarted":
            raise StoreError("the event is damaged")
        return shown(event, run, workflow)

    monkeypatch.setattr(webhooks, "event_data", fail)
    monkeypatch.setattr(webhooks, "GIVEN_UP", 0)
    made = add(server, receiver.url, kinds=["RunStarted", "RunEnded"])
    begin(server)
    until(lambda: receiver.kinds == ["RunEnded"])
    until(lambda: len(deliveries(server, made["id"])) == 2)
    assert {each["error"] for each in deliveries(server, made["id"])} == {
        "", "the event is damaged"
    }  # fmt: skip


def test_order_holds_when_another_server_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(webhooks, "_SOONEST", 3_000)
    make_started(tmp_path, "Orders", {"type": "webhook"})
    environment = {"WEFT_ALLOW_HOSTS": "127.0.0.1"}
    with receiving() as receiver:
        receiver.status = 503
        with serving(tmp_path, environment) as server:
            made = add(server, receiver.url, kinds=["RunStarted"])
            first = begin(server)
            until(lambda: deliveries(server, made["id"]))
        receiver.received.clear()
        receiver.status = 204
        with serving(tmp_path, environment) as server:
            second = begin(server)
            until(lambda: len(receiver.received) == 2)
    assert [delivery.partition(":")[0] for delivery, _ in receiver.received] == [first, second]


def test_removed_webhook_gets_nothing_more(server: Server, receiver: Receiver):
    key = server.key("dev", "developer")
    made = add(server, receiver.url, kinds=["RunEnded"])
    other = add(server, receiver.url, kinds=["RunEnded"])
    assert [each["id"] for each in server.get("/api/webhooks", key=key)["items"]] == sorted(
        [made["id"], other["id"]]
    )
    server.send("DELETE", f"/api/webhooks/{made['id']}", key=key)
    begin(server)
    until(lambda: deliveries(server, other["id"]))
    assert len(receiver.received) == 1
    assert server.call("GET", f"/api/webhooks/{made['id']}/deliveries", key=key).status == 404


def test_private_addresses_are_not_requested_unless_they_are_allowed(
    server: Server, receiver: Receiver
):
    made = add(server, receiver.url.replace("127.0.0.1", "localhost"), kinds=["RunEnded"])
    begin(server)
    until(lambda: deliveries(server, made["id"]))
    assert "WEFT_ALLOW_HOSTS" in deliveries(server, made["id"])[0]["error"]
    assert not receiver.received


def test_webhooks_are_for_developers_of_their_tenant(server: Server, receiver: Receiver):
    made = add(server, receiver.url)
    for app, role in (("local", "operator"), ("shop", "developer")):
        key = server.key("eve", role, app=app)
        assert server.call("DELETE", f"/api/webhooks/{made['id']}", key=key).status == 404
        path = f"/api/webhooks/{made['id']}/deliveries"
        assert server.call("GET", path, key=key).status == 404
    shop = server.key("eve", "developer", app="shop")
    assert server.get("/api/webhooks", key=shop)["items"] == []
    mine = server.get("/api/webhooks", key=server.key("dev", "developer"))["items"]
    assert "secret" not in mine[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://example.org"},
        {"url": "https://user@example.org/"},
        {"url": "https://example.org/", "kinds": ["RunBegan"]},
        {"url": "https://example.org/", "secret": "mine"},
    ],
)
def test_webhook_that_cannot_work_is_refused(server: Server, wrong: dict[str, Any]):
    reply = server.call("POST", "/api/webhooks", wrong, key=server.key("dev", "developer"))
    assert (reply.status, reply.data["code"]) == (422, "HTTP422")
