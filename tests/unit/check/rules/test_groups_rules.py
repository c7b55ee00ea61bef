"""Groups that take their turns side by side: what is wrong with them, and what is explored."""

from weft.check.explore import explore
from weft.check.run import check
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

TEAM = {"name": "Team", "members": ["Ann", "Bob"], "next": "Closer"}
MERGING = {"tools/merging.py": "def pick(replies):\n    return 'ok'\n"}


def heard(agent, value=True):
    return {"type": "agent_text", "agent": agent, "match": {"contains": "fine"}, "value": value}


def derived(*triggers, type_="bool", default=False):
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source}


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def subject(*parallel, handoffs=(), variables=None, code=None, tools=(), **orchestrator):
    names = ("Opener", "Ann", "Bob", "Closer")
    start = {"workflow_name": "W", "initial_agent": "Opener", "parallel": list(parallel)}
    rules = handoffs or (rule("Opener", "Team"), rule("Closer", "terminate"))
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {**start, **orchestrator},
                "agents": [{"agent_name": name} for name in names],
                "variables": variables or {},
                "tools": list(tools),
                "handoffs": list(rules),
            }
        ),
        code=code or {},
    )


def test_a_group_is_sound():
    assert check(subject(TEAM)) == ()


def test_HAND022_a_function_that_is_there():
    group = {**TEAM, "merge": "custom", "function": "tools.merging:pick"}
    assert check(subject(group, code=MERGING)) == ()


def test_what_members_set_can_happen_in_any_order_and_decides_what_follows():
    variables = {"ann_ok": derived(heard("Ann")), "bob_ok": derived(heard("Bob"))}
    rules = (
        rule("Opener", "Team"),
        rule("Closer", "terminate", "ann_ok and bob_ok"),
        rule("Closer", "user", "bob_ok and not ann_ok"),
        rule("Closer", "Opener"),
    )
    it = subject(TEAM, handoffs=rules, variables=variables)
    assert explore(it).status == "can end"
    assert explore(it).unused_rules == ()
