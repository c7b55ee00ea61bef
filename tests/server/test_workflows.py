"""Workflows over HTTP: what can be run, its health, drawings and sources; and edits of files."""

import json
from pathlib import Path

import pytest

from support.package_play import BROKEN, GREETER, greeter, write
from support.server_play import serving

HANG = "import threading\n\nthreading.Event().wait()\n"
TOOLS = {
    "tools.json": json.dumps(
        {
            "tools": [
                {
                    "tool_type": "Agent_Tool",
                    "agent": "Host",
                    "file": "wave.py",
                    "function": "wave",
                    "description": "Waves.",
                }
            ]
        }
    )
}
WAVE = '\n\ndef wave() -> str:\n    """Wave."""\n    return "waved"\n'


@pytest.fixture
def folder(workspace):
    """The package Greeter as it is at first."""
    folder = workspace / "workflows" / "Greeter"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    write(folder, GREETER)
    return folder


@pytest.fixture(scope="module")
def server(workspace):
    """A server of one person, on which imports may take a second."""
    with serving(workspace, {"WEFT_TOOL_TIMEOUT": "1"}) as server:
        yield server


def key(server, *roles):
    return server.key("dora", *(roles or ("developer", "operator")))


def put(server, path, content, digest, query="", status=200, name="Greeter"):
    body = {"content": content, "digest": digest}
    where = f"/api/workflows/{name}/files/{path}{query}"
    return server.send("PUT", where, body, key=key(server), status=status)


def file(server, path):
    return server.get(f"/api/workflows/Greeter/files/{path}", key=key(server))


def start(server, status=201, name="Greeter"):
    body = {"workflow": name, "message": "hi", "force": True}
    return server.post("/api/runs", body, key=key(server), status=status)


def digest_of(server, run):
    return server.get(f"/api/runs/{run['run']}", key=key(server))["digest"]


def test_workflows_are_listed_with_their_health(server, folder):
    found = {row["name"]: row for row in server.get("/api/workflows", key=key(server))["items"]}
    assert {"Desk", "Greeter", "NewsDesk", "OrderProcessing", "Generator"} <= set(found)
    assert (found["NewsDesk"]["kind"], found["OrderProcessing"]["kind"]) == ("board", "flow")
    assert found["Greeter"]["health"] == {"errors": 0, "warnings": 0, "problem": None}
    assert found["Generator"]["owner"] == "shipped"
    write(folder, BROKEN)
    row = server.get("/api/workflows/Greeter", key=key(server))
    assert row["health"]["errors"] > 0
    findings = server.get("/api/workflows/Greeter/findings", key=key(server))
    assert {finding["file"] for finding in findings["findings"]} == {"Greeter/handoffs.json"}


def test_end_users_see_what_can_be_started(server, folder):
    person = key(server, "end_user")
    for row in server.get("/api/workflows", key=person)["items"]:
        assert set(row) == {
            "name", "description", "kind", "startup_mode", "initiated_by", "trigger",
        }  # fmt: skip
    assert "spec" not in server.get("/api/workflows/Greeter", key=person)
    for path in ("@0", "/findings", "/diagram", "/files", "/files/agents.json"):
        server.get(f"/api/workflows/Greeter{path}", key=person, status=404)


def test_workflow_is_drawn(server, folder):
    for kind, form, part in (
        ("graph", "mermaid", "Host"), ("graph", "ascii", "Host"), ("sequence", "mermaid", "Host"),
    ):  # fmt: skip
        path = f"/api/workflows/Greeter/diagram?kind={kind}&format={form}"
        drawn = server.get(path, key=key(server))
        assert (drawn["kind"], drawn["format"]) == (kind, form)
        assert part in drawn["text"]
    server.get("/api/workflows/Greeter/diagram?format=svg", key=key(server), status=422)
    (folder / "agents.json").write_text("{")
    said = server.get("/api/workflows/Greeter/diagram", key=key(server), status=422)
    assert said["findings"]


def test_digest_finds_the_version_that_runs_have(server, folder):
    first = server.get("/api/workflows/Greeter", key=key(server))["digest"]
    run = start(server)
    write(folder, greeter(prompt="You say hello."))
    now = server.get("/api/workflows/Greeter", key=key(server))["digest"]
    assert first == digest_of(server, run) != now
    for digest, text in ((first, "You greet people."), (now, "You say hello.")):
        reply = server.call("GET", f"/api/workflows/Greeter@{digest}", key=key(server))
        assert "immutable" in reply.headers["cache-control"]
        assert text in json.dumps(reply.data["spec"])
    server.get(f"/api/workflows/Desk@{first}", key=key(server), status=404)
    server.get(f"/api/workflows/Greeter@{'0' * 64}", key=key(server), status=404)


def test_running_chats_keep_their_version(server, folder):
    old = start(server)
    write(folder, greeter(prompt="You say hello."))
    new = start(server)
    assert digest_of(server, old) != digest_of(server, new)
    server.settled(old["run"], key(server))
    server.post(f"/api/runs/{old['run']}/messages", {"text": "still there?"}, key=key(server))
    server.settled(old["run"], key(server))
    state = server.get(f"/api/runs/{old['run']}/state", key=key(server))
    assert state["digest"] == digest_of(server, old)
    assert state["turns"] >= 2


def test_broken_edit_leaves_the_last_good_version_in_use(server, folder):
    good = digest_of(server, start(server))
    write(folder, BROKEN)
    assert digest_of(server, start(server)) == good
    health = server.get("/api/workflows/Greeter", key=key(server))["health"]
    assert health["errors"] > 0
    assert "cannot run" in health["problem"]
    assert str(folder) not in health["problem"]
    write(folder, {**GREETER, **TOOLS, "tools/wave.py": "import no_such_module" + WAVE})
    assert digest_of(server, start(server)) == good
    health = server.get("/api/workflows/Greeter", key=key(server))["health"]
    assert "no_such_module" in health["problem"]
    write(folder, {**GREETER, **TOOLS, "tools/wave.py": WAVE})
    assert digest_of(server, start(server)) != good
    assert server.get("/api/workflows/Greeter", key=key(server))["health"]["problem"] is None


def test_import_that_hangs_is_reported_and_others_are_served(server, workspace):
    waver = workspace / "workflows" / "Waver"
    orchestrator = GREETER["orchestrator.json"].replace("Greeter", "Waver")
    write(waver, {**GREETER, **TOOLS, "orchestrator.json": orchestrator})
    write(waver, {"tools/wave.py": HANG + WAVE})
    row = server.get("/api/workflows/Waver", key=key(server))
    assert row["health"]["errors"] == 0, "checking imports nothing"
    said = start(server, status=422, name="Waver")
    assert "longer than 1 s" in said["message"]
    assert "longer than 1 s" in start(server, status=422, name="Waver")["message"]
    start(server, name="Desk")
    write(waver, {"tools/wave.py": WAVE})
    good = digest_of(server, start(server, name="Waver"))
    write(waver, {"tools/wave.py": HANG + WAVE + "\n"})
    assert digest_of(server, start(server, name="Waver")) == good
    health = server.get("/api/workflows/Waver", key=key(server))["health"]
    assert "longer than 1 s" in health["problem"]
    write(waver, {"tools/wave.py": WAVE})


# -- files


def test_files_are_listed_and_read(server, folder):
    (folder / "logo.png").write_bytes(b"\x89PNG\xff")
    listed = server.get("/api/workflows/Greeter/files", key=key(server))["items"]
    assert [each["path"] for each in listed] == sorted([*GREETER, "logo.png"])
    notes = file(server, "notes.txt")
    assert (notes["content"], notes["size"]) == ("first\n", 6)
    assert notes["digest"] in [each["digest"] for each in listed]
    assert file(server, "logo.png")["content"] is None
    for path in ("nothing.txt", "../Desk/agents.json", "..%2fDesk%2fagents.json", ".hidden"):
        server.get(f"/api/workflows/Greeter/files/{path}", key=key(server), status=404)


def test_file_is_edited_unless_it_has_changed(server, folder):
    before = file(server, "agents.json")
    text = before["content"].replace("You greet people.", "You say hello.")
    planned = put(server, "agents.json", text, before["digest"], "?dry_run=true")
    assert (planned["written"], planned["changed"]) == (False, ["agents.json"])
    assert file(server, "agents.json") == before
    done = put(server, "agents.json", text, before["digest"])
    assert done == {**planned, "written": True}
    assert "+" in done["diff"]
    assert file(server, "agents.json")["content"] == text
    said = put(server, "agents.json", "{}", before["digest"], status=409)
    assert "changed" in said["message"]
    put(server, "agents.json", "{}", None, status=409)
    put(server, "new.txt", "x", before["digest"], status=409)
    assert put(server, "docs/new.txt", "x", None)["added"] == ["docs/new.txt"]
    assert (folder / "docs" / "new.txt").read_text() == "x"
    actions = server.get("/api/packages/Greeter/versions", key=key(server))["items"]
    assert [each["action"] for each in actions[:3]] == ["edited", "edited", "found"]
    server.post("/api/packages/Greeter/rollback", key=key(server))
    assert not (folder / "docs" / "new.txt").exists()


def test_edit_that_gives_errors_is_refused_or_forced(server, folder):
    start(server)
    text, digest = BROKEN["handoffs.json"], file(server, "handoffs.json")["digest"]
    said = put(server, "handoffs.json", text, digest, status=422)
    assert said["findings"][0]["file"] == "Greeter/handoffs.json"
    assert file(server, "handoffs.json")["digest"] == digest
    done = put(server, "handoffs.json", text, digest, "?force=true")
    assert done["findings"]
    start(server)
    now = file(server, "handoffs.json")["digest"]
    more = put(server, "handoffs.json", text + " ", now)
    assert more["written"], "it had errors already"


@pytest.mark.parametrize(
    "path",
    [
        "../x.txt", "a/../../x.txt", "..%2F..%2Fx.txt", "%2Fetc%2Fx", "C:%5Cx", "a%5Cb", ".git/x",
        "Agents.json", "notes.txt/x", "manifest.json", "con.txt", "a%20/x", "x.pyc",
        "a/b/c/d/e/f/g/h/i/j/k.txt",
    ],
)  # fmt: skip
def test_file_name_that_leads_elsewhere_is_refused(server, folder, path):
    before = sorted(folder.parent.rglob("*"))
    reply = server.call(
        "PUT",
        f"/api/workflows/Greeter/files/{path}",
        {"content": "x", "digest": None},
        key=key(server),
    )
    assert reply.status in (404, 422)
    assert sorted(folder.parent.rglob("*")) == before


def test_link_out_of_the_package_is_neither_read_nor_written(server, folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "elsewhere").symlink_to(tmp_path)
    for path in ("link.txt", "elsewhere/secret.txt"):
        reply = server.call("GET", f"/api/workflows/Greeter/files/{path}", key=key(server))
        assert reply.status == 422
        assert b'secret"' not in reply.content
        put(server, path, "x", None, status=422)
    assert (tmp_path / "secret.txt").read_text() == "secret"


@pytest.mark.parametrize("content", ["\ud800", "x" * (1024 * 1024 + 1)])
def test_file_content_that_is_not_text_is_refused(server, folder, content):
    body = json.dumps({"content": content}).encode()
    reply = server.call(
        "PUT",
        "/api/workflows/Greeter/files/x.txt",
        body,
        key=key(server),
        headers={"Content-Type": "application/json"},
    )
    assert reply.status in (413, 422)


def test_packages_that_come_with_weft_are_not_edited(server):
    said = put(server, "x.txt", "x", None, status=422, name="Generator")
    assert "comes with Weft" in said["message"]


def test_safe_fixes_are_applied(server, folder):
    text = GREETER["handoffs.json"].replace("Host", "host")
    write(folder, {"handoffs.json": text})
    path = "/api/workflows/Greeter/fixes"
    nothing = server.post(path, {"codes": ["PACK"]}, key=key(server))
    assert (nothing["written"], nothing["fixed"]) == (False, [])
    planned = server.post(f"{path}?dry_run=true", key=key(server))
    assert (planned["written"], planned["changed"]) == (False, ["handoffs.json"])
    assert planned["fixed"][0].startswith("handoffs.json: ")
    assert (folder / "handoffs.json").read_text() == text
    done = server.post(path, {"codes": []}, key=key(server))
    assert done == {**planned, "written": True}
    assert not [each for each in done["findings"] if each["severity"] == "error"]
    assert Path(folder / "handoffs.json").read_text().count("Host") == 1
