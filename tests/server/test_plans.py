"""Plans over HTTP: from a brief to a package that can be installed."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from zipfile import ZipFile

import pytest

from support.generator_play import FORM
from support.package_play import GREETER, write
from support.server_play import serving

BRIEF = (
    "A claims desk: a clerk takes the claim, an assessor checks it, then a manager approves the "
    "payment, one after the other."
)

#: Its scenario expects what the workflow does not do.
NOTES = """\
workflow: Notes
description: Reads a note and files it.
steps:
  - {name: Reader, by: agent, task: Say what the note is about., outcomes: {clear: Filer, odd: end}}
  - {name: Filer, by: person, who: user, outcomes: {filed: end}}
scenarios:
  - {says: [A note.], takes: {Reader: odd}, expect: [{outcome: failed}]}
"""


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
    assert any("Auditor" in place for place in second["open"])
    said = server.post(f"{path}/approve", {"hash": second["hash"]}, key=key(server), status=422)
    assert "skeleton" in said["message"]
    as_it_is = {"hash": second["hash"], "skeleton": True}
    server.post(f"{path}/approve", as_it_is, key=key(server))
    asked(server, design, "download")
    server.post(f"{path}/approve", as_it_is, key=key(server))
    said = server.post(f"{path}/comment", {"text": "too late"}, key=key(server), status=409)
    assert "does not wait" in said["message"]
    done = server.get(path, key=key(server))
    [name] = done["packages"]
    offer = server.get(f"{path}/offer", key=key(server))
    assert (offer["promotable"], offer["folder"], offer["errors"]) == (True, None, [])
    assert offer["skeleton"] == done["open"]
    server.post(f"{path}/offer", {}, key=key(server), status=409)
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


def formed(server, form):
    """Start a design with a form, and wait until its plan waits for a decision."""
    body = {"form": form, "model": "designer"}
    run = server.post("/api/plans", body, key=key(server), status=201)["run"]
    asked(server, run, "mermaid_sequence_diagram")
    return f"/api/plans/{run}"


def test_form_begins_a_design_with_its_plan(server):
    example = server.get("/api/forms/example", key=key(server))["text"]
    assert example.startswith("# A form")
    found = server.get(formed(server, example), key=key(server))
    assert (found["rounds"], found["open"]) == (1, [])
    assert found["plan"]["WorkflowStrategy"]["workflow_name"] == "ClinicIntake"


def test_form_is_refused_with_its_lines(server):
    body = {"form": FORM.replace("doubtful: Clerk", "doubtful: Clark")}
    said = server.post("/api/plans", body, key=key(server), status=422)
    [finding] = said["findings"]
    assert (finding["code"], finding["line"]) == ("GEN007", 9)
    assert "Clark" in finding["message"]
    assert "Clerk" in finding["hint"][0]
    typed = {"form": "workfow: W\n"}
    said = server.post("/api/plans", typed, key=key(server), status=422)
    assert {"SCHEMA008"} <= {each["code"] for each in said["findings"]}


def test_plan_is_edited_in_place(server):
    path = formed(server, FORM)
    first = server.get(path, key=key(server))
    text = first["text"].replace("Say whether the claim is plausible", "Say whether it is a fraud")
    edit = {"text": text, "hash": first["hash"]}
    made = server.send("PUT", path, edit, key=key(server))
    second = server.until(path, key(server), is_so=lambda found: found["rounds"] == 2)
    assert made == {"round": 2, "hash": second["hash"]}
    assert "fraud" in second["text"]
    asked(server, path.rsplit("/", 1)[1], "mermaid_sequence_diagram")
    server.send("PUT", path, edit, key=key(server), status=409)
    server.send("PUT", path, {"text": second["text"]}, key=key(server), status=422)
    strategy = {**second["plan"]["WorkflowStrategy"], "workflow_description": "By hand."}
    part = {"part": "strategy", "value": strategy}
    server.send("PUT", path, part, key=key(server))
    third = server.until(path, key(server), is_so=lambda found: found["rounds"] == 3)
    assert third["plan"]["WorkflowStrategy"] == strategy


def test_edit_that_is_not_complete_is_refused_at_its_line(server):
    path = formed(server, FORM.replace("ClaimsDesk", "WindowClaims"))
    text = server.get(path, key=key(server))["text"]
    wrong = text.replace("to: Clerk", "to: Clark", 1)
    [line] = [at for at, each in enumerate(wrong.splitlines(), 1) if "to: Clark" in each]
    said = server.send("PUT", path, {"text": wrong}, key=key(server), status=422)
    assert (line, "GEN007") in {(each["line"], each["code"]) for each in said["findings"]}
    wrong = {"part": "strategy", "value": {"workflow_name": 3}}
    said = server.send("PUT", path, wrong, key=key(server), status=422)
    assert "WorkflowStrategy" in json.dumps(said["findings"])
    for body in ({}, {"part": "agents"}, {"text": text, "part": "agents", "value": []}):
        server.send("PUT", path, body, key=key(server), status=422)
    assert server.get(path, key=key(server))["rounds"] == 1


def test_difference_from_the_plan_is_meant_so_before_the_package_can_be_installed(server):
    path = formed(server, NOTES)
    hash_ = server.get(path, key=key(server))["hash"]
    server.get(f"{path}/offer", key=key(server), status=409)
    server.post(f"{path}/approve", {"hash": hash_}, key=key(server))
    run = path.rsplit("/", 1)[1]
    server.until(f"/api/runs/{run}", key(server), is_so=lambda row: row["status"] == "ended")
    # The page asks for several things at once, and the first request writes the folder.
    with ThreadPoolExecutor() as pool:
        paths = [f"{path}/offer", *[f"{path}/files"] * 7]
        offer, *_ = pool.map(lambda each: server.get(each, key=key(server)), paths)
    assert (offer["promotable"], offer["skeleton"], offer["errors"]) == (False, [], [])
    [scenario] = offer["scenarios"]
    assert "expected: failed" in scenario["differences"][0]
    [question] = offer["questions"]
    assert ("GEN022" in question["text"], question["answer"]) == (True, None)
    folder = server.opened.context.workspace / offer["folder"]
    assert offer["folder"] == f".weft/generated/{run}"
    assert (folder / "Notes" / "agents.json").is_file()

    broken = folder / "Notes" / "handoffs.json"
    good = broken.read_text()
    broken.write_text(good.replace("Reader", "Nobody"))
    reason = {question["key"]: "because the manager may be away"}
    checked = server.post(f"{path}/offer", {"answers": reason}, key=key(server))
    assert not checked["promotable"]
    assert checked["errors"]
    files = server.get(f"{path}/files", key=key(server))
    assert "Nobody" in json.dumps(files["items"])
    broken.write_text(good)
    checked = server.post(f"{path}/offer", {}, key=key(server))
    assert checked["promotable"]
    assert checked["questions"] == [{**question, "answer": reason[question["key"]]}]
    assert server.get(f"{path}/offer", key=key(server)) == checked
    broken.write_text(good.replace("Reader", "Nobody"))
    assert not server.get(f"{path}/offer", key=key(server))["promotable"]
    broken.write_text(good)
    content = server.call("GET", f"{path}/bundle.zip", key=key(server)).content
    headers = {"Content-Type": "application/zip"}
    made = server.call("POST", "/api/packages", content, key=key(server), headers=headers)
    assert (made.status, made.data["name"]) == (201, "Notes")
    tests = server.get("/api/workflows/Notes/tests", key=key(server))["items"]
    assert [each["name"] for each in tests] == [scenario["name"]]


def test_wrong_designs_are_refused(server, design):
    for body in (
        {},
        {"brief": " "},
        {"brief": "x", "plan": {}},
        {"form": "x", "brief": "x"},
        {"plan": {"version": 1}},
    ):
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
            ("GET", "/offer", None),
            ("POST", "/offer", {}),
            ("POST", "/approve", {"hash": "0" * 64}),
            ("POST", "/comment", {"text": "x"}),
        ):
            path = f"/api/plans/{run}{part}"
            server.send(method, path, body, key=key(server, app), status=404)
    for role in ("end_user", "operator"):
        person = key(server, "shop", role)
        said = server.get(f"/api/plans/{design}", key=person, status=404)
        assert said["message"] == "not found"
