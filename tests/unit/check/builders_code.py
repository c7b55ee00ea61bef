"""Workflows with code."""

from typing import Any

from weft.check.rules import bindings, code, names, outputs, references, tools, ui
from weft.check.subject import Subject, rules_of
from weft.spec.workflow import WorkflowSpec

RULES = rules_of(bindings, code, names, outputs, references, tools, ui)


def subject(
    files: dict[str, str] | None = None,
    *,
    folder: str = "",
    orchestrator: dict[str, Any] | None = None,
    **parts: Any,
) -> Subject:
    """A workflow of one agent, RouterAgent, with what the test adds to it."""
    settings = {"workflow_name": "Support", "initial_agent": "RouterAgent", **(orchestrator or {})}
    parts.setdefault("agents", [{"agent_name": "RouterAgent"}])
    spec = WorkflowSpec.model_validate({"orchestrator": settings, **parts})
    return Subject(spec, folder=folder, code=files or {})


def ui_tool(function: str, file: str = "ask.py", **more: Any) -> dict[str, Any]:
    base = {"agent": "RouterAgent", "file": file, "function": function, "description": "Finds it."}
    ui = {"component": "AskCard", "mode": "inline"}
    return {"tool_type": "UI_Tool", "ui": ui, **base, **more}


def derived(type_: str, *triggers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "derived", "triggers": list(triggers)}, **more}


def codes(checked: Subject) -> list[str]:
    """Return the codes of all findings of these rules, sorted."""
    return sorted(rule.code for rule in RULES for _ in rule.check(checked))
