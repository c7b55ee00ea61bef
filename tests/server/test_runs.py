"""Runs over HTTP: started once, listed and read in pages, continued, stopped and forked."""

from uuid import uuid4

import pytest

HEADERS = {"Content-Type": "application/json"}


def key(server, user="ada", *roles):
    return server.key(user, *(roles or ("developer", "operator", "end_user")))


def start(server, *, user="ada", status=201, repeat="", **more):
    body = {"workflow": "Desk", "message": "hello", **more}
    headers = {"Idempotency-Key": repeat} if repeat else {}
    reply = server.call("POST", "/api/runs", body, key=key(server, user), headers=headers)
    assert reply.status == status, reply.content
    return reply.data.get("run")


def waiting(server, *, user="ada"):
    """Return a run that waits for the user's words."""
    run = start(server, user=user, message=f"hello {uuid4()}")
    server.settled(run, key(server))
    return run


@pytest.fixture
def asked(server):
    """A run that asks for an approval, and the question."""
    run = waiting(server)
    server.post(f"/api/runs/{run}/messages", {"text": "more"}, key=key(server))

    def asks(row):
        return any(request["kind"] == "ui" for request in row["requests"])

    row = server.until(f"/api/runs/{run}", key(server), is_so=asks)
    return run, row["requests"][0]


def test_identical_start_is_the_same_run(server):
    words = f"hello {uuid4()}"
    run = start(server, message=words)
    assert start(server, message=words, status=200) == run
    assert start(server, message=words, force=True) != run
    assert start(server, message=words, user="bob") != run
    assert start(server, message=f"{words}!") != run


def test_start_with_a_key_is_made_once(server):
    name = str(uuid4())
    run = start(server, repeat=name)
    assert start(server, repeat=name, message="other words", status=200) == run
    assert start(server, repeat=name, force=True, status=200) == run
    assert start(server, repeat=name, user="bob") != run


def test_run_can_be_named_and_a_name_is_taken_once(server):
    name = f"run-{uuid4()}"
    assert start(server, run=name) == name
    assert start(server, run=name, status=200) == name
    start(server, run="a/b", status=422)
    # Another user learns only that the name cannot be had.
    start(server, run=name, user="bob", status=409)


def test_runs_are_listed_in_pages(server):
    mine = [waiting(server, user="pia") for _ in range(3)]
    person = key(server, "pia", "end_user")
    found, cursor = [], ""
    while cursor is not None:
        page = server.get(f"/api/runs?limit=2{cursor}", key=person)
        found += [row["run"] for row in page["items"]]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert found == mine[::-1]
    first = server.get(f"/api/runs/{mine[1]}", key=person)["started_at"]
    for query, wanted in (
        ("user=pia", 3),
        ("user=nobody", 0),
        ("user=pia&status=waiting", 3),
        ("user=pia&status=ended", 0),
        ("user=pia&workflow=Other", 0),
        (f"user=pia&since={first}", 2),
    ):
        assert len(server.get(f"/api/runs?{query}", key=key(server))["items"]) == wanted, query
    server.get("/api/runs?status=lost", key=person, status=422)
    server.get("/api/runs?limit=0", key=person, status=422)


def test_events_are_read_in_pages(server):
    run = waiting(server)
    whole = server.get(f"/api/runs/{run}/events", key=key(server))
    assert whole["next"] is None
    seqs = [event["seq"] for event in whole["items"]]
    assert seqs == list(range(1, len(seqs) + 1))
    found, after = [], 0
    while after is not None:
        page = server.get(f"/api/runs/{run}/events?limit=4&after={after}", key=key(server))
        found += page["items"]
        after = page["next"]
    assert found == whole["items"]


def test_run_is_read_from_the_inside(server):
    run = waiting(server)
    path = f"/api/runs/{run}"
    last = server.get(path, key=key(server))["seq"]
    assert server.get(f"{path}/state", key=key(server))["seq"] == last
    early = server.get(f"{path}/state?at=2", key=key(server))
    assert (early["seq"], early["turns"]) == (2, 0)
    assert server.get(f"{path}/inspect", key=key(server))["workflow"] == "Desk"
    assert "You may spend 10." in str(server.get(f"{path}/prompts/1", key=key(server)))
    server.get(f"{path}/prompts/9", key=key(server), status=404)


def test_component_is_null_where_the_package_has_none(server, asked):
    run, request = asked
    path = f"/api/runs/{run}/components/{request['component']}"
    assert server.get(path, key=key(server)) == {"name": "Approval", "source": None}
    run = start(server, workflow="CustomerSupportRouter")
    path = f"/api/runs/{run}/components/ClarificationRequest"
    assert "export default" in server.get(path, key=key(server))["source"]


def test_second_answer_is_refused(server, asked):
    run, request = asked
    inbox = server.get("/api/requests?for=me", key=key(server))["items"]
    assert request["id"] in [each["id"] for each in inbox]
    path = f"/api/runs/{run}/answers/{request['id']}"
    wrong = server.post(path, {"value": {"approved": "perhaps"}}, key=key(server), status=422)
    assert "approved" in str(wrong)
    server.post(path, {"value": {"approved": True}}, key=key(server))
    server.post(path, {"value": {"approved": True}}, key=key(server))
    said = server.post(path, {"value": {"approved": False}}, key=key(server), status=409)
    assert said["code"] == "HTTP409"
    state = server.settled(run, key(server))
    assert request["id"] not in [each["id"] for each in state["requests"]]


def test_message_with_a_key_is_delivered_once(server):
    run = waiting(server)
    path, body = f"/api/runs/{run}/messages", {"text": "once"}
    for _ in range(3):
        headers = {"Idempotency-Key": "said-once"}
        assert server.call("POST", path, body, key=key(server), headers=headers).status == 200
    server.settled(run, key(server))
    said = [
        event
        for event in server.get(f"/api/runs/{run}/events", key=key(server))["items"]
        if event["kind"] == "RequestAnswered" and event["data"]["value"] == "once"
    ]
    assert len(said) == 1


def test_run_is_stopped_and_takes_no_more_messages(server):
    run = waiting(server)
    path = f"/api/runs/{run}"
    for body in ({"mode": "now"}, None):
        server.post(f"{path}/cancel", body, key=key(server))
    row = server.until(path, key(server), is_so=lambda row: row["status"] == "ended")
    assert row["outcome"] == "cancelled"
    server.post(f"{path}/messages", {"text": "hello?"}, key=key(server), status=409)
    said = server.post(f"{path}/retry", key=key(server), status=409)
    assert "did not fail" in said["message"]


def test_hints_name_what_a_caller_over_http_can_do(server):
    run = waiting(server)
    closed = server.post(f"/api/runs/{run}/answers/none", {"value": 1}, key=key(server), status=409)
    assert f"GET /api/runs/{run}" in closed["hint"][0]
    row = server.get(f"/api/runs/{run}", key=key(server))
    body = {"workflow": row["workflow"], "message": "hi", "model": "you"}
    refused = server.post("/api/runs", body, key=key(server), status=422)
    assert refused["hint"][0].startswith("name another model; ")


def test_turn_is_repeated_with_other_values_once(server):
    run = waiting(server)
    path, body = f"/api/runs/{run}/fork", {"turn": 1, "edits": {"limit": 99}}
    headers = {"Idempotency-Key": "forked-once"}
    children = [server.call("POST", path, body, key=key(server), headers=headers) for _ in range(2)]
    assert [child.status for child in children] == [201, 201]
    [child] = {child.data["run"] for child in children}
    server.settled(child, key(server))
    assert server.get(f"/api/runs/{child}", key=key(server))["parent"] == run
    assert "You may spend 99." in str(server.get(f"/api/runs/{child}/prompts/1", key=key(server)))
    server.post(path, {"turn": 1, "at": 2}, key=key(server), status=422)
    server.post(path, {"at": 999}, key=key(server), status=422)


def test_turn_is_repeated_after_another_message(server):
    run = waiting(server)
    path, ada = f"/api/runs/{run}", key(server)
    before = server.get(f"{path}/events", key=ada)
    edits = {"at": before["items"][-1]["seq"], "message": "goodbye", "edits": {"limit": 99}}
    child = server.post(f"{path}/fork", edits, key=ada, status=201)["run"]
    server.settled(child, ada)
    said = str(server.get(f"/api/runs/{child}/prompts/1", key=ada))
    assert "'content': 'goodbye'" in said
    assert "You may spend 99." in said
    assert "hello" not in said
    grandchild = server.post(f"/api/runs/{child}/fork", {"turn": 1}, key=ada, status=201)["run"]
    server.settled(grandchild, ada)
    assert "goodbye" in str(server.get(f"/api/runs/{grandchild}/prompts/1", key=ada))
    assert server.get(f"{path}/events", key=ada) == before


def test_end_users_choose_neither_values_nor_models(server):
    person = key(server, "pia", "end_user")
    for more in ({"values": {"limit": 9}}, {"model": "sample"}):
        body = {"workflow": "Desk", "message": "hi", **more}
        said = server.post("/api/runs", body, key=person, status=422)
        assert said["hint"] == ["leave them out"]
    run = waiting(server)
    server.post(f"/api/runs/{run}/fork", {"turn": 1}, key=person, status=404)


def test_staff_answer_under_their_own_names(server, asked):
    run, request = asked
    path = f"/api/runs/{run}"
    answer = (f"{path}/answers/{request['id']}", {"value": {"approved": True}})
    first, second = (key(server, user, "developer") for user in ("d1", "d2"))
    server.post(*answer, key=first)
    server.post(*answer, key=first)
    assert server.post(*answer, key=second, status=409)["code"] == "HTTP409"
    assert actors(server, run)["RequestAnswered"] == ("user:d1", "d1")
    other = waiting(server)
    server.post(f"/api/runs/{other}/cancel", {"mode": "now"}, key=second)
    server.until(f"/api/runs/{other}", second, is_so=lambda row: row["status"] == "ended")
    assert actors(server, other)["StopRequested"] == ("user:d2", "d2")


def actors(server, run):
    """Return who was the last to do something of each kind, as an event and its data say it."""
    events = server.get(f"/api/runs/{run}/events", key=key(server))["items"]
    return {event["kind"]: (event["actor"], event["data"].get("user")) for event in events}
