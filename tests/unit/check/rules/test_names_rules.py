"""Family NAME."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.check.builders_code import (
    agent,
    codes,
    hits,
    lifecycle,
    model,
    only,
    static,
    subject,
    tool,
)
from weft.check.spelling import listed, pascal_case, snake_case
from weft.findings import Remove
from weft.ids import AGENT_NAME, SNAKE_NAME

FIND = {"tools/lookup.py": "def find(): ...\ndef findOrder(): ...\n"}


def test_NAME001_agent_name_is_not_pascal_case():
    hit = only("NAME001", subject(agents=[agent("RouterAgent"), agent("billing_agent")]))
    assert hit.path == ("agents", 1, "agent_name")
    assert '"billing_agent" is not PascalCase' in hit.message
    assert hit.hint == ("write BillingAgent, in all files that name the agent",)


def test_NAME001_name_without_letters_gets_another_hint():
    assert only("NAME001", subject(agents=[agent("???")])).hint == (
        "use English letters and digits",
    )


@pytest.mark.parametrize("names", [["Router2Agent", "A"], ["user"], ["Terminate"]])
def test_NAME001_is_silent_about_good_and_about_fixed_names(names: list[str]):
    assert hits("NAME001", subject(agents=[agent(name) for name in names])) == []


def test_NAME001_speaks_once_about_a_name_given_twice():
    checked = subject(agents=[agent("RouterAgent"), agent("my agent"), agent("my agent")])
    assert codes(checked) == ["NAME001", "NAME003"]


def test_NAME002_function_is_not_snake_case():
    checked = subject(
        FIND,
        tools=[tool("findOrder"), tool("findOrder", agent="Other")],
        lifecycle_tools=[lifecycle("loadAll")],
    )
    first, second = hits("NAME002", checked)
    assert first.path == ("tools", 0, "function")
    assert '"findOrder" is not snake_case' in first.message
    assert first.hint == ("write find_order, here and in the code",)
    assert second.path == ("lifecycle_tools", 0, "function")


def test_NAME002_variable_is_not_snake_case():
    hit = only("NAME002", subject(variables={"currentDomain": static()}))
    assert (hit.path, hit.at_key) == (("variables", "currentDomain"), True)
    assert hit.hint == ("write current_domain, everywhere it is used",)


def test_NAME002_field_is_not_snake_case():
    hit = only("NAME002", subject(models=[model("Ticket", Title="str", body="str")]))
    assert (hit.path, hit.at_key) == (("models", 0, "fields", "Title"), True)
    assert '"Title" of Ticket' in hit.message


@pytest.mark.parametrize("name", ["_hidden", "WeftState", "AND", "None"])
def test_NAME002_leaves_reserved_variables_to_VAR006(name: str):
    assert hits("NAME002", subject(variables={name: static()})) == []


def test_NAME002_leaves_missing_functions_to_TOOL002():
    checked = subject(FIND, tools=[tool("Findd"), tool("no-name")])
    assert codes(checked) == ["TOOL002", "TOOL002"]


def test_NAME002_accepts_snake_case():
    checked = subject(FIND, tools=[tool("find")], variables={"a1_b": static()})
    assert hits("NAME002", checked) == []


def test_NAME003_two_agents_with_one_name():
    hit = only("NAME003", subject(agents=[agent("RouterAgent"), agent("A"), agent("A")]))
    assert hit.path == ("agents", 2, "agent_name")
    assert hit.message == 'two agents are named "A"'
    assert hit.cause == ("agent number 2 of the file has this name already",)


def test_NAME003_names_that_differ_in_case_are_two_names():
    assert hits("NAME003", subject(agents=[agent("Ab"), agent("AB")])) == []


def test_NAME004_same_tool_twice():
    checked = subject(FIND, tools=[tool("find"), tool("find")])
    hit = only("NAME004", checked)
    assert hit.path == ("tools", 1, "function")
    assert hit.message == "RouterAgent has the tool find twice"
    assert hit.fix is not None
    assert hit.fix.edits == (Remove(("tools", 1)),)
    assert codes(checked) == ["NAME004"]


def test_NAME004_is_not_mended_where_the_two_differ():
    checked = subject(FIND, tools=[tool("find"), tool("find", description="Other words.")])
    assert only("NAME004", checked).fix is None


def test_NAME004_one_name_for_functions_of_two_files():
    tools = [tool("find"), tool("find", "people.py", agent="Clerk")]
    hit = only("NAME004", subject(tools=tools))
    assert hit.path == ("tools", 1, "function")
    assert hit.cause == ("one is in tools/lookup.py, the other in tools/people.py",)


def test_NAME004_two_agents_may_share_a_function():
    tools = [tool("find"), tool("find", "tools/lookup.py", agent="Clerk")]
    assert hits("NAME004", subject(tools=tools)) == []


def test_NAME004_compares_paths_outside_the_folder_as_written():
    tools = [tool("find", "../a.py"), tool("find", "../b.py", agent="Clerk")]
    assert "stands for two functions" in only("NAME004", subject(tools=tools)).message


def test_NAME005_workflow_and_folder_differ():
    hit = only("NAME005", subject(folder="support"))
    assert hit.path == ("orchestrator", "workflow_name")
    assert hit.message == 'the workflow is named "Support", its folder "support"'


@pytest.mark.parametrize("folder", ["", "Support"])
def test_NAME005_same_or_unknown_folder(folder: str):
    assert hits("NAME005", subject(folder=folder)) == []


def test_NAME006_two_sections_with_one_id():
    sections = [{"id": name, "content": "."} for name in ("role", "goal", "role")]
    hit = only("NAME006", subject(agents=[agent("RouterAgent", prompt_sections=sections)]))
    assert hit.path == ("agents", 0, "prompt_sections", 2, "id")
    assert 'RouterAgent have the id "role"' in hit.message


def test_NAME006_two_agents_may_use_one_id():
    section = [{"id": "role", "content": "."}]
    agents = [agent(name, prompt_sections=section) for name in ("RouterAgent", "Clerk")]
    assert hits("NAME006", subject(agents=agents)) == []


def test_NAME007_two_models_with_one_name():
    hit = only("NAME007", subject(models=[model("Ticket"), model("Ticket")]))
    assert hit.path == ("models", 1, "name")
    assert hit.message == 'two models are named "Ticket"'


def test_NAME007_different_models():
    assert hits("NAME007", subject(models=[model("Ticket"), model("Order")])) == []


@pytest.mark.parametrize(
    ("name", "meaning"), [("User", "the person"), ("TERMINATE", "the end of the run")]
)
def test_NAME008_agent_named_like_a_target(name: str, meaning: str):
    checked = subject(agents=[agent("RouterAgent"), agent(name)])
    hit = only("NAME008", checked)
    assert hit.path == ("agents", 1, "agent_name")
    assert meaning in hit.message
    assert codes(checked) == ["NAME008"]


def test_NAME008_longer_names_are_free():
    assert hits("NAME008", subject(agents=[agent("UserProxy")])) == []


@pytest.mark.parametrize(
    ("name", "part"),
    [("ticket_summary", "is not PascalCase"), ("List", "is a word of the type language")],
)
def test_NAME009_model_that_no_type_can_name(name: str, part: str):
    hit = only("NAME009", subject(models=[model(name)]))
    assert hit.path == ("models", 0, "name")
    assert part in hit.message


def test_NAME009_pascal_case_model():
    assert hits("NAME009", subject(models=[model("TicketSummary")])) == []


@given(st.text(max_size=20))
def test_suggested_spellings_are_good_names_or_nothing(name: str):
    pascal, snake = pascal_case(name), snake_case(name)
    assert pascal == "" or AGENT_NAME.match(pascal)
    assert snake == "" or SNAKE_NAME.match(snake)


def test_listed_reads_like_a_sentence():
    assert [listed(names) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
