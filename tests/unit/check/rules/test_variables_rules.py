from dataclasses import replace

import pytest
from pydantic import BaseModel, ConfigDict

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import (
    secrets,
    sources,
    start,
    triggers,
    usage,
    variables,
    writes,
)
from weft.check.subject import Subject
from weft.engine.variables.trigger_kinds import Fires
from weft.findings import SetValue
from weft.spec.workflow import WorkflowSpec

RULES = {
    rule.code: rule
    for rule in rules_of(
        variables,
        triggers,
        secrets,
        usage,
        writes,
        sources,
        start,
    )
}
NEXT = {"equals": "NEXT"}


def subject(variables, *, prompt="", code=None, **more):
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
                "agents": [
                    {
                        "agent_name": "RouterAgent",
                        "prompt_sections": [
                            {"id": "role", "heading": "[ROLE]", "content": prompt},
                            {"id": "rest", "content": "Be kind."},
                        ],
                    },
                    {"agent_name": "TechAgent"},
                ],
                "variables": variables,
                "tools": [
                    tool("look", "look.py"),
                    {**tool("ask", "ask.py"), "tool_type": "UI_Tool", "ui": UI},
                ],
                **more,
            }
        ),
        folder="Demo",
        code={"tools/look.py": "", "tools/ask.py": "", **(code or {})},
    )


UI = {"component": "Ask", "mode": "inline"}


def tool(function, file, agent="RouterAgent"):
    return {"tool_type": "Agent_Tool", "agent": agent, "file": file, "function": function}


def variable(type_="any", source="static", **fields):
    if source == "static":
        fields.setdefault("value", None)
    return {"type": type_, "source": {"type": source, **fields}}


def derived(*triggers, type_="any", **fields):
    return variable(type_, "derived", triggers=list(triggers), **fields)


def computed(computation, *inputs, type_="bool", **fields):
    return variable(type_, "computed", computation=computation, inputs=list(inputs), **fields)


def hits(code, checked):
    return list(RULES[code].check(checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) - {"LINK003"} == {code for code in CATALOGUE if code.startswith("VAR")}


SOURCE = ("variables", "x", "source")
FIRST = (*SOURCE, "triggers", 0)


def database(**fields):
    return {"x": variable("any", "database", collection="Users", **fields)}


@pytest.mark.parametrize(
    ("fields", "place", "part"),
    [
        ({}, (), "does not say how its document is found"),
        ({"search_by": "a", "query_template": {}}, ("query_template",), "says in two ways"),
        ({"search_by": "a", "field": "b", "fields": ["c"]}, ("fields",), "one field and an object"),
    ],
)
def test_VAR001_unclear_lookup(fields, place, part):
    hit = only("VAR001", subject(database(**fields)))
    assert hit.path == (*SOURCE, *place)
    assert part in hit.message


@pytest.mark.parametrize(
    "fields", [{"search_by": "a", "field": "b"}, {"query_template": {"a": 1}, "fields": ["b"]}]
)
def test_VAR001_clear_lookup(fields):
    assert hits("VAR001", subject({**database(**fields), "y": variable()})) == []


TIMER = {"type": "timer_expired", "after_seconds": 1}


@pytest.mark.parametrize(
    ("declared", "place", "part"),
    [
        (
            variable("int", value="25"),
            ("source", "value"),
            "the value does not fit x: expected int",
        ),
        (
            variable("str", "environment", env_var="X", default=5),
            ("source", "default"),
            "the default does not fit x",
        ),
        (derived(type_="bool", default="no"), ("source", "default"), "the default does not fit x"),
        (
            derived({**TIMER, "value": 3}, type_="bool"),
            ("source", "triggers", 0, "value"),
            "the value set by the trigger does not fit x",
        ),
        (
            derived(transitions=[{"from": "a", "to": "b"}], type_='literal["a"]'),
            ("source", "transitions", 0, "to"),
            "the state does not fit x",
        ),
        (
            derived(transitions=[{"from": "b", "to": "a"}], type_='literal["a"]'),
            ("source", "transitions", 0, "from"),
            "the state does not fit x",
        ),
        (computed("y == 1", "y", type_="int"), ("type",), "the true or false of a condition"),
    ],
)
def test_VAR002_value_does_not_fit(declared, place, part):
    hit = only("VAR002", subject({"x": declared, "y": variable("int", value=1)}))
    assert hit.path == ("variables", "x", *place)
    assert part in hit.message
    assert "the type" in hit.hint[-1]


def test_VAR002_trigger_without_a_value_sets_true():
    hit = only("VAR002", subject({"x": derived(TIMER, type_="str")}))
    assert hit.path == FIRST
    assert 'write "value"' in hit.hint[0]


def test_VAR002_state_that_stands_in_many_transitions():
    steps = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    assert only("VAR002", subject({"x": derived(transitions=steps, type_='literal["a"]')}))


def test_VAR002_long_types_are_cut():
    listed = ", ".join(f'"value number {index}"' for index in range(20))
    hit = only("VAR002", subject({"x": variable(f"literal[{listed}]", value=1)}))
    assert len(hit.hint[0]) < 140


@pytest.mark.parametrize(
    "declared",
    [
        variable("int", value=25),
        variable("optional[int]", value=None),
        variable("Nowhere", value=25),
        variable("int", "environment", env_var="X"),
        variable("int", "environment", env_var="X", default=None),
        derived(TIMER, type_="bool", default=False),
        derived({"type": "tool_call", "tool": "look", "argument": "a"}, type_="str"),
        derived({"type": "tool_response", "tool": "look", "response_key": "a"}, type_="str"),
        derived({"type": "ui_response", "tool": "ask", "response_key": "a"}, type_="str"),
        derived({"type": "function", "function": "tools.look:f"}, type_="str"),
        derived(transitions=[{"from": "a", "to": "b", "trigger": TIMER}], type_="str"),
        computed("tools.look:f", type_="int"),
        computed("broken ==", type_="int"),
        computed("y", "y", type_="bool"),
        {**variable("int", value="s3cr3t"), "secret": True},
    ],
)
def test_VAR002_value_fits(declared):
    assert hits("VAR002", subject({"x": declared})) == []


def test_VAR003_computed_cycle():
    variables = {"a": computed("b", "b"), "b": computed("c", "c"), "c": computed("b", "b")}
    hit = only("VAR003", subject(variables))
    assert hit.path == ("variables", "b", "source", "inputs")
    assert hit.message == "b is computed from itself: b -> c -> b"


def test_VAR003_chain():
    variables = {"a": computed("b and c", "b", "c"), "b": computed("c", "c"), "c": variable()}
    assert hits("VAR003", subject(variables)) == []


CODE = {"tools/look.py": "def look(stars: int, context_variables=None): ...\n"}


@pytest.mark.parametrize(
    ("declared", "place", "part", "offset"),
    [
        (computed("y == ", "y"), "computation", "neither a function nor a condition", 5),
        (computed("y and z", "y"), "computation", "uses z, which is not among its inputs", 6),
        (
            computed("y and missing", "y", "missing"),
            ("inputs", 1),
            '"missing", which is no variable',
            None,
        ),
        (computed("y", "y", "z"), ("inputs", 1), "does not use its input z", None),
        (computed("tools.look:lok", "y"), "computation", "tools/look.py does not define lok", None),
        (computed("tools.nowhere:f"), "computation", "no file of the package", None),
        (computed("y == 'a'", "y"), "computation", 'y, which is int, is never "a"', 0),
        (computed("", "y"), "computation", "the condition is empty", 0),
    ],
)
def test_VAR004_computation_cannot_be_carried_out(declared, place, part, offset):
    number = variable("int", value=1)
    found = hits("VAR004", subject({"x": declared, "y": number, "z": number}, code=CODE))
    hit = next(hit for hit in found if part in hit.message)
    assert hit.path == (*SOURCE, *((place,) if isinstance(place, str) else place))
    assert hit.offset == offset
    # An unread input of a computation that does not parse is not reported on top.
    assert len(found) == 1


@pytest.mark.parametrize(
    "declared",
    [
        computed("y == 1 and user_id", "y", "user_id"),
        computed("tools.look:look", "stars"),
        computed("tools.look:look", "y", "stars"),
        computed("y == 'a:b'", "y"),
    ],
)
def test_VAR004_sound_computation(declared):
    variables = {"x": declared, "y": variable("any", value=1), "stars": variable("int", value=1)}
    assert hits("VAR004", subject(variables, code=CODE)) == []


@pytest.mark.parametrize(
    ("parameters", "inputs", "lacking", "hint"),
    [
        ("stars, context_variables", "stars", "context_variables", "name the parameters like"),
        ("stars, y", "stars", "y", 'add "y" to the inputs'),
        ("star", "stars", "star", 'did you mean "stars"?'),
        ("stars, /", "stars", "stars", 'add "stars" to the inputs'),
    ],
)
def test_VAR004_a_function_is_given_its_inputs_alone(parameters, inputs, lacking, hint):
    variables = {it: variable("int", value=1) for it in ("y", "stars")}
    code = {"tools/look.py": f"def look({parameters}): ..."}
    hit = only(
        "VAR004", subject({"x": computed("tools.look:look", inputs), **variables}, code=code)
    )
    assert hit.path == (*SOURCE, "computation")
    assert f"tools.look:look, which requires {lacking}, no input of it" in hit.message
    assert hit.cause == ("the inputs are stars",)
    assert hint in hit.hint[0]


def test_VAR004_a_function_without_inputs_that_requires_one():
    hit = only("VAR004", subject({"x": computed("tools.look:look")}, code=CODE))
    assert hit.cause == ()


def test_VAR004_a_decorated_function_may_take_anything():
    code = {"tools/look.py": "@cached\ndef look(stars): ..."}
    assert hits("VAR004", subject({"x": computed("tools.look:look")}, code=code)) == []


def test_VAR004_hint_for_a_misspelt_input():
    checked = subject({"x": computed("yy", "yy"), "yyy": variable()})
    hit = only("VAR004", checked)
    assert hit.hint == ('did you mean "yyy"?',)


def test_VAR005_secret_in_a_static_value():
    hit = only("VAR005", subject({"api_key": variable(value="9f2c81d07be4")}))
    assert hit.path == ("variables", "api_key", "source", "value")
    assert "api_key seems to hold a secret, what api_key is named after" in hit.message
    assert "9f2c81d07be4" not in str(hit)


def test_VAR005_secret_deep_inside_a_default():
    value = {"service": [{"name": "crm", "password": "hunter2!"}], "list": ["sk-" + "a1" * 12]}
    first, second = hits("VAR005", subject({"x": derived(default=value)}))
    assert {first.path, second.path} == {
        (*SOURCE, "default", "service", 0, "password"),
        (*SOURCE, "default", "list", 0),
    }


@pytest.mark.parametrize(
    "url",
    ["https://me:hunter2@crm.example/api", "https://crm.example/api?a=1&api_key=9f2c81d07be4"],
)
def test_VAR005_secret_in_the_address_of_a_service(url):
    service = variable("any", "external", service="Crm", operation="get", url=url)
    hit = only("VAR005", subject({"x": service}))
    assert hit.path == (*SOURCE, "url")


@pytest.mark.parametrize(
    "declared",
    [
        variable(value="gold"),
        variable(value=["a", 1, None, True, {"b": 2.5}]),
        variable(
            "any", "external", service="C", operation="g", url="https://c.example?api_key={k}"
        ),
        variable("any", "environment", env_var="X"),
        {**variable(value="sk-" + "a1" * 12), "secret": True},
        computed("y"),
    ],
)
def test_VAR005_no_secret(declared):
    assert hits("VAR005", subject({"x": declared})) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("user_id", "every run has"),
        ("enterprise_id", "every run has"),
        ("_hidden", "belong to Weft"),
        ("weft_state", "belong to Weft"),
        ("None", "condition language"),
        ("equals", "condition language"),
        ("class", "Python language"),
        ("structured_output", "reply of an agent"),
    ],
)
def test_VAR006_reserved_name(name, reason):
    hit = only("VAR006", subject({name: variable()}))
    assert (hit.path, hit.at_key) == (("variables", name), True)
    assert reason in hit.message


def test_VAR006_free_name():
    assert hits("VAR006", subject({"current_domain": variable(), "user": variable()})) == []


@pytest.mark.parametrize(
    ("trigger", "key"),
    [
        ({"type": "agent_text", "agent": "Router", "match": NEXT}, "agent"),
        ({"type": "agent_turn_count", "agent": "Router", "count": 1}, "agent"),
        ({"type": "lifecycle", "event": "after_agent", "agent": "Router"}, "agent"),
        ({"type": "model_failed", "agent": "Router"}, "agent"),
        ({"type": "handoff", "source_agent": "Router"}, "source_agent"),
        ({"type": "handoff", "target_agent": "Router"}, "target_agent"),
        ({"type": "handoff", "source_agent": "terminate"}, "source_agent"),
    ],
)
def test_VAR007_unknown_agent(trigger, key):
    hit = only("VAR007", subject({"x": derived(trigger)}))
    assert hit.path == (*FIRST, key)
    assert f'a trigger of x waits for "{trigger[key]}", which is no agent' in hit.message


@pytest.mark.parametrize("agent", ["RouterAgent", "Router"])
@pytest.mark.parametrize("event", ["before_chat", "after_chat"])
def test_VAR007_a_boundary_of_the_run_is_of_no_agent(event, agent):
    trigger = {"type": "lifecycle", "event": event, "agent": agent}
    hit = only("VAR007", subject({"x": derived(trigger)}))
    assert hit.path == (*FIRST, "agent")
    assert f"waits for {event} of {agent}, which is a boundary of the run" in hit.message


def test_VAR007_other_spelling_is_mended_in_a_transition():
    trigger = {"type": "agent_text", "agent": "router_agent", "match": NEXT}
    step = {"from": 1, "to": 2, "trigger": trigger}
    hit = only("VAR007", subject({"x": derived(transitions=[step])}))
    assert hit.path == (*SOURCE, "transitions", 0, "trigger", "agent")
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(hit.path, "RouterAgent"),)


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "agent_text", "agent": "RouterAgent", "match": NEXT},
        {"type": "lifecycle", "event": "before_chat"},
        {"type": "lifecycle", "event": "before_agent", "agent": "TechAgent"},
        {"type": "model_failed", "agent": "TechAgent"},
        {"type": "model_failed"},
        {"type": "handoff"},
        {"type": "handoff", "source_agent": "RouterAgent", "target_agent": "user"},
        {"type": "user_text", "match": NEXT},
    ],
)
def test_VAR007_known_agent(trigger):
    assert hits("VAR007", subject({"x": derived(trigger), "y": variable()})) == []


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "ui_response", "tool": "aks", "response_key": "a"},
        {"type": "tool_call", "tool": "aks"},
        {"type": "tool_response", "tool": "aks"},
        {"type": "tool_failed", "tool": "aks"},
    ],
)
def test_VAR008_unknown_tool(trigger):
    hit = only("VAR008", subject({"x": derived(trigger)}))
    assert hit.path == (*FIRST, "tool")
    assert '"aks", which is no tool' in hit.message
    assert hit.hint == ('did you mean "ask"?',)


def test_VAR008_answer_of_a_tool_that_asks_nobody():
    trigger = {"type": "ui_response", "tool": "look", "response_key": "a"}
    hit = only("VAR008", subject({"x": derived(trigger)}))
    assert hit.path == (*FIRST, "tool")
    assert "it is no UI tool" in hit.message


def test_VAR008_known_tools():
    triggers = [
        {"type": "ui_response", "tool": "ask", "response_key": "a"},
        {"type": "tool_call", "tool": "look"},
        {"type": "tool_response", "tool": "ask"},
        {"type": "tool_failed", "tool": "look"},
        {"type": "tool_failed"},
        TIMER,
    ]
    assert hits("VAR008", subject({"x": derived(*triggers)})) == []


def test_VAR008_tools_of_a_server():
    servers = [
        {"name": "files", "command": ["f"]},
        {"name": "mail", "command": ["m"], "allow": ["send"]},
    ]
    known = [{"type": "tool_call", "tool": it} for it in ("files_read", "mail_send")]
    assert hits("VAR008", subject({"x": derived(*known)}, mcp_servers=servers)) == []
    trigger = {"type": "tool_failed", "tool": "mail_read"}
    assert only("VAR008", subject({"x": derived(trigger)}, mcp_servers=servers))
    answer = {"type": "ui_response", "tool": "files_read", "response_key": "a"}
    hit = only("VAR008", subject({"x": derived(answer)}, mcp_servers=servers))
    assert "asks nobody" in hit.message


@pytest.mark.parametrize(
    ("pattern", "offset", "part"),
    [("done(", 4, "unclosed group"), ("^(?=a)", 1, "look-around")],
)
def test_VAR009_unusable_regex(pattern, offset, part):
    trigger = {"type": "user_text", "match": {"regex": pattern}}
    hit = only("VAR009", subject({"x": derived(TIMER, trigger)}))
    assert hit.path == (*SOURCE, "triggers", 1, "match", "regex")
    assert hit.offset == offset
    assert part in hit.message


def test_VAR009_usable_regex():
    regex = {"type": "agent_text", "agent": "RouterAgent", "match": {"regex": r"\bdone\b"}}
    plain = {"type": "user_text", "match": {"equals": "("}}
    assert hits("VAR009", subject({"x": derived(regex, plain)})) == []


@pytest.mark.parametrize("mode", ["equals", "exact", "contains"])
def test_VAR010_agent_is_not_told(mode):
    trigger = {"type": "agent_text", "agent": "RouterAgent", "match": {mode: " I am  done " * 9}}
    hit = only("VAR010", subject({"x": derived(trigger)}, prompt="Ask until you know enough."))
    assert hit.path == (*FIRST, "match", mode)
    assert 'x waits for RouterAgent to say "I am done I am done' in hit.message
    assert len(hit.message) < 160


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "agent_text", "agent": "RouterAgent", "match": {"equals": " next "}},
        {"type": "agent_text", "agent": "RouterAgent", "match": {"contains": "[role]"}},
        {"type": "agent_text", "agent": "RouterAgent", "match": {"regex": "anything"}},
        {"type": "agent_text", "agent": "Nobody", "match": {"equals": "anything"}},
        {"type": "user_text", "match": {"equals": "anything"}},
    ],
)
def test_VAR010_agent_is_told(trigger):
    checked = subject({"x": derived(trigger, trigger)}, prompt="Then say NEXT.")
    assert hits("VAR010", checked) == []


@pytest.mark.parametrize(
    ("match", "prompt", "told"),
    [
        ({"contains": "go"}, "Be good.", False),
        ({"contains": "go"}, "Say Go!", True),
        ({"equals": "next"}, "Say NEXT_STEP or NEXTS.", False),
        ({"equals": "next step"}, "Say: Next step", True),
        ({"exact": "NEXT"}, "Say next.", False),
        ({"exact": "NEXT"}, "Say NEXT", True),
        ({"exact": "NEXT"}, "Say NEXTNEXT or *NEXT*", True),
        ({"contains": "[done]"}, "Say it[DONE]so", True),
    ],
)
def test_VAR010_whole_words_in_the_case_that_counts(match, prompt, told):
    trigger = {"type": "agent_text", "agent": "RouterAgent", "match": match}
    assert (hits("VAR010", subject({"x": derived(trigger)}, prompt=prompt)) == []) == told


SHOWN = {"exposure": {"RouterAgent": ["x"]}}


def test_VAR011_nothing_sets_it():
    hit = only("VAR011", subject({"x": derived(default=False)}, **SHOWN))
    assert hit.path == SOURCE
    assert hit.message.startswith("nothing ever sets x")


@pytest.mark.parametrize(
    "declared",
    [
        derived(TIMER),
        derived(transitions=[{"from": 1, "to": 2, "trigger": TIMER}]),
        {**derived(), "writers": ["look"]},
        variable(),
    ],
)
def test_VAR011_something_sets_it(declared):
    assert hits("VAR011", subject({"x": declared}, **SHOWN)) == []


@pytest.mark.parametrize(
    "line",
    ["context_variables.set('x', 1)", "context_variables.set(name, 1)", "def broken(:"],
)
def test_VAR011_code_sets_it(line):
    code = {"tools/look.py": f"def look(context_variables, name):\n    {line}\n"}
    assert hits("VAR011", subject({"x": derived()}, code=code, **SHOWN)) == []


def test_VAR011_code_only_reads_it():
    code = {"tools/look.py": "def look(c):\n    c.set('y', 1)\n    return c.get('x')\n"}
    assert only("VAR011", subject({"x": derived(), "y": derived()}, code=code)).path == SOURCE


def test_VAR011_transitions_without_events():
    steps = [{"from": 1, "to": 2}]
    assert only("VAR011", subject({"x": derived(transitions=steps)}, **SHOWN))


def test_VAR011_what_nothing_reads_is_reported_once():
    checked = subject({"x": derived()})
    assert hits("VAR011", checked) == []
    assert only("VAR012", checked)


def test_VAR012_nothing_reads_it():
    hit = only(
        "VAR012", subject({"x": variable()}, prompt="x is not meant", code={"tools/a.py": "x"})
    )
    assert (hit.path, hit.at_key) == (("variables", "x"), True)
    assert hit.message.startswith("nothing reads x")


def rule_with(condition, **more):
    return {"source_agent": "RouterAgent", "target_agent": "user", "condition": condition, **more}


@pytest.mark.parametrize(
    "more",
    [
        SHOWN,
        {"prompt": "Use {x}."},
        {"handoffs": [rule_with(None), rule_with("x")]},
        {"handoffs": [rule_with("x ==")]},
        {"handoffs": [rule_with("x has happened", condition_type="llm")]},
        {"code": {"tools/look.py": "context_variables['x']"}},
        {"code": {"tools/Ask.jsx": 'get("x")'}},
    ],
)
def test_VAR012_something_reads_it(more):
    assert hits("VAR012", subject({"x": variable()}, **more)) == []


@pytest.mark.parametrize(
    "reader",
    [
        computed("x", "x", persist_to="store"),
        variable("any", "database", collection="C", query_template={"a": [{"b": "id {x}"}]}),
        variable("any", "database", collection="C", search_by="x"),
        variable("any", "entity", collection="C", search_by="x"),
        variable("any", "external", service="S", operation="o", url="https://s.example/{x}"),
    ],
)
def test_VAR012_another_variable_reads_it(reader):
    found = hits("VAR012", subject({"x": variable(), "reader": reader}))
    assert [hit.path for hit in found if "reads x" in hit.message] == []


def test_VAR012_a_misspelt_reader_counts():
    assert hits("VAR012", subject({"current_domain": variable()}, prompt="{curent_domain}")) == []


def test_VAR012_an_ingredient_reads_it():
    agent = {
        "agent_name": "RouterAgent",
        "context": [{"kind": "history"}, {"kind": "variables", "names": ["x"]}],
    }
    assert hits("VAR012", subject({"x": variable()}, agents=[agent])) == []


def test_VAR012_what_is_stored_serves_by_that():
    variables = {
        "kept": computed("y", "y", persist_to="store"),
        "store": variable("any", "entity", collection="C", search_by="user_id"),
        "y": variable(),
    }
    assert hits("VAR012", subject(variables)) == []


@pytest.mark.parametrize(
    "declared",
    [
        variable(),
        variable("any", "environment", env_var="X"),
        computed("y", "y"),
        variable("any", "database", collection="C", search_by="a"),
        variable("any", "external", service="S", operation="o", url="u"),
        variable("any", "file", path="a.txt"),
    ],
)
def test_VAR013_writers_of_what_is_only_read(declared):
    hit = only("VAR013", subject({"x": {**declared, "writers": ["look"]}}))
    assert hit.path == ("variables", "x", "writers")
    assert f"whose source is {declared['source']['type']}" in hit.message


def test_VAR013_writers_of_what_can_be_written():
    entity = variable("any", "entity", collection="C", search_by="user_id")
    variables = {
        "x": {**derived(), "writers": ["look"]},
        "y": {**entity, "writers": ["look"]},
        "z": {**variable(), "writers": []},
    }
    assert hits("VAR013", subject(variables)) == []


@pytest.mark.parametrize(
    ("trigger", "other"),
    [
        ({"type": "tool_call", "tool": "look", "argument": "a", "value": 5}, "argument"),
        (
            {"type": "tool_response", "tool": "look", "response_key": "a", "value": 5},
            "response_key",
        ),
    ],
)
def test_VAR014_two_values(trigger, other):
    hit = only("VAR014", subject({"x": derived(trigger)}))
    assert hit.path == (*FIRST, "value")
    assert f'the value comes from "{other}"' in hit.message


def test_VAR014_value_beside_the_state_of_a_transition():
    step = {"from": 1, "to": 2, "trigger": {**TIMER, "value": 3}}
    hit = only("VAR014", subject({"x": derived(transitions=[step])}))
    assert hit.path == (*SOURCE, "transitions", 0, "trigger", "value")
    assert '"to" of its transition' in hit.message


def test_VAR014_one_value():
    triggers = [
        {"type": "tool_call", "tool": "look", "argument": "a"},
        {"type": "tool_call", "tool": "look", "value": 5},
        {"type": "tool_response", "tool": "look", "value": 5},
        {"type": "ui_response", "tool": "ask", "response_key": "a"},
        {"type": "function", "function": "tools.a:b"},
    ]
    steps = [
        {"from": 1, "to": 2, "trigger": TIMER},
        {"from": 1, "to": 3, "trigger": {**TIMER, "value": 3}},
    ]
    assert hits("VAR014", subject({"x": derived(*triggers, transitions=steps)})) == []


def call(argument):
    return derived({"type": "tool_call", "tool": "look", "argument": argument})


def test_VAR015_unknown_argument():
    hit = only("VAR015", subject({"x": call("star")}, code=CODE))
    assert hit.path == (*FIRST, "argument")
    assert 'takes the argument "star" of look, which has no such parameter' in hit.message
    assert hit.hint == ('did you mean "stars"?',)


def test_VAR015_nothing_similar():
    assert only("VAR015", subject({"x": call("zzz")}, code=CODE)).hint == ("look takes stars",)
    code = {"tools/look.py": "def look(*rest): ..."}
    assert only("VAR015", subject({"x": call("rest")}, code=code)).hint == (
        "look takes no arguments",
    )


@pytest.mark.parametrize(
    "code",
    [
        "def look(star): ...",
        "def look(**rest): ...",
        "@wrap\ndef look(): ...",
        "from .other import look",
        "def look(",
    ],
)
def test_VAR015_known_argument_or_unknown_function(code):
    checked = subject({"x": call("star"), "y": derived(TIMER)}, code={"tools/look.py": code})
    assert hits("VAR015", checked) == []


@pytest.mark.parametrize("model", ["Rating", "Missing"])
def test_VAR015_a_reply_that_calls_a_tool_brings_all_its_fields(model):
    more = {
        "agents": [{"agent_name": "RouterAgent", "auto_tool_mode": True}],
        "tools": [{**tool("look", "look.py"), "agent": "RouterAgent", "auto_invoke": True}],
        "models": [
            {"name": "Rating", "fields": {"stars": {"type": "int"}, "why": {"type": "str"}}}
        ],
        "registry": [{"agent": "RouterAgent", "model": model}],
    }
    found = hits("VAR015", subject({"x": call("why")}, code=CODE, **more))
    assert bool(found) == (model == "Missing")
    (unknown,) = hits("VAR015", subject({"x": call("when")}, code=CODE, **more))
    assert unknown.path == (*FIRST, "argument")


def test_VAR015_without_tool_or_argument():
    triggers = [
        {"type": "tool_call", "tool": "none", "argument": "a"},
        {"type": "tool_call", "tool": "look"},
    ]
    assert hits("VAR015", subject({"x": derived(*triggers)}, code=CODE)) == []


def test_VAR016_unknown_function():
    trigger = {"type": "function", "function": "tools.look:lok"}
    step = {"from": 1, "to": 2, "trigger": trigger}
    first, second = hits("VAR016", subject({"x": derived(trigger, transitions=[step])}, code=CODE))
    assert first.path == (*FIRST, "function")
    assert second.path == (*SOURCE, "transitions", 0, "trigger", "function")
    assert (
        "a trigger of x asks tools.look:lok, but tools/look.py does not define lok" in first.message
    )
    assert first.hint == ("did you mean tools.look:look?",)


ASKED = {"type": "function", "function": "tools.look:look"}


@pytest.mark.parametrize(
    "text",
    [
        "def look(x, values, agent, message, messages, content): ...",
        "def look(**everything): ...",
        "from .ask import look",
        "@cached\ndef look(stars): ...",
    ],
)
def test_VAR016_known_function(text):
    checked = subject({"x": derived(ASKED, TIMER)}, code={"tools/look.py": text})
    assert hits("VAR016", checked) == []


def test_VAR016_a_run_knows_a_module_by_its_path_in_the_package():
    trigger = {"type": "function", "function": "workflows.Demo.tools.look:look"}
    hit = only("VAR016", subject({"x": derived(trigger)}, code=CODE))
    assert "no file of the package is the module workflows.Demo.tools.look" in hit.message
    assert hit.hint == ("did you mean tools.look:look?",)
    code = {"tools/sub/__init__.py": "def look(): ..."}
    trigger = {"type": "function", "function": "tools.sub:look"}
    hit = only("VAR016", subject({"x": derived(trigger)}, code=code))
    assert hit.hint == ("did you mean tools.sub.__init__:look?",)


@pytest.mark.parametrize(
    ("parameters", "lacking", "hint"),
    [
        ("stars, x", "stars", "name one of these"),
        ("mesage", "mesage", 'did you mean "message"?'),
        ("context_variables", "context_variables", "name one of these"),
    ],
)
def test_VAR016_a_function_that_requires_what_it_is_not_given(parameters, lacking, hint):
    code = {"tools/look.py": f"def look({parameters}): ..."}
    hit = only("VAR016", subject({"x": derived(ASKED)}, code=code))
    assert hit.path == (*FIRST, "function")
    assert hit.message == f"a trigger of x asks tools.look:look, which requires {lacking}"
    assert "every variable by its name, and values, agent," in hit.cause[0]
    assert hint in hit.hint[0]


def test_VAR016_a_function_is_asked_whether_a_transition_is_made():
    code = {"tools/look.py": "def look(x): ..."}
    steps = [{"from": 1, "to": 2, "trigger": ASKED}]
    assert hits("VAR016", subject({"x": derived(transitions=steps)}, code=code)) == []


@pytest.mark.parametrize("target", ["y", "missing"])
def test_VAR017_kept_where_nothing_is_stored(target):
    hit = only("VAR017", subject({"x": computed("y", "y", persist_to=target), "y": variable()}))
    assert hit.path == (*SOURCE, "persist_to")
    assert f'kept in "{target}", which is no entity variable' in hit.message


def test_VAR017_kept_in_an_entity():
    store = variable("any", "entity", collection="C", search_by="user_id")
    variables = {
        "x": computed("y", "y", persist_to="store"),
        "y": computed("z", "z"),
        "store": store,
    }
    assert hits("VAR017", subject(variables)) == []


KEY = "sk-" + "a1B2" * 8


def test_VAR005_secret_in_a_prompt():
    hit = only("VAR005", subject({}, prompt=f"Call the service with {KEY}."))
    assert hit.path == ("agents", 0, "prompt_sections", 0, "content")
    assert hit.message.startswith("the prompt of RouterAgent seems to hold a secret, the key of")
    assert KEY not in hit.message + " ".join(hit.hint)
    assert "let a tool use it" in hit.hint[0]


@pytest.mark.parametrize(
    ("more", "path", "what"),
    [
        (
            {"agents": [{"agent_name": "A", "prompt_sections": [
                {"id": "x", "heading": KEY, "content": ""}]}]},
            ("agents", 0, "prompt_sections", 0, "heading"),
            "a heading of A",
        ),
        (
            {"agents": [{"agent_name": "A", "context": [
                {"kind": "history"}, {"kind": "literal", "text": KEY}]}]},
            ("agents", 0, "context", 1, "text"),
            "a text in the context of A",
        ),
        (
            {"orchestrator": {"workflow_name": "D", "initial_agent": "A", "initial_message": KEY}},
            ("orchestrator", "initial_message"),
            "the initial_message",
        ),
    ],
)  # fmt: skip
def test_VAR005_secret_in_other_words(more, path, what):
    hit = only("VAR005", subject({}, **more))
    assert hit.path == path
    assert hit.message.startswith(f"{what} seems to hold a secret")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/hosts", "does not start in the package folder"),
        ("~/notes.txt", "does not start in the package folder"),
        ("C:/notes.txt", "does not start in the package folder"),
        ("data\\prices.json", "parted by /"),
        ("../other/prices.json", "leads out"),
        ("data/../../x", "leads out"),
        (".env", "hold secrets"),
        ("config/.env.production", "hold secrets"),
        ("keys/server.PEM", "hold secrets"),
        ("id_rsa", "hold secrets"),
        ("a/credentials.json", "hold secrets"),
        ("prod.env", "hold secrets"),
        ("secrets/prices.json", "hold secrets"),
        ("data/.hidden/prices.json", "is hidden"),
        ("./data//prices.bak", "left behind by an editor"),
        ("data/con.json", "is the name of a device"),
    ],
)
def test_VAR018_file_that_may_not_be_read(path, reason):
    hit = only("VAR018", subject({"x": variable("str", "file", path=path)}))
    assert hit.path == (*SOURCE, "path")
    assert reason in hit.message


@pytest.mark.parametrize(
    "path",
    ["data/prices.json", "./data//prices.json", "a..b.txt", "environment.yaml", "keyboard.md"],
)
def test_VAR018_file_that_may_be_read(path):
    assert hits("VAR018", subject({"x": variable("str", "file", path=path), "y": variable()})) == []


def entity(search_by, *fields):
    schema = {name: {"type": "str"} for name in fields}
    return variable("any", "entity", collection="C", search_by=search_by, schema=schema)


def test_VAR019_field_that_is_not_there():
    hit = only("VAR019", subject({"x": entity("e_mail", "email", "name")}))
    assert hit.path == (*SOURCE, "search_by")
    assert '"e_mail", which is no field of its schema' in hit.message
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(hit.path, "email"),)


def test_VAR019_nothing_similar():
    hit = only("VAR019", subject({"x": entity("zzz", "email")}))
    assert hit.hint == ("add the field to the schema",)


@pytest.mark.parametrize(
    "declared", [entity("email", "email"), entity("user_id", "email"), entity("email"), variable()]
)
def test_VAR019_field_that_is_there(declared):
    assert hits("VAR019", subject({"x": declared})) == []


@pytest.mark.parametrize("declared", [variable(), derived(), computed("y", "y")])
def test_VAR020_secret_in_the_open(declared):
    hit = only("VAR020", subject({"x": {**declared, "secret": True}}))
    assert hit.path == (*SOURCE, "type")
    assert f"x is secret, but its source is {declared['source']['type']}" in hit.message


def test_VAR020_secret_by_reference():
    kept = variable("str", "environment", env_var="KEY")
    assert hits("VAR020", subject({"x": {**kept, "secret": True}, "y": variable()})) == []


STATES = [{"from": "a", "to": KEY}, {"from": KEY, "to": "b"}, {"from": KEY, "to": "b"}]


@pytest.mark.parametrize(
    "declared",
    [
        variable("int", value=KEY),
        variable("list[int]", value=[1, KEY]),
        variable("int", value={"password": "hunter22"}),
        {**variable("int"), "source": {"type": "environment", "env_var": "K", "default": KEY}},
        {
            **variable("int"),
            "source": {"type": "environment", "env_var": "K", "default": "hunter22"},
            "secret": True,
        },
        {**derived(transitions=STATES), "type": "int"},
        {**derived({**TIMER, "value": KEY}), "type": "int"},
    ],
)
def test_VAR002_never_repeats_what_may_be_a_secret(declared):
    found = " ".join(str(hit) for hit in hits("VAR002", subject({"x": declared}, **SHOWN)))
    assert "does not fit x" in found
    assert "not shown" in found
    assert KEY[:12] not in found
    assert "hunter22" not in found


@pytest.mark.parametrize(
    ("type_", "value", "hint"),
    [
        ("bool", "no", "write false without quotes"),
        ("bool", "Yes", "write true without quotes"),
        ("optional[int]", "5", "write 5 without quotes"),
        ('literal["small", "large"]', "smal", 'did you mean "small"?'),
        ('literal["a", "b"]', "other", 'it can be "a", "b"'),
        ("int", "much", "correct the value, or the type int"),
        ("int", [], "correct the value, or the type int"),
    ],
)
def test_VAR002_says_what_was_likely_meant(type_, value, hint):
    assert only("VAR002", subject({"x": variable(type_, value=value)})).hint[0] == hint


class Often(BaseModel):
    model_config = ConfigDict(extra="forbid")

    times: int


class Anything(BaseModel):
    pass


class Kind:
    def __init__(self, settings):
        self.settings = settings

    def fires(self, *_):
        return Fires(value=True)


KINDS = {"often": Kind(Often), "any": Kind(Anything)}


def custom(kind, **settings):
    checked = subject({"x": derived({"type": f"x:{kind}", **settings})})
    return hits("VAR027", replace(checked, kinds=KINDS))


@pytest.mark.parametrize(
    ("settings", "place", "fact", "hint"),
    [
        ({"times": "many"}, (*FIRST, "times"), "times: Input should be", "it takes times"),
        ({}, FIRST, "times: Field required", "it takes times"),
        ({"times": 1, "tims": 2}, (*FIRST, "tims"), "tims: Extra inputs", 'did you mean "times"?'),
        ({"times": 1, "zz": 2}, (*FIRST, "zz"), "zz: Extra inputs", "it takes times"),
    ],
)
def test_VAR027_settings_that_do_not_fit(settings, place, fact, hint):
    (hit,) = custom("often", **settings)
    assert hit.path == place
    assert f"the trigger x:often of x does not fit: {fact}" in hit.message
    assert hit.hint == (hint,)


def test_LINK003_speaks_of_kinds_that_nobody_adds_alone():
    unknown = [{"type": "x:moon"}, {"type": "x:often", "times": "many"}, {"type": "x:any"}]
    found = hits("LINK003", replace(subject({"x": derived(*unknown)}), kinds=KINDS))
    assert [hit.path for hit in found] == [FIRST]


def test_VAR027_settings_that_fit_and_kinds_that_nobody_adds():
    assert custom("often", times=3) == custom("any", times=3) == custom("other", a=1) == []


def merged(how, type_="list[str]", source="derived", **fields):
    return subject({"x": {**variable(type_, source, **fields), "merge": how}})


@pytest.mark.parametrize(
    ("how", "type_"), [("append", "list"), ("append", "any"), ("merge", "dict"), ("merge", "Plan")]
)
def test_VAR028_what_can_be_merged(how, type_):
    assert hits("VAR028", merged(how, type_)) == []
    entity = merged("merge", "dict", "entity", collection="C", search_by="user_id")
    assert hits("VAR028", entity) == []


@pytest.mark.parametrize(
    ("how", "type_"), [("append", "str"), ("append", "dict"), ("merge", "list")]
)
def test_VAR028_a_type_that_cannot_be_merged_so(how, type_):
    hit = only("VAR028", merged(how, type_))
    assert hit.path == ("variables", "x", "merge")
    assert f"x is {type_}, of which {how} can make nothing" in hit.message


def test_VAR028_a_variable_that_nobody_sets():
    hit = only("VAR028", merged("append", "list", "static", value=[]))
    assert "nobody sets a variable whose source is static" in hit.message


def test_VAR012_an_addressee_and_a_function_read_it():
    ask = {**tool("ask", "ask.py"), "tool_type": "UI_Tool", "ui": UI, "for": "user:{manager}"}
    assert hits("VAR012", subject({"manager": variable()}, tools=[ask])) == []
    server = {"name": "crm", "command": ["crm"], "for": "role:{manager}"}
    assert hits("VAR012", subject({"manager": variable()}, mcp_servers=[server])) == []
    code = {"tools/look.py": "def look(mood): ..."}
    found = hits("VAR012", subject({"x": derived(ASKED), "mood": variable()}, code=code))
    assert [hit.path for hit in found] == [("variables", "x")]


SERVER = {"name": "crm", "command": ["crm-server"]}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"env": {"API_KEY": "9f2c81d07be4"}}, ("env", "API_KEY")),
        ({"env": {"TARGET": KEY}}, ("env", "TARGET")),
        ({"command": ["crm-server", "--key", KEY]}, ("command", 2)),
        ({"url": f"https://a.example?api_key={KEY}"}, ("url",)),
    ],
)
def test_VAR005_secret_of_a_tool_server(fields, place):
    hit = only("VAR005", subject({}, mcp_servers=[{**SERVER, **fields}]))
    assert hit.path == ("mcp_servers", 0, *place)
    assert "the tool server crm seems to" in hit.message
    assert KEY not in hit.message + str(hit.hint)


def test_VAR005_a_tool_server_without_secrets():
    env = {"REGION": "eu", "API_KEY": {"secret_env": "CRM_KEY"}}
    assert hits("VAR005", subject({}, mcp_servers=[{**SERVER, "env": env}])) == []
