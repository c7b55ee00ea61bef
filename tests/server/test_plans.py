"""Plans over HTTP: from a brief to a package that can be installed."""

import io
import json
from zipfile import ZipFile

import pytest

from support.package_play import GREETER, write
from support.server_play import serving

BRIEF = (
    "A claims desk: a clerk takes the claim, an assessor checks it, then a manager approves the "
    "payment, one after the other."
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of two tenants."""
    workspace = tmp_path_factory.mktemp("workspace")
    write(workspace / "workflows" / "Greeter", GREETER)
    with serving(workspace) as server:
        for app in ("shop", "clinic"):
            server.post("/api/apps", {"app": app}, key=server.key("root", "administrator"))
        yield server


def key(server, app="shop", *roles):
    return server.key("dora", *(roles or ("developer", "operator")), app=app)


def asked(server, run, tool):
    """Wait until a design asks something, and return the question."""

    def asks(row):
        assert row["status"] != "ended", row
        return any(request["tool"] == tool for request in row["requests"])

    row = server.until(f"/api/runs/{run}", key(server), is_so=asks)
    [request] = [request for request in row["requests"] if request["tool"] == tool]
    return request


def answer(server, run, request, value):
    path = f"/api/runs/{run}/answers/{request['id']}"
    server.post(path, {"value": value}, key=key(server))


@pytest.fixture(scope="module")
def design(server):
    """A design that waits for the approval of its first plan."""
    body = {"brief": BRIEF, "model": "designer"}
    run = server.post("/api/plans", body, key=key(server), status=201)["run"]
    assert server.post("/api/plans", body, key=key(server), status=200)["run"] == run
    server.get(f"/api/plans/{run}", key=key(server), status=404)
    answer(server, run, asked(server, run, "interview"), {})
    asked(server, run, "mermaid_sequence_diagram")
    return run


def test_plan_is_commented_on_compared_approved_and_downloaded(server, design):
    path = f"/api/plans/{design}"
    first = server.get(path, key=key(server))
    assert (first["round"], first["rounds"], first["acceptance"]) == (1, 1, "pending")
    server.get(f"{path}/bundle.zip", key=key(server), status=409)
    server.get(f"{path}/files", key=key(server), status=409)
    server.post(f"{path}/comment", {"text": "add specialist Auditor"}, key=key(server))

    def has_another(found):
        return found["rounds"] == 2

    second = server.until(path, key(server), is_so=has_another)
    assert second["comments"][0]["text"] == "add specialist Auditor"
    rounds = server.get(f"{path}/rounds", key=key(server))["items"]
    assert [each["hash"] for each in rounds] == [first["hash"], second["hash"]]
    assert server.get(f"{path}?round=1", key=key(server))["plan"] == first["plan"]
    compared = server.get(f"{path}/diff", key=key(server))
    assert (compared["old"], compared["new"]) == (rounds[0], rounds[1])
    assert "Auditor" in json.dumps(compared["changes"])
    assert server.get(f"{path}/diff?from=2&to=2", key=key(server))["changes"] == []
    asked(server, design, "mermaid_sequence_diagram")
    server.post(f"{path}/approve", {"hash": first["hash"]}, key=key(server), status=409)
    server.post(f"{path}/approve", {"hash": second["hash"]}, key=key(server))
    asked(server, design, "download")
    server.post(f"{path}/approve", {"hash": second["hash"]}, key=key(server))
    said = server.post(f"{path}/comment", {"text": "too late"}, key=key(server), status=409)
    assert "does not wait" in said["message"]
    done = server.get(path, key=key(server))
    [name] = done["packages"]
    reply = server.call("GET", f"{path}/bundle.zip", key=key(server))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/zip")
    with ZipFile(io.BytesIO(reply.content)) as archive:
        plan = json.loads(archive.read("action_plan.json"))
        assert {"orchestrator.json", "agents.json"} <= set(archive.namelist())
    assert plan["WorkflowStrategy"] == done["plan"]["WorkflowStrategy"]
    server.get(f"{path}/bundle.zip?package=Other", key=key(server), status=404)
    designed = server.get(f"{path}/files", key=key(server))
    with ZipFile(io.BytesIO(reply.content)) as archive:
        files = {each: archive.read(each).decode() for each in archive.namelist()}
    del files["manifest.json"]
    assert {each["path"]: each["content"] for each in designed["items"]} == files
    assert (designed["name"], designed["findings"]) == (name, [])
    headers = {"Content-Type": "application/zip"}
    made = server.call("POST", "/api/packages", reply.content, key=key(server), headers=headers)
    assert (made.status, made.data["name"]) == (201, name)
    assert not [each for each in made.data["findings"] if each["severity"] == "error"]


def test_edited_plan_begins_a_design(server, design):
    plan = server.get(f"/api/plans/{design}", key=key(server))["plan"]
    plan["WorkflowStrategy"]["workflow_description"] = "Claims, quickly."
    body = {"plan": plan, "model": "designer"}
    run = server.post("/api/plans", body, key=key(server), status=201)["run"]
    asked(server, run, "mermaid_sequence_diagram")
    found = server.get(f"/api/plans/{run}", key=key(server))
    assert found["plan"]["WorkflowStrategy"]["workflow_description"] == "Claims, quickly."


def test_part_of_a_plan_is_replaced(server, design):
    path = f"/api/plans/{design}"
    strategy = server.get(path, key=key(server))["plan"]["WorkflowStrategy"]
    strategy["workflow_description"] = "Claims, by hand."
    body = {"part": "strategy", "value": strategy, "model": "designer"}
    run = server.send("PUT", path, body, key=key(server), status=201)["run"]
    asked(server, run, "mermaid_sequence_diagram")
    found = server.get(f"/api/plans/{run}", key=key(server))
    assert found["plan"]["WorkflowStrategy"] == strategy
    assert (found["rounds"], run == design) == (1, False)
    wrong = {**body, "value": {"workflow_name": 3}}
    said = server.send("PUT", path, wrong, key=key(server), status=422)
    assert "WorkflowStrategy" in said["message"]


def test_wrong_designs_are_refused(server, design):
    for body in ({}, {"brief": " "}, {"brief": "x", "plan": {}}, {"plan": {"version": 1}}):
        server.post("/api/plans", body, key=key(server), status=422)
    path = f"/api/plans/{design}"
    server.get(f"{path}?round=9", key=key(server), status=404)
    server.get(f"{path}/diff?from=9", key=key(server), status=404)
    server.post(f"{path}/approve", {"hash": "0" * 64}, key=key(server), status=409)
    server.post(f"{path}/comment", {"text": "x", "part": "other"}, key=key(server), status=422)


def test_plans_are_those_of_designs_and_of_the_tenant(server, design):
    body = {"workflow": "Greeter", "message": "hi"}
    other = server.post("/api/runs", body, key=key(server), status=201)["run"]
    for run, app in ((design, "clinic"), ("nothing", "shop"), (other, "shop")):
        for method, part, body in (
            ("GET", "", None),
            ("PUT", "", {"part": "agents", "value": []}),
            ("GET", "/rounds", None),
            ("GET", "/diff", None),
            ("GET", "/bundle.zip", None),
            ("GET", "/files", None),
            ("POST", "/approve", {"hash": "0" * 64}),
            ("POST", "/comment", {"text": "x"}),
        ):
            path = f"/api/plans/{run}{part}"
            server.send(method, path, body, key=key(server, app), status=404)
    for role in ("end_user", "operator"):
        person = key(server, "shop", role)
        said = server.get(f"/api/plans/{design}", key=person, status=404)
        assert said["message"] == "not found"
