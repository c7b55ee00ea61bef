"""What the code of a package may set, as the proof sees it."""

import pytest

from unit.check.builders_proof import derived, hits, proof, rule, tool, workflow

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))


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


@pytest.mark.parametrize(
    ("writers", "status"), [(["A"], "not proven"), (["act"], "not proven"), (["nobody"], "refuted")]
)
def test_a_writer_without_visible_code_may_set_anything(writers, status):
    assert run(function("..."), variable=derived(writers=writers)).status == status


def test_a_writer_whose_code_shows_what_it_sets_sets_nothing_else():
    code = function("context_variables.set('x', False)")
    assert run(code, variable=derived(writers=["A", "act"])).status == "refuted"


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
