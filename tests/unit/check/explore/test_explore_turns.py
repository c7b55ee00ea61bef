"""How a turn goes: its boundaries, rules that are asked again in its course, models that choose."""

import pytest

from unit.check.builders_explore import derived, explored_by, judged, rule, said, tool
from weft.check.explore.happenings import Setting
from weft.check.explore.ways import ways_to_end, ways_to_handoff
from weft.check.run import is_explorable
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

CALLED = {"type": "tool_call", "tool": "act"}
ACT = {"tools": [tool("A")], "code": {"tools/act.py": "def act(): ..."}}
BEFORE = {"condition_scope": "pre"}


def boundary(event, agent=None, value=True):
    return {"type": "lifecycle", "event": event, "agent": agent, "value": value}


def choosing(name):
    return {"agent_name": name, "handoff_tools": True}


# Rules before a reply, asked again


def test_a_rule_before_a_reply_takes_over_when_a_tool_has_set_something():
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate"), rule("B", "terminate"),
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert (found.unreachable_agents, found.unused_rules) == ((), ())


def test_an_agent_does_not_speak_when_such_a_rule_holds():
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate", "x"), rule("A", "A"), rule("B", "B"),
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert found.status == "endless"
    assert found.endless[0].agents == ("B",)
    assert [rule.index for rule in found.unused_rules] == [1]


def test_a_message_does_not_evaluate_pre_rules_again():
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate", "x"), rule("A", "A"),
        variables={"x": derived(said("A"))},
    )  # fmt: skip
    assert found.unreachable_agents == ("B",)


def test_conditions_in_words_are_judged_once_before_the_turn():
    found = explored_by(
        judged("A", "B", **BEFORE), rule("A", "terminate", "x"), rule("A", "A"),
        rule("B", "B", "x"), rule("B", "terminate"),
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    # Once x is set A is still speaking, and then the run ends.
    assert [rule.index for rule in found.unused_rules] == [3]


def test_a_turn_that_is_handed_on_in_its_course_ends_as_any():
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate"),
        rule("B", "C", "y"), rule("B", "terminate"), agents="ABC",
        variables={"x": derived(CALLED), "y": derived(boundary("after_agent", "A"))}, **ACT,
    )  # fmt: skip
    assert found.unreachable_agents == ()


def test_an_unused_rule_before_a_reply_was_asked_in_the_course_of_turns_too():
    found = explored_by(
        rule("A", "B", "x and not x", **BEFORE), rule("A", "terminate", "x"), rule("A", "user"),
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert found.unused_rules[0].always_false
    held = explored_by(
        rule("A", "terminate", "x", **BEFORE), rule("A", "B", "x and y", **BEFORE, priority=2),
        rule("A", "user"), variables={"x": derived(CALLED), "y": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert held.unused_rules[0].why == "the rule to terminate always applies first"


AUTOMATIC = {
    "agents": [{"agent_name": "A", "auto_tool_mode": True}, "B"],
    "variables": {"x": derived(CALLED)},
    "models": [{"name": "Form", "fields": {"y": {"type": "int"}}}],
    "registry": [{"agent": "A", "model": "Form"}],
    "tools": [tool("A", auto_invoke=True)],
    "code": {"tools/act.py": "def act(y): ..."},
}


def test_pre_rules_are_evaluated_again_after_a_refused_reply():
    found = explored_by(rule("A", "B", "x", **BEFORE), rule("A", "terminate"), **AUTOMATIC)
    assert found.unreachable_agents == ()


def test_pre_rules_are_evaluated_after_an_automatic_tool():
    rules = [rule("A", "B", "x", **BEFORE), rule("A", "user", "x"), rule("A", "terminate")]
    found = explored_by(*rules, **AUTOMATIC)
    assert [rule.index for rule in found.unused_rules] == [1, 2]


def test_a_call_of_an_unknown_tool_also_evaluates_pre_rules_again():
    hook = {"file": "h.py", "function": "h", "hook_type": "update_agent_state", "agent": "A"}
    text = "def h(context_variables): context_variables.set('x', True)"
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate"), hooks=[hook],
        variables={"x": derived()}, code={"hooks/h.py": text},
    )  # fmt: skip
    assert found.unreachable_agents == ()


# Boundaries


def test_the_beginning_of_a_turn_sets_something_before_its_reply():
    found = explored_by(
        rule("A", "B", "x", **BEFORE), rule("A", "terminate"), rule("B", "terminate"),
        variables={"x": derived(boundary("before_agent", "A"))},
    )  # fmt: skip
    # A begins its turn and never gets to reply.
    assert found.unreachable_agents == ("A",)
    assert found.unvisited_agents == ()
    assert [rule.index for rule in found.unused_rules] == [1]


def test_the_end_of_a_turn_sets_variables_before_rules_are_evaluated():
    variables = {"x": derived(boundary("after_agent"))}
    found = explored_by(rule("A", "B", "not x"), rule("A", "terminate"), variables=variables)
    assert found.unreachable_agents == ("B",)


@pytest.mark.parametrize("event", ["before_agent", "after_agent"])
def test_agent_settings_override_workflow_settings(event):
    triggers = (boundary(event, "A", value=1), boundary(event, value=2))
    variables = {"x": derived(*triggers, kind="int", default=0)}
    found = explored_by(rule("A", "B", "x == 1"), rule("A", "terminate"), variables=variables)
    assert [rule.index for rule in found.unused_rules] == [1]


def test_the_start_of_a_run_sets_something_before_all():
    variables = {"x": derived(boundary("before_chat"))}
    found = explored_by(rule("A", "B", "not x", **BEFORE), rule("A", "user"), variables=variables)
    assert found.unreachable_agents == ("B",)
    assert found.status == "can end"


def test_members_of_a_group_have_boundaries_too():
    variables = {"x": derived(boundary("after_agent", "A")), "y": derived(boundary("before_agent"))}
    found = explored_by(
        rule("C", "D", "x and y"), rule("C", "terminate"), agents="ABCD", variables=variables,
        orchestrator={
            "parallel": [{"name": "Team", "members": ["A", "B"], "next": "C"}],
            "initial_agent": "Team",
        },
    )  # fmt: skip
    assert found.unreachable_agents == ()


@pytest.mark.parametrize(("trigger", "null"), [
    ({"type": "function", "function": "tools.act:act"}, False), ({"type": "x:moon"}, True),
])  # fmt: skip
def test_a_function_or_plug_in_may_say_anything(trigger, null):
    kind = {"kind": "bool", "default": False}
    for condition, said_so in (("x", True), ("x == null", null)):
        found = explored_by(
            rule("A", "B", condition), rule("A", "terminate"), rule("B", "B"),
            variables={"x": derived(trigger, **kind)}, **ACT,
        )  # fmt: skip
        assert found.status == ("may be endless" if said_so else "can end")


@pytest.mark.parametrize(
    "trigger", [{"type": "function", "function": "tools.act:act"}, {"type": "x:moon"}]
)
def test_a_transition_sets_its_target_for_every_trigger(trigger):
    steps = [{"from": 0, "to": 1, "trigger": trigger}, {"from": 0, "to": 2}]
    variables = {"x": derived(kind="int", default=0, transitions=steps)}
    found = explored_by(
        rule("A", "B", "x == 1"), rule("A", "B", "x == 2"), rule("A", "terminate"), rule("B", "B"),
        variables=variables, **ACT,
    )  # fmt: skip
    assert [rule.index for rule in found.unused_rules] == [1]
    assert found.status == "may be endless"


@pytest.mark.parametrize(("policy", "unused"), [("continue", []), ("fail", [0])])
def test_failure_of_a_member_sets_values_of_the_group(policy, unused):
    team = {"name": "Team", "members": ["A", "B"], "next": "C", "on_failure": policy}
    for failed in ({"agent": "B"}, {"response_key": "message"}):
        kind = {"kind": "str", "default": ""} if "response_key" in failed else {}
        found = explored_by(
            rule("C", "D", "x"), rule("C", "terminate"), agents="ABCD",
            variables={"x": derived({"type": "model_failed", **failed}, **kind)},
            orchestrator={"parallel": [team], "initial_agent": "Team"},
        )  # fmt: skip
        assert [rule.index for rule in found.unused_rules] == unused


# Models that choose


def test_a_model_may_hand_off_to_any_target_of_its_rules():
    handoffs = (rule("A", "B", "x"), rule("A", "A"))
    variables = {"x": derived()}
    assert explored_by(*handoffs, variables=variables).status == "endless"
    found = explored_by(
        *handoffs, rule("B", "user"), agents=[choosing("A"), "B"], variables=variables
    )
    assert (found.status, found.unreachable_agents) == ("can end", ())
    # The rule itself is still none that ever applies.
    assert [rule.index for rule in found.unused_rules] == [0]


def test_a_model_chooses_in_the_same_reply_in_which_it_calls():
    found = explored_by(
        rule("A", "terminate", "x", **BEFORE), rule("A", "B"), rule("B", "C", "x"),
        rule("B", "terminate"), agents=[choosing("A"), "B", "C"],
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    # The rule before its replies would have ended the run, had it not been handed on.
    assert found.unreachable_agents == ()


def test_a_model_cannot_choose_an_agent_before_its_first_reply():
    found = explored_by(
        rule("A", "terminate", "x", **BEFORE), rule("A", "B"), agents=[choosing("A"), "B"],
        variables={"x": derived(boundary("before_agent"))},
    )  # fmt: skip
    assert found.unreachable_agents == ("A", "B")


def test_chosen_value_is_passed_on():
    passed = {"type": "handoff", "target_agent": "B"}
    found = explored_by(
        rule("A", "B", "y"), rule("A", "terminate"), rule("B", "C", "x"), rule("B", "terminate"),
        agents=[choosing("A"), "B", "C"], variables={"x": derived(passed), "y": derived()},
    )  # fmt: skip
    assert found.unreachable_agents == ()


ASKED = {"type": "handoff", "target_agent": "user"}
TEAM = {"human_in_the_loop": True, "startup_mode": "AgentDriven", "default_target": "terminate"}


def test_an_agent_that_chooses_itself_uses_up_its_replies():
    found = explored_by(
        rule("A", "A", "y"), rule("A", "B", "x"), rule("B", "C", "x"),
        agents=[choosing("A"), "B", "C"], orchestrator=TEAM,
        variables={"x": derived(ASKED), "y": derived()},
    )  # fmt: skip
    # Only where it has no reply left the user is asked, which sets x.
    assert found.unreachable_agents == ()


def test_an_agent_that_is_handed_to_itself_in_its_course_uses_up_its_replies():
    again = {"type": "handoff", "source_agent": "A", "target_agent": "A", "value": False}
    found = explored_by(
        rule("A", "A", "x", **BEFORE), rule("A", "B", "y"), orchestrator=TEAM,
        variables={"x": derived(CALLED, again), "y": derived(ASKED)}, **ACT,
    )  # fmt: skip
    assert found.unreachable_agents == ()


# The shortest way


def ways(*handoffs, agents="AB", **spec):
    data = {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A", "startup_mode": "AgentDriven"},
        "agents": [agent if isinstance(agent, dict) else {"agent_name": agent} for agent in agents],
        "handoffs": list(handoffs),
        **spec,
    }
    code = data.pop("code", {})
    return ways_to_end(Subject(WorkflowSpec.model_validate(data), code=code))


def test_a_turn_counts_once_however_often_its_rules_are_evaluated():
    found = ways(
        rule("A", "B", "x", **BEFORE), rule("A", "A"), rule("B", "terminate"),
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert found is not None
    assert found.turns == 2


def test_a_call_leads_to_another_evaluation_of_pre_rules():
    found = ways(
        rule("A", "terminate", "x", **BEFORE), rule("A", "A"), agents="A",
        variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert found is not None
    # From where x is not set, the call brings the run to the rule, and that to the end.
    assert found.nearer("A", [Setting("x", value=True)], reply=False) == (2,)


def test_the_way_to_the_end_does_not_rest_on_what_models_choose():
    found = ways(rule("A", "terminate", "x"), rule("A", "A"), agents=[choosing("A")],
                 variables={"x": derived()})  # fmt: skip
    assert found is not None
    assert found.turns is None


def test_ways_lead_to_a_handoff_as_well_as_to_the_end():
    found = ways(
        rule("A", "B", "x"), rule("A", "terminate"), rule("B", "terminate", "not x"),
        rule("B", "user"), variables={"x": derived(CALLED)}, **ACT,
    )  # fmt: skip
    assert found is not None
    there = ways_to_handoff(found, 0)
    assert there is not None
    assert there.nearer("A", [Setting("x", value=True)], reply=False)
    # To the end it leads at once, without the call.
    assert not found.nearer("A", [Setting("x", value=True)], reply=False)
    assert ways_to_handoff(found, 2) is None
    found.chart.steps = 0
    assert ways_to_handoff(found, 0) is None


def test_ways_know_the_values_that_conditions_distinguish():
    found = ways(rule("A", "terminate", "x == 'done'"), rule("A", "A"), agents="A",
                 variables={"x": derived(said("A", value="done"), kind='literal["open", "done"]',
                                         default="open")})  # fmt: skip
    assert found is not None
    assert found.values("x") == ("open", "done")
    assert found.values("y") == ()


def test_a_workflow_that_is_too_large_has_no_ways():
    names = [f"x{number}" for number in range(24)]
    found = ways(
        rule("A", "terminate", " and ".join(names)), rule("A", "A"), agents="A",
        variables={name: derived(said("A", name)) for name in names},
    )  # fmt: skip
    assert found is None


def test_no_paths_when_the_exploration_exceeds_its_steps(monkeypatch):
    monkeypatch.setattr("weft.check.explore.ways.MOST_STEPS", 0)
    assert ways(rule("A", "terminate"), agents="A") is None


def test_a_built_in_tool_sets_no_variable():
    built_in = {**tool("A"), "file": "weft", "function": "context_summary"}
    handoffs = [rule("A", "terminate", "x"), rule("A", "A")]
    found, unknown_code = (
        explored_by(*handoffs, agents="A", variables={"x": derived()}, tools=[declared])
        for declared in (built_in, tool("A"))
    )
    assert (found.status, unknown_code.status) == ("endless", "can end")


def test_only_a_conversation_without_blocking_errors_is_explorable():
    team = {"orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}]}  # fmt: skip
    valid = {**team, "handoffs": [rule("A", "terminate")]}
    wrong = {**team, "handoffs": [rule("A", "Nobody")]}
    flow = {"orchestrator": {"workflow_name": "W"}, "flow": {"steps": []}}
    subjects = [Subject(WorkflowSpec.model_validate(data)) for data in (valid, wrong, flow)]
    assert [is_explorable(subject) for subject in subjects] == [True, False, False]
