"""--model replay:FILE: a run with replies that are written by hand, for any workflow."""

import json

import pytest

from weft.app.hosts import open_host
from weft.errors import UsageError
from weft.ports.scope import Scope

REPLIES = """\
Clerk:
- [{find: {number: '7'}}]
- It is in the cellar.
- {done: true}
Porter: [null]
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A workspace with a clerk who may look things up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    folder = tmp_path / "workflows" / "Shop"
    (folder / "tools").mkdir(parents=True)
    files = {
        "orchestrator.json": {"workflow_name": "Shop", "initial_agent": "Clerk"},
        "agents.json": {
            "agents": [
                {"agent_name": name, "prompt_sections": [{"id": "task", "content": "Help."}]}
                for name in ("Clerk", "Porter")
            ]
        },
        "handoffs.json": {
            "handoff_rules": [
                {"source_agent": "Clerk", "target_agent": "Porter", "condition": "carry"},
                {"source_agent": "Clerk", "target_agent": "user"},
                {"source_agent": "Porter", "target_agent": "user"},
            ]
        },
        "context_variables.json": {
            "context_variables": {
                "definitions": {
                    "carry": {
                        "type": "bool",
                        "source": {
                            "type": "derived",
                            "default": False,
                            "triggers": [{"type": "user_text", "match": {"contains": "carry"}}],
                        },
                    }
                }
            }
        },
        "tools.json": {
            "tools": [
                {
                    "tool_type": "Agent_Tool",
                    "agent": "Clerk",
                    "file": "find.py",
                    "function": "find",
                    "description": "Looks up.",
                }
            ]
        },
    }
    for name, data in files.items():
        (folder / name).write_text(json.dumps(data))
    (folder / "tools" / "find.py").write_text(
        'def find(number: str) -> str:\n    """Look up."""\n    return f"{number}: cellar"\n'
    )
    (tmp_path / "replies.yaml").write_text(REPLIES)
    return tmp_path


def said(weft):
    lines = weft("runs", "tail", "last", "--json").out.splitlines()
    events = [json.loads(line).get("event", {}) for line in lines]
    return [event["data"]["text"] for event in events if event.get("kind") == "ModelReplied"]


def test_replies_are_text_calls_and_objects_and_continue_in_another_process(weft, shop):
    result = weft("run", "Shop", "Where?", "--model", "replay:replies.yaml")
    assert result.code == 4
    assert "model: replay:replies.yaml (replies from a file; choose another" in result.err
    assert said(weft) == ["", "It is in the cellar."]
    assert "7: cellar" in weft("inspect", "last", "--json").out
    again = weft("runs", "answer", "last", "And now?")
    assert again.code == 4, again.err
    assert said(weft)[-1] == '{"done": true}'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Clerk: [Yes.]", "has 1 replies for Clerk, and turn 2, call 1 asks for number 2"),
        ("Clark: [Yes.]", "has no replies for Clerk, which is asked in turn 1; did you mean Clark"),
        ("Clerk: [null]", "the model fails, as the script says"),
    ],
)
def test_a_missing_reply_names_the_agent_and_the_turn(weft, shop, text, error):
    (shop / "replies.yaml").write_text(text)
    failed = weft("run", "Shop", "Where?", "--model", "replay:replies.yaml")
    if failed.code == 4:
        failed = weft("runs", "answer", "last", "And now?")
    assert failed.code == 1
    assert error in failed.err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- Clerk", "replies.yaml"),
        ("Clerk: Yes.", "replies.yaml:1"),
        ("Clerk: [7]", "expected text, an object, a list of tool calls, or null"),
        ("Clerk: [", "replies.yaml"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_place(weft, shop, text, error):
    (shop / "replies.yaml").write_text(text)
    refused = weft("run", "Shop", "Where?", "--model", "replay:replies.yaml")
    assert refused.code in (1, 2)
    assert error in refused.err
    assert "for each agent, a list of replies" in refused.err


def test_a_missing_file_is_named(weft, shop):
    refused = weft("run", "Shop", "Where?", "--model", "replay:nowhere.yaml")
    assert "nowhere.yaml cannot be read: No such file" in refused.err


async def test_only_the_command_line_reads_files(shop):
    async with await open_host(shop) as host:
        with pytest.raises(UsageError, match="this host reads no files"):
            await host.start(
                "Shop", scope=Scope("local", "me"), message="x", model="replay:replies.yaml"
            )
