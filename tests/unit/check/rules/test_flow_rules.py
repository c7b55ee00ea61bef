"""Rules about flows: what each says, and what it leaves alone."""

from dataclasses import replace
from typing import Any

import pytest

from weft.check.run import check
from weft.check.subject import Subject
from weft.findings import Finding
from weft.spec.workflow import WorkflowSpec

WORK = {"kind": "function", "function": "installed.steps:write"}
ASKED = {"kind": "agent", "agent": "Writer", "output": "text"}
MODELS = [
    {"name": "Letter", "fields": {"title": {"type": "str"}, "pages": {"type": "int"}}},
    {"name": "Parcel", "fields": {"weight": {"type": "float"}, "title": {"type": "str"}}},
    {"name": "Reply", "fields": {"text": {"type": "str"}}},
    {"name": "Strange", "fields": {"other": {"type": "str"}}},
]
STATE = {
    "text": "str",
    "done": "bool",
    "size": "int",
    "kind": 'literal["letter", "parcel"]',
    "letter": "optional[Letter]",
    "either": "Letter | Parcel",
    "maybe": "optional[Letter | str]",
    "words": "list[str]",
    "marks": "dict[int]",
    "open": "any",
    "lost": "Gone",
}


def derived(type_: str) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "derived"}}


def step(name: str = "write", work: dict[str, Any] = WORK, **fields: Any) -> dict[str, Any]:
    return {"kind": "step", "name": name, "work": work, **fields}


def branch(on: str, *values: Any, **fields: Any) -> dict[str, Any]:
    cases = [{"value": value, "path": {}} for value in values]
    return {"kind": "branch", "name": "which", "on": on, "cases": cases, **fields}


def approval(**fields: Any) -> dict[str, Any]:
    return {"kind": "approval", "name": "pay", "approver": "role:boss", **fields}


def reading(*sources: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return step("read", context={"sources": list(sources), **fields})


def workflow(
    *steps: dict[str, Any], folder: str = "", parts: dict[str, Any] | None = None, **fields: Any
) -> Subject:
    """A flow over the state, with the agent Writer."""
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Post"},
            "agents": [{"agent_name": "Writer"}],
            "variables": {
                **{name: derived(type_) for name, type_ in STATE.items()},
                "rate": {"type": "float", "source": {"type": "static", "value": 1}},
            },
            "models": MODELS,
            "flow": {"steps": list(steps), **fields},
            **(parts or {}),
        }
    )
    return Subject(spec, folder=folder)


def test_rules_about_handoffs_say_nothing_of_flows():
    said = {it.code for it in check(workflow(step(work=ASKED)))}
    assert not [code for code in said if code.startswith("HAND")]


def test_EXPO011_texts_of_steps_fit_too():
    text = {"kind": "literal", "text": "x" * 41, "max_tokens": 10}
    (found,) = [it for it in check(workflow(reading(text))) if it.code == "EXPO011"]
    assert "the context of read takes about 11 tokens and may take 10" in found.message
    fits = check(workflow(reading({**text, "max_tokens": 11})))
    assert "EXPO011" not in {it.code for it in fits}


def missing(subject: Subject) -> list[Finding]:
    return [finding for finding in check(subject) if finding.code == "CODE002"]


def unused(subject: Subject) -> list[str]:
    found = (finding.message for finding in check(subject) if finding.code == "NAME003")
    return [message.partition(":")[0] for message in found if "variable" in message]


def test_module_that_is_not_installed_here_is_a_warning():
    code = workflow(step(work={"kind": "function", "function": "expense.a:f"}), folder="Post")
    assert missing(code) == []  # It is not known what is installed.
    assert missing(replace(code, is_installed=lambda _: True)) == []
    (found,) = missing(replace(code, is_installed=lambda _: False))
    assert found.severity == "warning"
    assert found.message.endswith("expense.a is neither a file of the package nor installed here")
    assert "copy expense/a.py into the package" in found.hint[0]


def test_state_of_a_flow_is_set_and_read_by_steps():
    reader = workflow(reading({"kind": "variable", "name": "rate"}))
    assert "VAR011" not in {finding.code for finding in check(reader)}
    assert unused(reader) == []
    assert unused(workflow(step())) == ["the variable rate is never used"]


@pytest.mark.parametrize(
    "node",
    [
        branch("rate > 3", True),
        approval(text="At {rate}?"),
        step(work={**ASKED, "prompt": "At {rate}."}),
    ],
)
def test_what_a_flow_asks_for_is_read(node):
    assert unused(workflow(node)) == []


def test_broken_conditions_read_nothing():
    assert unused(workflow(branch("rate =", True))) == ["the variable rate is never used"]
