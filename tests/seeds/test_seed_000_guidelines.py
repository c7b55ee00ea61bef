"""Seed 000, lines 265-386: how a variable of each kind is added, each snippet verbatim."""

import json
import logging

import pytest

from seeds import verbatim
from seeds.seed_play import (
    agents,
    answer,
    answers,
    derived,
    desk,
    errors,
    findings,
    handoffs,
    play,
    say,
    says,
    static,
    variables,
)
from weft.engine.events import RequestOpened, ToolCalled, ToolFailed, ToolReturned
from weft.errors import CheckFailed
from weft.testing.models import call

PROFILE = {"Name": "Ada", "Plan": "gold"}
USERS = [
    ("Users", "autogen_ai_agents", {"_id": "1", "user_id": "ada", "Profile": PROFILE, "Pin": "x"}),
    ("Users", "autogen_ai_agents", {"_id": "2", "user_id": "bob", "Profile": {"Name": "Bob"}}),
]


def adding(*definitions, agent="MyAgent", shown=(), **files):
    """Return a package of one agent with definitions as they are written."""
    exposure = json.dumps({agent: {"variables": list(shown)}} if shown else {})
    parts = (verbatim.definitions_of(*definitions), f'"agents": {exposure}')
    return {
        "agents": agents(**{agent: "Say APPROVED when the user agrees."}),
        "handoffs": handoffs((agent, "terminate")),
        "context_variables": verbatim.file_of(*parts),
        **files,
    }


def test_adding_a_database_variable(tmp_path):
    """Lines 267-281, the definition verbatim."""
    files = adding(verbatim.USER_PROFILE, shown=["user_profile"])
    played = play(tmp_path, files, ["Hi."], documents=USERS)
    assert played.values["user_profile"] == PROFILE
    told = "user_profile (User account details from database): "
    assert played.prompt("MyAgent").endswith(told + json.dumps(PROFILE))


def test_fields_are_kept_narrow(tmp_path):
    """Line 282: nothing of the document but the field comes into the run."""
    files = adding(verbatim.USER_PROFILE, shown=["user_profile"])
    played = play(tmp_path, files, ["Hi."], documents=USERS)
    assert "Pin" not in str(played.events)
    assert "Pin" not in str(played.requests)


def test_a_variable_is_exposed_to_an_agent_by_its_list_and_not_otherwise(tmp_path):
    """Lines 283, 376."""
    hidden = play(tmp_path, adding(verbatim.USER_PROFILE), ["Hi."], documents=USERS)
    assert "user_profile" not in hidden.prompt("MyAgent")
    assert hidden.values["user_profile"] == PROFILE
    files = adding(verbatim.USER_PROFILE, shown=["user_profile"])
    assert "user_profile" in play(tmp_path, files, ["Hi."]).prompt("MyAgent")


@pytest.mark.parametrize(("setting", "value"), [(None, False), ("1", True), ("0", False)])
def test_adding_an_environment_variable(tmp_path, setting, value):
    """Lines 285-298, the definition verbatim: the default where it is unset."""
    settings = {} if setting is None else {"FEATURE_X_ENABLED": setting}
    files = adding(verbatim.FEATURE_X, shown=["feature_x_enabled"])
    played = play(tmp_path, files, ["Hi."], environment=settings)
    assert played.values["feature_x_enabled"] is value


def test_an_added_environment_variable_is_suppressed_in_production(tmp_path, caplog):
    """Line 299."""
    caplog.set_level(logging.INFO, "weft.context")
    files = adding(verbatim.FEATURE_X, shown=["feature_x_enabled"])
    settings = {"ENVIRONMENT": "production", "FEATURE_X_ENABLED": "1"}
    played = play(tmp_path, files, ["Hi."], environment=settings)
    assert "feature_x_enabled" not in played.values
    assert "feature_x_enabled" not in str(played.requests)
    assert "Desk: suppressed here: feature_x_enabled" in caplog.messages


def test_adding_a_derived_variable_with_an_agent_text_trigger(tmp_path):
    """Lines 301-321, the definition verbatim: set to true when the match is detected."""
    files = adding(verbatim.APPROVAL_RECEIVED, agent="InterviewAgent")
    files["handoffs"] = handoffs(
        ("InterviewAgent", "terminate", "approval_received"), ("InterviewAgent", "user")
    )
    played = play(tmp_path, files, ["Well?", "APPROVED"], after=[say("yes")])
    assert played.sets("approval_received") == [(True, "trigger")]
    assert played.row.outcome == "completed"


def test_agent_text_needs_no_interaction_with_the_user(tmp_path):
    """Line 320: it is passive; nobody is asked and nothing is called."""
    files = adding(verbatim.APPROVAL_RECEIVED, agent="InterviewAgent")
    played = play(tmp_path, files, ["approved"])
    assert played.values["approval_received"] is True
    assert not played.of(ToolCalled)
    assert [event.kind for event in played.of(RequestOpened)] == ["chat"], (
        "the first message, no other"
    )


def test_triggers_are_purely_declarative(tmp_path):
    """Lines 322, 481: Python in the file is no condition of a trigger."""
    trigger = {"type": "agent_text", "agent": "MyAgent", "match": "lambda text: len(text) > 3"}
    listed = variables({"long": derived(False, trigger)})
    files = {**adding(), "context_variables": listed}
    assert errors(tmp_path, files)[0][0] == "SCHEMA007"
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


#: Lines 348-351, the pattern of a tool; what it leaves open is written out around it.
WIZARD = '''
from weft import use_ui_tool

wizard_data = {"steps": ["name", "colour"]}


async def config_wizard(context_variables) -> str:
    """Show the wizard."""
    resp = await use_ui_tool(tool_id="config_wizard", payload=wizard_data)
    form_data = resp.get("form_data")  # Extract using response_key from config
    if form_data is not None:
        context_variables.set("form_submission", form_data)
    return "done"
'''


def wizard(code=WIZARD, definition=verbatim.FORM_SUBMISSION):
    tool = desk(agent="MyAgent", ui=["config_wizard"], code=code)
    return adding(definition, shown=["form_submission"], **tool)


def test_adding_a_derived_variable_with_a_ui_response_trigger(tmp_path):
    """Lines 324-346, the definition and the tool pattern verbatim."""
    form = {"name": "Tea", "colour": "green"}
    script = [call("config_wizard"), "Thanks."]
    played = play(tmp_path, wizard(), script, after=[answer({"form_data": form})])
    assert played.of(RequestOpened)[-1].payload == {"steps": ["name", "colour"]}
    assert played.values["form_submission"] == form
    told = "form_submission (User-submitted form data from configuration wizard): "
    assert told + "null" in played.prompt("MyAgent")
    assert told + json.dumps(form) in played.prompt("MyAgent", 1)


def test_ui_response_is_an_active_interaction_that_needs_the_user(tmp_path):
    """Line 343: until the answer is there the run waits and nothing is set."""
    played = play(tmp_path, wizard(), [call("config_wizard"), "Thanks."])
    assert (played.row.status, played.sets("form_submission")) == ("waiting", [])
    (asked,) = [event for event in played.of(RequestOpened) if event.kind == "ui"]
    assert (asked.tool, asked.sets) == ("config_wizard", ("form_submission",))


def test_a_response_without_the_key_sets_nothing(tmp_path):
    """Lines 344, 350: extract the key, then set it if there is something."""
    script = [call("config_wizard"), "Thanks."]
    played = play(tmp_path, wizard(), script, after=[answer({"cancelled": True})])
    assert played.values["form_submission"] is None
    assert played.sets("form_submission") == []


def test_tool_code_has_full_control_over_the_value(tmp_path):
    """Line 345; decision j: what the code sets after the answer counts."""
    code = WIZARD.replace("form_data)\n", '{**form_data, "checked": True})\n')
    script = [call("config_wizard"), "Thanks."]
    played = play(tmp_path, wizard(code), script, after=[answer({"form_data": {"name": "Tea"}})])
    assert played.sets("form_submission")[-1] == (
        {"name": "Tea", "checked": True},
        "tool:config_wizard",
    )
    assert played.values["form_submission"]["checked"] is True


def test_tool_code_has_full_control_over_the_timing(tmp_path):
    """Line 345: without a binding nothing is set before the code does it."""
    loose = json.loads(f"{{{verbatim.FORM_SUBMISSION}}}")["form_submission"]
    loose["source"]["triggers"] = []
    late = WIZARD.replace(
        "    if form_data",
        '    await use_ui_tool(tool_id="config_wizard", payload="Sure?")\n    if form_data',
    )
    files = wizard(late, f'"form_submission": {json.dumps(loose)}')
    first = answer({"form_data": {"name": "Tea"}})
    script = [call("config_wizard"), "Thanks."]
    waiting = play(tmp_path, files, script, after=[first])
    assert waiting.values["form_submission"] is None
    done = play(tmp_path, files, script, after=[first, answer({})])
    assert done.values["form_submission"] == {"name": "Tea"}


@pytest.mark.parametrize("word", ["NEXT", "APPROVED", "READY"])
def test_agent_text_signals_a_change_of_state(tmp_path, word):
    """Line 355: passive, config-driven, automatic."""
    listed = variables(
        {"stage": derived("open", says("MyAgent", word, value="done"), type_="string")}
    )
    played = play(tmp_path, {**adding(), "context_variables": listed}, [word])
    assert played.sets("stage") == [("done", "trigger")]


@pytest.mark.parametrize(
    "value", ["accepted", {"a": 1}, "second"], ids=["button", "form", "choice"]
)
def test_ui_response_takes_a_button_a_form_or_a_selection(tmp_path, value):
    """Line 356: active, begun by tool code."""
    listed = variables({"choice": derived(None, answers("ask", "value"), type_="any")})
    files = {**adding(**desk(agent="MyAgent", ui=["ask"])), "context_variables": listed}
    played = play(tmp_path, files, [call("ask"), "Good."], after=[answer({"value": value})])
    assert played.sets("choice") == [(value, "trigger")]


def test_adding_a_static_variable(tmp_path):
    """Lines 359-370, the definition verbatim."""
    files = adding(verbatim.PRODUCT_TIER, shown=["product_tier"])
    played = play(tmp_path, files, ["Hi."])
    told = "product_tier (Static tier label shipped with workflow): beta"
    assert played.prompt("MyAgent").endswith(told)


def test_a_static_variable_is_not_sourced_from_elsewhere_nor_changed(tmp_path):
    """Line 371: it has a value and nothing else, and tools cannot set it."""
    for key in ("env_var", "collection", "default"):
        odd = static("beta")
        odd["source"][key] = "x"
        assert (
            errors(tmp_path, {**adding(), "context_variables": variables({"tier": odd})})[0][0]
            == "SCHEMA008"
        )
    tool = desk("put", agent="MyAgent")
    files = adding(verbatim.PRODUCT_TIER, **tool)
    played = play(tmp_path, files, [call("put", name="product_tier", value="gold"), "Hi."])
    assert "cannot be set" in played.of(ToolFailed)[0].error
    assert played.values["product_tier"] == "beta"


def test_names_are_lower_snake_case(tmp_path):
    """Line 372: another spelling runs, with a warning."""
    files = {**adding(), "context_variables": variables({"ProductTier": static("beta")})}
    said = [finding for finding in findings(tmp_path, files) if finding.code == "NAME004"]
    assert [finding.severity for finding in said] == ["warning"]
    assert play(tmp_path, files, ["Hi."]).values["ProductTier"] == "beta"


def test_a_branch_uses_a_derived_flag_instead_of_a_static_value(tmp_path):
    """Line 373."""
    files = adding(verbatim.PRODUCT_TIER)
    files["handoffs"] = handoffs(
        ("MyAgent", "terminate", "product_tier == 'beta'"), ("MyAgent", "user")
    )
    assert [code for code, _ in errors(tmp_path, files)] == ["COND004"]
    flag = adding(verbatim.APPROVAL_RECEIVED, agent="InterviewAgent")
    flag["handoffs"] = handoffs(
        ("InterviewAgent", "terminate", "approval_received"), ("InterviewAgent", "user")
    )
    assert play(tmp_path, flag, ["APPROVED"]).ways == [("InterviewAgent", "terminate")]


def exposing(**files):
    """Return the package of lines 376-383: the list of an agent verbatim."""
    definitions = verbatim.definitions_of(verbatim.FEATURE_X, verbatim.USER_PROFILE)
    return {
        **adding(),
        "context_variables": verbatim.file_of(definitions, verbatim.MY_AGENT),
        **files,
    }


def test_exposing_variables_to_an_agent_builds_its_template(tmp_path):
    """Lines 375-384: from the list, and from nothing else."""
    played = play(tmp_path, exposing(), ["Hi."], documents=USERS)
    lines = played.prompt("MyAgent").partition("[CONTEXT VARIABLES]\n")[2].splitlines()
    assert lines == [
        "enterprise_id: acme",
        "feature_x_enabled (Flag to enable experimental feature X (dev/testing only)): false",
        f"user_profile (User account details from database): {json.dumps(PROFILE)}",
    ]


def test_the_model_receives_the_injected_context_before_each_reply(tmp_path):
    """Line 385: in the same turn too, and with the values as they are then."""
    listed = variables({"stage": derived("open", type_="string")}, {"MyAgent": ["stage"]})
    files = {**adding(**desk("put", "look", agent="MyAgent")), "context_variables": listed}
    files["handoffs"] = handoffs(("MyAgent", "user"))
    script = [call("put", name="stage", value="half"), call("look", name="stage"), "So.", "Well."]
    played = play(tmp_path, files, script, after=[say("and?")])
    shown = [played.prompt("MyAgent", number).rpartition("stage: ")[2] for number in range(4)]
    assert shown == ["open", "half", "half", "half"]
    assert played.of(ToolReturned)[1].value == {"found": "half"}
