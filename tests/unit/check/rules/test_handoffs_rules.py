from weft.catalogue import CATALOGUE
from weft.check.rules import conditions, handoffs
from weft.check.subject import Subject, rules_of
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(handoffs, conditions)}

BOOL = {"type": "bool", "source": {"type": "derived", "default": False}}


def handoff(source="RouterAgent", target="TechAgent", condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def subject(*handoffs, variables=None, models=(), **orchestrator):
    agents = ("RouterAgent", "TechAgent", "FinanceAgent")
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {
                    "workflow_name": "Demo",
                    "initial_agent": "RouterAgent",
                    **orchestrator,
                },
                "agents": [{"agent_name": name} for name in agents],
                "variables": variables or {},
                "models": list(models),
                "handoffs": list(handoffs),
            }
        )
    )


def hits(code, checked):
    return list(RULES[code].check(checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) <= set(CATALOGUE)


def test_HAND007_looks_at_every_pair_however_many_there_are():
    # Exclusive in pairs, but only trying values shows it: 900 pairs of 2 ** 9 combinations.
    names = [f"v{index}" for index in range(9)]
    first, second = " and ".join(names), " or ".join(f"not {name}" for name in names)
    rules = [handoff(condition=first) for _ in range(30)]
    rules += [handoff(target="FinanceAgent", condition=second) for _ in range(30)]
    last = [
        handoff(source="TechAgent", target=target, condition="v0")
        for target in ("user", "terminate")
    ]
    hit = only("HAND007", subject(*rules, *last, variables=dict.fromkeys(names, BOOL)))
    assert hit.path == ("handoffs", 61, "condition")
