"""Small workflows for the tests of the explorer."""

from weft.check.explore import explore
from weft.check.rules import explored
from weft.check.subject import Subject, rules_of
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(explored)}


def rule(source, target, condition=None, **more):
    """A handoff."""
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def judged(source, target, **more):
    """A handoff whose condition a model judges."""
    return rule(source, target, "it seems right", condition_type="llm", **more)


def said(agent, text="GO", value=True):
    """An agent_text trigger."""
    match = {"equals": text}
    return {"type": "agent_text", "agent": agent, "match": match, "value": value}


def derived(*triggers, kind="bool", default=False, writers=None, **source):
    """A derived variable."""
    return {
        "type": kind,
        "source": {"type": "derived", "default": default, "triggers": list(triggers), **source},
        "writers": writers,
    }


def unknown():
    """A variable whose values cannot be listed."""
    return {"type": "any", "source": {"type": "database", "collection": "c", "search_by": "k"}}


def tool(agent, function="act", file="act.py", **more):
    """A tool of an agent."""
    return {"agent": agent, "file": file, "function": function, "tool_type": "Agent_Tool", **more}


def workflow(*handoffs, agents="AB", variables=None, code=None, orchestrator=None, **spec):
    """A subject; an agent opens the run, and no rule applying ends it."""
    settings = {"startup_mode": "AgentDriven", "human_in_the_loop": False, **(orchestrator or {})}
    data = {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A", **settings},
        "agents": [agent if isinstance(agent, dict) else {"agent_name": agent} for agent in agents],
        "handoffs": list(handoffs),
        "variables": variables or {},
        **spec,
    }
    return Subject(WorkflowSpec.model_validate(data), code=code or {})


def explored_by(*handoffs, limit=None, **spec):
    """What the exploration of a workflow finds."""
    subject = workflow(*handoffs, **spec)
    return explore(subject) if limit is None else explore(subject, limit=limit)


def hits(code, subject):
    """What one rule finds."""
    return list(RULES[code].check(subject))


def only(code, subject):
    """What one rule finds, if that is one thing and no other rule about all runs finds any."""
    found = {name: hits(name, subject) for name in RULES}
    (hit,) = found.pop(code)
    assert not any(found.values())
    return hit
