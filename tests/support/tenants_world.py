"""Tenants that have everything which the server keeps, each thing with the name of its owner.

Each value is a canary: `canary-TENANT` for what the tenant sees, `canary-TENANT-ada` for what only
its user ada sees. `fill` makes a request from a path of the OpenAPI document, with the ids of a
tenant or with ids that nobody has.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from support.package_play import GREETER, zipped
from support.server_play import Server, serving, session_header
from weft.server.identity import Principal

ROLES = ("end_user", "developer", "operator", "administrator")
ZIP = "application/zip"
BOARD = {
    "orchestrator": {"workflow_name": "Wall"},
    "agents": {
        "agents": [{"agent_name": "Filer", "prompt_sections": [{"id": "a", "content": "Work."}]}]
    },
    "board": {
        "artifacts": [{"name": "Note", "schema": {"type": "object"}}],
        "agents": [
            {
                "agent": "Filer",
                "consumes": [{"types": ["Note"]}],
                "engines": [{"kind": "function", "function": "tools.work:file"}],
            }
        ],
        "shared": True,
    },
}


@dataclass(frozen=True)
class Ids:
    """The ids of what a tenant has."""

    app: str
    run: str
    request: str
    artifact: str
    correlation: str
    workflow: str
    digest: str
    key: str
    user: str
    start: str
    cursor: str
    webhook: str
    turn: int = 1


#: Ids that look like real ones.
UNKNOWN = Ids(
    app="nowhere",
    run="01m7rvyaw0y3jddhcf780c00zz",
    request="01m7rvyaw0y3jddhcf780c00zz:8",
    artifact="01m7rvyaw0y3jddhcf780c00zy",
    correlation="nothing",
    workflow="NoDesk",
    digest="0" * 64,
    key="0123456789ab",
    user="nobody",
    start="NoStart",
    cursor="",
    webhook="01m7rvyaw0y3jddhcf780c00zx",
)


def package(app: str) -> dict[str, str]:
    """Return the files of a tenant's package, with which its users talk."""
    files = {
        name: text.replace("Greeter", f"{app}Desk").replace("Greets people.", f"canary-{app}-about")
        for name, text in GREETER.items()
    }
    return {
        **files,
        "agents.json": files["agents.json"].replace("You greet people.", f"canary-{app}-prompt"),
        "notes.txt": f"canary-{app}-notes",
    }


def hook_package(app: str) -> dict[str, str]:
    """Return the files of a tenant's package that a webhook starts."""
    trigger = {"type": "webhook", "secret_env": "HOOK_SECRET", "path": f"{app}/orders"}
    orchestrator = {"workflow_name": f"{app}Hook", "initial_agent": "Host", "trigger": trigger}
    return {
        "orchestrator.json": json.dumps(orchestrator),
        "agents.json": GREETER["agents.json"],
        "handoffs.json": GREETER["handoffs.json"].replace('"user"', '"terminate"'),
    }


@contextmanager
def tenants(workspace: Path, *apps: str) -> Iterator[tuple[Server, list[Ids]]]:
    """Serve a workspace with tenants that have everything."""
    folder = workspace / "workflows" / "Wall"
    (folder / "tools").mkdir(parents=True)
    for file, content in BOARD.items():
        (folder / f"{file}.json").write_text(json.dumps(content), encoding="utf-8")
    code = '"""Files notes."""\n\n\ndef file(inputs):\n    """File a note."""\n    return None\n'
    (folder / "tools" / "work.py").write_text(code, encoding="utf-8")
    with serving(workspace) as server:
        yield server, [_tenant(server, app) for app in apps]


def staff(server: Server, app: str, *roles: str) -> str:
    """Return a key of somebody of a tenant; by default of one with all roles."""
    return server.key("boss", *(roles or ROLES), app=app)


def session(server: Server, app: str, user: str, *roles: str) -> str:
    """Return the header with which a page has a session."""
    return session_header(server, Principal(app, user, frozenset(roles)))


def _tenant(server: Server, app: str) -> Ids:
    root, boss = server.key("root", "administrator"), staff(server, app)
    server.post("/api/apps", {"app": app}, key=root)
    ada = server.key("ada", "end_user", app=app)
    for files in (hook_package(app), package(app)):
        headers = {"Content-Type": ZIP}
        found = server.call("POST", "/api/packages", zipped(files), key=boss, headers=headers)
        assert found.status == 201, found.content
    mine = f"canary-{app}-ada"
    body = {"workflow": f"{app}Desk", "message": f"{mine}-message"}
    run = server.post("/api/runs", body, key=ada, status=201)["run"]
    (request,) = server.settled(run, ada)["requests"]
    published = server.post(
        "/api/boards/Wall/artifacts",
        {
            "type": "Note",
            "payload": {"text": f"{mine}-note"},
            "correlation": f"{mine}-correlation",
            "visibility": {"kind": "private", "agents": ["user:ada"]},
        },
        key=ada,
        status=201,
    )
    user = f"canary-{app}-user"
    server.post("/api/users", {"app": app, "user": user, "labels": [user]}, key=boss)
    key = {"app": app, "user": user, "roles": ["end_user"], "name": f"canary-{app}-key"}
    made = server.post("/api/keys", key, key=boss, status=201)
    document = f"/api/documents/{published['correlation']}/{made['id']}"
    server.send("PUT", document, {"text": f"canary-{app}-document"}, key=boss)
    body_of_hook = {"url": f"http://127.0.0.1:9/canary-{app}-hook", "workflows": ["NoDesk"]}
    webhook = server.post("/api/webhooks", body_of_hook, key=boss, status=201)
    # Two, so that there is a page behind the first one.
    server.post("/api/runs", {**body, "force": True}, key=ada, status=201)
    server.until("/api/starts", boss, is_so=lambda starts: starts["items"])
    server.post(f"/api/starts/{app}Hook/fire", {"input": {"why": "x"}}, key=boss, status=201)
    cursor = server.get("/api/requests?limit=1", key=boss)["next"]
    return Ids(
        app=app,
        run=run,
        request=request["id"],
        artifact=published["artifact"],
        correlation=published["correlation"],
        workflow=f"{app}Desk",
        digest=found.data["new_digest"],
        key=made["id"],
        user=user,
        start=f"{app}Hook",
        cursor=cursor,
        webhook=webhook["id"],
    )


class Filled(NamedTuple):
    """A request: its path with a query, its body, and the type of that."""

    path: str
    body: bytes | None
    headers: Mapping[str, str]


def fill(document: Mapping[str, Any], method: str, path: str, ids: Ids) -> Filled:
    """Return a valid request to a path of the document; a path that is not known here fails."""
    operation = document["paths"][path][method]
    given, query, headers = path, {}, {}
    for each in operation.get("parameters", ()):
        name = each["name"]
        if each["in"] == "path":
            value, safe = _in_path(path, name, ids), "/" if name == "path" else ""
            given = given.replace(f"{{{name}}}", quote(str(value), safe=safe))
        elif each["in"] == "query" and name not in HARMLESS:
            query |= {name: value} if (value := _in_query(path, name, ids)) else {}
        elif each["in"] == "header":
            assert name in HEADERS, _unknown(path, f"the header {name}")
    content = operation.get("requestBody", {}).get("content", {})
    body = None
    if ZIP in content:
        files = {name: text.replace("canary", "own") for name, text in package(ids.app).items()}
        body, headers["Content-Type"] = zipped(files), ZIP
        query["dry_run"] = "true"
    elif content:
        schema = content["application/json"]["schema"]
        filled = minimal(document, schema)
        if isinstance(filled, dict):
            filled |= {name: value for name, value in BODY.items() if name in filled}
            for name in ("app", "user", "workflow", "correlation"):
                if name in filled:
                    filled[name] = getattr(ids, name)
        body, headers["Content-Type"] = json.dumps(filled).encode(), "application/json"
    return Filled(f"{given}?{urlencode(query)}" if query else given, body, headers)


#: Parameters that name nothing of anybody's.
HARMLESS = {
    "after", "at", "count", "dry_run", "force", "format", "kind", "limit", "shared", "since",
    "status", "stream", "for", "round", "from", "to", "refused",
}  # fmt: skip
HEADERS = {"Idempotency-Key", "Last-Event-ID", "Weft-Signature", "Weft-Delivery"}
BODY = {"type": "Note", "payload": {"text": "x"}, "roles": ["end_user"], "turn": 1}


def _in_path(path: str, name: str, ids: Ids) -> object:
    if path.startswith("/api/boards/") and name == "workflow":
        return "Wall"
    if name in ("id", "workflow") and path.startswith("/api/starts/"):
        return ids.start
    if name == "id" and path.startswith("/api/webhooks/"):
        return ids.webhook
    if name == "id":
        return ids.correlation if path.startswith("/api/correlations/") else ids.artifact
    file = f"{ids.app}/orders" if path.startswith("/hooks") else "agents.json"
    names = {
        "name": ids.workflow, "path": file, "collection": ids.correlation,
        "turn": ids.turn, "component": "Card", "code": "HTTP401",
    }  # fmt: skip
    if name in names:
        return names[name]
    assert hasattr(ids, name), _unknown(path, f"the parameter {name}")
    return getattr(ids, name)


def _in_query(path: str, name: str, ids: Ids) -> str:
    if name == "workflow" and path.startswith("/api/correlations"):
        return "Wall"
    names = {
        "agent": "Filer" if path.startswith("/api/boards") else "Host",
        "producer": "user:ada", "tag": "", "type": "Note", "partition": "", "text": "",
        "user": "ada", "cursor": "", "package": ids.workflow, "refused": "true",
    }  # fmt: skip
    if name == "cursor" and path == "/api/requests":
        return ids.cursor
    if name in names:
        return names[name]
    assert hasattr(ids, name), _unknown(path, f"the parameter {name}")
    return str(getattr(ids, name))


def _unknown(path: str, what: str) -> str:
    return f"tests/support/tenants_world.py does not know {what} of {path}: add it there"


def minimal(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that a schema allows, with all fields that are required."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return minimal(document, schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            found = {name: minimal(document, fields[name]) for name in schema.get("required", ())}
            # Of a fork: either is given.
            return found | ({"turn": 1} if {"turn", "at"} <= set(fields) else {})
        case "array":
            return [minimal(document, schema["items"])] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return schema.get("enum", ["x"])[0]


def without(ids: Ids, *names: str) -> Ids:
    """Return ids of which some belong to nobody."""
    return replace(ids, **{name: getattr(UNKNOWN, name) for name in names})
