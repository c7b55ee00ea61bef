"""What tools, their code, answers, replies and words may set, and how surely."""

import pytest

from unit.check.builders_explore import derived, explored_by, rule, said, tool

WAY_OUT = (rule("A", "terminate", "x"), rule("A", "A"))
TRAP = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
UI = {"component": "Ask", "mode": "inline"}
ASKING = "from weft import use_ui_tool\nasync def ask(): await use_ui_tool('ask')"


def statuses(variables, **spec):
    """Whether a way out is found, and whether a trap is an error."""
    out = explored_by(*WAY_OUT, agents="AB", variables=variables, **spec)
    into = explored_by(*TRAP, variables=variables, **spec)
    return out.status, into.status


def acting(body, *, top="", **variable):
    """The same for a tool with this line of code, and a variable that nothing else sets."""
    code = {"tools/act.py": f"{top}\ndef act(context_variables, y=1):\n    {body}\n"}
    return statuses({"x": derived(**variable)}, tools=[tool("A")], code=code)


POSSIBLE = ("can end", "may be endless")
CERTAIN = ("can end", "endless")
NEVER = ("endless", "can end")


@pytest.mark.parametrize(
    "body",
    [
        "context_variables.set('x', True)",
        "context_variables['x'] = True",
        "context_variables.update({'x': y})",
        "context_variables.set(y, True)",
        "if y: helper(context_variables)",
    ],
)
def test_variables_named_in_code_may_be_set(body):
    assert acting(body, top="def helper(given): given.set('x', True)") == POSSIBLE


@pytest.mark.parametrize("body", ["...", "context_variables.set('z', True)", "y = y['x']"])
def test_variables_not_named_in_code_are_not_set(body):
    assert acting(body) == NEVER


def test_only_writers_may_set_a_variable():
    body = "context_variables.set('x', True)"
    assert acting(body, writers=["other"]) == NEVER
    assert acting(body, writers=["act"]) == POSSIBLE
    assert acting(body, writers=["A"]) == POSSIBLE
    assert acting("...", writers=["act"]) == POSSIBLE


def test_a_value_that_the_type_refuses_is_never_set():
    assert acting("context_variables.set('x', 'yes')") == NEVER


def test_code_may_take_a_value_away():
    code = {"tools/act.py": "def act(context_variables): context_variables.pop('x')"}
    found = explored_by(
        rule("A", "terminate", "x == null"), rule("A", "A"), agents="A",
        variables={"x": derived()}, tools=[tool("A")], code=code,
    )  # fmt: skip
    assert found.status == "can end"


def test_code_that_is_not_there_may_set_anything():
    assert statuses({"x": derived()}, tools=[tool("A")]) == POSSIBLE
    assert statuses({"x": derived()}, tools=[tool("A", file="../act.py")]) == POSSIBLE


SETTING = "def act(context_variables): context_variables.set('x', True)"


def at_boundary(point, **more):
    """The same for a lifecycle tool, or a hook, that sets the variable."""
    declared = {"file": "act.py", "function": "act", **more}
    if point.startswith(("update", "process")):
        hooks = [{**declared, "hook_type": point}]
        return statuses({"x": derived()}, hooks=hooks, code={"hooks/act.py": SETTING})
    tools = [{**declared, "trigger": point}]
    return statuses({"x": derived()}, lifecycle_tools=tools, code={"tools/act.py": SETTING})


@pytest.mark.parametrize(
    "point", ["before_agent", "after_agent", "update_agent_state", "process_message_before_send"]
)
def test_hooks_and_lifecycle_tools_may_set_something_at_every_turn(point):
    assert at_boundary(point) == POSSIBLE
    assert at_boundary(point, agent="A") == POSSIBLE
    assert at_boundary(point, agent="B") == NEVER


@pytest.mark.parametrize("point", ["on_start", "before_chat"])
def test_functions_before_the_run_may_set_values_once(point):
    # If it does not, nothing leads out later on. It is of no agent, whatever it says.
    for more in ({}, {"agent": "B"}):
        assert at_boundary(point, **more) == ("may be endless", "may be endless")


@pytest.mark.parametrize("point", ["after_chat", "on_complete", "on_fail"])
def test_functions_after_the_run_decide_nothing(point):
    assert at_boundary(point) == NEVER


def test_code_may_read_once_more_what_was_read_once():
    stored = {"type": "bool", "source": {"type": "database", "collection": "c", "search_by": "k"}}
    for text, status in (("refresh", "can end"), ("get", "endless")):
        code = {"tools/act.py": f"async def act(context): await context.{text}('x')"}
        found = explored_by(
            *WAY_OUT, agents="A", variables={"x": stored}, tools=[tool("A")], code=code
        )
        assert found.status == status


# Calls


def test_values_of_one_call_are_set_together():
    called = {"type": "tool_call", "tool": "act"}
    returned = {"type": "tool_response", "tool": "act"}
    found = explored_by(
        rule("A", "terminate", "x and y or not x and not y"), rule("A", "B"), rule("B", "B"),
        variables={"x": derived(called), "y": derived(returned)}, tools=[tool("A")],
        code={"tools/act.py": "def act(): ..."},
    )  # fmt: skip
    assert (found.status, found.reason) == ("may be endless", "a call may break off")


def test_two_variables_never_get_different_values_from_one_argument():
    taken = derived({"type": "tool_call", "tool": "act", "argument": "x"})
    found = explored_by(
        rule("A", "B", "x and not y"), rule("A", "terminate"), rule("B", "B"),
        variables={"x": taken, "y": taken}, tools=[tool("A")],
        code={"tools/act.py": "def act(x): ..."},
    )  # fmt: skip
    assert found.reason == "x and y take their values from one call"


def test_no_error_rests_on_what_a_tool_returns():
    trigger = {"type": "tool_response", "tool": "act", "response_key": "x"}
    code = {"tools/act.py": "def act(): ..."}
    assert statuses({"x": derived(trigger)}, tools=[tool("A")], code=code) == POSSIBLE


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, CERTAIN),
        ({"type": "object", "properties": {"x": {"type": "boolean"}}}, CERTAIN),
        ({"type": "object", "properties": {"x": {"enum": [True]}}}, CERTAIN),
        ({"type": "object", "properties": {"x": {"const": False}}}, POSSIBLE),
        ({"type": "object", "properties": {"x": {"title": "anything"}}}, CERTAIN),
        ({"type": "object", "properties": {"x": {"pattern": "a"}}}, POSSIBLE),
        ({"type": "object", "properties": {"y": {}}}, POSSIBLE),
    ],
)
def test_an_answer_brings_what_its_schema_allows(schema, expected):
    ask = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui=UI, response_schema=schema)
    answered = {"type": "ui_response", "tool": "ask", "response_key": "x"}
    code = {"tools/ask.py": ASKING}
    assert statuses({"x": derived(answered)}, tools=[ask], code=code) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("use_ui_tool('ask')", POSSIBLE),
        ("use_ui_tool(tool_id='ask')", POSSIBLE),
        ("use_ui_tool(name)", POSSIBLE),
        ("use_ui_tool('other')", NEVER),
        ("raise Ask()", NEVER),
    ],
)
def test_another_tool_may_ask_as_well(body, expected):
    ask = tool("B", "ask", "ask.py", tool_type="UI_Tool", ui=UI)
    answered = {"type": "ui_response", "tool": "ask", "response_key": "x"}
    code = {"tools/ask.py": ASKING, "tools/act.py": f"def act(): {body}"}
    assert statuses({"x": derived(answered)}, tools=[ask, tool("A")], code=code) == expected


def test_a_transition_waits_for_an_answer_too():
    ask = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui=UI, response_schema={"title": "t"})
    answered = {"type": "ui_response", "tool": "ask", "response_key": "x"}
    step = {"from": False, "to": True, "trigger": answered}
    variables = {"x": derived(transitions=[step])}
    assert statuses(variables, tools=[ask], code={"tools/ask.py": ASKING}) == CERTAIN


# Replies


def replied(*handoffs, field="bool", variables, code="def act(x): ..."):
    """A workflow in which every reply of A calls a tool with its fields."""
    return explored_by(
        *handoffs,
        agents=[{"agent_name": "A", "auto_tool_mode": True}, "B"],
        variables=variables,
        models=[{"name": "Form", "fields": {"x": {"type": field}, "more": {"type": "any"}}}],
        registry=[{"agent": "A", "model": "Form"}],
        tools=[tool("A", auto_invoke=True)],
        code={"tools/act.py": code},
    )


@pytest.mark.parametrize(
    ("field", "argument", "expected"),
    [
        ("bool", "x", CERTAIN),
        ("optional[bool]", "x", POSSIBLE),
        ("str", "x", POSSIBLE),
        ("bool", "more.deep", POSSIBLE),
    ],
)
@pytest.mark.parametrize("when", ["tool_call", "tool_response"])
def test_a_reply_brings_what_its_model_allows(when, field, argument, expected):
    variables = {"x": derived({"type": when, "tool": "act", "argument": argument})}
    out = replied(*WAY_OUT, field=field, variables=variables)
    into = replied(*TRAP, field=field, variables=variables)
    assert (out.status, into.status) == expected


def test_a_field_of_the_type_of_the_variable_brings_any_value():
    called = {"type": "tool_call", "tool": "act", "argument": "x"}
    handoffs = (rule("A", "terminate", "x == 'a'"), rule("A", "B", "x == ''"), rule("A", "A"))
    variables = {"x": derived(called, kind="str", default="")}
    found = replied(*handoffs, rule("B", "B"), field="str", variables=variables)
    assert found.status == "endless"


def test_values_set_by_a_refused_reply_are_kept():
    called = {"type": "tool_call", "tool": "act"}
    steps = [{"from": n, "to": n + 1, "trigger": called} for n in range(2)]
    found = replied(
        rule("A", "B", "x == 2"), rule("A", "terminate"), rule("B", "B"),
        variables={"x": derived(kind="int", default=0, transitions=steps)},
    )  # fmt: skip
    assert (found.status, found.reason) == ("may be endless", "a reply may be sent back")


def test_of_replies_that_are_json_the_words_are_not_known():
    found = replied(*TRAP, variables={"x": derived(said("A"))})
    assert found.status == "may be endless"
    assert found.reason == "one text may be what x waits for and others too, or not"


# Words


def spoken(text, match, value=True):
    return {"type": "agent_text", "agent": "A", "match": {match: text}, "value": value}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (("GO", "equals"), ("GO", "contains"), True),
        (("GO", "equals"), ("STOP", "equals"), False),
        (("GO", "contains"), ("STOP", "contains"), True),
        (("go", "exact"), ("GO", "equals"), True),
        (("G.", "regex"), ("STOP", "equals"), True),
        (("(", "regex"), ("STOP", "equals"), True),
    ],
)
def test_one_text_may_be_what_several_triggers_wait_for(first, second, both):
    variables = {"x": derived(spoken(*first)), "y": derived(spoken(*second))}
    found = explored_by(rule("A", "B", "x and y"), rule("A", "terminate"), variables=variables)
    assert (found.unreachable_agents == ()) == both


def test_a_trigger_may_set_a_variable_to_null():
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "GO"}, "value": None}
    held = derived(trigger, kind="optional[str]", default="held")
    found = explored_by(rule("A", "B", "x == null"), rule("A", "A"), variables={"x": held})
    assert found.unreachable_agents == ()


def test_a_null_in_an_answer_sets_nothing():
    asked = {"type": "ui_response", "tool": "ask", "response_key": "k"}
    answer = {"type": "object", "properties": {"k": {"enum": [None]}}, "required": ["k"]}
    held = derived(asked, kind="optional[str]", default="held")
    asking = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui=UI, response_schema=answer)
    found = explored_by(
        rule("A", "B", "x == null"), rule("A", "A"), variables={"x": held}, tools=[asking],
        code={"tools/ask.py": ASKING},
    )  # fmt: skip
    assert found.unreachable_agents == ("B",)


def test_of_many_texts_not_all_are_put_together():
    variables = {f"x{n}": derived(spoken(f"text {n}", "contains")) for n in range(8)}
    found = explored_by(
        rule("A", "B", " and ".join(variables)), rule("A", "A"), variables=variables
    )
    assert found.unreachable_agents == ()


def test_a_run_may_begin_with_words_of_the_user():
    heard = {"type": "user_text", "match": {"equals": "GO"}}
    found = explored_by(*TRAP, variables={"x": derived(heard)})
    assert found.reason == "a run may be started with words of the user"


def test_the_user_is_asked_when_an_agent_has_used_up_its_replies():
    heard = {"type": "user_text", "match": {"equals": "GO"}}
    team = {"human_in_the_loop": True, "startup_mode": "AgentDriven"}
    spec = {"variables": {"x": derived(heard)}, "orchestrator": team}
    assert explored_by(rule("A", "B", "x"), rule("A", "A"), **spec).unreachable_agents == ()
    alone = {**spec, "orchestrator": {**team, "startup_mode": "BackendOnly"}}
    assert explored_by(rule("A", "A"), **alone).unreachable_agents == ("B",)
