"""Each of the nine patterns, wired by the places of its agents."""

from collections.abc import Sequence
from typing import Any

import pytest

from support.generator_plans import agent, code_for, compiled, findings, plan, told, tool, variable
from weft.check.explore import explore
from weft.check.subject import Subject
from weft.generator.compile.wiring import wire
from weft.generator.split import workflow_plans
from weft.spec.patterns import PATTERNS
from weft.spec.workflow import WorkflowSpec

TEAM = [agent(name) for name in ("Alpha", "Beta", "Gamma", "Delta")]
#: Everything at once: talks, approvals, integrations, questions, variables of all kinds.
PEOPLE = [
    agent("Clerk", human_interaction="context", agent_type="intake"),
    agent("Checker", human_interaction="approval"),
    agent("Lead", agent_type="orchestrator"),
    agent(
        "Closer",
        human_interaction="approval",
        agent_tools=[
            tool("approve_refund", interaction_mode="inline"),
            tool("post_message", integration="Slack"),
            tool("keep case_record"),
            tool("think_it_over"),
        ],
        lifecycle_tools=[{"name": "load", "purpose": "Loads.", "trigger": "before_agent"}],
        system_hooks=[{"name": "tone", "purpose": "Keeps the tone."}],
    ),
]
VARIABLES = [
    variable("region", "config"),
    variable("slack_key", "config"),
    variable("customer", "data_reference"),
    variable("case_record", "data_entity"),
    variable("case_known", "computed", "Whether refund_state is known."),
    variable("refund_state", "state", "The state.", "the answer to approve_refund"),
    variable("phase", "state", "Who works.", "when Lead begins"),
    variable("progress_note", "state"),
    variable("exchange_rate", "external"),
]
MORE = [agent("Writer"), agent("Reader", human_interaction="context"), agent("Closer")]


def rules(spec: WorkflowSpec, source: str) -> list[tuple[str | None, str]]:
    return [
        (handoff.condition, handoff.target_agent)
        for handoff in spec.handoffs
        if handoff.source_agent == source
    ]


def wired(pattern: int, team: Sequence[dict[str, Any]] = TEAM, **given: Any) -> WorkflowSpec:
    return compiled(plan((pattern, team), **given))[0]


@pytest.mark.parametrize("trigger", ["chat", "webhook"])
@pytest.mark.parametrize("second", [None, 6, 7])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda it: it.name)
def test_it_checks_clean_and_can_end(pattern, second, trigger):
    modules = [(pattern.id, PEOPLE), *([(second, MORE), (3, TEAM)] if second else [])]
    spec, shapes = compiled(
        plan(
            *modules,
            trigger=trigger,
            global_context_variables=VARIABLES,
            before_chat_lifecycle={"name": "greet", "purpose": "x", "trigger": "before_chat"},
        )
    )
    assert told(findings(spec, shapes)) == []
    found = explore(Subject(spec, code=code_for(spec, shapes)))
    assert (found.status, found.unused_rules, found.unreachable_agents) == ("can end", (), ())


def test_routing_chooses_one_agent_and_continues():
    spec = wired(1)
    assert rules(spec, "Alpha") == [
        ("module_1_route == 'beta'", "Beta"),
        ("module_1_route == 'gamma'", "Gamma"),
        (None, "Delta"),
    ]
    assert rules(spec, "Beta") == [(None, "terminate")]


def test_escalation_hands_up_what_is_not_solved():
    spec = wired(2, TEAM[:3])
    assert rules(spec, "Beta") == [
        ("module_1_outcome == 'solved'", "terminate"),
        (None, "Gamma"),
    ]
    assert rules(spec, "Gamma") == [(None, "terminate")]


def test_a_feedback_loop_has_at_most_three_rounds():
    spec = wired(3, TEAM[:3])
    assert rules(spec, "Alpha") == [(None, "Beta")]
    assert rules(spec, "Gamma") == [
        ("module_1_verdict == 'accepted'", "terminate"),
        ("gamma_rounds_over", "terminate"),
        (None, "Alpha"),
    ]
    source = spec.variables["gamma_rounds_over"].source.model_dump()
    assert [(item["type"], item["count"]) for item in source["triggers"]] == [
        ("agent_turn_count", 3)
    ]


def test_a_person_who_approves_ends_the_loop_instead():
    judge = agent("Judge", human_interaction="approval")
    spec = wired(3, [*TEAM[:2], judge])
    assert rules(spec, "Judge") == [
        ("judge_approval == 'reject' and judge_approval_round == 'third'", "terminate"),
        ("judge_approval == 'reject'", "Alpha"),
        ("judge_approval == 'approve'", "terminate"),
        (None, "user"),
    ]


def test_a_lead_assigns_teams_that_report():
    boss = agent("Boss", agent_type="orchestrator")
    team = [TEAM[0], TEAM[1], boss, TEAM[2], TEAM[3]]
    spec = wired(4, team)
    assert [target for _, target in rules(spec, "Alpha")] == ["Beta", "Boss", "terminate"]
    assert rules(spec, "Beta") == [(None, "Alpha")]
    assert rules(spec, "Boss") == [
        ("module_1_assignment == 'assign'", "Gamma"),
        (None, "Alpha"),
    ]
    assert (rules(spec, "Gamma"), rules(spec, "Delta")) == ([(None, "Delta")], [(None, "Boss")])


def test_organic_agents_choose_each_other():
    spec = wired(5, TEAM[:3])
    for name, others in (("Alpha", {"Beta", "Gamma"}), ("Gamma", {"Alpha", "Beta"})):
        assert {target for _, target in rules(spec, name)} == others | {"terminate"}


def test_a_pipeline_goes_in_order():
    spec = wired(6)
    assert [(handoff.source_agent, handoff.target_agent) for handoff in spec.handoffs] == [
        ("Alpha", "Beta"),
        ("Beta", "Gamma"),
        ("Gamma", "Delta"),
        ("Delta", "terminate"),
    ]


def test_redundant_agents_work_side_by_side():
    spec = wired(7)
    (group,) = spec.orchestrator.parallel
    assert (group.members, group.next) == (("Alpha", "Beta", "Gamma"), "Delta")
    assert spec.orchestrator.initial_agent == group.name
    assert {handoff.source_agent for handoff in spec.handoffs} == {"Delta"}
    # Whoever's answer is the best, the way on is the same; the judge sees its choice.
    assert rules(spec, "Delta") == [(None, "terminate")]
    assert "module_1_best_answer" in spec.exposure["Delta"]


def test_a_star_returns_to_its_hub():
    spec = wired(8)
    targets = [target for _, target in rules(spec, "Alpha")]
    assert targets == ["Beta", "Gamma", "Delta", "terminate"]
    assert rules(spec, "Gamma") == [(None, "Alpha")]


def test_tasks_are_worked_off_in_turn():
    spec = wired(9)
    assert rules(spec, "Alpha") == [(None, "Beta")]
    assert rules(spec, "Beta") == [("module_1_progress == 'more'", "Gamma"), (None, "Delta")]
    assert rules(spec, "Gamma")[0] == ("module_1_progress == 'more'", "Beta")
    assert spec.exposure["Delta"] == ("module_1_tasks",)
    model = next(each for each in spec.models if each.name == "AlphaDecision")
    assert list(model.fields) == ["progress", "open_tasks", "summary", "agent_message"]


@pytest.mark.parametrize("pattern", [1, 7, 9])
def test_too_few_agents_work_one_after_the_other(pattern):
    spec = wired(pattern, TEAM[:2])
    assert [handoff.target_agent for handoff in spec.handoffs] == ["Beta", "terminate"]
    (note,) = wire(workflow_plans(plan((pattern, TEAM[:2])))[0]).notes
    assert "they work one after the other" in note


def test_modules_follow_each_other_and_the_last_one_ends_with_a_reason():
    spec, _ = compiled(plan((6, TEAM[:2]), (7, [*TEAM[2:], agent("Judge")]), (6, [agent("End")])))
    assert [target for _, target in rules(spec, "Beta")] == ["Part2Team"]
    assert {target for _, target in rules(spec, "Judge")} == {"End"}
    assert [handoff.reason for handoff in spec.handoffs if handoff.source_agent == "End"] == [
        "Part 3: done."
    ]
    assert all(
        bool(handoff.reason) == (handoff.target_agent == "terminate") for handoff in spec.handoffs
    )


def test_a_state_of_the_plan_that_names_the_router_holds_its_decision():
    hinted = variable("current_domain", "state", "Where it goes.", "Set by Alpha")
    spec = wired(1, global_context_variables=[hinted])
    assert rules(spec, "Alpha")[0] == ("current_domain == 'beta'", "Beta")
    assert spec.variables["current_domain"].description == "Where it goes."
    assert "module_1_route" not in spec.variables


def test_agents_that_decide_reply_with_a_model_that_calls_a_tool():
    router = agent("Router", agent_tools=[tool("ask_crm", integration="Crm"), tool("pick route")])
    spec, shapes = compiled(plan((1, [router, *TEAM])))
    assert [
        (shape.name, shape.kind, shape.auto_invoke) for shape in shapes if shape.agent == "Router"
    ] == [
        ("ask_crm", "external", False),
        ("pick_route", "decision", True),
    ]
    assert spec.agents[0].auto_tool_mode
    assert spec.agents[0].structured_outputs_required
    assert [(item.agent, item.model) for item in spec.registry] == [("Router", "RouterDecision")]
    trigger = spec.variables["module_1_route"].source.model_dump()["triggers"][0]
    assert (trigger["type"], trigger["tool"], trigger["argument"]) == (
        "tool_call", "pick_route", "route",
    )  # fmt: skip


def test_conversational_agents_wait_for_the_user_without_a_signal():
    spec = wired(6, [agent("Clerk", human_interaction="context"), *TEAM])
    assert rules(spec, "Clerk") == [("clerk_ready", "Alpha"), (None, "user")]
    trigger = spec.variables["clerk_ready"].source.model_dump()["triggers"][0]
    assert (trigger["match"], trigger["ui_hidden"]) == ({"equals": "READY"}, True)
    assert "reply with exactly: READY" in spec.agents[0].prompt_sections[3].content


def test_a_router_that_talks_asks_by_its_decision():
    spec = wired(1, [agent("Clerk", human_interaction="context"), *TEAM])
    assert ("module_1_route == 'ask_user'", "user") in rules(spec, "Clerk")


@pytest.mark.parametrize("given", [{"trigger": "schedule"}, {"human_in_loop": False}])
def test_run_without_a_user_never_waits_for_one(given):
    spec = wired(1, [agent("Clerk", human_interaction="context"), *PEOPLE], **given)
    assert "user" not in {handoff.target_agent for handoff in spec.handoffs}


def test_rejected_work_goes_back_with_the_comment():
    spec = wired(6, [TEAM[0], agent("Checker", human_interaction="approval")])
    checker = [handoff for handoff in spec.handoffs if handoff.source_agent == "Checker"]
    assert [(item.target_agent, item.condition_scope) for item in checker] == [
        ("terminate", "pre"),
        ("Alpha", "pre"),
        ("terminate", "pre"),
        ("user", "post"),
    ]
    assert spec.exposure["Alpha"] == ("checker_approval_comment",)
    rounds = spec.variables["checker_approval_round"].source.model_dump(by_alias=True)
    assert [(each["from"], each["to"]) for each in rounds["transitions"]] == [
        ("first", "second"),
        ("second", "third"),
    ]
    assert {each["trigger"]["target_agent"] for each in rounds["transitions"]} == {"Alpha"}


def test_without_anybody_before_a_refusal_ends_the_run():
    spec = wired(6, [agent("Checker", human_interaction="approval"), TEAM[0]])
    assert rules(spec, "Checker")[0] == ("checker_approval == 'reject'", "terminate")


def test_agent_without_a_waiting_user_asks_with_every_reply():
    spec, shapes = compiled(
        plan((6, [TEAM[0], agent("Checker", human_interaction="approval")]), trigger="webhook")
    )
    assert [(shape.name, shape.auto_invoke) for shape in shapes] == [("approve_checker_work", True)]
    assert spec.agents[1].auto_tool_mode
    assert {handoff.condition_scope for handoff in spec.handoffs} == {"post"}


def test_very_large_plans_share_what_controls_them():
    team = [agent(f"Approver{n}", human_interaction="approval") for n in range(12)]
    spec, shapes = compiled(plan((6, team), (5, [agent(f"Peer{n}") for n in range(9)])))
    assert {"any_approval", "any_approval_round", "any_decision"} <= set(spec.variables)
    assert told(findings(spec, shapes)) == []
