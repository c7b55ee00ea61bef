"""Answers of the proof that once were wrong: each case is what a run of the engine really does."""

import pytest

from unit.check.builders_explore import derived, proof, rule, said, tool, workflow
from weft.check.explore import prove
from weft.check.subject import Subject
from weft.engine.pattern_examples import example_of

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))
TRAP = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
UI = {"component": "Ask", "mode": "inline"}
CODE = {"tools/act.py": "def act(context_variables, a=None, flag=False):\n    ..."}


def called(**more):
    return {"type": "tool_call", "tool": "act", **more}


def code(body):
    return {"tools/act.py": f"def act(context_variables, a=None, flag=False):\n    {body}"}


def bound(variables, *handoffs, field="bool", automatic=False, agents="AB", others=(), **code):
    """A whose replies must fit a model, and may call its tool with them."""
    subject = workflow(
        *handoffs,
        agents=agents,
        variables=variables,
        code=_files(**code),
        tools=[tool("A", auto_invoke=automatic), *others],
        models=[{"name": "Form", "fields": {"a": {"type": field}}}],
        registry=[{"agent": "A", "model": "Form"}],
    )
    modes = {"auto_tool_mode": automatic}
    named = subject.spec.agents
    found = [it.model_copy(update=modes) if it.agent_name == "A" else it for it in named]
    return prove(Subject(subject.spec.model_copy(update={"agents": found}), code=subject.code))


def _files(body="...", top="", parameters="a=None, flag=False", files=None):
    text = f"{top}def act(context_variables, {parameters}):\n    {body}"
    return {"tools/act.py": text, **(files or {})}


# Calls


def test_two_variables_never_get_different_values_from_one_argument():
    both = {"x": derived(called(argument="a")), "y": derived(called(argument="a"))}
    handoffs = (rule("A", "terminate", "x and not y"), rule("A", "A"))
    found = proof(*handoffs, agents="A", variables=both, tools=[tool("A")], code=CODE)
    assert found.status == "not proven"
    assert found.reason == "x and y take their values from one place, a"


def test_no_trigger_takes_a_value_away():
    kind = {"kind": "optional[bool]", "default": False}
    handoffs = (rule("A", "terminate", "x == null"), rule("A", "A"))
    for trigger in (called(argument="a"), called(value=None), said("A", value=None)):
        spec = {"variables": {"x": derived(trigger, **kind)}, "tools": [tool("A")], "code": CODE}
        assert proof(*handoffs, agents="A", **spec).status == "refuted"


def test_what_a_call_sets_holds_at_its_end_together():
    both = {"x": derived(called()), "y": derived()}
    spec = {"variables": both, "tools": [tool("A")]}
    trap = (rule("A", "B", "x and not y"), rule("A", "terminate"), rule("B", "B"))
    found = proof(*trap, **spec, code=code("context_variables.set('y', True)"))
    # Only a call that breaks off leads there.
    assert (found.status, found.dead_ends) == ("not proven", ())
    assert found.reason == "a call that breaks off has set a part of its variables"


def test_which_way_code_goes_may_depend_on_an_argument():
    both = {"x": derived(called(argument="flag")), "y": derived()}
    spec = {"variables": both, "tools": [tool("A")], "agents": "A"}
    spec["code"] = code("if flag: context_variables.set('y', True)")
    handoffs = (rule("A", "terminate", "y and not x"), rule("A", "A"))
    assert proof(*handoffs, **spec).status == "not proven"


def going_on(parameters, kind, condition, argument="a", top=""):
    """What is said of a run that is lost where a tool has run with some value of an argument."""
    text = f"{top}def act(context_variables, {parameters}):\n    context_variables.set('y', True)"
    takes = called(argument=argument)
    variables = {"x": derived(takes, kind=f"optional[{kind}]", default=None), "y": derived()}
    trap = (rule("A", "B", condition), rule("A", "terminate"), rule("B", "B"))
    spec = {"variables": variables, "tools": [tool("A")], "code": {"tools/act.py": text}}
    return proof(*trap, **spec).status


@pytest.mark.parametrize(
    ("parameters", "kind", "without", "with_one"),
    [
        ("a", "str", "refuted", "refuted"),
        ("**more", "str", "refuted", "refuted"),
        ("a: str = ''", "str", "refuted", "refuted"),
        # A text must be given, and any text is one for the variable.
        ("a: str", "str", "not proven", "refuted"),
        ("a: str", "literal['k', 'm']", "refuted", "refuted"),
        ("a: Literal['k', 'm']", "literal['k', 'm']", "not proven", "refuted"),
        # The model may write a number as a text, which is none for the variable.
        ("a: int", "union[int, literal[5]]", "refuted", "refuted"),
        # Whether the tool runs with a value that suits the variable is not known.
        ("a: Literal['m']", "literal['k', 'm']", "not proven", "not proven"),
        ("a: int", "str", "not proven", "not proven"),
        ("a: Own", "str", "not proven", "not proven"),
        ("b=1", "str", "not proven", "not proven"),
    ],
)
def test_a_call_goes_on_with_what_its_parameters_take(parameters, kind, without, with_one):
    top = "from typing import Literal\n"
    assert going_on(parameters, kind, "y and x == null", top=top) == without
    value = "5" if "int" in kind else "'k'"
    assert going_on(parameters, kind, f"y and x == {value}", top=top) == with_one


def test_a_part_of_an_argument_may_not_be_what_a_hint_says():
    assert going_on("a: dict", "str", "y and x == 'k'", argument="a.b") == "not proven"
    assert going_on("a", "str", "y and x == 'k'", argument="a.b") == "refuted"


def test_what_a_tool_without_code_takes_is_not_known():
    returned = {"type": "tool_response", "tool": "act", "value": True}
    variables = {"x": derived(called(argument="a")), "y": derived(returned)}
    trap = (rule("A", "B", "y and x"), rule("A", "terminate"), rule("B", "B"))
    assert proof(*trap, variables=variables, tools=[tool("A")]).status == "not proven"


@pytest.mark.parametrize(
    ("schema", "status"),
    [
        (None, "refuted"),
        ({}, "refuted"),
        ({"type": "object", "properties": {"k": {"type": "boolean"}}}, "refuted"),
        ({"properties": {"k": {"type": "boolean"}}, "required": ["k"]}, "not proven"),
        ({"properties": {"k": {"type": "boolean"}}, "minProperties": 1}, "not proven"),
        ({"properties": {"k": {"type": "boolean"}}, "required": "k"}, "not proven"),
    ],
)
def test_an_answer_may_leave_out_what_it_need_not_hold(schema, status):
    text = "from weft import use_ui_tool\nasync def act(context_variables):\n"
    text += "    await use_ui_tool('act')\n    context_variables.set('y', True)"
    answered = {"type": "ui_response", "tool": "act", "response_key": "k"}
    variables = {"x": derived(answered, kind="optional[bool]", default=None), "y": derived()}
    ui = tool("A", tool_type="UI_Tool", ui=UI, response_schema=schema)
    spec = {"variables": variables, "tools": [ui], "code": {"tools/act.py": text}}
    for condition, found in (("y and x == null", status), ("y and x", "refuted")):
        trap = (rule("A", "B", condition), rule("A", "terminate"), rule("B", "B"))
        assert proof(*trap, **spec).status == found


@pytest.mark.parametrize(
    "body",
    [
        "context_variables.setdefault('x', True)",
        "context_variables.set('n', 'no number'); context_variables.set('x', True)",
        "context_variables.set('s', 'c'); context_variables.set('x', True)",
        "context_variables.set('fixed', 2); context_variables.set('x', True)",
        "context_variables.set('unheard', 2); context_variables.set('x', True)",
    ],
)
def test_no_way_out_rests_on_a_write_that_may_not_be_made(body):
    steps = [{"from": "a", "to": "b"}]
    variables = {
        "x": derived(),
        "n": derived(kind="int", default=0),
        "s": derived(kind="str", default="a", transitions=steps),
        "fixed": {"type": "int", "source": {"type": "static", "value": 1}},
    }
    spec = {"variables": variables, "tools": [tool("A")], "code": code(body), "agents": "A"}
    assert proof(*LOOP, **spec).status == "not proven"
    plain = "context_variables.set('n', 1); context_variables.set('x', True)"
    assert proof(*LOOP, **{**spec, "code": code(plain)}).status == "proven"


@pytest.mark.parametrize(
    "body",
    [
        "context_variables.set('x', True); context_variables.set(a, False)",
        "context_variables.set('x', True); elsewhere(context_variables)",
    ],
)
def test_what_code_sets_may_be_set_again_out_of_sight(body):
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": code(body)}
    assert proof(*TRAP, **spec).status == "not proven"
    assert proof(*LOOP, **{**spec, "agents": "A"}).status == "not proven"


@pytest.mark.parametrize(
    "body",
    [
        "from tools.help import put; put(context_variables)",
        "from tools import help; help.put(context_variables)",
        "import tools.help as help; help.put(context_variables)",
    ],
)
def test_what_is_imported_inside_a_function_is_followed(body):
    spec = {"variables": {"x": derived()}, "tools": [tool("A")]}
    put = "def put(context_variables):\n    context_variables.set('x', True)\n"
    found = proof(*TRAP, **spec, code={**code(body), "tools/help.py": put})
    assert (found.status, found.unreachable_agents) == ("not proven", ())


@pytest.mark.parametrize(
    ("body", "trapped", "ended"),
    [
        ("...", "refuted", "proven"),
        ("raise Refuse('no')", "proven", "refuted"),
        ("raise ValueError('no')", "proven", "refuted"),
        ("raise Ask('?')", "proven", "refuted"),
        ("context_variables.set('x', True); raise Refuse('no')", "proven", "refuted"),
        ("if flag: raise ValueError('no')", "not proven", "proven"),
        ("if flag: raise Refuse('no')", "not proven", "not proven"),
        ("context_variables.set('n', 'no number')", "not proven", "not proven"),
        ("context_variables.set('fixed', 2)", "not proven", "not proven"),
    ],
)
def test_a_result_may_never_come(body, trapped, ended):
    fixed = {"type": "int", "source": {"type": "static", "value": 1}}
    returned = derived({"type": "tool_response", "tool": "act"})
    numbers = {"n": derived(kind="int", default=0), "fixed": fixed, "x": derived()}
    spec = {"variables": {"y": returned, **numbers}, "tools": [tool("A")], "code": code(body)}
    assert proof(rule("A", "B", "y"), *TRAP[1:], **spec).status == trapped
    assert proof(rule("A", "terminate", "y"), LOOP[1], agents="A", **spec).status == ended


def test_a_result_after_the_run_does_not_matter():
    late = {"file": "act.py", "function": "act", "trigger": "after_chat"}
    returned = derived({"type": "tool_response", "tool": "act"})
    spec = {"variables": {"y": returned}, "lifecycle_tools": [late], "code": CODE}
    found = proof(rule("A", "B", "y"), *TRAP[1:], **spec)
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_a_result_of_code_that_is_not_there_may_come():
    returned = derived({"type": "tool_response", "tool": "act"})
    spec = {"variables": {"y": returned}, "tools": [tool("A")]}
    assert proof(rule("A", "B", "y"), *TRAP[1:], **spec).unreachable_agents == ()


def test_no_error_rests_on_a_hook_that_may_set_something():
    text = "def watch(context_variables):\n    context_variables.setdefault('x', False)\n"
    hook = {"file": "watch.py", "function": "watch", "hook_type": "after_agent", "agent": "A"}
    spec = {"variables": {"x": derived(default=None)}, "hooks": [hook]}
    trap = (rule("A", "B", "x == null"), *TRAP[1:])
    assert proof(*trap, **spec, code={"hooks/watch.py": text}).status == "not proven"


def test_a_decorator_may_catch_what_a_function_raises():
    returned = derived({"type": "tool_response", "tool": "act"})
    files = {path: f"@quiet\n{text}" for path, text in code("raise ValueError('no')").items()}
    spec = {"variables": {"y": returned}, "tools": [tool("A")], "code": files}
    assert proof(rule("A", "B", "y"), *TRAP[1:], **spec).status == "not proven"


def test_no_error_rests_on_code_that_may_fail():
    body = "if flag: raise ValueError('no')\n    context_variables.set('x', True)"
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": code(body)}
    assert proof(*TRAP, **spec).status == "not proven"
    assert proof(*LOOP, agents="A", **spec).status == "proven"


def test_code_is_followed_to_where_a_function_is_imported_from_under_another_name():
    spec = {"variables": {"x": derived()}, "tools": [tool("A")]}
    seen = "def run(context_variables):\n    context_variables.set('x', True)\n"
    unseen = "import lib\ndef run(context_variables):\n    lib.put(context_variables)\n"
    for text, status in ((seen, "refuted"), (unseen, "not proven")):
        files = {"tools/act.py": "from .help import run as act\n", "tools/help.py": text}
        assert proof(*TRAP, **spec, code=files).status == status


ALWAYS = (rule("A", "terminate", "not x"), rule("A", "A"))


@pytest.mark.parametrize(
    "body",
    [
        "context_variables.set('x', True)",
        "\n    def inner():\n        return 1\n    context_variables.set('x', True)",
        "\n    class K:\n        def m(self): return 1\n    context_variables.set('x', True)",
    ],
)
def test_what_an_inner_function_returns_is_no_way_out(body):
    found = bound({"x": derived()}, *ALWAYS, agents="A", automatic=True, body=body)
    assert found.status == "refuted"


def test_what_is_asserted_may_never_hold():
    spec = {"variables": {"x": derived()}, "tools": [tool("A")]}
    stops = code("assert False; context_variables.set('x', True)")
    assert proof(*LOOP, agents="A", **spec, code=stops).status == "not proven"
    assert proof(*TRAP, **spec, code=stops).status == "not proven"
    perhaps = code("assert a; context_variables.set('x', True)")
    assert proof(*LOOP, agents="A", **spec, code=perhaps).status == "not proven"
    assert proof(*TRAP, **spec, code=perhaps).status == "not proven"


# Code that does not show what runs

PUT = "def put(context_variables):\n    context_variables.set('x', True)\n"
WRAP = "def wrap(f):\n    return lambda *a, **k: None\n"
AWAY = "def put(context_variables):\n    ...\n"


@pytest.mark.parametrize(
    ("top", "body"),
    [
        (f"{PUT}{WRAP}put = wrap(put)\n", "put(context_variables)"),
        (f"{PUT}if a:\n    {AWAY.replace('    ', '        ')}", "put(context_variables)"),
        (f"{AWAY}{PUT}", "put(context_variables)"),
        ("from .help import put\ntry:\n    from .away import put\nexcept E: ...\n", "put(ctx)"),
        (f"{PUT}{WRAP}@wrap\n", "context_variables.set('x', True)"),
        (f"{WRAP}@wrap\n{PUT}", "put(context_variables)"),
        ("from elsewhere import wrap\n@wrap\n", "context_variables.set('x', True)"),
        ("import elsewhere\n@elsewhere.tool(1)\n", "context_variables.set('x', True)"),
        ("from weft import tool\ntool = elsewhere\n@tool\n", "context_variables.set('x', True)"),
        ("", "context_variables.set('x', True)\nfrom elsewhere import *"),
        ("", "context_variables.set('x', True)\ndef later():\n    global act\n    act = print"),
        ("", "context_variables.set('x', True)\ndel act"),
        ("", "context_variables.set('x', True); yield 1"),
        (f"{PUT}    yield 1\n", "put(context_variables)"),
        ("class C: ...\n", "context_variables.set('x', True)\nC.act = act"),
        (f"{AWAY}CHECKS = [put]\n", "for put in CHECKS: put(context_variables)"),
        (f"{PUT}CHECKS = []\nCHECKS.append(put)\n", "[c(context_variables) for c in CHECKS]"),
        (f"{PUT}class C: ...\nC.put = staticmethod(put)\n", "C.put(context_variables)"),
        (f"{PUT}globals()['get'] = put\n{AWAY.replace('put', 'get')}", "get(context_variables)"),
        ("from . import help\nhelp.put = print\n", "help.put(context_variables)"),
        (f"{PUT}", "globals()['put'](context_variables)"),
        ("import sys", "sys.modules['tools.help'].put(1)"),
        ("import tools", "tools.help.put(1)"),
        ("", "getattr(a, a)(1)"),
        ("", "getattr(a, 'b')(1); eval(a)"),
    ],
)
def test_nothing_rests_on_code_that_does_not_show_what_runs(top, body):
    files = {**code(body), "tools/help.py": PUT, "tools/away.py": AWAY}
    files["tools/act.py"] = f"{top}\n{files['tools/act.py']}"
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": files}
    assert proof(*LOOP, agents="A", **spec).status == "not proven"
    found = proof(*TRAP, **spec)
    assert (found.status, found.unreachable_agents) == ("not proven", ())


def test_nothing_rests_on_a_tool_that_is_imported_from_two_places():
    text = "from .help import act\ntry:\n    from .away import act\nexcept ImportError: ...\n"
    files = {"tools/act.py": text, "tools/help.py": AWAY.replace("put", "act")}
    files["tools/away.py"] = PUT.replace("put", "act")
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": files}
    assert proof(*LOOP, agents="A", **spec).status == "not proven"
    assert proof(*TRAP, **spec).status == "not proven"


@pytest.mark.parametrize(
    "body",
    ["def f(): context_variables.set('x', True)", "f = lambda: context_variables.set('x', True)"],
)
def test_what_an_inner_function_sets_may_never_be_set(body):
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": code(body)}
    assert proof(*LOOP, agents="A", **spec).status == "not proven"
    assert proof(*TRAP, **spec).status == "not proven"


@pytest.mark.parametrize(
    "top",
    [
        "from weft import tool\n@tool\n",
        "from weft import tool as own\n@own(name='act')\n",
        "import weft\n@weft.tool(name='act')\n",
        "@staticmethod\n",
        "import re\nWORD = re.compile('a')\nN = 1\nN = 2\n",
    ],
)
def test_decorators_of_weft_and_plain_values_hide_nothing(top):
    body = "context_variables.set('x', True)"
    files = {path: f"{top}{text}" for path, text in code(body).items()}
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": files}
    assert proof(*LOOP, agents="A", **spec).status == "proven"
    assert proof(*TRAP, **spec).status == "refuted"


FAIL = "def fail():\n    raise ValueError\n"


@pytest.mark.parametrize(
    ("top", "body"),
    [
        (FAIL, "fail()"),
        ("def fail():\n    raise Refuse('no')\n", "fail()"),
        ("def fail():\n    assert False\n", "fail()"),
        ("from .help import fail\n", "fail()"),
        ("", "assert a"),
        (f"{FAIL}CHECKS = []\nCHECKS.append(fail)\n", "[c() for c in CHECKS]"),
        (f"CHECKS = []\n@CHECKS.append\n{FAIL}", "[c() for c in CHECKS]"),
        ("from .help import more\n", "[c() for c in more()]"),
    ],
)
def test_a_run_may_halt_at_an_automatic_tool_whose_helper_raises(top, body):
    helper = f"{FAIL}ALL = []\ndef more():\n    return ALL\ndef fill():\n    ALL.append(fail)\n"
    body = f"{body}; context_variables.set('x', True)"
    found = bound(
        *({"x": derived()}, *LOOP),
        agents="A",
        automatic=True,
        top=top,
        body=body,
        files={"tools/help.py": helper},
    )
    assert found.status == "not proven"
    assert "it raises" in found.reason


def test_a_call_may_never_get_past_a_helper_that_raises():
    spec = {"variables": {"x": derived()}, "tools": [tool("A")]}
    files = {
        "tools/act.py": FAIL + code("fail(); context_variables.set('x', True)")["tools/act.py"]
    }
    assert proof(*LOOP, agents="A", **spec, code=files).status == "not proven"
    assert proof(*TRAP, **spec, code=files).status == "not proven"
    returned = {"y": derived({"type": "tool_response", "tool": "act"})}
    spec = {**spec, "variables": returned, "code": files}
    assert proof(rule("A", "terminate", "y"), LOOP[1], agents="A", **spec).status == "not proven"
    assert proof(rule("A", "B", "y"), *TRAP[1:], **spec).status == "not proven"


# Replies that must fit a model


def test_a_reply_that_is_json_may_never_hold_a_text():
    found = bound({"x": derived(said("A"))}, *LOOP, rule("B", "B"))
    assert (found.status, found.dead_ends) == ("not proven", ())
    assert "the replies of A are JSON, as Form says" in found.reason
    # Whatever the reply is, the run goes on from it.
    found = bound({"x": derived(said("A"))}, rule("A", "B", "x"), rule("B", "terminate"))
    assert found.status == "proven"


def test_the_way_around_is_shown_where_it_begins_even_if_no_reply_is_certain():
    counted = {"type": "agent_turn_count", "agent": "A", "count": 1}
    variables = {"x": derived(said("A")), "y": derived(counted)}
    found = bound(variables, rule("A", "A", "x and y"), rule("A", "A"), rule("B", "B"))
    assert [end.cycle for end in found.dead_ends] == ["A -> A"]


def test_how_it_goes_on_is_not_shown_where_every_reply_may_be_sent_back():
    retry = {"body": "raise RetryModel('no')", "automatic": True}
    found = bound({"x": derived()}, rule("A", "A", "x"), rule("A", "A"), agents="A", **retry)
    assert [(end.witness, end.cycle) for end in found.dead_ends] == [("A", "")]


def test_the_way_that_is_shown_is_one_that_a_run_can_take():
    counted = {"type": "agent_turn_count", "agent": "A", "count": 2}
    body = "context_variables.set('n', 'no number'); context_variables.set('x', True)"
    variables = {"x": derived(), "y": derived(counted), "n": derived(kind="int", default=0)}
    spec = {"variables": variables, "tools": [tool("A")], "code": code(body), "agents": "A"}
    found = proof(rule("A", "A", "x and y"), rule("A", "A"), **spec)
    assert [end.witness for end in found.dead_ends] == ["A -> A -> (y = true) -> A"]


def test_no_way_is_shown_that_rests_on_a_text_in_json():
    variables = {"x": derived(said("D"), said("A", "on", value=False))}
    found = bound(
        variables,
        *(rule("D", "A", "x"), rule("A", "C", "not x"), rule("A", "B")),
        *(rule("B", "B"), rule("C", "C")),
        agents="DABC",
    )
    # Whether A ever says "on" decides who has the word for ever, but not whether somebody does.
    (end,) = found.cycles
    assert (end.agents, end.cycle) == (("B", "C"), "")
    assert end.witness == "D -> (x = true) -> A"


def test_words_and_values_of_a_reply_belong_together():
    text = {"type": "agent_text", "agent": "A", "match": {"contains": "true"}}
    handed = {"type": "handoff", "source_agent": "A", "target_agent": "A", "value": False}
    variables = {"x": derived(text, handed), "y": derived(called(argument="a"))}
    ends = (rule("A", "terminate", "x and not y"), rule("A", "terminate", "y and not x"))
    # The text holds true if the field does, so neither ever applies.
    found = bound(variables, *ends, rule("A", "A"), agents="A", automatic=True)
    assert (found.status, found.unused_rules) == ("not proven", ())


HELP = "from weft.errors import *\ndef help(a):\n    if a:\n        raise RetryModel('no')\n"


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("from weft import RetryModel", "raise RetryModel('no')"),
        ("from weft import RetryModel as Again", "raise Again('no')"),
        ("import weft", "raise weft.RetryModel('no')"),
        ("import weft.errors as signals", "raise signals.RetryModel('no')"),
        (HELP, "help(a)"),
        (f"{HELP}CHECKS = [help]", "[check(a) for check in CHECKS]"),
        ("from .help import help", "help(a)"),
        ("from . import help", "help.help(a)"),
        ("from .help import *", "help(a)"),
        ("from .more import *", "help(a)"),
        ("", "from .help import help as check; check(a)"),
        ("import elsewhere", "elsewhere.check(context_variables)"),
        (f"{HELP}help = partial(help)", "help(a)"),
        (f"{HELP}CHECKS = []\nCHECKS.append(help)", "[c(a) for c in CHECKS]"),
        (f"{HELP}class C: ...\nC.check = staticmethod(help)", "C.check(a)"),
        ("import weft", "raise getattr(weft, 'RetryModel')('no')"),
        ("import importlib", "importlib.import_module('tools.help').help(a)"),
    ],
)
def test_what_a_reply_sets_that_is_sent_back_stays_set(top, body):
    steps = [{"from": "none", "to": "false"}, {"from": "false", "to": "true"}]
    x = derived(
        called(argument="a"), kind="literal['none', 'true', 'false']", default="none",
        transitions=steps,
    )  # fmt: skip
    found = bound(
        {"x": x},
        *(rule("A", "B", "x == 'true'"), rule("A", "terminate"), rule("B", "B")),
        field="literal['true', 'false']",
        body=body,
        automatic=True,
        top=f"{top}\n",
        files={"tools/help.py": HELP, "tools/more.py": "from .help import *\n"},
    )
    # B comes up after a reply with false that is sent back, and another one with true.
    assert (found.status, found.unreachable_agents) == ("not proven", ())
    assert "RetryModel" in found.reason or "not show which" in found.reason


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("def more():\n    use_ui_tool('ask')\nALL = []\nALL.append(more)\n", "[c() for c in ALL]"),
        ("def more():\n    use_ui_tool('ask')\n", "globals()['more']()"),
    ],
)
def test_a_person_may_be_asked_by_code_that_is_not_named(top, body):
    asked = {"type": "ui_response", "tool": "ask", "response_key": "k"}
    found = bound(
        {"x": derived(asked)},
        *(rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B")),
        top=top,
        body=body,
        files={"tools/ask.py": "def ask(context_variables):\n    use_ui_tool('ask')\n"},
        others=[tool("B", "ask", "ask.py", tool_type="UI_Tool", ui=UI)],
    )
    assert (found.status, found.unreachable_agents) == ("not proven", ())


def test_a_call_may_ask_more_than_once():
    steps = [{"from": "none", "to": "a"}, {"from": "a", "to": "b"}]
    asked = {"type": "ui_response", "tool": "ask", "response_key": "k"}
    x = derived(asked, kind="literal['none', 'a', 'b']", default="none", transitions=steps)
    found = bound(
        {"x": x},
        *(rule("A", "B", "x == 'b'"), rule("A", "terminate"), rule("B", "B")),
        body="use_ui_tool('ask'); use_ui_tool('ask')",
        automatic=True,
        files={"tools/ask.py": "def ask(context_variables):\n    use_ui_tool('ask')\n"},
        others=[tool("B", "ask", "ask.py", tool_type="UI_Tool", ui=UI)],
    )
    assert (found.status, found.unreachable_agents) == ("not proven", ())
    assert "a call may ask more than once, and each answer sets its variables" in {
        doubt.why for doubt in found.doubts
    }


@pytest.mark.parametrize(
    ("text", "status"), [("def help(a):\n    ...\n", "proven"), (HELP, "not proven")]
)
def test_no_reply_is_sent_back_where_nothing_names_the_signal(text, status):
    files = {"tools/help.py": text}
    trap = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
    found = bound({"x": derived()}, *trap, automatic=True, files=files)
    assert (found.status, found.unreachable_agents) == (status, ("B",))


def test_an_agent_may_keep_the_word_whose_replies_are_sent_back():
    handoffs = (rule("A", "B", "not x"), rule("B", "B"))
    body, top = "raise RetryModel('no')", "from weft import RetryModel\n"
    variables = {"x": derived(called(value=False), default=True)}
    found = bound(variables, *handoffs, automatic=True, body=body, top=top)
    # There is no end for certain, but B may never be reached.
    (endless,) = (*found.dead_ends, *found.cycles)
    assert (endless.agents, endless.witness, endless.cycle) == (("A", "B"), "A", "")


@pytest.mark.parametrize(
    ("parameters", "field", "taken"),
    [
        ("a", "int", True),
        ("a=None", "optional[int]", True),
        ("a", "optional[int]", False),
        ("**more", "int", True),
        ("b=1", "int", False),
        ("a, b", "int", False),
        ("a: int", "int", True),
        ("a: 'int'", "int", True),
        ("a: float", "int", True),
        ("a: int", "float", False),
        ("a: Any", "list[int]", True),
        ("a: list", "list[int]", True),
        ("a: list[str]", "list[int]", False),
        ("a: dict[str, Any]", "dict[str, int]", True),
        ("a: dict", "Form", True),
        ("a: dict[str, int]", "Form", False),
        ("a: Form", "Form", False),
        ("a: tuple", "list[int]", False),
        ("a: tuple[int, int]", "list[int]", False),
        ("a: Exception", "Form", False),
        ("a: str", "literal['x', 'y']", True),
        ("a: Literal['x']", "literal['x', 'y']", False),
        ("a: int | str", "union[int, str]", True),
        ("a: int | None", "union[int, str]", False),
        ("a: Optional[int] = 1", "optional[int]", True),
        ("a: int = 1", "optional[int]", False),
        ("a: Annotated[int, Field(gt=0)]", "int", False),
    ],
)
def test_a_reply_is_sent_back_that_the_parameters_do_not_take(parameters, field, taken):
    trap = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
    spec = {"field": field, "automatic": True, "parameters": parameters}
    top = "from typing import Any, Literal, Optional\n"
    found = bound({"x": derived()}, *trap, **spec, top=top)
    assert found.status == ("proven" if taken else "not proven")
    assert taken or found.reason.startswith("act does not take all that the fields of Form allow")


@pytest.mark.parametrize(
    ("top", "parameters"),
    [
        ("from typing import Literal\nbool = Literal['z']\n", "a: bool"),
        ("from lib import bool\n", "a: bool"),
        ("from lib import *\n", "a: bool"),
        ("Bool = Annotated[int, Field(gt=1)]\n", "a: Bool"),
        ("Any = str\n", "a: Any"),
        ("from lib import Context\n", "a, c: Context"),
        ("class Context: ...\n", "a, c: 'Context'"),
    ],
)
def test_a_type_may_not_be_what_its_name_says(top, parameters):
    trap = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
    for head, status in ((top, "not proven"), ("from weft import Context\n", "proven")):
        if status == "proven" and parameters in ("a: Bool", "a: Any"):
            continue
        found = bound({"x": derived()}, *trap, automatic=True, parameters=parameters, top=head)
        assert found.status == status


@pytest.mark.parametrize("name", ["'Retry' 'Model'", "'Retry\\x4dodel'", "'\uff32etryModel'"])
def test_a_signal_may_be_named_in_other_letters(name):
    trap = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
    body = f"(it for it in ()).throw(getattr(weft, {name})('no'))"
    found = bound({"x": derived()}, *trap, automatic=True, top="import weft\n", body=body)
    assert found.status == "not proven"


@pytest.mark.parametrize(
    ("field", "kind", "condition", "status"),
    [
        ("bool", "bool", "x == true", "proven"),
        ("int", "int", "x == 3", "proven"),
        ("optional[bool]", "bool", "x == null", "refuted"),
        ("int", "float", "x == 3", "not proven"),
        ('literal["a"]', "str", "x == 'b'", "refuted"),
        ('literal["a"]', "str", "x == 'a'", "proven"),
        ('literal["a"]', "literal['b', 'c']", "x == 'c'", "refuted"),
        ("list[int]", "int", "x == 1", "not proven"),
    ],
)
def test_an_automatic_call_brings_what_the_model_allows(field, kind, condition, status):
    x = derived(called(argument="a"), kind=kind, default=None)
    handoffs = (rule("A", "terminate", condition), rule("A", "A"), rule("B", "B"))
    assert bound({"x": x}, *handoffs, field=field, automatic=True).status == status


def test_an_automatic_call_brings_nothing_from_where_there_is_no_field():
    handoffs = (*LOOP, rule("B", "B"))
    other = {"x": derived(called(argument="b"))}
    assert bound(other, *handoffs, automatic=True).status == "refuted"
    inside = {"x": derived(called(argument="a.b"))}
    assert bound(inside, *handoffs, automatic=True).status == "not proven"


@pytest.mark.parametrize("condition", ["s == 'b'", None])
def test_a_run_may_halt_at_an_automatic_tool_whose_write_is_refused(condition):
    s = derived(kind="str", default="b", transitions=[{"from": "a", "to": "b"}])
    end = rule("A", "terminate", condition)
    found = bound(
        {"s": s}, end, rule("B", "B"), body="context_variables.set('s', 'c')", automatic=True
    )
    assert found.status == "not proven"
    assert found.reason.startswith("act fails where a value that it sets is refused")


# The user


def test_the_user_may_get_the_word_when_an_agent_has_used_up_its_replies():
    heard = {"type": "user_text", "match": {"equals": "GO"}}
    handoffs = (rule("A", "B", "x"), rule("A", "A"), rule("B", "terminate"))
    spec = {"variables": {"x": derived(heard)}}
    found = proof(*handoffs, orchestrator={"human_in_the_loop": True}, **spec)
    # No rule leads on from A, but the limit of its replies does, and then B has its turn.
    assert (found.status, found.unreachable_agents, found.unused_rules) == ("refuted", (), ())
    assert [end.cycle for end in found.dead_ends] == ["A -> A"]


def test_a_run_may_begin_with_words_of_the_user():
    heard = {"type": "user_text", "match": {"equals": "GO"}}
    found = proof(*TRAP, variables={"x": derived(heard)})
    assert (found.status, found.unreachable_agents) == ("not proven", ())
    assert found.reason == "a run may be started with words of the user"


# Patterns


@pytest.mark.parametrize(
    "pattern",
    [
        r"^DONE$", r"\bDONE\b", r"(?i)done|ready", r"score:\s*\d+", r"(?P<a>x|y){2,3}z?",
        r"[^a-z]+",
        r"\.\*", r"a{2}", r"x*", r"[]a]", r"\x41",
    ],
)  # fmt: skip
def test_an_example_is_found_for_a_pattern(pattern):
    assert example_of(pattern) is not None


@pytest.mark.parametrize("pattern", ["x^", r"(a)\1", "(", "[^\\s\\S]", "(?=b)a"])
def test_no_example_is_made_up_where_none_is_known(pattern):
    assert example_of(pattern) is None
