"""Scenarios over HTTP: listed, run in a process of their own, and made of runs."""

import shutil

import pytest

from support.package_play import BROKEN, write
from support.server_play import serving
from weft.packages.workspace import shipped_folder

PATH = "/api/workflows/HelloWorld/tests"
FAILING = "message: hi\nreplies: {GreeterAgent: [Hello]}\nexpect: {outcome: completed}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    for home in ("workflows", "apps/shop/workflows"):
        shutil.copytree(shipped_folder() / "HelloWorld", workspace / home / "HelloWorld")
    write(workspace / "workflows" / "Broken", {**BROKEN, "tests/greets.yaml": "message: hi"})
    with serving(workspace) as server:
        for app in ("shop", "clinic"):
            server.post("/api/apps", {"app": app}, key=server.key("root", "administrator"))
        yield server


def key(server, role="developer", app="shop"):
    return server.key("dora", role, app=app)


def test_scenarios_are_listed_and_run(server):
    mine = key(server)
    [listed] = server.get(PATH, key=mine)["items"]
    assert (listed["name"], listed["path"]) == ("says_goodbye", "tests/says_goodbye.yaml")
    assert listed["description"].startswith("The greeter greets by name")
    [result] = server.post(PATH, key=mine)["items"]
    assert (result["name"], result["passed"]) == ("says_goodbye", True)


def test_difference_has_its_place_in_the_package(server):
    mine, file = key(server), "/api/workflows/HelloWorld/files/tests/failing.yaml"
    server.send("PUT", file, {"content": FAILING}, key=mine)
    [result] = server.post(PATH, {"name": "failing"}, key=mine)["items"]
    [finding] = result["findings"]
    assert (finding["code"], finding["file"]) == ("TEST001", "HelloWorld/tests/failing.yaml")
    assert (finding["line"], finding["cause"]) == (3, ["expected: completed", "got: waiting"])
    bad = {"content": "mesage: hi\n"}
    refused = server.call("PUT", file.replace("failing", "bad"), bad, key=mine)
    assert (refused.status, refused.data["findings"][0]["code"]) == (422, "SCHEMA008")
    unknown = server.call("POST", PATH, {"name": "nothing"}, key=mine)
    assert (unknown.status, unknown.data["message"]) == (422, 'there is no scenario "nothing"')


def test_run_is_saved_as_a_test_that_passes(server):
    mine = key(server)
    start = {"workflow": "HelloWorld", "message": "I am Ada", "model": "sample"}
    run = server.post("/api/runs", start, key=mine, status=201)["run"]
    server.until(f"/api/runs/{run}", mine, is_so=lambda row: row["status"] != "running")
    saved = server.post(f"/api/runs/{run}/save-test", {"name": "ada"}, key=mine)
    assert saved == {"path": "tests/ada.yaml", "volatile": []}
    assert server.post(PATH, {"name": "ada"}, key=mine)["items"][0]["passed"]
    file = server.get("/api/workflows/HelloWorld/files/tests/ada.yaml", key=mine)
    assert "message: I am Ada\n" in file["content"]
    server.post(f"/api/runs/{run}/save-test", {"name": "ada"}, key=mine, status=409)
    unnamed = server.post(f"/api/runs/{run}/save-test", key=mine)
    assert unnamed["path"] == f"tests/run_{run[-8:]}.yaml"


def test_only_developers_of_a_tenant_run_and_save_tests(server):
    for role in ("end_user", "operator"):
        server.get(PATH, key=key(server, role), status=404)
        server.post(PATH, key=key(server, role), status=404)
        server.post("/api/runs/x/save-test", key=key(server, role), status=404)
    server.post("/api/runs/x/save-test", key=key(server), status=404)
    # The package of all tenants is not the clinic's to change.
    theirs = key(server, app="clinic")
    start = {"workflow": "HelloWorld", "message": "hello", "model": "sample"}
    run = server.post("/api/runs", start, key=theirs, status=201)["run"]
    server.until(f"/api/runs/{run}", theirs, is_so=lambda row: row["status"] != "running")
    refused = server.post(f"/api/runs/{run}/save-test", key=theirs, status=422)
    assert refused["message"] == "HelloWorld belongs to all tenants"


def test_package_with_errors_is_refused(server):
    found = server.call("POST", "/api/workflows/Broken/tests", key=key(server))
    assert found.status == 422
    assert "Broken has 1 error and cannot run" in found.data["message"]
