"""Recorded runs: copied into the runs of the caller, shown like others, and continued by forks."""

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest

from support.server_play import serving
from weft.app.recordings import recordings, written
from weft.packages.workspace import shipped_folder

SCRIPT = Path(__file__).parents[2] / "scripts" / "record_demo.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of an empty workspace."""
    with serving(tmp_path_factory.mktemp("empty")) as server:
        yield server


@pytest.fixture
def played(server):
    """The run, and the key of the developer who plays it."""
    key = server.key("ada", "developer")
    (found,) = server.get("/api/recordings", key=key)["items"]
    run = server.post(f"/api/recordings/{found['name']}", key=key, status=201)["run"]
    return run, key


def events_of(server, run, key):
    return server.get(f"/api/runs/{run}/events?limit=1000", key=key)["items"]


def test_recording_becomes_an_ended_run_of_the_caller(server, played):
    run, key = played
    row = server.get(f"/api/runs/{run}", key=key)
    assert (row["user"], row["status"], row["outcome"]) == ("ada", "ended", "completed")
    assert row["requests"] == []
    now = server.opened.context.clock.now()
    assert now - 60_000 < row["changed_at"] <= now
    assert row["started_at"] < row["changed_at"]
    newest = server.get("/api/runs?limit=1", key=key)["items"]
    assert [each["run"] for each in newest] == [run]
    assert server.get(f"/api/runs/{run}/package", key=key)["digest"] == row["digest"]


def test_recording_is_marked_and_has_no_other_names(server, played):
    run, key = played
    events = events_of(server, run, key)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["actor"] == "recording"
    replies = [event["data"] for event in events if event["kind"] == "ModelReplied"]
    assert {reply["answerer"] for reply in replies} == {"script"}
    answers = [event for event in events if event["kind"] == "RequestAnswered"]
    assert {event["actor"] for event in answers} == {"user:ada"}
    asked = {event["data"]["id"] for event in events if event["kind"] == "RequestOpened"}
    assert {event["data"]["id"] for event in answers} == asked
    assert all(each.startswith(f"{run}:") for each in asked)
    assert not any('"RUN' in json.dumps(event) or '"me"' in json.dumps(event) for event in events)


def test_prompts_of_a_recording_are_those_that_were_sent(server, played):
    run, key = played
    sent = [
        event["data"]["digest"]
        for event in events_of(server, run, key)
        if event["kind"] == "ContextAssembled"
    ]
    turns = server.get(f"/api/runs/{run}", key=key)["turns"]
    shown = [
        prompt
        for turn in range(1, turns + 1)
        for prompt in server.get(f"/api/runs/{run}/prompts/{turn}", key=key)["prompts"]
    ]
    assert [prompt["digest"] for prompt in shown] == sent
    assert all(prompt["same"] for prompt in shown)


def test_recording_is_forked_and_continues_with_the_model_sample(server, played):
    run, key = played
    before = events_of(server, run, key)
    edits = {"turn": 3, "edits": {"needs_person": True}, "model": "sample"}
    child = server.post(f"/api/runs/{run}/fork", edits, key=key, status=201)["run"]
    row = server.settled(child, key)
    assert row["parent"] == run
    handed = [each["data"] for each in events_of(server, child, key) if each["kind"] == "HandedOff"]
    assert "EscalationAgent" in {each["target"] for each in handed}
    assert events_of(server, run, key) == before


def test_each_play_is_a_run_of_its_own(server, played):
    run, key = played
    assert server.post("/api/recordings/customer-support", key=key, status=201)["run"] != run


def test_recordings_are_for_developers(server):
    key = server.key("bob", "end_user", "operator")
    server.get("/api/recordings", key=key, status=404)
    server.post("/api/recordings/customer-support", key=key, status=404)
    server.post("/api/recordings/other", key=server.key("ada", "developer"), status=404)


def test_recording_is_what_the_script_records():
    spec = importlib.util.spec_from_file_location("record_demo", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = written(script.RECORDING, asyncio.run(script.recorded()))
    assert script.FILE.read_text(encoding="utf-8") == text, "run scripts/record_demo.py"
    assert recordings() == [script.RECORDING]
    assert (shipped_folder() / script.RECORDING.workflow).is_dir()
