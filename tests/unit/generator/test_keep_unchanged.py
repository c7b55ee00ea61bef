"""Regeneration: what a change of the plan does not concern stays as it was generated last."""

from copy import deepcopy
from typing import Any

from weft.generator.merge import Versions, keep_unchanged
from weft.packages.text.documents import dump


def text(data: Any) -> str:
    return dump(data, "json")


def agent(name: str, objective: str, instructions: str = "Work.") -> dict[str, Any]:
    sections = [{"id": "objective", "content": objective}, {"id": "how", "content": instructions}]
    return {"agent_name": name, "prompt_sections": sections}


def agents(*found: dict[str, Any]) -> str:
    return text({"agents": list(found)})


def rule(source: str, target: str, condition: str | None = None) -> dict[str, Any]:
    return {"source_agent": source, "target_agent": target, "condition": condition}


#: What a model wrote, and what is compiled from the same plan.
MODEL = agents(agent("Clerk", "Take orders kindly.", "Ask twice."), agent("Cook", "Cook slowly."))
OLD = agents(agent("Clerk", "Take orders."), agent("Cook", "Cook."))


def kept(base: str | None, theirs: str | None, old: str | None, new: str | None, path: str) -> Any:
    texts = ({} if each is None else {path: each} for each in (base, theirs, old, new))
    return keep_unchanged(Versions(*texts)).get(path)


def test_the_model_s_text_stays_if_the_plan_did_not_change():
    assert kept(MODEL, OLD, OLD, OLD, "agents.json") == MODEL


def test_only_the_field_that_the_plan_changed_is_new():
    new = agents(agent("Clerk", "Take orders at night."), agent("Cook", "Cook."))
    found = kept(MODEL, new, OLD, new, "agents.json")
    changed = agent("Clerk", "Take orders at night.", "Ask twice.")
    assert found == agents(changed, agent("Cook", "Cook slowly."))


def test_another_model_s_text_is_taken_only_where_the_plan_changed():
    new = agents(agent("Clerk", "Take orders at night."), agent("Cook", "Cook."))
    theirs = agents(agent("Clerk", "By night.", "Other words."), agent("Cook", "Other words."))
    found = kept(MODEL, theirs, OLD, new, "agents.json")
    assert found == agents(agent("Clerk", "By night.", "Ask twice."), agent("Cook", "Cook slowly."))


def test_added_and_removed_entries():
    new = agents(agent("Clerk", "Take orders."), agent("Waiter", "Serve."))
    found = kept(MODEL, new, OLD, new, "agents.json")
    assert found == agents(
        agent("Clerk", "Take orders kindly.", "Ask twice."), agent("Waiter", "Serve.")
    )


def test_entry_of_another_form_is_taken_as_a_whole():
    base = agents({"agent_name": "Clerk", "prompt_sections": [{"id": "all", "content": "Do it."}]})
    old, new = agents(agent("Clerk", "Take orders.")), agents(agent("Clerk", "Take no orders."))
    assert kept(base, new, old, new, "agents.json") == new


def test_the_rules_of_an_agent_change_together():
    base = text({"handoff_rules": [rule("A", "B", "x"), rule("A", "user"), rule("B", "user", "z")]})
    old = text({"handoff_rules": [rule("A", "B", "y"), rule("B", "user")]})
    new = text({"handoff_rules": [rule("A", "C", "y"), rule("B", "user")]})
    found = kept(base, new, old, new, "handoffs.json")
    assert found == text({"handoff_rules": [rule("A", "C", "y"), rule("B", "user", "z")]})


def test_variables_are_entries():
    def variables(default: int, **more: Any) -> str:
        named = {"count": {"default": default}, **more}
        exposed = {"Clerk": {"variables": list(named)}}
        return text({"context_variables": {"definitions": named, "agents": exposed}})

    base = variables(7, own={"default": "by the model"})
    assert kept(base, variables(2), variables(1), variables(2), "context_variables.json") == (
        variables(2, own={"default": "by the model"})
    )


def test_a_new_name_of_the_model_comes_with_what_names_it():
    own, new_tool = {"agent": "Cook", "function": "heat"}, {"agent": "Clerk", "function": "sell"}
    old = {"tools": [{"agent": "Cook", "function": "bake", "uses": ""}], "lifecycle_tools": []}
    new = deepcopy(old)
    new["tools"][0]["uses"] = "heat"
    theirs = {**deepcopy(new), "tools": [*new["tools"], own, new_tool]}
    found = kept(text(old), text(theirs), text(old), text(new), "tools.json")
    assert found == text({"tools": [*new["tools"], own], "lifecycle_tools": []})


def test_files_of_code_are_kept_as_a_whole():
    assert kept("model", "compiled", "compiled", "compiled", "tools/a.py") == "model"
    assert kept("model", "new", "old", "new", "tools/a.py") == "new"
    assert kept("model", None, "old", None, "tools/a.py") is None
    assert kept("only the model's", None, None, None, "tools/a.py") == "only the model's"
    assert kept(None, "another model's", None, None, "tools/b.py") is None
