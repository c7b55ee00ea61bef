"""One plan, several workflows: what belongs where, and under which names."""

from support.generator_plans import agent, plan, tool, variable
from weft.generator.compile.compiler import compile_drafts
from weft.generator.plans.split import pack_of, workflow_plans

ALPHA, BETA = [agent("Alpha")], [agent("Beta")]
PIPELINE = {"pattern_id": 6, "pattern_name": "Pipeline"}
PAIR = [
    {"name": "order intake", "role": "primary", "description": "Takes orders.", **PIPELINE},
    {"name": "Order check", "role": "dependent", "description": "Checks.", **PIPELINE},
]


def test_a_single_workflow_is_named_after_the_strategy():
    (one,) = workflow_plans(plan((6, ALPHA)))
    assert (one.name, one.role, one.requires) == ("HelpDesk", "primary", ())
    assert [module.purpose for module in one.modules] == ["Part 1"]


def test_modules_go_to_the_workflow_they_name_and_else_to_the_first():
    first, second = workflow_plans(
        plan((6, ALPHA), (6, BETA), (6, [agent("Gamma")]), workflows=PAIR,
             owners=[None, "Order check", None])
    )  # fmt: skip
    assert (first.name, second.name) == ("OrderIntake", "OrderCheck")
    assert [each.agent_name for each in first.agents] == ["Alpha", "Gamma"]
    assert [each.agent_name for each in second.agents] == ["Beta"]


def test_dependents_require_the_primary_and_all_what_the_blueprint_requires():
    needed = {"required_workflows": ["sign up", "Order intake"]}
    made = plan(
        (6, ALPHA), (6, BETA), workflows=PAIR, owners=[None, "Order check"],
        workflow_dependencies=needed,
    )  # fmt: skip
    first, second = workflow_plans(made)
    assert first.requires == ("SignUp",)
    assert second.requires == ("OrderIntake", "SignUp")
    spec = compile_drafts(made)[1].spec
    required = spec.orchestrator.workflow_dependencies.required_workflows
    assert required == ("OrderIntake", "SignUp")


def test_variables_go_where_they_are_named_and_else_everywhere():
    first, second = workflow_plans(
        plan(
            (6, [agent("Alpha", reads=["customer_tier"])]),
            (6, [agent("Beta", writes=["phase"])]),
            workflows=PAIR,
            owners=[None, "Order check"],
            global_context_variables=[
                variable("customer_tier", "state"),
                variable("phase", "state"),
                variable("region", "config"),
            ],
        )
    )
    names = [
        [each.name for each in one.blueprint.global_context_variables] for one in (first, second)
    ]
    assert names == [["customer_tier", "region"], ["phase", "region"]]


def test_components_go_with_their_agents():
    shown = {
        "module_name": "Module 1: Part 1", "agent": "Alpha", "tool": "approve_it",
        "label": "Ok?", "component": "OkPanel", "display": "artifact", "summary": "Says ok.",
    }  # fmt: skip
    clerk = agent("Alpha", agent_tools=[tool("approve_it", interaction_mode="artifact")])
    first, second = workflow_plans(
        plan((6, [clerk]), (6, BETA), workflows=PAIR, owners=[None, "Order check"],
             ui_components=[shown])
    )  # fmt: skip
    assert [component.component for component in first.blueprint.ui_components] == ["OkPanel"]
    assert second.blueprint.ui_components == ()


def test_a_pack_has_one_journey_in_order():
    made = plan((6, ALPHA), (6, BETA), workflows=PAIR, owners=[None, "Order check"])
    pack = pack_of(made)
    assert pack is not None
    assert pack.pack_name == "DeskPack"
    assert [(workflow.name, workflow.role) for workflow in pack.workflows] == [
        ("OrderIntake", "primary"), ("OrderCheck", "dependent"),
    ]  # fmt: skip
    assert [journey.steps for journey in pack.journeys] == [(("OrderIntake",), ("OrderCheck",))]
    assert pack_of(plan((6, ALPHA))) is None


def test_independent_workflow_is_not_a_step_of_the_journey():
    alone = [PAIR[0], {**PAIR[1], "role": "independent"}]
    pack = pack_of(plan((6, ALPHA), (6, BETA), workflows=alone, owners=[None, "Order check"]))
    assert pack is not None
    assert [workflow.name for workflow in pack.workflows] == ["OrderIntake", "OrderCheck"]
    assert [journey.steps for journey in pack.journeys] == [(("OrderIntake",),)]


def test_scenarios_and_watched_words_go_to_the_workflow_that_they_name():
    watch = {"words": "fire", "to": "Beta"}
    tried = [{"says": "Hello."}, {"takes": {"Beta": "done"}}]
    first, second = workflow_plans(
        plan((6, ALPHA), (6, BETA), workflows=PAIR, owners=[None, "Order check"], watch=watch,
             scenarios=tried)
    )  # fmt: skip
    assert (first.strategy.watch, len(first.strategy.scenarios)) == (None, 1)
    assert second.strategy.watch is not None
    assert [scenario.takes for scenario in second.strategy.scenarios] == [{"Beta": ("done",)}]
