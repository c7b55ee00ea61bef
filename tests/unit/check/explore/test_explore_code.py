"""What the code of a package may set, as the proof sees it."""

import pytest

from unit.check.builders_explore import derived, hits, proof, rule, tool, workflow

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))
ASKS = "from weft import use_ui_tool\nasync def {}():\n    await use_ui_tool('pick')\n"


def run(code, *, variable=None, tools=None, limit_to="A", **spec):
    files = {"tools/act.py": code} if isinstance(code, str) else code
    return proof(
        *LOOP,
        agents=limit_to,
        variables={"x": variable or derived()},
        tools=[tool("A")] if tools is None else tools,
        code=files,
        **spec,
    )


def function(body, name="act"):
    return f"def {name}(context_variables):\n    {body}\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (function("context_variables.set('x', True)"), "proven"),
        (function("context_variables.set('x', False)"), "refuted"),
        (function("context_variables.set('x', b'')"), "not proven"),
        (function("context_variables.set('x', found())"), "not proven"),
        (function("context_variables.set('y', True)"), "refuted"),
        (function("context_variables.set(name, True)"), "not proven"),
        (function("context_variables.set('x', True)", "other"), "not proven"),
        ("def act(:", "not proven"),
        ("from elsewhere import act", "not proven"),
        ({}, "not proven"),
        ({"tools/act.py": "from .rest import act", "tools/rest.py": function("...")}, "refuted"),
        ({"tools/act.py": "from .rest import act",
          "tools/rest.py": function("context_variables.set('x', True)")}, "proven"),
        # A bool does not take these: the engine refuses such a write.
        (function("context_variables.set('x', 1)"), "refuted"),
        (function("context_variables.set('x', 'yes')"), "refuted"),
        ({"tools/act.py": "from .rest import act", "tools/rest.py": "from .act import act"},
         "not proven"),
    ],
)  # fmt: skip
def test_what_code_shows_is_what_may_happen(code, status):
    assert run(code).status == status


def test_doubts_about_code_say_what_to_do():
    unknown_name = run(function("context_variables.set(name, True)"))
    assert unknown_name.reason == ("tools/act.py sets variables in a way that does not show which")
    assert unknown_name.doubts[0].remedy == (
        'write context_variables.set("name", value) with the name as a text'
    )
    missing = run({})
    assert missing.reason == "the code of act cannot be found"
    assert missing.doubts[0].reported


def test_a_file_outside_the_folder_is_not_looked_for():
    assert run({}, tools=[tool("A", file="../act.py")]).status == "not proven"


@pytest.mark.parametrize(
    ("writers", "status"),
    [(None, "proven"), (["act"], "proven"), (["A"], "proven"), (["B"], "refuted"), ([], "refuted")],
)
def test_only_writers_write(writers, status):
    code = function("context_variables.set('x', True)")
    variable = derived(writers=writers)
    assert run(code, variable=variable, limit_to="AB").status == status


def test_a_tool_named_trigger_has_no_right_of_a_trigger():
    code = {"tools/act.py": function("context_variables.set('x', True)", "trigger")}
    named = [tool("A", "trigger")]
    assert run(code, variable=derived(writers=["B"]), tools=named, limit_to="AB").dead_ends
    variable = derived(writers=["trigger"])
    assert run(code, variable=variable, tools=named, limit_to="AB").status == "proven"


@pytest.mark.parametrize(
    ("writers", "status"), [(["A"], "not proven"), (["act"], "not proven"), (["nobody"], "refuted")]
)
def test_a_writer_without_visible_code_may_set_anything(writers, status):
    assert run(function("..."), variable=derived(writers=writers)).status == status


def test_a_writer_whose_code_shows_what_it_sets_sets_nothing_else():
    code = function("context_variables.set('x', False)")
    assert run(code, variable=derived(writers=["A", "act"])).status == "refuted"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("context_variables.set('x', None)", "proven"),
        ("context_variables.remove('x')", "proven"),
        ("context_variables.__delitem__(key='x')", "proven"),
        ("del context_variables['x']", "proven"),
        ("context_variables.remove('y')", "refuted"),
        ("found.clear(), found.remove('x'), found.pop('x')", "refuted"),
        ("context_variables.pop('x')", "not proven"),
        ("context_variables.pop('x', None)", "not proven"),
        ("context_variables.clear()", "not proven"),
        ("context_variables.popitem()", "not proven"),
        ("context_variables.remove()", "not proven"),
        ("context_variables.set('x', {'a': None}.get('a'))", "not proven"),
        # A run never comes past what takes away all values.
        ("context_variables.clear()\n    context_variables.set('x', None)", "not proven"),
    ],
)
def test_code_may_take_a_value_away(body, status):
    found = proof(
        rule("A", "terminate", "x == null"), rule("A", "A"), agents="A", tools=[tool("A")],
        variables={"x": derived(), "y": derived()}, code={"tools/act.py": function(body)},
    )  # fmt: skip
    assert found.status == status
    assert [rule.index for rule in found.unused_rules] == ([0] if status == "refuted" else [])


def test_with_transitions_a_value_is_taken_away_only_where_one_says_so():
    def found(*ends):
        steps = [{"from": "a", "to": end} for end in ends]
        state = derived(kind="optional[str]", default="a", transitions=steps)
        body = "context_variables.set('x', look())"
        return proof(
            rule("A", "terminate", "x == null"), rule("A", "A"), agents="A", tools=[tool("A")],
            variables={"x": state}, code={"tools/act.py": function(body)},
        ).status  # fmt: skip

    assert found("b") == "refuted"
    assert found("b", None) == "not proven"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("await use_ui_tool('pick')", "proven"),
        ("return (await use_ui_tool('pick')).get('x') or 1", "proven"),
        ("got = [it for it in await use_ui_tool('pick')]", "proven"),
        ("await weft.use_ui_tool(tool_id='pick', payload=1)", "proven"),
        ("await use_ui_tool('pick'), await use_ui_tool('other')", "proven"),
        # It may never be asked, or by something else.
        ("use_ui_tool('pick')", "not proven"),
        ("a and await use_ui_tool('pick')", "not proven"),
        ("if now(): await use_ui_tool('pick')", "not proven"),
        ("return 1; await use_ui_tool('pick')", "not proven"),
        ("[await use_ui_tool('pick') for it in a]", "not proven"),
        ("lambda: (await use_ui_tool('pick'))", "not proven"),
        ("await lib.use_ui_tool('pick')", "not proven"),
        ("await pick()", "not proven"),
        ("await use_ui_tool('other')", "refuted"),
        ("use_ui_tool()", "not proven"),
        ("use_ui_tool(NAME)", "not proven"),
        ("ask = use_ui_tool; ask('pick')", "not proven"),
        ("from weft import use_ui_tool as ask; ask('pick')", "not proven"),
        ("import weft; weft.other('pick')", "refuted"),
    ],
)
def test_a_person_is_asked_wherever_code_asks(body, status):
    # The tool is another agent's, but it is shown in the turn of this one.
    code = {
        "tools/act.py": f"import weft\nfrom weft import use_ui_tool\nfrom .pick import pick\n"
        f"async def act(a=None):\n    {body}\n",
        "tools/pick.py": "async def pick():\n    await use_ui_tool('pick')\n",
    }
    assert answered(code).status == status


def answered(code, *, asker="act", **more):
    ui = {"tool_type": "UI_Tool", "ui": {"component": "Pick", "mode": "inline"}}
    trigger = {"type": "ui_response", "tool": "pick", "response_key": "x"}
    return proof(
        *LOOP, tools=[tool("A", asker, f"{asker}.py"), tool("B", "pick", "pick.py", **ui)],
        variables={"x": derived(trigger, **more)}, code=code,
    )  # fmt: skip


def test_nobody_knows_what_a_function_of_the_package_asks():
    code = {
        "tools/act.py": "from .ui import use_ui_tool\ndef act():\n    use_ui_tool('pick')\n",
        "tools/ui.py": "def use_ui_tool(name): ...\n",
        "tools/pick.py": "def pick(): ...",
    }
    assert answered(code).status == "not proven"


def test_code_that_cannot_be_found_may_ask_anything():
    found = answered({"tools/pick.py": "def pick():\n    use_ui_tool('pick')\n"})
    assert (found.status, found.dead_ends) == ("not proven", ())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise Ask('?')", "proven"),
        ("if not context_variables.answers:\n        raise Ask('?')", "proven"),
        ("if now():\n        raise Ask('?')", "not proven"),
        ("await use_ui_tool('pick')", "proven"),
        ("...", "not proven"),
    ],
)
def test_a_tool_asks_in_its_own_name(body, status):
    ask = tool("A", "pick", "pick.py")
    trigger = {"type": "ui_response", "tool": "pick", "response_key": "x"}
    head = "from weft import Ask, use_ui_tool\nasync def pick(context_variables):\n"
    code = {"tools/pick.py": f"{head}    {body}\n"}
    variables = {"x": derived(trigger)}
    assert proof(*LOOP, agents="A", tools=[ask], variables=variables, code=code).status == status


def test_a_transition_waits_for_the_answer_too():
    trigger = {"type": "ui_response", "tool": "pick", "response_key": "x"}
    steps = [{"from": False, "to": True, "trigger": trigger}]
    code = {"tools/pick.py": "def pick(): ..."}
    head = "from weft import use_ui_tool\nasync def act():\n"
    code["tools/act.py"] = head + "    await use_ui_tool('pick')\n"
    assert answered(code, transitions=steps).status == "proven"
    code["tools/act.py"] = head + "    await use_ui_tool(name)\n"
    assert answered(code, transitions=steps).status == "not proven"


def test_no_error_rests_on_a_question_that_another_tool_may_not_ask():
    code = {
        "tools/act.py": "def act(n):\n    if n:\n        use_ui_tool('pick')\n",
        "tools/pick.py": "def pick(): ...",
    }
    ui = {"tool_type": "UI_Tool", "ui": {"component": "Pick", "mode": "inline"}}
    trigger = {"type": "ui_response", "tool": "pick", "response_key": "x"}
    found = proof(
        rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"),
        tools=[tool("A"), tool("B", "pick", "pick.py", **ui)],
        variables={"x": derived(trigger)}, code=code,
    )  # fmt: skip
    assert (found.status, found.reason) == ("not proven", "act may do without the answer to pick")


def test_two_variables_do_not_get_different_values_from_one_answer():
    triggers = {it: {"type": "ui_response", "tool": "pick", "response_key": "it"} for it in "xy"}
    ui = {"tool_type": "UI_Tool", "ui": {"component": "Pick", "mode": "inline"}}
    found = proof(
        rule("A", "terminate", "x and not y"), rule("A", "A"),
        tools=[tool("A"), tool("B", "pick", "pick.py", **ui)],
        variables={it: derived(trigger) for it, trigger in triggers.items()},
        code={
            "tools/act.py": ASKS.format("act"),
            "tools/pick.py": ASKS.format("pick"),
        },
    )  # fmt: skip
    assert found.status == "not proven"
    assert "take their values from one place" in found.reason


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ("before_chat", "not proven"),
        ("before_agent", "proven"),
        ("after_agent", "proven"),
        ("after_chat", "refuted"),
    ],
)
def test_lifecycle_tools_and_hooks_are_called_at_their_time(point, status):
    code = function("context_variables.set('x', True)")
    lifecycle = {"file": "act.py", "function": "act", "trigger": point}
    assert run(code, tools=[], lifecycle_tools=[lifecycle]).status == status
    hook = {"file": "act.py", "function": "act", "hook_type": point}
    assert run({"hooks/act.py": code}, tools=[], hooks=[hook]).status == status


def test_what_is_called_every_time_does_not_certainly_leave_a_variable_alone():
    hook = {"file": "h.py", "function": "h", "hook_type": "before_agent"}
    code = {"hooks/h.py": function("context_variables.set('x', True)", "h")}
    handoffs = (rule("A", "terminate", "x"), rule("A", "B"), rule("B", "B"))
    found = proof(*handoffs, variables={"x": derived()}, hooks=[hook], code=code)
    assert (found.status, found.reason) == ("not proven", "h may leave x as it is")
    assert found.witness == "A -> B"
    by_tool = {"tools": [tool("A", "h", "h.py")], "code": {"tools/h.py": code["hooks/h.py"]}}
    assert proof(*handoffs, variables={"x": derived()}, **by_tool).status == "refuted"


def test_hooks_of_one_agent_act_in_its_turns_only():
    hook = {"file": "h.py", "function": "h", "hook_type": "update_agent_state", "agent": "B"}
    code = {"hooks/h.py": function("context_variables.set('x', True)", "h")}
    found = run(code, tools=[], hooks=[hook], limit_to="AB")
    assert found.dead_ends[0].agents == ("A",)


def test_what_is_read_anew_may_change_but_nobody_promises_it():
    database = {"type": "database", "collection": "c", "search_by": "k", "default": False}
    loop = (rule("A", "terminate", "x"), rule("A", "A"))
    once = {"type": "bool", "source": database}
    assert proof(*loop, agents="A", variables={"x": once}).status == "refuted"
    again = {"type": "bool", "source": {**database, "refresh_strategy": "on_demand"}}
    found = proof(*loop, agents="A", variables={"x": again})
    assert (found.status, found.reason) == ("not proven", "x may change outside the run")
    service = {"type": "external", "service": "s", "operation": "o", "url": "u"}
    found = proof(*loop, agents="A", variables={"x": {"type": "bool", "source": service}})
    assert [doubt.variable for doubt in found.doubts] == ["x"]


def test_the_way_out_through_missing_code_is_reported_where_the_code_is_missing():
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")])
    assert hits("HAND012", subject) == []
