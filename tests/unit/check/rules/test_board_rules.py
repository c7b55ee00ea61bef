"""Rules about boards: what each says, and what it leaves alone."""

from typing import Any

import pytest

from weft.check.board_parts import comparisons
from weft.check.rules import board, board_waiting
from weft.check.run import check
from weft.check.subject import Hit, Subject, rules_of
from weft.spec.workflow import WorkflowSpec

CODE = """\
class Desk:
    class Inner: ...


def is_local(payload): ...
"""
OF_BOARDS = {it.code: it for it in rules_of(board, board_waiting)}
OBJECT = {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}}
TYPES = [{"name": "News", "schema": OBJECT}, {"name": "Note", "schema": OBJECT}]


def member(name: str = "reader", **fields: Any) -> dict[str, Any]:
    return {"agent": name, "consumes": [{"types": ["News"]}], **fields}


def workflow(
    *agents: dict[str, Any],
    folder: str = "Desk",
    code: dict[str, str] | None = None,
    declared: list[dict[str, Any]] | None = None,
    orchestrator: dict[str, Any] | None = None,
    parts: dict[str, Any] | None = None,
    **fields: Any,
) -> Subject:
    """A board with the types News and Note, and a declared agent for each of those given."""
    told = [{"agent_name": it["agent"], "description": "Reads."} for it in agents]
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", **(orchestrator or {})},
            "agents": told if declared is None else declared,
            "board": {"artifacts": TYPES, "agents": list(agents), **fields},
            **(parts or {}),
        }
    )
    return Subject(spec, folder=folder, code={"tools/desk.py": CODE} if code is None else code)


def hits(code: str, subject: Subject) -> list[Hit]:
    return list(OF_BOARDS[code].check(subject))


def consuming(**fields: Any) -> Subject:
    return workflow(member(consumes=[{"types": ["News", "Note"], **fields}]))


def seeing(context: dict[str, Any], **fields: Any) -> Subject:
    return workflow(member(context=context, **fields))


def found(code: str, subject: Subject) -> list[tuple[tuple[str | int, ...], str]]:
    return [(it.path, it.message) for it in hits(code, subject)]


def test_a_sound_board_has_none_of_it():
    subject = workflow(
        member(publishes=[{"type": "Note"}], components=[], max_concurrency=1),
        member("second", consumes=[{"types": ["Note"], "mode": "direct"}]),
        code={},
    )
    assert check(subject) == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pep_talk_lead", None),
        ("PepTalkLead", None),
        ("pep talk", 'the agent name "pep talk" is neither PascalCase nor snake_case'),
    ],
)
def test_NAME001_on_a_board(name, message):
    said = [it.message for it in check(workflow(member(name))) if it.code == "NAME004"]
    assert said == ([message] if message else [])


SEMANTIC = {"kind": "semantic", "query": "floods"}


def test_what_compares_meanings_is_known():
    def found(subject: Subject) -> list[str]:
        return list(comparisons(subject.spec))

    assert found(seeing({"kind": "recent"})) == []
    assert found(seeing(SEMANTIC)) == ["a provider of reader is semantic"]
    matching = consuming(semantic_match="floods")
    assert found(matching) == ["a subscription of reader has semantic_match"]
