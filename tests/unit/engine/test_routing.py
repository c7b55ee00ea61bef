"""Who speaks next."""

import pytest

from weft.engine.conversation.routing import (
    Route,
    link_routing,
    may_route,
    reply_limit,
    routes_after,
    routes_before,
    startup_mode,
)
from weft.engine.variables.conditions import UNKNOWN, decide, evaluate
from weft.spec.agents import Agent
from weft.spec.orchestrator import Orchestrator
from weft.spec.variables import Variable
from weft.spec.workflow import WorkflowSpec


def workflow(*rules, agents=("A", "B", "C"), **orchestrator):
    return link_routing(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "W", "initial_agent": agents[0], **orchestrator},
                "agents": [{"agent_name": name} for name in agents],
                "handoffs": rules,
            }
        )
    )


def rule(target, condition=None, source="A", **rest):
    return {"source_agent": source, "target_agent": target, "condition": condition, **rest}


def holding(values):
    return lambda rule: evaluate(rule.condition, values)


def possibly(values):
    return lambda rule: None if rule.judged else decide(rule.condition, values)


def first(routing, agent="A", **values):
    return next(routes_after(routing, agent, holding(values)))


def test_first_true_rule_wins():
    routing = workflow(rule("B", "x == 1"), rule("C", "y"), rule("user"))
    assert first(routing, x=1, y=True) == Route("B", "rule", 0)
    assert first(routing, x=2, y=True) == Route("C", "rule", 1)
    assert first(routing, x=2, y=False) == Route("user", "fallback", 2)


def test_priority_before_file_order():
    routing = workflow(rule("B", "x", priority=2), rule("C", "x", priority=1))
    assert first(routing, x=True).target == "C"


def test_fallback_comes_last_whatever_its_priority():
    routing = workflow(rule("B", priority=0), rule("C", "x", priority=9))
    assert first(routing, x=True).target == "C"
    assert first(routing, x=False) == Route("B", "fallback", 0)


def test_pre_rules_are_asked_before_the_reply_only():
    routing = workflow(rule("B", "x", condition_scope="pre"), rule("C"))
    assert list(routes_before(routing, "A", holding({"x": True}))) == [Route("B", "rule", 0)]
    assert list(routes_before(routing, "A", holding({"x": False}))) == []
    assert list(routes_before(routing, "B", holding({}))) == []
    assert first(routing, x=True).target == "C"


def test_other_agents_rules_do_not_apply():
    assert first(workflow(rule("C", source="B"), default_target="terminate")).target == "terminate"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Pipeline", {"A": "B", "B": "C", "C": "user"}),
        ("Redundant", {"A": "B", "B": "C", "C": "user"}),
        ("FeedbackLoop", {"A": "B", "B": "C", "C": "user"}),
        ("Star", {"A": "user", "B": "A", "C": "A"}),
        ("Organic", {"A": "user", "B": "user", "C": "user"}),
    ],
)
def test_pattern_default(pattern, expected):
    routing = workflow(orchestration_pattern=pattern)
    assert {name: first(routing, name).target for name in expected} == expected


def test_default_target_where_the_pattern_is_silent():
    routing = workflow(orchestration_pattern="Pipeline", default_target="A")
    assert first(routing, "B") == Route("C", "pattern")
    assert first(routing, "C") == Route("A", "default")


@pytest.mark.parametrize("alone", [{"human_in_the_loop": False}, {"trigger": {"type": "webhook"}}])
def test_without_people_the_run_ends(alone):
    assert first(workflow(**alone)) == Route("terminate", "default")


def test_unknown_answers_give_every_possible_route():
    routing = workflow(rule("B", "x"), rule("C", "y"), rule("user"))
    test = possibly({"x": UNKNOWN, "y": True})
    assert [route.target for route in routes_after(routing, "A", test)] == ["B", "C"]
    test = possibly({"x": UNKNOWN, "y": UNKNOWN})
    assert [route.target for route in routes_after(routing, "A", test)] == ["B", "C", "user"]


def test_judged_rule_is_not_a_fallback():
    routing = workflow(rule("B", "the user sounds angry", condition_type="llm"))
    routes = [(route.target, route.why) for route in routes_after(routing, "A", possibly({}))]
    assert routes == [("B", "rule"), ("user", "default")]


@pytest.mark.parametrize(
    ("interaction", "limit"),
    [("none", 30), ("context", 20), ("approval", 5), ("feedback", 5), ("single", 1)],
)
def test_reply_limit_follows_human_interaction(interaction, limit):
    assert reply_limit(Agent(agent_name="A", human_interaction=interaction)) == limit
    own = Agent(agent_name="A", human_interaction=interaction, max_consecutive_auto_reply=7)
    assert reply_limit(own) == 7


@pytest.mark.parametrize(
    ("declared", "mode"),
    [
        ({}, "UserDriven"),
        ({"initiated_by": "system"}, "AgentDriven"),
        ({"trigger": {"type": "webhook"}}, "BackendOnly"),
        ({"trigger": {"type": "schedule", "cron": "0 6 * * *"}}, "BackendOnly"),
        ({"startup_mode": "AgentDriven"}, "AgentDriven"),
    ],
)
def test_startup_mode_follows_trigger_and_initiator(declared, mode):
    data = {"workflow_name": "W", "initial_agent": "A", **declared}
    assert startup_mode(Orchestrator.model_validate(data)) == mode


@pytest.mark.parametrize(
    ("source", "routing", "expected"),
    [
        ({"type": "derived"}, None, True),
        ({"type": "environment", "env_var": "X"}, None, True),
        ({"type": "static", "value": 1}, None, False),
        ({"type": "static", "value": 1}, True, True),
        ({"type": "derived"}, False, False),
    ],
)
def test_which_variables_may_be_routed_on(source, routing, expected):
    data = {"type": "any", "source": source, "routing": routing}
    assert may_route(Variable.model_validate(data)) is expected
