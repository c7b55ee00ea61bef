"""A start that comes twice begins one run: in a span of time, or by the key of the request."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.package_play import GREETER, write
from support.server_play import serving
from weft.server.actions import KEY_KNOWN, SAME_START
from weft.testing.clock import ManualClock


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starts")
    write(folder / "workflows" / "Greeter", GREETER)
    return folder


@pytest.fixture
def clock():
    return ManualClock(time.time_ns() // 1_000_000)


@pytest.fixture
def server(workspace, clock):
    with serving(workspace, clock=clock) as server:
        yield server


def start(server, user="ada", key=None, **fields):
    """Start a run; return the status and the run."""
    reply = request(server, user, key, **fields)
    return reply.status, reply.data["run"]


def status(server, user, key=None, **fields):
    return request(server, user, key, **fields).status


def request(server, user, key, **fields):
    body = {"workflow": "Greeter", "message": "hello", **fields}
    headers = {"Idempotency-Key": key} if key else {}
    caller = server.key(user, "end_user")
    return server.call("POST", "/api/runs", body, key=caller, headers=headers)


def test_identical_start_of_a_user_is_the_same_for_a_while(server, clock):
    first = start(server, "ada")
    assert first[0] == 201
    assert start(server, "ada") == (200, first[1])
    others = [
        start(server, "bob"),
        start(server, "ada", message="good morning"),
        start(server, "ada", force=True),
    ]
    server.run(clock.advance(SAME_START / 1000 + 10))  # The host has the clock of the system.
    others.append(start(server, "ada"))
    assert {status for status, _ in others} == {201}
    assert len({first[1], *(run for _, run in others)}) == 5


def test_key_of_a_request_wins_over_what_is_in_it(server, clock, workspace):
    first = start(server, "carl", key="one")
    assert first[0] == 201
    assert start(server, "carl", key="one", message="something else", force=True) == (200, first[1])
    assert start(server, "carl", key="two")[0] == 201
    assert start(server, "dan", key="one")[0] == 201, "keys are those of a user"
    server.run(clock.advance(KEY_KNOWN / 2000))
    assert start(server, "carl", key="one") == (200, first[1])
    with serving(workspace, clock=clock) as other:
        assert start(other, "carl", key="one") == (200, first[1]), "also in another process"


@pytest.mark.parametrize("key", [None, "many"])
def test_same_start_many_times_at_once_begins_one_run(server, key):
    with ThreadPoolExecutor(8) as threads:
        server.key("eve", "end_user")
        given = [threads.submit(start, server, "eve", key, message=f"{key}") for _ in range(16)]
        found = [each.result() for each in given]
    assert sorted(status for status, _ in found) == [200] * 15 + [201]
    assert len({run for _, run in found}) == 1


def test_run_that_the_caller_names_is_the_same_only_with_the_same_content(server, clock):
    named = {"run": "chosen"}
    assert start(server, "fay", **named) == (201, "chosen")
    for key in (None, "one"):
        assert start(server, "fay", key, **named) == (200, "chosen")
        for other in ({"message": "something else"}, {"message": None}):
            assert status(server, "fay", key, **named, **other) == 409
    assert status(server, "fay", **named, force=True) == 409
    assert start(server, "fay", "one", **named, force=True) == (200, "chosen")
    server.run(clock.advance(SAME_START / 1000 + 10))
    assert start(server, "fay", **named) == (200, "chosen")
    assert status(server, "gus", **named) == 409


def test_named_run_of_staff_is_the_same_only_with_the_same_values(server):
    key = server.key("dev", "developer")
    body = {"workflow": "Greeter", "message": "hello", "run": "valued", "model": "sample"}
    assert server.call("POST", "/api/runs", body, key=key).status == 201
    assert server.call("POST", "/api/runs", body, key=key).status == 200
    for other in ({"model": None}, {"values": {"unknown": 1}}, {"workflow": "Other"}):
        assert server.call("POST", "/api/runs", {**body, **other}, key=key).status >= 400
