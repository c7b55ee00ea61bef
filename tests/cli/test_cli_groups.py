"""Agents side by side, and structured replies, as a person sees them."""

import json

import pytest

from support.desk_play import make_desk
from support.terminal_play import Terminal


@pytest.fixture
def change(tmp_path, monkeypatch):
    """Change the files of the package Desk in a workspace, which is the current folder."""
    folder = make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)

    def write(**files: object) -> None:
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    return write


def agent(name: str) -> dict[str, object]:
    return {
        "agent_name": name,
        "prompt_sections": [{"id": "role", "heading": "[ROLE]", "content": "Read."}],
    }


@pytest.fixture
def readers(change):
    """Clerk hands off to two readers side by side, who are followed by Judge."""
    group = {"name": "Readers", "members": ["Ann", "Bob"], "next": "Judge"}
    change(
        orchestrator={
            "workflow_name": "Desk",
            "initial_agent": "Clerk",
            "max_turns": 9,
            "parallel": [{**group, "on_failure": "continue"}],
        },
        agents={"agents": [agent(name) for name in ("Clerk", "Ann", "Bob", "Judge")]},
        handoffs={
            "handoff_rules": [
                {
                    "source_agent": "Clerk",
                    "target_agent": "terminate",
                    "condition": "done",
                    "reason": "All is done.",
                },
                {"source_agent": "Clerk", "target_agent": "Readers"},
                {"source_agent": "Judge", "target_agent": "terminate"},
            ]
        },
    )


def test_a_group_in_a_chat(weft, readers, typed):
    typed("hello", "Read this.", "Ann has read.", "Bob has read.", "Both have.")
    result = weft("chat", "Desk", "--model", "you")
    assert result.code == 0
    assert result.out == (
        "Clerk (you): Read this.\nAnn (you): Ann has read.\nBob (you): Bob has read.\n"
        "Judge (you): Both have.\n"
    )
    for line in (
        "    Clerk -> Readers, because no other rule applies\n",
        "Readers: Ann, Bob in parallel\nturn 2: Ann\n",
        "turn 3: Bob\n",
        "Readers is done: turns 2, 3 count\n",
        "    Readers -> Judge, because the group is done\n",
    ):
        assert line in result.err


def test_a_person_answers_for_one_member_after_the_other(readers, tmp_path):
    with Terminal("run", "Desk", "hello", "--model", "you", cwd=tmp_path) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.type("Read this.")
        terminal.wait_for("Ann says: ")
        assert "Bob. It is sent" not in terminal.shown
        terminal.type("Ann has read.")
        # What was said for Ann is printed before it is Bob's turn to be spoken for.
        terminal.wait_for("Ann (you): Ann has read.\n")
        terminal.wait_for("You answer for Bob.")
        terminal.wait_for("Bob says: ")
        terminal.type("Bob has read.")
        terminal.wait_for("Judge says: ")
        terminal.type("Both have.")
        assert terminal.end() == 0


def test_a_group_in_inspect(weft, readers, typed):
    typed("Read this.", "Ann has read.", "Bob has read.", "Both have.")
    weft("run", "Desk", "hello", "--model", "you")
    page = weft("inspect", "last").out
    assert "  2  Ann  in the group Readers" in page
    assert "  3  Bob  in the group Readers" in page
    assert "     Clerk -> Readers, because no other rule applies\n" in page
    assert "         asked: 1 done: no; 2 always\n" in page
    turns = weft("inspect", "last", "--json").data["inspection"]["turns"]
    assert [turn["group"] for turn in turns] == ["", "Readers", "Readers", ""]
    (first, second) = turns[0]["handoffs"][0]["evaluated"]
    assert (first["condition"], first["verdict"]) == ("done", "no")
    assert (second["condition"], second["verdict"]) == (None, "always")
    one = weft("inspect", "last@2").out
    assert "in the group Readers" in one


def test_a_structured_reply_is_read_in_words(weft, change, typed):
    fields = {"agent_message": {"type": "str"}, "mark": {"type": "int"}}
    change(
        structured_outputs={
            "models": [{"name": "Verdict", "type": "model", "fields": fields}],
            "registry": [{"agent": "Clerk", "model": "Verdict"}],
        }
    )
    typed('{"agent_message": "Well done.", "mark": 1}')
    result = weft("run", "Desk", "hello", "--model", "you")
    assert result.out == "Clerk (you): Well done.\n"
    assert 'says "Well done."' in weft("inspect", "last").out
