"""Packages over HTTP: install, update, roll back; refused where they would do harm."""

import io
import json
import shutil
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from support.package_play import BROKEN, GREETER, greeter, write, zipped
from support.server_play import serving

ZIP = {"Content-Type": "application/zip"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of several tenants, on which imports may take a second."""
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "workflows").mkdir()
    with serving(workspace, {"WEFT_TOOL_TIMEOUT": "1"}) as server:
        for app in ("shop", "clinic", "BIG"):
            server.post("/api/apps", {"app": app}, key=server.key("root", "administrator"))
        yield server


def staff(server, app="shop"):
    return server.key("olga", "operator", "developer", "end_user", app=app)


def install(server, files, app="shop", query="", key=""):
    content = files if isinstance(files, bytes) else zipped(files)
    key = key or staff(server, app)
    return server.call("POST", f"/api/packages{query}", content, key=key, headers=ZIP)


def tree(server):
    folder = server.opened.context.workspace
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for top in ("workflows", "apps")
        for path in (folder / top).rglob("*")
        if path.is_file()
    }


def test_package_is_installed_updated_and_rolled_back(server):
    planned = install(server, greeter(), query="?dry_run=true")
    assert (planned.status, planned.data["written"], planned.data["created"]) == (200, False, True)
    made = install(server, greeter())
    assert (made.status, made.data["written"], made.data["old_digest"]) == (201, True, None)
    assert made.data["added"] == sorted(GREETER)
    assert install(server, greeter()).data["written"] is False
    update = greeter(prompt="You say hello.", notes="second\n")
    planned = install(server, update, query="?dry_run=1").data
    changed = install(server, update).data
    assert changed == {**planned, "written": True}
    assert changed["changed"] == ["agents.json", "notes.txt"]
    assert "-first\n+second" in changed["diff"]
    assert changed["old_digest"] == made.data["new_digest"] != changed["new_digest"]
    key = staff(server)
    row = server.get("/api/workflows/Greeter", key=key)
    assert (row["digest"], row["owner"]) == (changed["new_digest"], "own")
    versions = server.get("/api/packages/Greeter/versions", key=key)["items"]
    assert [(each["action"], each["is_present"], each["is_kept"]) for each in versions] == [
        ("installed", True, False),
        ("installed", False, True),
    ]
    assert {each["user"] for each in versions} == {"olga"}
    back = server.post("/api/packages/Greeter/rollback", key=key)
    assert (back["new_digest"], back["changed"]) == (
        made.data["new_digest"], ["agents.json", "notes.txt"],
    )  # fmt: skip
    newest = versions[0]["version"]
    server.post("/api/packages/Greeter/rollback", {"version": newest}, key=key)
    assert server.get("/api/workflows/Greeter", key=key)["digest"] == changed["new_digest"]
    server.post("/api/packages/Greeter/rollback", {"version": "0" * 64}, key=key, status=404)
    page = server.get("/api/packages/Greeter/versions?limit=3", key=key)
    assert [each["action"] for each in page["items"]] == ["rolled back", "rolled back", "installed"]
    rest = server.get(f"/api/packages/Greeter/versions?cursor={page['next']}", key=key)
    assert len(rest["items"]) == 1


def test_package_is_exported_as_it_can_be_installed(server):
    install(server, greeter())
    path = "/api/packages/Greeter/zip"
    reply = server.call("GET", path, key=staff(server))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/zip")
    with ZipFile(io.BytesIO(reply.content)) as archive:
        assert {*GREETER, "manifest.json"} == set(archive.namelist())
    made = install(server, reply.content, app="clinic")
    assert (made.status, made.data["created"]) == (201, True)
    assert server.call("GET", path, key=staff(server, "BIG")).status == 404
    guest = server.key("gus", "operator", app="shop")
    assert server.call("GET", path, key=guest).status == 404


def test_package_with_errors_is_not_exported(server):
    write(server.opened.context.workspace / "workflows" / "Torn", BROKEN)
    said = server.get("/api/packages/Torn/zip", key=staff(server), status=422)
    assert said["findings"]
    shutil.rmtree(server.opened.context.workspace / "workflows" / "Torn")


def test_package_with_errors_never_replaces_one(server):
    install(server, greeter())
    before = tree(server)
    refused = install(server, BROKEN)
    assert (refused.status, refused.data["code"]) == (422, "HTTP422")
    assert refused.data["findings"]
    assert "nothing was changed" in refused.data["message"]
    assert tree(server) == before


def test_files_that_were_changed_since_are_not_lost(server):
    install(server, greeter(), app="clinic")
    workspace = server.opened.context.workspace
    notes = workspace / "apps" / "clinic" / "workflows" / "Greeter" / "notes.txt"
    notes.write_text("mine\n")
    refused = install(server, greeter(notes="theirs\n"), app="clinic")
    assert refused.status == 409
    assert "notes.txt" in refused.data["message"]
    assert notes.read_text() == "mine\n"
    planned = install(server, greeter(notes="theirs\n"), app="clinic", query="?dry_run=true")
    assert planned.data["lost"] == ["notes.txt"]
    install(server, greeter(notes="theirs\n"), app="clinic", query="?force=true")
    assert notes.read_text() == "theirs\n"
    key = staff(server, "clinic")
    actions = server.get("/api/packages/Greeter/versions", key=key)["items"]
    assert [each["action"] for each in actions] == ["installed", "found", "installed"]
    server.post("/api/packages/Greeter/rollback", key=key)
    assert notes.read_text() == "mine\n"
    assert not list(notes.parents[1].glob("*.bak"))


def test_packages_of_a_tenant_are_not_those_of_others(server):
    only = {**greeter(), "orchestrator.json": GREETER["orchestrator.json"].replace("Gr", "Cli")}
    assert install(server, only, app="clinic").status == 201
    name = json.loads(only["orchestrator.json"])["workflow_name"]
    server.get(f"/api/workflows/{name}", key=staff(server, "clinic"))
    for app in ("shop", "local"):
        key = staff(server, app)
        missing = server.call("GET", "/api/workflows/Nothing", key=key).data
        for path in ("", "/findings", "/diagram", "/files", "/files/agents.json"):
            reply = server.call("GET", f"/api/workflows/{name}{path}", key=key)
            assert reply.status == 404
            said = json.loads(reply.content.replace(name.encode(), b"Nothing"))
            assert {**said, "hint": []} == {**missing, "hint": []}
        digest = server.get(f"/api/workflows/{name}", key=staff(server, "clinic"))["digest"]
        server.get(f"/api/workflows/{name}@{digest}", key=key, status=404)
        server.get(f"/api/packages/{name}/versions", key=key, status=404)
        server.post(f"/api/packages/{name}/rollback", key=key, status=404)
        body = {"content": "x", "digest": None}
        server.send("PUT", f"/api/workflows/{name}/files/x.txt", body, key=key, status=404)
        server.post(f"/api/workflows/{name}/fixes", {}, key=key, status=404)


def test_packages_of_all_tenants_are_for_administrators(server):
    shared = greeter(prompt="You greet all.")
    refused = install(server, shared, query="?shared=true")
    assert (refused.status, refused.data["message"]) == (404, "not found")
    boss = server.key("boss", "administrator", app="shop")
    assert install(server, shared, query="?shared=true", key=boss).status == 404
    root = server.key("root", "administrator")
    assert install(server, shared, query="?shared=true", key=root).status == 201
    local = server.get("/api/workflows/Greeter", key=root)
    assert local["owner"] == "shared"
    install(server, greeter())
    assert server.get("/api/workflows/Greeter", key=staff(server))["owner"] == "own"
    assert server.get("/api/workflows/Greeter", key=staff(server, "BIG"))["owner"] == "shared"
    server.get("/api/packages/Greeter/versions?shared=true", key=root)
    server.get("/api/packages/Greeter/versions", key=root, status=404)
    body = {"content": "x", "digest": None}
    key = staff(server, "BIG")
    said = server.send("PUT", "/api/workflows/Greeter/files/x.txt", body, key=key, status=422)
    assert "belongs to all tenants" in said["message"]
    assert "cannot have packages" in install(server, greeter(), app="BIG").data["message"]


@pytest.mark.parametrize("role", ["end_user", "developer"])
def test_installing_is_for_operators(server, role):
    key = server.key("someone", role, app="shop")
    assert install(server, greeter(), key=key).status == 404
    server.post("/api/packages/Greeter/rollback", key=key, status=404)


def start(server, app="shop", status=201, name="Greeter"):
    body = {"workflow": name, "message": "hi", "force": True}
    return server.post("/api/runs", body, key=staff(server, app), status=status)


def digest_of(server, run, app="shop"):
    return server.get(f"/api/runs/{run['run']}", key=staff(server, app))["digest"]


def test_running_chats_keep_their_version_through_updates(server):
    first = install(server, greeter(prompt="You greet first."), query="?force=true").data
    old = start(server)
    second = install(server, greeter(prompt="You greet second.")).data
    new = start(server)
    server.post("/api/packages/Greeter/rollback", key=staff(server))
    last = start(server)
    assert [digest_of(server, run) for run in (old, new, last)] == [
        first["new_digest"], second["new_digest"], first["new_digest"],
    ]  # fmt: skip
    for run, text in ((old, "first"), (new, "second")):
        server.settled(run["run"], staff(server))
        path = f"/api/runs/{run['run']}"
        turns = server.get(path, key=staff(server))["turns"]
        server.post(f"{path}/messages", {"text": "still there?"}, key=staff(server))
        server.until(path, staff(server), is_so=lambda row, turns=turns: row["turns"] > turns)
        server.settled(run["run"], staff(server))
        prompt = server.get(f"{path}/prompts/{turns + 1}", key=staff(server))
        assert f"You greet {text}." in json.dumps(prompt)


def test_code_that_hangs_is_installed_and_not_imported(server):
    tool = {
        "tool_type": "Agent_Tool",
        "agent": "Host",
        "file": "wave.py",
        "function": "wave",
        "description": "Waves.",
    }
    code = 'import threading\n\nthreading.Event().wait()\n\n\ndef wave() -> str:\n    """Wave."""\n'
    files = {
        **GREETER,
        "orchestrator.json": GREETER["orchestrator.json"].replace("Greeter", "Waver"),
        "tools.json": json.dumps({"tools": [tool]}),
        "tools/wave.py": code,
    }
    assert install(server, files).status == 201
    assert "longer than 1 s" in start(server, status=422, name="Waver")["message"]
    assert install(server, {**files, "tools/wave.py": code.split("wait()")[1].lstrip()}).data[
        "written"
    ]
    start(server, name="Waver")


def test_folders_of_packages_are_watched(server):
    workspace = server.opened.context.workspace
    for app, folder in (("clinic", workspace / "apps" / "clinic"), ("local", workspace)):
        path = "/api/workflows/Walker"
        server.get(path, key=staff(server, app), status=404)
        place = folder / "workflows" / "Walker"
        orchestrator = GREETER["orchestrator.json"].replace("Greeter", "Walker")
        write(place, {**GREETER, "orchestrator.json": orchestrator})
        first = digest_of(server, start(server, app, name="Walker"), app)
        assert server.get(path, key=staff(server, app))["digest"] == first
        server.get(path, key=staff(server), status=404 if app == "clinic" else 200)
        write(place, {"agents.json": greeter(prompt="You walk.")["agents.json"]})
        second = digest_of(server, start(server, app, name="Walker"), app)
        assert server.get(path, key=staff(server, app))["digest"] == second != first
        shutil.rmtree(place)
        server.get(path, key=staff(server, app), status=404)
        start(server, app, status=404, name="Walker")


# -- bad archives


def archive(*entries, **kinds):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as target:
        for name, content in entries:
            entry = ZipInfo(name)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = kinds.get("mode", 0o100644) << 16
            target.writestr(entry, content)
    return buffer.getvalue()


def encrypted():
    raw = bytearray(archive(("manifest.json", b"{}")))
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    return bytes(raw)


def without_utf8():
    return zipped(greeter()).replace(b"notes.txt", b"note\xff.txt")


def with_a_false_size():
    raw = bytearray(archive(("a.txt", b"\0" * 80_000_000), ("manifest.json", b"{}")))
    small = (10).to_bytes(4, "little")
    raw[22:26] = small
    entry = raw.index(b"PK\x01\x02")
    raw[entry + 24 : entry + 28] = small
    return bytes(raw)


BAD = {
    "nothing": b"",
    "text": b"hello",
    "cut off": zipped(greeter())[:-30],
    "absolute": archive(("/etc/passwd", b"x"), ("manifest.json", b"{}")),
    "outside": archive(("../../x.py", b"x"), ("manifest.json", b"{}")),
    "link": archive(("a", b"/etc/passwd"), ("manifest.json", b"{}"), mode=0o120777),
    "bomb": archive(("a.txt", b"\0" * 80_000_000), ("manifest.json", b"{}")),
    "bomb with a false size": with_a_false_size(),
    "many": archive(*((f"f{n}.txt", b"") for n in range(2_100)), ("manifest.json", b"{}")),
    "case": archive(("a.txt", b""), ("A.txt", b""), ("manifest.json", b"{}")),
    "encrypted": encrypted(),
    "name": without_utf8(),
    "no manifest": archive(("agents.json", b"{}")),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_archive_is_refused_and_nothing_is_written(server, kind):
    before = tree(server)
    refused = install(server, BAD[kind])
    assert refused.status == 422
    assert refused.data["message"]
    assert tree(server) == before
    folder = server.opened.context.workspace / "apps" / "shop" / "workflows"
    assert list(folder.glob(".*")) == []


def test_json_is_not_an_archive(server):
    reply = server.call("POST", "/api/packages", {"name": "x"}, key=staff(server))
    assert reply.status == 422
