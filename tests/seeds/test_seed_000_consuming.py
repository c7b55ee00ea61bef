"""Seed 000, lines 396-430: how tools, prompts and conditions get at the variables."""

import json

import pytest

from seeds.seed_play import (
    agents,
    answer,
    database,
    derived,
    desk,
    environment,
    errors,
    handoffs,
    play,
    say,
    says,
    static,
    variables,
)
from weft.engine.events import ToolReturned, VariableSet
from weft.testing.models import call

STAGE = {"stage": derived("open", type_="string")}
TWO = handoffs(("First", "Second"), ("Second", "terminate"))


def two(definitions, exposure=None, **files):
    """Return a package of two agents, one after the other."""
    listed = variables(definitions, exposure)
    return {
        "agents": agents("First", "Second"),
        "handoffs": TWO,
        "context_variables": listed,
        **files,
    }


def test_every_agent_shares_the_same_variables(tmp_path):
    """Lines 398-401, 423-424: what a tool of one sets, the other is shown and its tools read."""
    tool = {"file": "desk.py", "description": "As its name says.", "tool_type": "Agent_Tool"}
    files = two(STAGE, {"Second": ["stage"]}, **desk(agent="First"))
    files["tools"] = {
        "tools": [
            {"agent": "First", "function": "put", **tool},
            {"agent": "Second", "function": "look", **tool},
        ]
    }
    script = {
        "First": [call("put", name="stage", value="done"), "On."],
        "Second": [call("look", name="stage"), "Well."],
    }
    played = play(tmp_path, files, script)
    assert played.prompt("Second").endswith("stage: done")
    assert played.of(ToolReturned)[1].value == {"found": "done"}


def test_the_variables_are_there_before_the_first_reply(tmp_path):
    """Lines 399-400: attached to every agent before execution."""
    definitions = {"tier": static("beta"), "plan": database("Concepts", field="Plan"), **STAGE}
    shown = {"First": list(definitions), "Second": list(definitions)}
    stored = [("Concepts", "autogen_ai_agents", {"Plan": "gold"})]
    played = play(tmp_path, two(definitions, shown), ["On.", "Well."], documents=stored)
    for agent in ("First", "Second"):
        assert played.prompt(agent).endswith("tier: beta\nplan: gold\nstage: open")


def test_tools_get_the_live_context_by_a_parameter(tmp_path):
    """Lines 405-407: injected, unknown to the model, several values in one response."""
    code = '''
class ContextVariables: ...


def digest(word: str, context_variables: ContextVariables) -> dict:
    """Look at several values."""
    held = context_variables
    return {"word": word, "tier": held.get("tier"), "stage": held["stage"], "all": len(held)}
'''
    definitions = {"tier": static("beta"), **STAGE}
    files = two(definitions, **desk("digest", agent="First", code=code))
    played = play(tmp_path, files, [call("digest", word="x"), "On.", "Well."])
    (offered,) = played.requests[0].tools
    assert list(offered.parameters["properties"]) == ["word"]
    found = played.of(ToolReturned)[0].value
    assert (found["word"], found["tier"], found["stage"]) == ("x", "beta", "open")
    assert found["all"] > 2, "the built-in ones are there as well"


def test_the_context_of_a_tool_is_live(tmp_path):
    """Line 406; decision u: it sees its own writes at once, and after an answer what holds then."""
    code = '''
from weft import use_ui_tool


async def work(context_variables) -> list:
    """Write, ask, and look again."""
    seen = [context_variables.get("stage")]
    context_variables.set("stage", "half")
    seen.append(context_variables.get("stage"))
    await use_ui_tool("work", "Well?")
    seen.append(context_variables.get("mood"))
    return seen
'''
    trigger = {"type": "ui_response", "tool": "work", "response_key": "mood"}
    definitions = {**STAGE, "mood": derived("calm", trigger, type_="string")}
    files = two(definitions, **desk(agent="First", ui=["work"], code=code))
    played = play(tmp_path, files, [call("work"), "On.", "Well."], after=[answer({"mood": "glad"})])
    assert played.of(ToolReturned)[0].value == ["open", "half", "glad"]


def prompted(text, definitions, shown, **files):
    """Return a package of an agent whose prompt is a template."""
    return {
        "agents": agents(Helper=text),
        "handoffs": handoffs(("Helper", "user")),
        "context_variables": variables(definitions, {"Helper": shown}),
        **files,
    }


def test_a_declared_template_surfaces_values_in_the_system_prompt_each_turn(tmp_path):
    """Lines 408-410, the template verbatim."""
    text = "Assisting enterprise {enterprise_id} (context aware: {context_aware})"
    flags = {"context_aware": environment("CONTEXT_AWARE", default=True)}
    played = play(tmp_path, prompted(text, flags, ["enterprise_id", "context_aware"]), ["Hi."])
    first = played.prompt("Helper").split("\n\n")[0]
    assert first == "Assisting enterprise acme (context aware: true)"


def test_a_template_is_filled_anew_before_every_reply(tmp_path):
    """Lines 408-409: each turn."""
    definitions = {"stage": derived("open", says("Helper", "DONE", value="closed"), type_="string")}
    files = prompted("It is {stage}. Say DONE.", definitions, ["stage"])
    played = play(tmp_path, files, ["Done", "Bye."], after=[say("thanks")])
    told = [played.prompt("Helper", number).split(".")[0] for number in range(2)]
    assert told == ["It is open", "It is closed"]


def test_a_hook_updates_the_state_of_an_agent_before_each_reply(tmp_path):
    """Line 408: `update_agent_state_before_reply`, a function in the manner of that framework."""
    hook = """
def surface(agent, messages):
    stage = agent.context_variables.get("stage")
    agent.update_system_message(f"{agent.name} works; it is {stage}.")
"""
    named = {"hook_type": "update_agent_state", "file": "state.py", "function": "surface"}
    files = two(STAGE, **desk("put", agent="First"))
    files |= {"hooks": {"hooks": [{**named, "agent": "First"}]}, "hooks/state.py": hook}
    played = play(tmp_path, files, [call("put", name="stage", value="done"), "On.", "Well."])
    told = [played.prompt("First"), played.prompt("First", 1), played.prompt("Second")]
    assert told == ["First works; it is open.", "First works; it is done.", ""]


def test_the_runtime_does_not_mutate_prompts_implicitly(tmp_path):
    """Lines 411-412, 421: who opts in sees values; the prompt of all others stays as it is."""
    text = 'Help {{name}} with {"json": [1]} and $stage.'
    files = two(STAGE, {"Second": ["stage"]})
    files["agents"] = agents(First=text, Second=text)
    played = play(tmp_path, files, ["On.", "Well."])
    verbatim_ = 'Help {name} with {"json": [1]} and $stage.'
    assert played.prompt("First") == verbatim_
    assert played.prompt("Second") == f"{verbatim_}\n\n[CONTEXT VARIABLES]\nstage: open"


def test_values_are_injected_into_the_instructions_and_nowhere_else(tmp_path):
    """Lines 385, 421: not into the conversation, not into what tools are called with."""
    definitions = {"tier": static("tier-canary"), **STAGE}
    files = two(definitions, {"First": ["tier"]}, **desk("look", agent="First"))
    played = play(tmp_path, files, [call("look", name="stage"), "On.", "Well."])
    for request in played.requests:
        held = [message for message in request.messages if "tier-canary" in json.dumps(message)]
        assert [message["role"] for message in held] == (
            ["system"] if request.agent == "First" else []
        )
        assert "tier-canary" not in str(request.tools)


def test_an_undeclared_template_name_is_a_finding(tmp_path):
    """Lines 408-410: the author decides, and a name that is not shown is refused."""
    files = prompted("It is {stage} for {tier}.", STAGE, ["stage"])
    assert [code for code, _ in errors(tmp_path, files)] == ["NAME001"]


def test_a_summary_tool_returns_a_digest_instead_of_everything(tmp_path):
    """Lines 416-417, 462: a package's own tool; the whole context is in no prompt."""
    code = '''
def summary(context_variables) -> str:
    """Say in a line how things stand."""
    text = context_variables.get("text")
    return f"{context_variables['stage']}, {len(text.split())} words"
'''
    definitions = {**STAGE, "text": database("Concepts", field="Text")}
    stored = [("Concepts", "autogen_ai_agents", {"Text": "long-canary " * 400})]
    files = two(definitions, **desk("summary", agent="First", code=code))
    played = play(tmp_path, files, [call("summary"), "On.", "Well."], documents=stored)
    assert played.of(ToolReturned)[0].value == "open, 400 words"
    assert "open, 400 words" in str(played.requests[1].messages)
    assert "long-canary" not in str(played.requests)


def test_variables_are_not_injected_into_prompts_automatically(tmp_path):
    """Lines 421-422: declared and globally accessible, yet in no prompt."""
    definitions = {"tier": static("tier-canary"), **STAGE}
    files = two(definitions, **desk("look", agent="First"))
    played = play(tmp_path, files, [call("look", name="stage"), "On.", "Well."])
    assert "tier-canary" not in str(played.requests)
    assert played.values["tier"] == "tier-canary"


@pytest.mark.parametrize("way", ["list", "tool"])
def test_a_value_becomes_visible_to_the_model_by_a_list_or_by_a_tool_call(tmp_path, way):
    """Lines 422, 424-425."""
    definitions = {"tier": static("tier-canary")}
    shown = {"First": ["tier"]} if way == "list" else None
    files = two(definitions, shown, **desk("look", agent="First"))
    script = [call("look", name="tier"), "On.", "Well."] if way == "tool" else ["On.", "Well."]
    played = play(tmp_path, files, script)
    seen = [request.agent for request in played.requests if "tier-canary" in str(request.messages)]
    assert seen == ["First"]


def test_one_declaration_makes_a_value_globally_accessible(tmp_path):
    """Lines 423-424: in the prompts, the tools and the conditions of every agent."""
    definitions = {"complete": derived(False, says("First", "NEXT"))}
    shown = {"First": ["complete"], "Second": ["complete"]}
    files = two(definitions, shown, **desk("look", agent="Second"))
    files["handoffs"] = handoffs(
        ("First", "Second", "complete"),
        ("First", "user"),
        ("Second", "terminate", "complete"),
        ("Second", "user"),
    )
    played = play(tmp_path, files, ["NEXT", call("look", name="complete"), "Well."])
    assert played.prompt("Second").endswith("complete: true")
    assert played.of(ToolReturned)[0].value == {"found": True}
    assert played.ways == [("First", "Second"), ("Second", "terminate")]
    assert len(played.of(VariableSet)) == 1


def test_new_context_is_added_by_the_declaration_alone(tmp_path):
    """Lines 429-430: the file changes, no code does."""
    before = play(tmp_path, two({}), ["On.", "Well."])
    assert "region" not in str(before.requests)
    after = play(
        tmp_path, two({"region": static("north")}, {"First": ["region"]}), ["On.", "Well."]
    )
    assert after.prompt("First").endswith("region: north")
