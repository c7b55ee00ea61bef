"""A package whose runs are the same every time, and the model process that plays them.

A run has two turns. The Clerk calls each of its tools once and a tool that it does not have; the
Helper answers, and the run ends.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

MODEL = Path(__file__).parents[2] / "benchmarks" / "mock_server.py"

#: `slow` takes more than 50 ms; `fail` logs two texts that must not be in a log.
TOOLS = '''
import logging
import os
import time

from weft import Refuse


def slow(what: str) -> str:
    """Look something up."""
    time.sleep(0.06)
    return f"{what} is here"


def refuse(what: str) -> str:
    """Refuse something."""
    raise Refuse(f"{what} is not allowed")


def fail(what: str) -> str:
    """Fail."""
    log = logging.getLogger("weft.shop")
    log.warning("the token is %s", os.environ.get("SHOP_TOKEN", ""))
    log.warning("the database is %s", "postgresql://shop:hunter2@db.example/shop")
    raise ValueError(what)
'''

NAMES = ("slow", "refuse", "fail")
CALLS = "".join(f'[[call {name} {{"what": "x"}}]]' for name in (*NAMES, "made_up"))
PROMPTS = {"Clerk": f"{CALLS}[[say DONE]]", "Helper": "[[say BYE]]"}


def says(agent: str, text: str) -> dict[str, object]:
    """Return a variable that is true when an agent says a text."""
    trigger = {"type": "agent_text", "agent": agent, "match": {"equals": text}}
    source = {"type": "derived", "default": False, "triggers": [trigger]}
    return {"type": "bool", "source": source}


FILES = {
    "orchestrator": {"workflow_name": "Shop", "initial_agent": "Clerk", "max_turns": 4},
    "agents": {
        "agents": [
            {"agent_name": name, "prompt_sections": [{"id": "role", "content": text}]}
            for name, text in PROMPTS.items()
        ]
    },
    "tools": {
        "tools": [
            {
                "tool_type": "Agent_Tool",
                "agent": "Clerk",
                "file": "shop.py",
                "function": name,
                "description": "Does something.",
            }
            for name in NAMES
        ]
    },
    "context_variables": {
        "context_variables": {
            "definitions": {"done": says("Clerk", "DONE"), "bye": says("Helper", "BYE")}
        }
    },
    "handoffs": {
        "handoff_rules": [
            {"source_agent": "Clerk", "target_agent": "Helper", "condition": "done"},
            {"source_agent": "Helper", "target_agent": "terminate", "condition": "bye"},
        ]
    },
}


def make_shop(workspace: Path) -> Path:
    """Write the package."""
    folder = workspace / "workflows" / "Shop"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "shop.py").write_text(TOOLS, encoding="utf-8")
    for name, content in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return workspace


@contextmanager
def model_process() -> Generator[dict[str, str]]:
    """Answer as the prompts say, in a process of its own; yield the settings that lead there."""
    command = [sys.executable, str(MODEL), "--until-eof"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        yield {
            "WEFT_MODEL": "openai:mock",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "none",
        }
        process.stdin.close()
