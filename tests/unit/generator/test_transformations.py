"""The transformations of 13.1 to 13.6, one by one."""

from typing import Any

import pytest

from support.generator_plans import agent, compiled, findings, plan, told, tool, variable
from weft.check.run import check
from weft.check.subject import Subject
from weft.generator.code.hooks import hook_files
from weft.generator.compile.wiring import wire
from weft.generator.split import workflow_plans
from weft.spec.agents import REPLY_LIMITS
from weft.spec.plan import ActionPlan
from weft.spec.tools import UiTool
from weft.spec.type_parser import parse_type
from weft.spec.workflow import WorkflowSpec

OTHERS = [agent("Beta"), agent("Gamma")]


def made(first: dict[str, Any], **given: Any) -> ActionPlan:
    return plan((6, [first, *OTHERS]), **given)


def spec_of(first: dict[str, Any], **given: Any) -> WorkflowSpec:
    return compiled(made(first, **given))[0]


def source_of(spec: WorkflowSpec, name: str) -> dict[str, Any]:
    return spec.variables[name].source.model_dump(by_alias=True)


def wire_notes(given: ActionPlan) -> tuple[str, ...]:
    return wire(workflow_plans(given)[0]).notes


def section(spec: WorkflowSpec, at: int, key: str) -> str:
    return next(section.content for section in spec.agents[at].prompt_sections if section.id == key)


# 13.1


@pytest.mark.parametrize(
    ("mode", "tool_type"), [("none", "Agent_Tool"), ("inline", "UI_Tool"), ("artifact", "UI_Tool")]
)
def test_the_interaction_mode_decides_what_a_tool_is(mode, tool_type):
    spec = spec_of(agent("Alpha", agent_tools=[tool("ask it", interaction_mode=mode)]))
    (one,) = spec.tools
    assert (one.tool_type, one.agent, one.file, one.function) == (
        tool_type, "Alpha", "ask_it.py", "ask_it",
    )  # fmt: skip


def test_components_tell_how_a_tool_is_shown():
    clerk = agent("Alpha", agent_tools=[tool("ask_it", interaction_mode="inline")])
    shown = {
        "module_name": "Module 1: Part 1", "agent": "Alpha", "tool": "ask_it",
        "label": "Please say", "component": "AskPanel", "display": "artifact", "summary": "Asks.",
    }  # fmt: skip
    spec, (shape, *_) = compiled(made(clerk, ui_components=[shown]))
    (one,) = spec.tools
    assert isinstance(one, UiTool)
    assert (one.ui.component, one.ui.mode) == ("AskPanel", "artifact")
    assert (shape.label, shape.summary) == ("Please say", "Asks.")
    assert one.response_schema is not None
    assert one.response_schema["required"] == ["answer"]


def test_without_a_component_one_is_named_after_the_tool():
    spec = spec_of(agent("Alpha", agent_tools=[tool("ask_it", interaction_mode="inline")]))
    (one,) = spec.tools
    assert isinstance(one, UiTool)
    assert one.ui.component == "AskIt"


def test_tools_are_what_their_words_say():
    tools = [
        tool("ask_slack", integration="Slack"),
        tool("save the case"),
        tool("think", purpose="Thinks about the customer tier."),
        tool("draft_letter"),
    ]
    kept = [variable("case", "data_entity"), variable("customer_tier", "data_reference")]
    _, shapes = compiled(made(agent("Alpha", agent_tools=tools), global_context_variables=kept))
    assert [(shape.name, shape.kind, shape.variables) for shape in shapes] == [
        ("ask_slack", "external", ("ask_slack_service_query", "ask_slack_service_answer")),
        ("save_the_case", "access", ("case",)),
        ("think", "access", ("customer_tier",)),
        ("draft_letter", "ask", ()),
    ]
    assert [parameter.name for parameter in shapes[1].parameters] == [
        "status",
        "summary",
        "details",
        "amounts",
    ]
    assert shapes[2].parameters == ()
    assert [item.name for item in shapes[3].result] == ["result", "notes"]


def test_the_same_tool_of_two_agents_shares_its_file_and_another_is_renamed():
    first = agent("Alpha", agent_tools=[tool("search"), tool("search", purpose="Other.")])
    second = agent("Beta", agent_tools=[tool("search"), tool("search", integration="Web")])
    spec, shapes = compiled(plan((6, [first, second])))
    assert [(each.agent, each.function) for each in spec.tools] == [
        ("Alpha", "search"), ("Alpha", "search_2"), ("Beta", "search"), ("Beta", "search_3"),
    ]  # fmt: skip
    assert told(findings(spec, shapes)) == []


def test_lifecycle_tools_are_grouped_apart_from_hooks():
    points = ("after_agent", "before_chat", "before_agent")
    tools = [{"name": "load it", "purpose": "Loads.", "trigger": point} for point in points]
    spec = spec_of(agent("Alpha", lifecycle_tools=tools))
    assert [(tool.trigger, tool.agent, tool.function) for tool in spec.lifecycle_tools] == [
        ("before_chat", None, "load_it_2"),
        ("before_agent", "Alpha", "load_it_3"),
        ("after_agent", "Alpha", "load_it"),
    ]
    assert spec.hooks == ()


def test_the_lifecycle_of_the_chat_and_system_hooks_are_hooks_and_no_tools():
    at_start = {"name": "open", "purpose": "Opens.", "trigger": "before_chat", "integration": "Crm"}
    at_end = {"name": "close", "purpose": "Closes.", "trigger": "after_chat"}
    spec = spec_of(
        agent("Alpha", system_hooks=[{"name": "tone", "purpose": "Keeps the tone."}]),
        before_chat_lifecycle=at_start,
        after_chat_lifecycle=at_end,
    )
    assert [(hook.hook_type, hook.agent, hook.file, hook.function) for hook in spec.hooks] == [
        ("before_chat", None, "before_chat.py", "open"),
        ("after_chat", None, "after_chat.py", "close"),
        ("update_agent_state", "Alpha", "alpha.py", "tone"),
    ]
    assert spec.hooks[0].integration == "Crm"
    assert spec.lifecycle_tools == ()


# 13.2


def test_the_six_kinds_and_the_others_become_sources():
    kinds = {
        "config": "environment", "data_reference": "database", "data_entity": "entity",
        "computed": "computed", "state": "derived", "external": "external",
        "environment": "environment", "database": "database", "entity": "entity",
        "derived": "derived", "static": "static", "file": "file",
    }  # fmt: skip
    kept = [variable(f"the_{kind}", kind) for kind in kinds]
    spec, shapes = compiled(made(agent("Alpha"), global_context_variables=kept))
    assert {kind: spec.variables[f"the_{kind}"].source.type for kind in kinds} == kinds
    assert told(findings(spec, shapes)) == []
    assert spec.variables["the_config"].source.model_dump()["env_var"] == "THE_CONFIG"
    record = {"status", "summary", "details", "amounts"}
    assert set(source_of(spec, "the_data_entity")["schema"]) == record
    assert source_of(spec, "the_external")["url"] == "{the_external_url}?user={user_id}"


@pytest.mark.parametrize(
    ("name", "type_"),
    [("is_vip", "bool"), ("retry_limit", "int"), ("case_notes", "list[str]"), ("region", "str")],
)
def test_types_go_by_names(name, type_):
    spec = spec_of(agent("Alpha"), global_context_variables=[variable(name, "config")])
    assert spec.variables[name].type == parse_type(type_)


@pytest.mark.parametrize(
    ("hint", "trigger"),
    [
        ("the answer to ask_it", ("ui_response", "answer")),
        ("set by save_note", ("tool_call", "note")),
        ("result of call_crm", ("tool_response", "found")),
        ("when Beta begins", ("lifecycle", "beta")),
        (None, ("lifecycle", "done")),
    ],
)
def test_a_state_is_set_by_what_its_hint_names(hint, trigger):
    tools = [
        tool("ask_it", interaction_mode="inline"),
        tool("save_note"),
        tool("call_crm", integration="Crm"),
    ]
    name = "note" if hint == "set by save_note" else "progress"
    kept = [variable(name, "state", hint=hint)]
    spec = spec_of(agent("Alpha", agent_tools=tools), global_context_variables=kept)
    (one,) = source_of(spec, name)["triggers"]
    said = one.get("response_key") or one.get("argument") or one.get("value")
    assert (one["type"], said) == trigger


def test_an_approval_of_the_plan_is_the_one_that_decides():
    clerk = agent("Alpha", human_interaction="approval",
                  agent_tools=[tool("approve_it", interaction_mode="inline")])  # fmt: skip
    kept = [variable("acceptance", "state", "Whether it is accepted.", "answer to approve_it")]
    spec = spec_of(clerk, global_context_variables=kept)
    assert "acceptance == 'approve'" in {handoff.condition for handoff in spec.handoffs}
    assert "alpha_approval" not in spec.variables


def test_services_have_an_address_a_query_and_a_key_of_their_own():
    clerk = agent("Alpha", agent_tools=[tool("post_message", integration="Slack")])
    kept = [variable("slack_api_key", "config")]
    spec, shapes = compiled(made(clerk, global_context_variables=kept))
    answer = source_of(spec, "post_message_service_answer")
    assert answer["url"] == "{slack_url}/post_message?q={post_message_service_query}"
    assert answer["auth"]["secret_env"] == "SLACK_API_KEY"
    assert source_of(spec, "slack_url")["env_var"] == "SLACK_URL"
    assert "slack_api_key" not in spec.variables
    assert told(findings(spec, shapes)) == []


@pytest.mark.parametrize(
    ("purpose", "attempts"),
    [
        ("Charge the card.", None),
        ("Look up the card.", 2),
        ("Checks the balance.", 2),
        ("Check the card and charge it.", None),
    ],
)
def test_only_what_reads_is_asked_for_twice(purpose, attempts):
    clerk = agent("Alpha", agent_tools=[tool("use_card", integration="Stripe", purpose=purpose)])
    retry = source_of(spec_of(clerk), "use_card_service_answer")["retry"]
    assert (retry and retry["attempts"]) == attempts


def test_missing_settings_of_services_are_reported_once_each():
    tools = [
        tool("charge_card", integration="Stripe"),
        tool("pay_back", integration="Stripe"),
        tool("post_it", integration="Slack"),
    ]
    rest = "put the real address there, or use a tool server"
    assert wire_notes(made(agent("Alpha", agent_tools=tools))) == (
        f"charge_card asks Stripe by GET at STRIPE_URL/charge_card: {rest}",
        f"post_it asks Slack by GET at SLACK_URL/post_it: {rest}",
    )


def test_functions_at_boundaries_have_services_as_tools_have():
    closing = {"name": "post_summary", "purpose": "Post the summary.", "trigger": "after_chat"}
    spec = spec_of(agent("Alpha"), after_chat_lifecycle={**closing, "integration": "Slack"})
    answer = source_of(spec, "post_summary_service_answer")
    assert (answer["service"], answer["operation"]) == ("Slack", "post_summary")
    assert source_of(spec, "post_summary_service_query")["triggers"] == ()
    assert told(check(Subject(spec, folder="HelpDesk", code=hook_files(spec)))) == []


@pytest.mark.parametrize(
    ("name", "about", "hook_type"),
    [
        ("mask_numbers", "Keeps numbers back.", "process_message_before_send"),
        ("privacy", "Hide addresses.", "process_message_before_send"),
        ("tone", "Be friendly.", "update_agent_state"),
    ],
)
def test_hidden_items_change_the_message(name, about, hook_type):
    spec = spec_of(agent("Alpha", system_hooks=[{"name": name, "purpose": about}]))
    assert [hook.hook_type for hook in spec.hooks] == [hook_type]


@pytest.mark.parametrize(
    ("name", "asks", "objective", "whom"),
    [
        ("HeadOfServiceApproval", "approve_refund", "Ask.", "role:head_of_service"),
        ("ManagerApprovalAgent", "ask_manager", "Ask the manager to approve.", "role:manager"),
        ("CustomerApproval", "approve_refund", "Ask.", None),
        ("RefundApproval", "approve_refund", "Approve the refund.", None),
        ("Approval", "approve_refund", "Ask.", None),
        ("Reviewer", "approve_refund", "Ask.", None),
    ],
)
def test_approver_is_the_role_in_the_agent_name(name, asks, objective, whom):
    question = tool(asks, interaction_mode="inline")
    clerk = agent(name, objective=objective, human_interaction="approval", agent_tools=[question])
    spec, shapes = compiled(made(clerk))
    (one,) = spec.tools
    assert isinstance(one, UiTool)
    assert one.for_ == whom
    assert told(findings(spec, shapes)) == []


def test_a_component_is_shared_by_tools_with_the_same_answers_only():
    def shown(owner: str, name: str) -> dict[str, Any]:
        return {
            "module_name": "Module 1: Part 1", "agent": owner, "tool": name,
            "label": "Say", "component": "Panel", "display": "inline", "summary": "Asks.",
        }  # fmt: skip

    questions = [tool(item, interaction_mode="inline") for item in ("ask_one", "ask_two")]
    first = agent("Alpha", agent_tools=questions)
    approve = tool("approve_it", interaction_mode="inline")
    second = agent("Beta", human_interaction="approval", agent_tools=[approve])
    asked = [shown("Alpha", "ask_one"), shown("Alpha", "ask_two"), shown("Beta", "approve_it")]
    _, shapes = compiled(plan((6, [first, second]), ui_components=asked))
    assert [shape.component for shape in shapes] == ["Panel", "Panel", "Panel2"]


def test_agents_are_shown_what_they_and_their_tools_speak_of():
    first = agent("Alpha", objective="Looks at customer_tier.", agent_tools=[tool("read the case")])
    kept = [
        variable("customer_tier", "config"),
        variable("case", "data_reference"),
        variable("region", "static"),
        variable("phase", "static", "What Beta needs."),
    ]
    spec = spec_of(first, global_context_variables=kept)
    assert spec.exposure == {"Alpha": ("customer_tier", "case", "region"), "Beta": ("phase",)}


# 13.3


@pytest.mark.parametrize(("mode", "limit"), REPLY_LIMITS.items())
def test_human_interaction_limits_replies(mode, limit):
    more = agent("Alpha", human_interaction=mode, max_consecutive_auto_reply=99)
    assert spec_of(more).agents[0].max_consecutive_auto_reply == limit
    one = agent("Alpha", human_interaction=mode, max_consecutive_auto_reply=1)
    assert spec_of(one).agents[0].max_consecutive_auto_reply == 1


def test_prompts_have_four_sections_and_say_role_and_objective():
    spec = spec_of(agent("Alpha", agent_type="evaluator", objective="Weighs {it}."))
    sections = [(each.id, each.heading) for each in spec.agents[0].prompt_sections]
    assert sections == [
        ("role", "[ROLE]"), ("objective", "[OBJECTIVE]"),
        ("context", "[CONTEXT]"), ("instructions", "[INSTRUCTIONS]"),
    ]  # fmt: skip
    assert "judge the work of others" in section(spec, 0, "role")
    assert section(spec, 0, "objective") == "Weighs {{it}}."


def test_production_removes_hidden_variables_from_the_context():
    kept = [variable("case", "static"), variable("region", "config")]
    clerk = agent("Alpha", objective="Reads the case and the region.")
    context = section(spec_of(clerk, global_context_variables=kept), 0, "context")
    assert "Case: {case}" in context
    assert "{region}" not in context


def test_instructions_name_the_tools():
    clerk = agent("Alpha", agent_tools=[tool("find_order")])
    assert "Call find_order" in section(spec_of(clerk), 0, "instructions")


def test_secrets_do_not_come_into_prompts():
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    spec, shapes = compiled(made(agent("Alpha", objective=f"Use {key} here.")))
    assert section(spec, 0, "objective") == "Use (secret) here."
    assert told(findings(spec, shapes)) == []


# 13.5


@pytest.mark.parametrize(
    ("trigger", "initiated_by", "mode"),
    [
        ("chat", "user", "UserDriven"),
        ("chat", "system", "AgentDriven"),
        ("chat", "external_event", "AgentDriven"),
        ("form_submit", "user", "BackendOnly"),
        ("schedule", "system", "BackendOnly"),
        ("database_condition", "system", "BackendOnly"),
        ("webhook", "external_event", "BackendOnly"),
    ],
)
def test_the_trigger_decides_who_begins(trigger, initiated_by, mode):
    spec, shapes = compiled(made(agent("Alpha"), trigger=trigger, initiated_by=initiated_by))
    orchestrator = spec.orchestrator
    assert (orchestrator.startup_mode, orchestrator.trigger.type) == (mode, trigger)
    assert (orchestrator.initial_message_to_user is None) == (mode != "UserDriven")
    assert told(findings(spec, shapes)) == []


def test_the_orchestrator_begins_with_the_first_agent_and_shows_those_who_meet_people():
    spec = spec_of(agent("Alpha", human_interaction="context"))
    assert spec.orchestrator.initial_agent == "Alpha"
    assert spec.orchestrator.visual_agents == ("Alpha", "Gamma"), "who ends it gives the answer"
    assert spec_of(agent("Alpha")).orchestrator.visual_agents == ("Alpha", "Beta", "Gamma")
    assert spec.orchestrator.runtime_extensions == ()


@pytest.mark.parametrize(
    ("words", "cron"),
    [
        ("", "0 6 * * *"),
        ("Every hour", "0 * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("Every 2 hours at 20 places", "0 */2 * * *"),
        ("a weekly digest", "0 6 * * MON"),
        ("each Tuesday and on Fridays at 18:00", "0 18 * * TUE,FRI"),
        ("weekly at 6 pm on Thursday", "0 18 * * THU"),
        ("on working days at 9:30 a.m.", "30 9 * * MON-FRI"),
        ("monthly at 12 am", "0 0 1 * *"),
        ("nightly", "0 1 * * *"),
        ("every 0 minutes, at 25:99", "0 6 * * *"),
    ],
)
def test_a_schedule_goes_by_the_words_of_the_plan(words, cron):
    given = made(agent("Alpha"), trigger="schedule")
    strategy = given.strategy.model_copy(update={"workflow_description": words})
    spec, shapes = compiled(given.model_copy(update={"strategy": strategy}))
    assert spec.orchestrator.trigger.model_dump()["cron"] == cron
    assert told(findings(spec, shapes)) == []


def test_values_read_at_the_start_are_shown():
    (daily,) = wire_notes(made(agent("Alpha"), trigger="schedule"))
    assert daily == "HelpDesk starts by schedule 0 6 * * * (UTC)"
    (changed,) = wire_notes(made(agent("Alpha"), trigger="database_condition"))
    assert changed == "HelpDesk starts when a document of HelpDeskRequests gets status 'new'"
    assert wire_notes(made(agent("Alpha"))) == ()


def test_other_starts_say_what_they_wait_for():
    kept = [variable("new order", "data_entity")]
    watched = spec_of(agent("A"), trigger="database_condition", global_context_variables=kept)
    assert watched.orchestrator.trigger.model_dump()["collection"] == "NewOrder"
    form = spec_of(agent("A"), trigger="form_submit")
    assert form.orchestrator.trigger.model_dump()["form"] == form.models[0].name
    posted = spec_of(agent("A"), trigger="webhook")
    assert posted.orchestrator.trigger.model_dump()["path"] == "help-desk"


# 13.6


def test_documents_have_models():
    spec = spec_of(agent("Alpha"), global_context_variables=[variable("case", "data_entity")])
    assert [model.name for model in spec.models] == ["CaseRecord"]
    assert spec.variables["case"].type == parse_type("CaseRecord")
