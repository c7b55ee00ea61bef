"""What the proof may be certain of: no error without knowledge, and no silence without a proof."""

import pytest
from weft.check.explore.answers import Answer, answer

from unit.check.builders_proof import derived, proof, rule, said, tool, workflow
from weft.check.code.facts import code_of, goes_out_of_sight
from weft.check.explore import prove
from weft.check.explore.texts import together
from weft.check.rules.usage import something_sets_it
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.spec.triggers import Contains, Equals, Exact, Regex
from weft.spec.type_parser import parse_type

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))
#: Done without a result leads into a trap; done with one to the end.
STRICT = (
    rule("A", "terminate", "done and ok"),
    rule("A", "B", "done and not ok"),
    rule("A", "A"),
    rule("B", "B"),
)
BOTH = {"done": derived(), "ok": derived()}


ASKS = "from weft import use_ui_tool\nasync def ask(): await use_ui_tool('ask')"


def by_code(body, *handoffs, variables=None, **spec):
    head = "from weft import Refuse\ndef act(context_variables, ready=None, y=None, z=None):\n"
    code = {"tools/act.py": head + body}
    found = {"tools": [tool("A")], "code": code, **spec}
    return proof(*handoffs, variables=variables or BOTH, **found)


def put(name, value=True, indent=4):
    return f"{' ' * indent}context_variables.set({name!r}, {value})\n"


# Code


def test_what_one_call_sets_is_set_together():
    found = by_code(put("done") + put("ok"), *STRICT)
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_the_last_of_two_values_counts():
    assert by_code(put("done") + put("ok") + put("done", False), *STRICT).status == "refuted"


def test_branches_are_told_apart():
    either = (
        "    if ready:\n" + put("done", indent=8) + put("ok", indent=8)
        + "    else:\n" + put("done", False, 8) + put("ok", False, 8)
    )  # fmt: skip
    found = by_code(either, *STRICT)
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_no_error_rests_on_a_branch():
    maybe = "    if ready:\n" + put("done", indent=8)
    variables = {"done": derived(), "ok": derived(said("A"))}
    found = by_code(maybe, *STRICT, variables=variables)
    assert (found.status, found.reason) == ("not proven", "act may leave done as it is")
    assert by_code(put("done"), *STRICT, variables=variables).status == "refuted"
    way_out = by_code(maybe, rule("A", "terminate", "done"), rule("A", "A"), agents="A")
    assert way_out.status == "proven"


def test_ways_that_are_not_told_apart_are_no_way_out_and_no_error():
    loop = "    for _ in (1, 2):\n" + put("done", indent=8) + put("ok", indent=8)
    found = by_code(loop, *STRICT)
    assert (found.status, found.dead_ends) == ("not proven", ())


def test_steps_in_between_matter_to_transitions():
    steps = [{"from": "new", "to": "open"}, {"from": "open", "to": "done"}]
    state = derived(kind="str", default="new", transitions=steps)
    loop = (rule("A", "terminate", "x == 'done'"), rule("A", "A"))
    body = put("x", "'open'") + put("x", "'done'")
    found = by_code(body, *loop, agents="A", variables={"x": state})
    assert found.status == "not proven"


def test_a_hook_that_sets_a_value_it_works_out():
    hook = {"file": "h.py", "function": "h", "hook_type": "before_agent"}
    code = {"hooks/h.py": "def h(context_variables):\n    context_variables.set('x', look())\n"}
    found = proof(*LOOP, agents="A", variables={"x": derived()}, hooks=[hook], code=code)
    assert found.status == "not proven"
    assert found.reason == "h may leave x as it is"


FORMS = [
    "c = context_variables\n    c['x'] = True",
    "c = context_variables\n    c.update(x=True)",
    "context_variables.data['y'], z = look()\n    setattr(context_variables, 'x', True)",
    "context_variables.x = True",
    "context_variables |= {'x': True}",
    "put = context_variables.set\n    put('x', True)",
    "helper(context_variables)",
    "library.run(context=context_variables)",
    "library.run([context_variables])",
    "context_variables.pop('x')",
    "look(context_variables.data)",
    "c = context_variables.get\n    d = not {**context_variables}",
    "return context_variables",
    "yield context_variables",
    "return lambda: context_variables",
    "if (c := context_variables):\n        c['x'] = True",
    "with context_variables as c:\n        c['x'] = True",
    "with opened() as context_variables['x']:\n        pass",
    "for context_variables['x'] in (False, True):\n        pass",
    "for c in [context_variables]:\n        c['x'] = True",
    "match context_variables:\n        case c:\n            c['x'] = True",
    "y, *context_variables['x'] = look()",
    "del (context_variables['x'], context_variables['y'])",
    "(context_variables or {})['x'] = True",
    "(context_variables or {}).update(x=True)",
    "getattr(context_variables, 'update')(x=True)",
    "type(context_variables).update(context_variables, x=True)",
    "context_variables.other()",
    "ctx = context_variables or {}\n    ctx.other()",
]


@pytest.mark.parametrize("body", FORMS)
def test_where_the_context_goes_out_of_sight_nothing_is_certain(body):
    found = by_code(f"    {body}\n", *LOOP, agents="A", variables={"x": derived()})
    assert (found.status, found.dead_ends) == ("not proven", ())


@pytest.mark.parametrize("body", FORMS)
def test_nobody_says_that_nothing_sets_what_may_be_set_out_of_sight(body):
    code = {"tools/act.py": f"def act(context_variables):\n    {body}\n"}
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert list(something_sets_it.check(subject)) == []


READING = [
    "y = context_variables['y'] or (context_variables or {}).get('y')",
    "if context_variables and not context_variables or 'y' in context_variables:\n        pass",
    "print([it for it in context_variables], dict(context_variables), f'{context_variables}')",
    "for it in context_variables.data:\n        print(getattr(context_variables, 'get')(it))",
    "ctx = context_variables or {}\n    ctx.get('x')",
    "read(context=None)",
    "del context_variables['y']",
    "context = make()\n    return context.get('z')",
    "y = 1 if context_variables else look((context_variables.user, context_variables.key))",
]


@pytest.mark.parametrize("body", READING)
def test_code_that_only_reads_keeps_the_context_in_sight(body):
    code = {"tools/act.py": f"def act(context_variables):\n    {body}\n"}
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert [hit.path[1] for hit in something_sets_it.check(subject)] == ["x"]


@pytest.mark.parametrize("hint", ["Context", "weft.Context", "Context | None", "'weft.Context'"])
def test_a_parameter_is_the_context_by_its_type(hint):
    own = "import weft\nfrom weft import Context\n"
    code = {"tools/act.py": f"{own}def act(c: {hint}, n: list[int]):\n    c['x'] = True\n"}
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert list(something_sets_it.check(subject)) == []
    assert prove(subject).status == "proven"
    code = {"tools/act.py": f"def act(c: {hint}):\n    keep = c\n    keep['x'] = True\n"}
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert list(something_sets_it.check(subject)) == []
    assert prove(subject).status == "not proven"


@pytest.mark.parametrize(
    ("imported", "call", "unseen"),
    [
        ("from .help import keep", "keep(ctx)", False),
        ("from .help import keep as put", "put(ctx)", False),
        ("from . import help", "help.keep(ctx)", False),
        ("from .help import keep", "from .help import keep\n    keep(ctx)", False),
        ("from .help import gone", "gone(ctx)", True),
        ("from .help import *", "keep(ctx)", True),
        ("from . import help", "help.gone(ctx)", True),
        ("from library import keep", "keep(ctx)", True),
        ("import library", "library.keep(ctx)", True),
        ("from .help import keep", "keep.keep(ctx)", True),
        ("from .help import keep", "from library import keep\n    keep(ctx)", True),
        ("import library", "library.client.keep(ctx)", True),
        ("import library", "client = library.Client()\n    client.keep(ctx)", True),
        ("import library", "keep = library.keep\n    keep(ctx)", True),
        ("import library", "library.print(ctx)", True),
        ("import library", "type(ctx).set(ctx, 'x', True)", True),
    ],
)
def test_a_call_means_the_function_that_is_imported(imported, call, unseen):
    code = {
        "tools/act.py": f"{imported}\ndef act(ctx):\n    {call}\n",
        "tools/help.py": "def keep(ctx): ...\n",
    }
    assert goes_out_of_sight(code_of(workflow(*LOOP, agents="A", code=code)), "act") is unseen


def test_a_local_value_of_the_same_name_is_not_the_context():
    code = {"tools/act.py": "def act():\n    context = secure()\n    open(context=context)\n"}
    subject = workflow(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert [hit.path[1] for hit in something_sets_it.check(subject)] == ["x"]


@pytest.mark.parametrize(
    ("parameters", "call", "unseen"),
    [
        ("ctx", "help(context_variables)", False),
        ("n, *, ctx=None", "help(1, ctx=context_variables)", False),
        ("c", "help(context_variables)", True),
        ("*c", "help(context_variables)", True),
        ("**c", "help(**context_variables)", True),
        ("c", "help(number=1)", False),
        ("c: Context", "help(context_variables)", False),
        ("*, c: 'Context'", "help(c=context_variables.data)", False),
        ("**c", "help(ctx=context_variables)", True),
        ("ctx", "help(context_variables or {})", False),
        ("c", "help(None if 1 else context_variables)", True),
        ("n, ctx", "help(1, [context_variables])", False),
    ],
)
def test_functions_of_the_package_are_followed(parameters, call, unseen):
    code = {
        "tools/act.py": f"from .help import help\ndef act(context_variables):\n    {call}\n",
        "tools/help.py": f"def help({parameters}):\n    ctx.set('x', True)\n",
        "tools/broken.py": "def",
        "ui/Ask.js": "",
    }
    assert goes_out_of_sight(code_of(workflow(*LOOP, agents="A", code=code)), "act") is unseen
    # That it sets something is possible, and not certain: nothing shows what it is given.
    shown = proof(*LOOP, agents="A", variables={"x": derived()}, tools=[tool("A")], code=code)
    assert shown.status == "not proven"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("context_variables.data['x'] = True", "proven"),
        ("context_variables.__setitem__('x', True)", "proven"),
        ("y = context_variables.get('x'), context_variables['x'], 'x' in context_variables",
         "refuted"),
        ("y: int\n    y += len(context_variables)", "refuted"),
        ("y = look(context_variables.get('x')).pop()", "refuted"),
    ],
)  # fmt: skip
def test_what_can_be_read_off_is_certain(body, status):
    found = by_code(f"    {body}\n", *LOOP, agents="A", variables={"x": derived()})
    assert found.status == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        # Of these two, the second always takes back what the first has set.
        ("if y: context_variables.set('x', True)\n    if y: context_variables.set('x', False)",
         "not proven"),
        ("if y: return\n    for z in y: context_variables.set('x', True)\n    if y: pass",
         "not proven"),
        ("if y: context_variables.set('x', True)\n    if z: context_variables.set('x', False)",
         "proven"),
        ("context_variables.set('x', True)\n    raise ValueError", "refuted"),
        ("context_variables.set('x', True)\n    raise Refuse('no')", "proven"),
    ],
)  # fmt: skip
def test_ways_that_may_not_be_gone_prove_nothing(body, status):
    found = by_code(f"    {body}\n", *LOOP, agents="A", variables={"x": derived()})
    assert found.status == status


# Turns and time


def test_a_count_of_turns_comes_without_fail_and_once():
    counted = {"type": "agent_turn_count", "agent": "A", "count": 1}
    handoffs = (rule("A", "terminate", "x"), rule("A", "B"), rule("B", "B"))
    found = proof(*handoffs, variables={"x": derived(counted)})
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))
    second = {**counted, "count": 2}
    reset = said("A", "NO", value=False)
    once = proof(
        rule("A", "terminate", "x and y"), rule("A", "A"), agents="A",
        variables={"x": derived(second, {**counted, "value": False}), "y": derived(said("A"))},
    )  # fmt: skip
    assert once.status == "proven"
    gone = proof(
        rule("A", "B", "x"), rule("A", "A"), rule("B", "terminate", "x"), rule("B", "B"),
        variables={"x": derived(second, {**reset, "agent": "B"})},
    )  # fmt: skip
    assert [end.values for end in gone.dead_ends] == [(("x", "false"),)]
    assert "turns of" not in gone.dead_ends[0].witness


def test_turns_far_away_are_not_counted():
    far = {"type": "agent_turn_count", "agent": "A", "count": 17}
    found = proof(*LOOP, agents="A", variables={"x": derived(far)})
    assert found.status == "not proven"
    assert found.reason == "turn 17 of A, which sets x, is too far away to be followed"


def test_a_timer_expires_once_and_the_shorter_one_first():
    def timer(seconds, value=True):
        return {"type": "timer_expired", "after_seconds": seconds, "value": value}

    assert proof(*LOOP, agents="A", variables={"x": derived(timer(5))}).status == "proven"
    reset = derived(timer(5), said("A", value=False))
    assert proof(*LOOP, agents="A", variables={"x": reset}).status == "refuted"
    order = proof(
        rule("A", "B", "late and not soon"), rule("A", "terminate", "late"), rule("A", "A"),
        variables={"late": derived(timer(60)), "soon": derived(timer(5))},
    )  # fmt: skip
    assert (order.status, order.unreachable_agents) == ("proven", ("B",))


# Texts


def text(mode, wanted):
    return {"type": "agent_text", "agent": "A", "match": {mode: wanted}}


def test_a_text_sets_all_that_waits_for_a_part_of_it():
    variables = {
        "done": derived(text("contains", "DONE WELL")), "ok": derived(text("contains", "done")),
    }  # fmt: skip
    found = proof(*STRICT, variables=variables)
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_an_agent_says_one_text_in_a_turn():
    found = proof(
        rule("A", "B", "x and y"), rule("A", "user", "x or y"), rule("A", "A"), rule("B", "B"),
        variables={"x": derived(said("A")), "y": derived(said("A", "OTHER"))},
    )  # fmt: skip
    # After one text the user is asked, and in the next turn comes the other.
    assert found.dead_ends[0].witness == "A -> (y = true) -> user -> A -> (x = true) -> B"


def test_patterns_leave_open_what_holds_beside_them():
    twice = derived(text("regex", r"(D)ONE\1"))
    found = proof(*STRICT, variables={"done": twice, "ok": derived(text("contains", "x"))})
    assert (found.status, found.dead_ends) == ("not proven", ())
    assert found.reason == "one text may be what done waits for and others too, or not"
    alone = proof(*LOOP, agents="A", variables={"x": derived(text("regex", "D.+NE"))})
    assert alone.status == "proven"


def test_no_way_out_rests_on_a_pattern_that_may_never_be_found():
    found = proof(*LOOP, agents="A", variables={"x": derived(text("regex", "x^"))})
    assert found.status == "not proven"


def test_no_error_rests_on_silence_if_every_text_is_waited_for():
    handoffs = (rule("A", "terminate", "x"), rule("A", "B"), rule("B", "B"))
    found = proof(*handoffs, variables={"x": derived(text("regex", ".*"))})
    assert (found.status, found.dead_ends) == ("not proven", ())


def test_which_matches_hold_together():
    found = together([Equals(equals="Go"), Exact(exact="GO"), Contains(contains="g")])
    assert set(found.sure) == {(0, 2), (0, 1, 2), (2,)}
    assert (found.likely, found.complete) == ((), True)
    found = together([Regex(regex="["), Regex(regex="^a[0-9]$"), Contains(contains="a")])
    assert (found.sure, found.likely, found.complete) == (((1, 2), (2,)), ((0,),), False)
    assert found.silence
    assert not together([Regex(regex=".*")]).silence
    assert not together([Contains(contains=letter) for letter in "abcdefgh"]).complete


# Results and answers


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "function", "function": "tools.act:judge"},
        {"type": "tool_response", "tool": "act", "response_key": "ok"},
    ],
)
def test_no_way_out_rests_on_what_a_function_returns(trigger):
    spec = {"tools": [tool("A")], "code": {"tools/act.py": "def act(): ..."}, "agents": "A"}
    found = proof(*LOOP, variables={"x": derived(trigger)}, **spec)
    assert found.status == "not proven"
    assert found.reason.startswith("what x is set to depends on what ")


def test_a_result_sets_for_sure_what_does_not_depend_on_it():
    trigger = {"type": "tool_response", "tool": "act"}
    spec = {"tools": [tool("A")], "code": {"tools/act.py": "def act(): ..."}, "agents": "A"}
    variables = {"x": derived(trigger), "y": derived({**trigger, "response_key": "y"})}
    handoffs = (rule("A", "terminate", "x"), rule("A", "A", "y"), rule("A", "A"))
    assert proof(*handoffs, variables=variables, **spec).status == "proven"


def asking(schema, kind="literal['yes', 'no', 'maybe']"):
    ask = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"},
               response_schema=schema)  # fmt: skip
    variable = derived({"type": "ui_response", "tool": "ask", "response_key": "it"}, kind=kind,
                       default="maybe")  # fmt: skip
    return proof(
        rule("A", "terminate", "x == 'yes'"), rule("A", "A"), agents="A",
        variables={"x": variable}, tools=[ask],
        code={"tools/ask.py": ASKS},
    ).status  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "status"),
    [
        (None, "proven"),
        ({"enum": ["yes", "no"]}, "proven"),
        ({"enum": ["no", "never"]}, "refuted"),
        ({"const": "yes"}, "proven"),
        ({"type": "boolean"}, "refuted"),
        ({"type": "string"}, "proven"),
        ({"type": "string", "maxLength": 2}, "not proven"),
    ],
)
def test_an_answer_is_what_its_schema_allows(schema, status):
    properties = {"type": "object", "properties": {"it": schema}}
    assert asking(schema and properties) == status


@pytest.mark.parametrize(
    ("schema", "type_", "found"),
    [
        ({"type": "object", "properties": {}}, "str", Answer((UNKNOWN,), sure=False)),
        ({"type": "object"}, "str", Answer((UNKNOWN,), sure=False)),
        ({"properties": {"it": {"type": "integer"}}}, "float", Answer((UNKNOWN,), sure=False)),
        ({"properties": {"it": {"type": "integer"}}}, "optional[int]", Answer((UNKNOWN,))),
        ({"properties": {"it": {"type": "array"}}}, "list[int]", Answer((UNKNOWN,), sure=False)),
        ({"properties": {"it": {"title": "It"}}}, "str", Answer((UNKNOWN,))),
    ],
)
def test_values_of_answers(schema, type_, found):
    assert answer(schema, "it", parse_type(type_)) == found


# Automatic tools


def automatic(variables, *handoffs, body="...", mode=True):
    subject = workflow(
        *handoffs,
        variables=variables,
        tools=[tool("A", auto_invoke=True)],
        code={"tools/act.py": f"def act(context_variables, ok):\n    {body}\n"},
        models=[{"name": "Reply", "fields": {"ok": {"type": "bool"}}}],
        registry=[{"agent": "A", "model": "Reply"}],
    )
    agent = subject.spec.agents[0].model_copy(update={"auto_tool_mode": mode})
    agents = (agent, *subject.spec.agents[1:])
    return prove(Subject(subject.spec.model_copy(update={"agents": agents}), code=subject.code))


AUTO = (rule("A", "terminate", "x"), rule("A", "B"), rule("B", "B"))


def test_an_automatic_tool_is_called_in_every_turn():
    called = {"x": derived({"type": "tool_call", "tool": "act"})}
    found = automatic(called, *AUTO)
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))
    assert automatic(called, *AUTO, mode=False).status == "not checked"
    found = automatic({"x": derived()}, *AUTO, body="context_variables.set('x', True)")
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_what_an_automatic_tool_returns_comes_after_what_its_code_sets():
    returned = {"x": derived({"type": "tool_response", "tool": "act", "value": False})}
    found = automatic(returned, *AUTO, body="context_variables.set('x', True)")
    assert [end.agents for end in found.dead_ends] == [("B",)]


def test_whatever_an_automatic_tool_returns_the_run_goes_on():
    returned = {"x": derived({"type": "tool_response", "tool": "act", "response_key": "x"})}
    found = automatic(returned, rule("A", "terminate", "x"), rule("A", "B"), rule("B", "user"))
    assert found.status == "proven"
    assert automatic(returned, *AUTO).status == "not proven"


def test_branches_of_an_automatic_tool():
    found = automatic({"x": derived()}, *AUTO, body="if a: context_variables.set('x', True)")
    assert (found.status, found.unreachable_agents) == ("not proven", ())
