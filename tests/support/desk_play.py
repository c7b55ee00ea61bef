"""A workspace whose runs a test can lead wherever it likes, with the model `you`."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from weft.packages.workspace import EXAMPLES, shipped_folder

TOOL = '''
from weft import Refuse, use_ui_tool


async def approve(what: str):
    """Ask for approval."""
    return await use_ui_tool("approve", {"what": what, "prices": [1, 2]})


def look_up(name: str) -> str:
    """Look somebody up."""
    if name == "nobody":
        raise Refuse("there is nobody of that name")
    return f"{name} is here"
'''

TOOLS = {
    "tools": [
        {
            "tool_type": "UI_Tool",
            "agent": "Clerk",
            "file": "desk.py",
            "function": "approve",
            "description": "Asks for approval.",
            "ui": {"component": "Approval", "mode": "inline"},
            "response_schema": {
                "type": "object",
                "properties": {
                    "approved": {"type": "boolean"},
                    "note": {"type": "string", "title": "Note"},
                },
                "required": ["approved"],
                "additionalProperties": False,
            },
        },
        {
            "tool_type": "Agent_Tool",
            "agent": "Clerk",
            "file": "desk.py",
            "function": "look_up",
            "description": "Looks somebody up.",
        },
    ]
}

VARIABLES = {
    "context_variables": {
        "definitions": {
            "limit": {
                "type": "int",
                "description": "How much may be spent.",
                "source": {"type": "derived", "default": 10, "triggers": []},
                "writers": ["look_up"],
            },
            "done": {
                "type": "bool",
                "description": "Whether all is done.",
                "source": {
                    "type": "derived",
                    "default": False,
                    "triggers": [
                        {"type": "agent_text", "agent": "Clerk", "match": {"equals": "BYE"}}
                    ],
                },
            },
        },
        "agents": {"Clerk": {"variables": ["limit"]}},
    }
}

HANDOFFS = {
    "handoff_rules": [
        {
            "source_agent": "Clerk",
            "target_agent": "terminate",
            "condition": "done",
            "reason": "All is done.",
        },
        {"source_agent": "Clerk", "target_agent": "user"},
    ]
}

AGENTS = {
    "agents": [
        {
            "agent_name": "Clerk",
            "prompt_sections": [
                {"id": "role", "heading": "[ROLE]", "content": "You may spend {limit}."}
            ],
            "human_interaction": "context",
        }
    ]
}

ORCHESTRATOR = {"workflow_name": "Desk", "initial_agent": "Clerk", "max_turns": 4}


def make_desk(workspace: Path) -> Path:
    """Write the package, beside the examples that come with Weft."""
    for name in EXAMPLES:
        shutil.copytree(shipped_folder() / name, workspace / "workflows" / name)
    folder = workspace / "workflows" / "Desk"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "desk.py").write_text(TOOL, encoding="utf-8")
    for file, content in (
        ("orchestrator", ORCHESTRATOR),
        ("agents", AGENTS),
        ("tools", TOOLS),
        ("context_variables", VARIABLES),
        ("handoffs", HANDOFFS),
    ):
        (folder / f"{file}.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
    return folder


def let_leases_end(workspace: Path) -> None:
    """Let it be long ago that anybody worked on the runs of a workspace."""
    with closing(sqlite3.connect(workspace / ".weft" / "journal.db")) as journal, journal:
        journal.execute("UPDATE runs SET changed_at = changed_at - 20000")
        journal.execute("DELETE FROM workers")
