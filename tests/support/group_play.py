"""A team that works side by side: Lead hands off to a group of three, Editor goes on after them."""

from typing import Any

from weft.spec.workflow import WorkflowSpec

MEMBERS = ("Ann", "Ben", "Cas")
CODE = {
    "tools/work.py": b'''
from weft import use_ui_tool


def count(context_variables, by: int = 1) -> int:
    """Count on."""
    context_variables.set("total", context_variables.get("total", 0) + by)
    return context_variables.get("total")


async def ask(what: str) -> str:
    """Ask a person."""
    return f"{what}: {await use_ui_tool('ask', what)}"
''',
    "tools/merging.py": b'''
def pick(replies: dict) -> str:
    """Say who is the longest."""
    return max(replies, key=lambda name: len(replies[name])) + " wins"


def fail(replies: dict) -> str:
    """Merge nothing."""
    raise ValueError("they cannot be merged")
''',
}
ASK = {"function": "ask", "tool_type": "UI_Tool", "ui": {"component": "Ask", "mode": "inline"}}
COUNT = {"function": "count", "tool_type": "Agent_Tool"}


def team(orchestrator: dict[str, Any] | None = None, **group: Any) -> WorkflowSpec:
    """Declare the team, with a group as it is described."""
    parallel = {"name": "Team", "members": list(MEMBERS), "next": "Editor", **group}
    common = {"file": "work.py", "description": "d"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Side",
                "initial_agent": "Lead",
                "parallel": [parallel],
                **(orchestrator or {}),
            },
            "agents": [{"agent_name": item} for item in ("Lead", *MEMBERS, "Editor")],
            "variables": {"total": {"type": "int", "source": {"type": "derived", "default": 0}}},
            "tools": [
                {**tool, **common, "agent": agent} for agent in MEMBERS for tool in (ASK, COUNT)
            ],
            "handoffs": [
                {"source_agent": "Lead", "target_agent": "Team"},
                {"source_agent": "Editor", "target_agent": "terminate"},
            ],
        }
    )
