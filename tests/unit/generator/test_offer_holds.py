"""Every valid plan compiles to a package that passes all checks."""

from random import Random

import pytest

from support.generator_plans import agent, plan, tool, variable
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.generator.compile.compiler import compile_drafts
from weft.generator.judge.offer import make_offer
from weft.generator.outputs import joined_output
from weft.generator.plans.rules import plan_faults
from weft.generator.steps import MAKERS
from weft.spec.agents import REPLY_LIMITS
from weft.spec.patterns import PATTERN_BY_ID

KINDS = ("config", "data_reference", "data_entity", "computed", "state", "external")
TOOLS = ("look_up_order", "send_mail", "list_items", "total", "notify", "book_table")
VARIABLES = ("order_total", "customer_tier", "next_step", "number_of_items", "documents")
STARTS = ("chat", "chat", "form_submit", "schedule", "database_condition", "webhook")
MEETINGS = ("none", "none", "context", "approval", "feedback", "single")


def module_name(number):
    return f"Module {number + 1}: Part {number + 1}"


def asked(number, agent_name, name):
    return {
        "module_name": module_name(number),
        "agent": agent_name,
        "tool": name,
        "label": "Your decision",
        "component": "Approval",
        "display": "inline",
        "summary": "Asks for a decision.",
    }


def meeting(kind, name, tools=()):
    limit = REPLY_LIMITS[kind]
    return agent(
        name, human_interaction=kind, max_consecutive_auto_reply=limit, agent_tools=list(tools)
    )


def random_plan(seed):
    random = Random(seed)
    trigger = random.choice(STARTS)
    modules, components = [], []
    for number in range(random.choice((1, 1, 2, 3))):
        pattern = random.choice(sorted(PATTERN_BY_ID))
        agents = []
        for each in range(random.randint(1, 4)):
            kind = random.choice(MEETINGS) if trigger == "chat" else "none"
            name = f"Worker{number + 1}{'ABCDEFGH'[each]}"
            services = (None, None, "Slack", "Stripe")
            tools = [
                tool(item, integration=random.choice(services))
                for item in random.sample(TOOLS, random.randint(0, 2))
            ]
            if kind == "approval":
                tools.append(tool(f"sign_{name.lower()}", interaction_mode="inline"))
                components.append(asked(number, name, f"sign_{name.lower()}"))
            agents.append(meeting(kind, name, tools))
        modules.append((pattern, agents))
    names = random.sample(VARIABLES, random.randint(0, 4))
    made = plan(
        *modules,
        trigger=trigger,
        initiated_by="user" if trigger == "chat" else "system",
        global_context_variables=[variable(element, random.choice(KINDS)) for element in names],
        ui_components=components,
    )
    followed = tuple(dict.fromkeys(PATTERN_BY_ID[item].name for item, _ in modules))
    strategy = made.strategy.model_copy(update={"pattern": followed})
    return made.model_copy(update={"strategy": strategy})


def offered(made):
    drafts = compile_drafts(made)
    outputs = {agent: joined_output(agent, drafts) for agent in MAKERS}
    return make_offer(made, outputs, {}, simulate, run_generated_scenarios)


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_that_holds_gives_a_package_that_holds(seed):
    made = random_plan(seed)
    assert not plan_faults(made)
    offer = offered(made)
    assert offer.findings == ()
    assert offer.left_out == ()
    assert offer.unanswered == {}
    assert offer.promotable
    for package in offer.verdict.packages:
        assert package.simulation.problems == ()
