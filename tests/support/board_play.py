"""A board to look at: topics become leads, drafts and verdicts; notes are filed or turned away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from support.run_play import ADA, Played, Seconds, read
from weft.runtime.board.publish import Publication
from weft.runtime.host import Host
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

CODE = """
from weft.context.slices import ContextSlice
from weft.runtime.board.evaluation import Verdict


def scout(inputs):
    topic = inputs.artifacts[0].payload
    return {"type": "Lead", "payload": {"title": topic["title"] + "!", "source": "Ann"}}


def audit(inputs, ctx):
    return {"type": "Verdict", "payload": {"ok": True}}


def judge(inputs):
    raise ValueError("no opinion")


def file(inputs):
    return None


async def broken(request):
    raise RuntimeError("no index")


async def nosy(request):
    given = [{"id": "elsewhere", "type": "Draft", "payload": {}}]
    return ContextSlice([*given, {"type": "Hint", "payload": {"text": "made up"}}])


class Gate:
    def before_schedule(self, ctx, inputs):
        said = inputs.artifacts[0].payload["text"]
        return Verdict("defer", seconds=3600) if said == "defer" else said

    def artifact_published(self, artifact):
        return None

    def error(self, ctx, error):
        return None
"""

OBJECT = {"type": "object"}


def function(name: str) -> dict[str, str]:
    return {"kind": "function", "function": f"tools.work:{name}"}


AGENTS: list[dict[str, Any]] = [
    {
        "agent": "Scout",
        "labels": ["field"],
        "consumes": [{"types": ["Topic"]}],
        "publishes": [{"type": "Lead", "tags": ["hot"]}],
        "engines": [function("scout")],
    },
    {
        "agent": "Editor",
        "consumes": [{"types": ["Lead"]}],
        "publishes": [{"type": "Draft", "visibility": {"kind": "private", "agents": ["Auditor"]}}],
        "context": {
            "kind": "composite",
            "providers": [
                {"kind": "redacting", "provider": {"kind": "correlated"}, "drop": ["source"]}
            ],
        },
    },
    {
        "agent": "Auditor",
        "consumes": [{"types": ["Draft"]}],
        "publishes": [{"type": "Verdict"}],
        "context": {"kind": "custom", "provider": "tools.work:broken"},
        "fallback": {"kind": "recent", "limit": 2},
        "engines": [function("audit")],
    },
    {
        "agent": "Critic",
        "consumes": [{"types": ["Verdict"]}],
        "context": {"kind": "custom", "provider": "tools.work:nosy"},
        "engines": [function("judge")],
        "components": [{"component": "tools.work:Gate", "hooks": ["error"]}],
    },
    {
        "agent": "Clerk",
        "consumes": [{"types": ["Note"], "batch": {"size": 3}}],
        "engines": [function("file")],
    },
    {
        "agent": "Guard",
        "consumes": [{"types": ["Note"]}],
        "engines": [function("file")],
        "components": [{"component": "tools.work:Gate", "hooks": ["before_schedule"]}],
    },
    {
        "agent": "Matcher",
        "consumes": [{"types": ["Note", "Verdict"], "join": {"by": "ticket"}}],
        "engines": [function("file")],
    },
    {
        "agent": "Archive",
        "consumes": [{"types": ["Verdict"], "scope": "all", "batch": {"size": 2}}],
        "engines": [function("file")],
    },
]

MODELS = [
    {
        "name": "Topic",
        "fields": {
            "title": {"type": "str"},
            "source": {"type": "optional[str]"},
            "pages": {"type": "optional[int]"},
        },
    },
    {"name": "Draft", "fields": {"text": {"type": "str"}}},
]

ARTIFACTS = [
    "Topic",
    "Draft",
    *({"name": name, "schema": OBJECT} for name in ("Lead", "Verdict", "Note")),
]

PEOPLE = [
    {"agent_name": agent["agent"], "prompt_sections": [{"id": "role", "content": "Work."}]}
    for agent in AGENTS
]

#: What begins a correlation.
TOPIC = {"title": "Rain", "source": None, "pages": None}


def make_news(workspace: Path) -> Path:
    """Write the package into a workspace."""
    folder = workspace / "workflows" / "News"
    (folder / "tools").mkdir(parents=True)
    for name, content in {
        "orchestrator": {"workflow_name": "News"},
        "agents": {"agents": PEOPLE},
        "structured_outputs": {"models": MODELS},
        "board": {"artifacts": ARTIFACTS, "agents": AGENTS},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
    (folder / "tools" / "work.py").write_text(CODE, encoding="utf-8")
    return folder


def news(**changes: Any) -> WorkflowSpec:
    """The same as a spec; `changes` are parts of it."""
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "News"},
            "agents": PEOPLE,
            "models": MODELS,
            "board": {"artifacts": ARTIFACTS, "agents": AGENTS},
            **changes,
        }
    )


def play_board(
    *published: tuple[str, Any],
    spec: WorkflowSpec | None = None,
    after: Callable[[Host, Publication], Awaitable[Any]] | None = None,
    **facts: Any,
) -> Played:
    """Publish to a board, all in one correlation, until it is idle, and read its run back."""

    async def scenario() -> Played:
        model = FunctionModel(lambda _: '{"text": "It rains."}')
        host = host_for(
            spec or news(), model, code={"tools/work.py": CODE.encode()}, clock=Seconds()
        )
        async with host:
            made: Publication | None = None
            for type_, payload in published:
                made = await host.publish(
                    "News", type_, payload, scope=ADA, correlation="c", **facts
                )
                await host.quiet()
            assert made is not None
            run = await after(host, made) if after is not None else None
            await host.quiet()
            return await read(host, run or made.run)

    return asyncio.run(asyncio.wait_for(scenario(), 30))
