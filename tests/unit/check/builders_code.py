"""Workflows for the rules about names, tools, bindings, hooks, outputs and UI."""

from typing import Any

from weft.catalogue import CATALOGUE
from weft.check.rules import (
    auto,
    bind,
    groups,
    hooks,
    names,
    outputs,
    servers,
    tools,
    ui,
)
from weft.check.subject import Hit, Subject, rules_of
from weft.spec.workflow import WorkflowSpec

RULES = rules_of(groups, names, tools, auto, bind, hooks, outputs, servers, ui)


def subject(
    code: dict[str, str] | None = None,
    *,
    folder: str = "",
    orchestrator: dict[str, Any] | None = None,
    **parts: Any,
) -> Subject:
    """A workflow of one agent, RouterAgent, with what the test adds to it."""
    settings = {"workflow_name": "Support", "initial_agent": "RouterAgent", **(orchestrator or {})}
    parts.setdefault("agents", [agent("RouterAgent")])
    spec = WorkflowSpec.model_validate({"orchestrator": settings, **parts})
    return Subject(spec, folder=folder, code=code or {})


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"agent_name": name, **more}


def tool(function: str, file: str = "lookup.py", **more: Any) -> dict[str, Any]:
    base = {"agent": "RouterAgent", "file": file, "function": function, "description": "Finds it."}
    return {"tool_type": "Agent_Tool", **base, **more}


def ui_tool(function: str, file: str = "ask.py", **more: Any) -> dict[str, Any]:
    ui = {"component": "AskCard", "mode": "inline"}
    return tool(function, file, tool_type="UI_Tool", **{"ui": ui, **more})


def lifecycle(function: str, file: str = "start.py", **more: Any) -> dict[str, Any]:
    return {"file": file, "function": function, "trigger": "before_chat", **more}


def hook(function: str, hook_type: str, file: str = "watch.py", **more: Any) -> dict[str, Any]:
    return {"hook_type": hook_type, "file": file, "function": function, **more}


def derived(type_: str, *triggers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "derived", "triggers": list(triggers)}, **more}


def static(type_: str = "str", **more: Any) -> dict[str, Any]:
    return {"type": type_, "source": {"type": "static", "value": "x"}, **more}


def model(name: str, **fields: str) -> dict[str, Any]:
    return {"name": name, "fields": {key: {"type": type_} for key, type_ in fields.items()}}


def hits(code: str, checked: Subject) -> list[Hit]:
    """What one rule says; the rule is in the catalogue."""
    assert code in CATALOGUE
    (found,) = [rule for rule in RULES if rule.code == code]
    return list(found.check(checked))


def only(code: str, checked: Subject) -> Hit:
    """The one thing that one rule says."""
    (hit,) = hits(code, checked)
    return hit


def codes(checked: Subject) -> list[str]:
    """The codes of everything that the rules of these families say, sorted."""
    return sorted(rule.code for rule in RULES for _ in rule.check(checked))
