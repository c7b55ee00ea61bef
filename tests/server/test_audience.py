"""Canaries over HTTP: every byte that each kind of caller gets of a run that is full of them."""

import asyncio
import json
import re

import pytest

from support.canary_play import (
    FOR_NOBODY,
    FOR_OPERATORS,
    FOR_USERS,
    MESSAGE,
    MODEL,
    agree,
    agree_and_sign,
    record,
)
from support.package_play import GREETER, write
from support.run_play import ADA
from support.server_play import serving, session_header
from support.socket_play import Socket
from weft.server.identity import Principal

SECRETS = {"canary-secret", "canary-server-key"}
EVERYTHING = {*FOR_OPERATORS.values(), *FOR_NOBODY.values()}


@pytest.fixture(scope="module")
def asked_and_ended(tmp_path_factory):
    """Return a workspace, its run that asks a manager, and its run that has ended."""
    workspace = tmp_path_factory.mktemp("canaries")
    (workspace / "workflows").mkdir()
    (workspace / ".weft").mkdir()
    runs = [asyncio.run(record(workspace, then)) for then in (agree, agree_and_sign)]
    return workspace, *runs


@pytest.fixture(scope="module")
def server(asked_and_ended):
    with serving(asked_and_ended[0], works=False) as server:
        yield server


def session(server, user, *roles):
    """Return the header of a session, as a page has it."""
    principal = Principal(ADA.app, user, frozenset(roles))
    return {"Cookie": session_header(server, principal)}


def read_all(server, headers, *runs):
    """Return everything that is read of runs: each route, with its path and status."""
    found = {}
    for declared, methods in server.document["paths"].items():
        if "get" not in methods or not re.match("/api/(runs|requests)", declared):
            continue
        for run in runs:
            if declared.endswith("/stream") and run != runs[-1]:
                continue  # It ends when the run does.
            for turn in range(1, 9) if "{turn}" in declared else (0,):
                path = declared.replace("{run}", run).replace("{turn}", str(turn))
                found[path] = server.call("GET", path, headers=headers)
    assert len(found) > 10
    return found


def canaries(replies):
    text = b"".join(reply.content for reply in replies.values()).decode()
    return {canary for canary in EVERYTHING if canary in text}


def test_end_user_gets_none(server, asked_and_ended):
    _, asked, ended = asked_and_ended
    headers = session(server, ADA.user, "end_user")
    replies = read_all(server, headers, asked, ended)
    for path, body in (
        ("messages", {"text": "hello?"}),
        (f"answers/{asked}:1", {"value": "canary"}),
        ("fork", {"turn": 1}),
        ("cancel", {"mode": "later"}),
    ):
        for run in (asked, ended):
            replies[path, run] = server.call(
                "POST", f"/api/runs/{run}/{path}", body, headers=headers
            )
    statuses = {reply.status for reply in replies.values()}
    assert statuses == {200, 404, 409, 422}
    assert canaries(replies) == set()
    assert b"canary" not in b"".join(reply.content for reply in replies.values())
    text = replies[f"/api/runs/{ended}/events"].content.decode()
    places = [text.find(said) for said in FOR_USERS]
    assert -1 not in places
    assert places == sorted(places), "it is no empty answer that has no canary"


def follow(server, headers, *runs):
    """Return everything that a socket and a stream send of runs, from any place on."""
    found = []
    with Socket(server.url, headers=headers) as opened:
        for after in (0, 7, 10**6):
            for run in runs:
                opened.do("follow", run=run, after=after)
                opened.until_kind(run, "caught_up")
                opened.events.clear()
        # What is refused says nothing either.
        for cmd in ("message", "cancel_request", "answer", "fork", "retry"):
            fields = {"text": "?", "request": f"{runs[0]}:1", "value": "?", "turn": 1}
            opened.do(cmd, run=runs[-1], **{name: fields[name] for name in FIELDS.get(cmd, ())})
        found += opened.frames
    for after in (0, 7):
        path = f"/api/runs/{runs[-1]}/stream?after={after}"
        found.append(server.call("GET", path, headers=headers).content.decode())
    return json.dumps(found)


FIELDS = {
    "message": ["text"], "cancel_request": ["request"], "answer": ["request", "value"],
    "fork": ["turn"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("user", "role"), [(ADA.user, "end_user"), ("dora", "developer"), ("olaf", "operator")]
)
def test_sockets_and_streams_have_the_same_allow_list(server, asked_and_ended, user, role):
    _, asked, ended = asked_and_ended
    text = follow(server, session(server, user, role), asked, ended)
    found = {canary for canary in EVERYTHING if canary in text}
    if role == "end_user":
        assert "canary" not in text, text[max(0, text.find("canary") - 500) :][:700]
        assert all(said in text for said in FOR_USERS)
    elif role == "operator":
        assert "RunEnded" in text
        assert found == {MODEL}, "why it cannot be retried"
        assert [said for said in FOR_USERS if said in text] == []
    else:
        assert len(found) > len(EVERYTHING) // 2
        assert not SECRETS & found


def test_developer_gets_all_but_secrets(server, asked_and_ended):
    headers = session(server, "dora", "developer")
    replies = read_all(server, headers, *asked_and_ended[1:])
    read = {path: reply for path, reply in replies.items() if not path.endswith("/package")}
    assert EVERYTHING - canaries(read) == SECRETS | {"canary-question-of-a-tool"}
    assert not SECRETS & canaries(replies)


def test_manager_gets_the_question_and_nothing_else(server, asked_and_ended):
    _, asked, ended = asked_and_ended
    replies = read_all(server, session(server, "bob", "end_user", "manager"), asked, ended)
    assert canaries(replies) == {"canary-for-the-manager"}
    assert replies[f"/api/runs/{ended}"].status == 404
    (request,) = replies["/api/requests"].data["items"]
    assert (request["run"], request["addressee"]) == (asked, "role:manager")


def test_operator_without_the_developer_role_gets_no_inside(server, asked_and_ended):
    _, asked, ended = asked_and_ended
    headers = session(server, "olaf", "operator")
    replies = read_all(server, headers, asked, ended)
    # Why a run has failed: its model did, and then a document could not be written either.
    reason = {"canary-last-error", "canary-full"}
    assert canaries(replies) == reason
    row = dict(replies[f"/api/runs/{ended}"].data)
    assert reason == set(re.findall("canary-[a-z-]+", row.pop("reason")))
    assert "canary" not in str(row)
    read = b"".join(reply.content for reply in replies.values()).decode()
    assert [said for said in FOR_USERS if said in read] == []
    events = replies[f"/api/runs/{ended}/events"].data["items"]
    kinds = {event["kind"] for event in events}
    assert {"RunStarted", "TurnStarted", "RequestOpened", "RequestAnswered", "RunEnded"} <= kinds


def test_operator_neither_speaks_nor_answers_for_others(server, asked_and_ended):
    _, asked, _ = asked_and_ended
    headers = session(server, "olaf", "operator")
    (request,) = server.call("GET", f"/api/runs/{asked}", headers=headers).data["requests"]
    assert (request["payload"], request["response_schema"]) == (None, None)
    path = f"/api/runs/{asked}"
    answers = f"{path}/answers/{request['id']}"
    for method, where, body in (
        ("POST", f"{path}/messages", {"text": "hello?"}),
        ("POST", answers, {"value": "yes"}),
        ("DELETE", answers, None),
    ):
        assert server.call(method, where, body, headers=headers).status == 404
    manager = session(server, "mona", "operator", "manager")
    (request,) = server.call("GET", "/api/requests?for=me", headers=manager).data["items"]
    assert "canary-for-the-manager" in str(request["payload"]), "one that is asked"


def test_operator_reads_messages_of_own_runs(server, asked_and_ended):
    _, _, ended = asked_and_ended
    headers = session(server, ADA.user, "operator")
    assert server.call("GET", f"/api/runs/{ended}", headers=headers).data["preview"] == MESSAGE
    read = server.call("GET", f"/api/runs/{ended}/events", headers=headers).content.decode()
    assert [said for said in FOR_USERS if said not in read] == []


def test_others_get_nothing(server, asked_and_ended):
    _, asked, ended = asked_and_ended
    for headers in (
        session(server, "eve", "end_user"),
        {"Authorization": f"Bearer {server.key(ADA.user, 'administrator', app='elsewhere')}"},
    ):
        replies = read_all(server, headers, asked, ended)
        for path, reply in replies.items():
            if path in ("/api/runs", "/api/requests"):
                assert reply.data == {"items": [], "next": None}
            else:
                assert (reply.status, reply.data["message"]) == (404, "not found")


def named(name, **orchestrator):
    files = {file: text.replace("Greeter", name) for file, text in GREETER.items()}
    declared = {**json.loads(files["orchestrator.json"]), **orchestrator}
    return {**files, "orchestrator.json": json.dumps(declared)}


WRONG = {
    "Provider": named("Provider", model="canary-model"),
    "Key": named("Key", model="openai:canary-model"),
    "Finding": {**named("Finding"), "agents.json": '{"canary-text'},
    "Agent": {
        name: text.replace('"source_agent": "Host"', '"source_agent": "canary-agent"')
        for name, text in named("Agent").items()
    },
}


def test_package_errors_are_shown_to_staff_only(tmp_path):
    for name, files in WRONG.items():
        write(tmp_path / "workflows" / name, files)
    with serving(tmp_path) as server:
        for role in ("end_user", "developer"):
            key = server.key("ada", role)
            with Socket(server.url, key) as opened:
                for name in WRONG:
                    body = {"workflow": name, "message": "hello"}
                    reply = server.call("POST", "/api/runs", body, key=key)
                    assert reply.status in (422, 503)
                    problem = opened.do("start", **body)["problem"]
                    assert problem == reply.data
                    text = json.dumps(problem)
                    inside = ("canary", "OPENAI", str(tmp_path), "agents.json")
                    found = [each for each in inside if each in text]
                    assert bool(found) == (role == "developer"), problem
