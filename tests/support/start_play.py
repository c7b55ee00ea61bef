"""Workspaces whose packages are started by schedules, webhooks, documents and forms."""

import contextlib
import io
import json
import time
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.server_play import PATIENCE, Reply, Server
from weft.cli.app import main
from weft.packages.writer import file_texts
from weft.server.signatures import sign
from weft.spec.workflow import WorkflowSpec

BRIEFS = Path(__file__).parents[2] / "examples" / "briefs"

CLAIM = {
    "name": "Claim",
    "fields": {
        "amount": {"type": "int"},
        "why": {"type": "str"},
        "note": {"type": "optional[str]"},
    },
}


def make_started(
    workspace: Path,
    name: str,
    trigger: Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    **orchestrator: Any,
) -> Path:
    """Write a package with one agent, which the model `sample` lets speak once."""
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": name,
                "initial_agent": "Clerk",
                "model": "sample",
                "trigger": dict(trigger or {"type": "chat"}),
                **orchestrator,
            },
            "agents": [
                {
                    "agent_name": "Clerk",
                    "prompt_sections": [{"id": "task", "content": "Say what came."}],
                }
            ],
            "models": [CLAIM],
            "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate"}],
        }
    )
    folder = workspace / "workflows" / name
    for file, text in {**file_texts(spec), **(files or {})}.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def generate(workspace: Path, form: str) -> None:
    """Let the Generator write the package of a form among the examples, as `weft generate` does."""
    given = ["--form", str(BRIEFS / form), "--output", str(workspace / "workflows")]
    (workspace / "workflows").mkdir(parents=True, exist_ok=True)
    said = io.StringIO()
    journal = str(workspace / "generation.db")
    arguments = [
        "generate",
        *given,
        "--journal",
        journal,
        "--model",
        "designer",
        "--approve",
        "--promote",
    ]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(arguments)
    assert status in (None, 0), said.getvalue()


def send_hook(
    server: Server,
    path: str,
    body: object,
    *,
    secret: str = "",
    delivery: str = "",
    at: float | None = None,
    signature: str | None = None,
) -> Reply:
    """Send a signed request to a webhook."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    signed = signature or sign(secret, content, int(time.time() if at is None else at))
    headers = {"Weft-Signature": signed, **({"Weft-Delivery": delivery} if delivery else {})}
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=PATIENCE)
    try:
        connection.request("POST", path, content, headers)
        answer = connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def runs_of(server: Server, workflow: str, *, app: str = "local") -> list[dict[str, Any]]:
    """Return the runs of a workflow, oldest first."""
    key = server.key("op", "operator", app=app)
    return server.get(f"/api/runs?workflow={workflow}&limit=200", key=key)["items"][::-1]


def until_runs(server: Server, workflow: str, count: int, *, app: str = "local") -> list[Any]:
    """Wait until a workflow has so many runs."""
    path = f"/api/runs?workflow={workflow}&limit=200"
    key = server.key("op", "operator", app=app)
    found = server.until(path, key, is_so=lambda page: len(page["items"]) >= count)["items"]
    assert len(found) == count, found
    return found[::-1]
