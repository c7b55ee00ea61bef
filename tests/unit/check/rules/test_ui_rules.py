"""Family UI."""

import time
from typing import Any

import pytest

from unit.check.builders_code import (
    agent,
    codes,
    derived,
    hits,
    only,
    static,
    subject,
    tool,
    ui_tool,
)
from weft.check.rules.ui import default_exports
from weft.findings import Place, SetValue

ASK = "from weft import use_ui_tool\n\nasync def ask():\n    return await use_ui_tool('ask')\n"
PY = {"tools/ask.py": ASK}
CARD = "export default function AskCard() { return null }\n"


def asking(schema: dict[str, Any] | None, key: str = "ok", type_: str = "any", **more: Any):
    """A workflow that takes `key` of the answer to `ask` into the variable x."""
    trigger = {"type": "ui_response", "tool": "ask", "response_key": key}
    tools = [ui_tool("ask", response_schema=schema)]
    return subject(PY, tools=tools, **{"variables": {"x": derived(type_, trigger)}, **more})


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_UI001_nothing_to_show():
    checked = subject({**PY, "tools/Other.jsx": CARD}, tools=[ui_tool("ask")])
    hit = only("UI001", checked)
    assert hit.path == ("tools", 0, "ui", "component")
    assert "neither tools/AskCard.jsx nor a response_schema" in hit.message
    assert hit.hint[0] == "add a response_schema: a form is made from it"
    assert codes(checked) == ["UI001"]


def test_UI001_component_is_spelt_otherwise():
    ui = {"component": "ask_card", "mode": "inline"}
    checked = subject({**PY, "tools/AskCard.jsx": CARD}, tools=[ui_tool("ask", ui=ui)])
    hit = only("UI001", checked)
    assert hit.hint == ('did you mean "AskCard"?',)
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("tools", 0, "ui", "component"), "AskCard"),)
    assert codes(checked) == ["UI001"]


def test_UI001_component_or_schema():
    assert codes(subject({**PY, "tools/AskCard.jsx": CARD}, tools=[ui_tool("ask")])) == []
    assert codes(subject(PY, tools=[ui_tool("ask", response_schema=form())])) == []


def test_UI001_a_form_instead_of_the_component_that_was_likely_meant():
    code = {**PY, "tools/AskCrd.jsx": CARD}
    checked = subject(code, tools=[ui_tool("ask", response_schema=form())])
    hit = only("UI001", checked)
    assert hit.severity == "warning"
    assert hit.message == (
        "there is no tools/AskCard.jsx for the UI tool ask, and no tool shows tools/AskCrd.jsx"
    )
    assert hit.hint == ('did you mean "AskCrd"?',)
    assert hit.path == ("tools", 0, "ui", "component")
    assert hit.fix is None


def test_UI001_a_form_and_a_component_in_another_spelling_are_told_once():
    ui = {"component": "ask_card", "mode": "inline"}
    tools = [ui_tool("ask", ui=ui, response_schema=form())]
    checked = subject({**PY, "tools/AskCard.jsx": CARD}, tools=tools)
    assert codes(checked) == ["UI001"]
    assert only("UI001", checked).fix is not None


@pytest.mark.parametrize("file", ["Summary.jsx", "AskCards.jsx"])
def test_UI001_a_form_beside_components_for_others(file: str):
    ui = {"component": "AskCards", "mode": "inline"}
    tools = [ui_tool("ask", response_schema=form()), ui_tool("other", ui=ui)]
    checked = subject({**PY, "tools/AskCards.jsx": CARD, f"tools/{file}": CARD}, tools=tools)
    assert hits("UI001", checked) == []


NESTED = form(plan=form(accepted={"type": "boolean"}), note={"type": "string"})


@pytest.mark.parametrize(
    ("key", "step", "offset", "hint"),
    [
        ("notes", "notes", 0, 'did you mean "note"?'),
        ("plan.acepted", "acepted", 5, 'did you mean "accepted"?'),
        (
            "note.text",
            "text",
            5,
            "add the property to the response_schema, or correct response_key",
        ),
        (
            "plan..accepted",
            "",
            5,
            "add the property to the response_schema, or correct response_key",
        ),
    ],
)
def test_UI002_answer_has_no_such_key(key: str, step: str, offset: int, hint: str):
    checked = asking(NESTED, key)
    hit = only("UI002", checked)
    assert hit.path == ("variables", "x", "source", "triggers", 0, "response_key")
    assert hit.message == f'the answer to ask has no "{step}", from which x is set'
    assert (hit.offset, hit.length) == (offset, len(step))
    assert hit.hint == (hint,)
    assert codes(checked) == ["UI002"]


def test_UI002_says_what_there_is_and_mends_another_spelling():
    hit = only("UI002", asking(NESTED, "Note"))
    assert hit.cause == ("so says the response_schema: it has plan and note there",)
    assert hit.fix is not None
    path = ("variables", "x", "source", "triggers", 0, "response_key")
    assert hit.fix.edits == (SetValue(path, "note"),)
    inner = only("UI002", asking(NESTED, "plan.Accepted"))
    assert inner.fix is None
    assert only("UI002", asking(form(), "y")).cause == (
        "so says the response_schema: it has none there",
    )


def test_UI002_triggers_of_transitions_count():
    trigger = {"type": "ui_response", "tool": "ask", "response_key": "zzz"}
    transitions = [{"from": "a", "to": "b", "trigger": trigger}, {"from": "b", "to": "a"}]
    source = {"type": "derived", "default": "a", "transitions": transitions}
    said = {"type": "user_text", "match": {"equals": "b"}}
    variables = {"x": {"type": "str", "source": source}, "y": derived("bool", said)}
    hit = only("UI002", asking(NESTED, variables=variables))
    assert hit.path == (
        "variables", "x", "source", "transitions", 0, "trigger", "response_key",
    )  # fmt: skip


REF = {"$defs": {"P": form(ok={"type": "boolean"})}, **form(p={"$ref": "#/$defs/P"})}
ROUND = {"$defs": {"P": {"$ref": "#/$defs/P"}}, **form(p={"$ref": "#/$defs/P"})}


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (NESTED, "plan.accepted"),
        (None, "anything"),
        ({}, "anything"),
        ({"type": "object"}, "a.b"),
        ({**form(), "additionalProperties": True}, "a"),
        ({**form(), "additionalProperties": {"type": "string"}}, "a"),
        ({**form(), "anyOf": [form(a={})]}, "a"),
        ({**form(), "patternProperties": {"^a": {}}}, "a"),
        (form(a=True), "a.b"),
        (form(a={"type": "array", "items": form(b={})}), "a.0.b"),
        (form(a={"type": "array"}), "a.0.b"),
        (form(a={"type": "array"}), "a.length"),
        (form(a={"type": ["object", "null"]}), "a.b"),
        (form(a={"enum": [{"b": 1}]}), "a.b"),
        (REF, "p.ok"),
        (ROUND, "p.ok"),
        (form(p={"$ref": "#/$defs/Gone"}), "p.ok"),
        ({"$defs": {"P": form(ok={})}, "$ref": "#/$defs/P"}, "ok"),
    ],
)
def test_UI002_answer_has_the_key_or_leaves_it_open(schema: dict[str, Any] | None, key: str):
    assert hits("UI002", asking(schema, key)) == []


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (REF, "p.no"),
        (form(a={"type": ["string", "null"]}), "a.b"),
        (form(a={"type": "array", "items": form(b={})}), "a.0.c"),
        ({**form(), "additionalProperties": False}, "a"),
        (form(a=False), "a"),
    ],
)
def test_UI002_follows_the_schema(schema: dict[str, Any], key: str):
    assert len(hits("UI002", asking(schema, key))) == 1


@pytest.mark.parametrize("name", ["gone", "find"])
def test_UI002_leaves_other_tools_to_VAR008(name: str):
    trigger = {"type": "ui_response", "tool": name, "response_key": "a"}
    assert (
        hits("UI002", subject(tools=[tool("find")], variables={"x": derived("any", trigger)})) == []
    )


@pytest.mark.parametrize(
    ("schema", "path", "fact"),
    [
        ({"type": "text file"}, ("type",), "is no type of JSON Schema"),
        ({"type": {"a": 1}}, ("type",), "is no type of JSON Schema"),
        ({"type": ["string", "nil"]}, ("type", 1), "is no type of JSON Schema"),
        ({"properties": ["a"]}, ("properties",), "must be an object"),
        ({"$defs": 1}, ("$defs",), "must be an object"),
        (form(a="string"), ("properties", "a"), "is not a schema"),
        (form(a=form(b={"type": "x"})), ("properties", "a", "properties", "b", "type"), "no type"),
        ({"enum": "a"}, ("enum",), "must be a list"),
        ({"anyOf": {"type": "string"}}, ("anyOf",), "must be a list"),
        ({"oneOf": [{}, 3]}, ("oneOf", 1), "is not a schema"),
        ({"items": None}, ("items",), "is not a schema"),
        ({"items": {"type": "x"}}, ("items", "type"), "no type"),
        ({"additionalProperties": "no"}, ("additionalProperties",), "is not a schema"),
        ({"required": True}, ("required",), "must be a list of names"),
        ({"required": [1]}, ("required", 0), "names no property"),
        ({**form(a={}), "required": ["a", "b"]}, ("required", 1), "names no property"),
        ({"required": ["b"]}, ("required", 0), "names no property"),
        ({"$ref": "other.json"}, ("$ref",), "leads nowhere"),
        ({"$ref": 1}, ("$ref",), "leads nowhere"),
        ({"$ref": "#/a/b"}, ("$ref",), "leads nowhere"),
    ],
)
@pytest.mark.parametrize("key", ["payload_schema", "response_schema"])
def test_UI003_not_a_schema(key: str, schema: dict[str, Any], path: tuple[str, ...], fact: str):
    tools = [ui_tool("ask", **{"response_schema": form(), key: schema})]
    hit = only("UI003", subject(PY, tools=tools))
    assert hit.path == ("tools", 0, key, *path)
    assert fact in hit.message
    assert f"{'.'.join(map(str, path))} in the {key} of ask" in hit.message


@pytest.mark.parametrize(
    ("written", "meant"), [("str", "string"), ("Integer", "integer"), ("dict", "object")]
)
def test_UI003_mends_types_of_other_languages(written: str, meant: str):
    hit = only("UI003", asking(form(ok={"type": written})))
    assert hit.hint == (f'did you mean "{meant}"?',)
    assert hit.fix is not None
    path = ("tools", 0, "response_schema", "properties", "ok", "type")
    assert hit.fix.edits == (SetValue(path, meant),)


def test_UI003_leaves_the_required_names_of_broken_properties_alone():
    schema = {"properties": ["a"], "required": ["a"]}
    assert only("UI003", asking(schema)).path[-1] == "properties"


def test_UI003_reports_all_that_is_wrong_in_order():
    schema = {"type": "x", **form(a={"type": "y"}, b={"type": "z"}), "required": ["c"]}
    schema["type"] = "x"
    found = [hit.path[3:] for hit in hits("UI003", asking(schema))]
    assert found == [
        ("type",),
        ("required", 0),
        ("properties", "a", "type"),
        ("properties", "b", "type"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        NESTED,
        REF,
        {"$ref": "#"},
        {"$defs": {"a/b~": form()}, "$ref": "#/$defs/a~1b~0"},
        {"required": ["a"], "allOf": [form(a={})]},
        {"required": ["a"], "additionalProperties": {"type": ["string", "null"]}},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "prefixItems": [True]},
        {"type": "string", "format": "date", "title": "When?", "not": {"const": ""}},
    ],
)
def test_UI003_schemas(schema: dict[str, Any] | None):
    assert hits("UI003", subject(tools=[ui_tool("a", response_schema=schema), tool("b")])) == []


def test_UI003_a_deep_schema_is_no_problem():
    schema: dict[str, Any] = {"type": "nope"}
    for _ in range(80):
        schema = {"items": schema}
    assert only("UI003", asking(schema)).path[-1] == "type"


def test_UI004_component_is_not_pascal_case():
    ui = {"component": "askCard", "mode": "inline"}
    tools = [ui_tool(name, ui=ui, response_schema=form()) for name in ("ask", "tell")]
    hit = only("UI004", subject(PY, tools=tools))
    assert hit.path == ("tools", 0, "ui", "component")
    assert hit.message == 'the component name "askCard" is not PascalCase'
    assert hit.hint == ("write AskCard, here and as the name of its file",)


def test_UI004_name_without_letters():
    ui = {"component": "../..", "mode": "inline"}
    tools = [ui_tool("ask", ui=ui, response_schema=form())]
    assert only("UI004", subject(PY, tools=tools)).hint == ()


def test_UI004_pascal_case():
    assert hits("UI004", asking(form())) == []


@pytest.mark.parametrize(
    ("text", "count", "line", "column"),
    [
        ("function Card() {}\n", "no default export", 1, 1),
        ("", "no default export", 1, 1),
        ("// export default Card\n", "no default export", 1, 1),
        ("const a = 'export default'; /* export default */", "no default export", 1, 1),
        ("export { Card };\n", "no default export", 1, 1),
        ("export default A;\n  export default B;\n", "2 default exports", 2, 3),
        ("export default A; export { B as default }", "2 default exports", 1, 19),
    ],
)
def test_UI005_not_one_default_export(text: str, count: str, line: int, column: int):
    checked = subject({"tools/Card.jsx": text, "tools/notes.txt": ""})
    hit = only("UI005", checked)
    assert hit.message == f"tools/Card.jsx has {count}; exactly one is shown"
    assert hit.place == Place("tools/Card.jsx", line, column)


@pytest.mark.parametrize(
    "text",
    [
        CARD,
        "const A = () => <p>Don't, it's \"fine</p>;\nexport default A",
        "const A = () => <p>`</p>;\nexport default A",
        "const s = `export default ${x ? `a` : 'b'} c`;\nexport default A",
        "const q = /['\"`]/g;\nconst s = `x`;\nexport default A",
        "if (/[/\"]'/.test(x)) {}\nexport default A",
        "const a = b / c; // it's\nexport default A",
        'const A = <a href="http://x.y/*">a</a>;\nexport default A',
        "/* it's `odd` */ export default A",
        "const a = 'it\\'s';\nexport default A",
        "const x = module.export default;\nexport default A",
        "const A = 1;\nexport { A as default, B };",
        "export\n  default A",
        "const a = {/* note */}; const b = <B x={y} /> ; export default A",
        "return /unclosed\nexport default A",
    ],
)
def test_UI005_one_default_export(text: str):
    assert hits("UI005", subject({"tools/Card.jsx": text})) == []


@pytest.mark.parametrize(
    "piece", ["/*", "`'", '"\\"', "=/[", "export{", "export {a as default ", "return /x", "('"]
)
def test_UI005_takes_time_in_proportion_to_the_text(piece: str):
    start = time.process_time()
    assert list(default_exports(piece * (500_000 // len(piece)))) == []
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("type_", "part", "refused"),
    [
        ('literal["yes", "no"]', {"enum": ["yes", "no", "later"]}, '"later"'),
        ('literal["yes", "no"]', {"type": "string"}, "any text"),
        ("bool", {"type": "string"}, "any text"),
        ("str", {"type": "boolean"}, "false"),
        ("literal[true]", {"type": "boolean"}, "false"),
        ("int", {"type": "number"}, "any number"),
        ("str", {"type": ["string", "null"]}, "null"),
        ("str", {"type": "array"}, "a list"),
        ("list[str]", {"type": "object"}, "an object"),
        ("dict", {"type": "integer"}, "any whole number"),
        ("str | bool", {"type": "integer"}, "any whole number"),
        ("optional[str]", {"type": "integer"}, "any whole number"),
    ],
)
def test_UI006_answer_does_not_fit(type_: str, part: dict[str, Any], refused: str):
    checked = asking(form(ok=part), type_=type_)
    hit = only("UI006", checked)
    assert hit.path == ("variables", "x", "source", "triggers", 0, "response_key")
    assert hit.message == f'"ok" in the answer to ask may be {refused}, which x does not take'
    assert hit.cause == (f"the type of x is {type_}",)
    assert codes(checked) == ["UI006"]


@pytest.mark.parametrize(
    ("type_", "part"),
    [
        ('literal["yes", "no"]', {"enum": ["yes"]}),
        ("any", {"type": "string"}),
        ("bool", {"type": "boolean"}),
        ("literal[true, false]", {"type": "boolean"}),
        ("float", {"type": "integer"}),
        ("optional[str]", {"type": ["string", "null"]}),
        ("str | int", {"type": "integer"}),
        ("list[int]", {"type": "array", "items": {"type": "string"}}),
        ("dict", {"type": "object"}),
        ("str", {"anyOf": [{"type": "integer"}]}),
        ("str", {"title": "Anything"}),
        ("str", {"type": "nonsense"}),
        ("str", {"type": ["nonsense", 3, {}]}),
        ("str", {"type": {"a": 1}}),
        ("str", {"enum": "broken"}),
        ("str", True),
    ],
)
def test_UI006_answer_fits_or_is_not_simple(type_: str, part: Any):
    assert hits("UI006", asking(form(ok=part), type_=type_)) == []


def test_UI006_models_take_objects():
    models = [{"name": "Ticket", "fields": {"a": {"type": "str"}}}]
    checked = asking(form(ok={"type": "object"}), type_="Ticket", models=models)
    assert hits("UI006", checked) == []
    named = asking(form(ok={"enum": [1]}), type_="Gone")
    assert hits("UI006", named) == []


def test_UI006_leaves_missing_keys_to_UI002_and_transitions_alone():
    assert hits("UI006", asking(form(other={"type": "string"}), type_="bool")) == []
    trigger = {"type": "ui_response", "tool": "ask", "response_key": "ok"}
    transitions = [{"from": "a", "to": "b", "trigger": trigger}]
    source = {"type": "derived", "default": "a", "transitions": transitions}
    variables = {"x": {"type": 'literal["a", "b"]', "source": source}}
    assert hits("UI006", asking(form(ok={"type": "boolean"}), variables=variables)) == []


def shown(text: str, *more: dict[str, Any], **files: str):
    """A UI tool `ask`, and an agent tool `find` with the code that is given."""
    code = {**PY, "tools/lookup.py": text, **files}
    schema = {"response_schema": form()}
    return subject(code, tools=[ui_tool("ask", **schema), tool("find"), *more])


def test_UI007_code_shows_what_is_not_declared():
    text = "from weft import use_ui_tool\nasync def find():\n    await use_ui_tool('aks', 1)\n"
    checked = shown(text)
    hit = only("UI007", checked)
    assert hit.message == 'use_ui_tool shows "aks", which is no UI tool of the package'
    assert hit.hint == ('did you mean "ask"?',)
    assert hit.place == Place("tools/lookup.py", 3, 23)
    assert codes(checked) == ["UI007"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("find", "declare find as UI_Tool, or name the one that is meant"),
        ("Confirmation", "declare it in tools.json as UI_Tool, or name one that is declared"),
    ],
)
def test_UI007_says_what_to_do(name, hint):
    text = f"import weft\nasync def find():\n    await weft.use_ui_tool(tool_id='{name}')\n"
    assert only("UI007", shown(text)).hint == (hint,)


@pytest.mark.parametrize(
    "text",
    [
        "import weft as w\nasync def find(): await w.use_ui_tool('x')",
        "import weft.runtime.asking\ndef find(): weft.runtime.asking.use_ui_tool('x')",
        "from weft import use_ui_tool\ndef inner(): use_ui_tool('x')\ndef find(): inner()",
        "from weft import use_ui_tool\ndef find():\n    r'a'\n    '\\d'\n    use_ui_tool('x')",
    ],
)
def test_UI007_ways_to_call(text):
    assert len(hits("UI007", shown(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from weft import use_ui_tool\nasync def find(): await use_ui_tool('ask')",
        "from weft import use_ui_tool\nasync def find(name: str): await use_ui_tool(name)",
        "from weft import use_ui_tool\nasync def find(a: list): await use_ui_tool(*a)",
        "from weft import use_ui_tool\nasync def find(): await use_ui_tool(payload='x')",
        "from weft import use_ui_tool\nasync def find(): await use_ui_tool(7)",
        "from weft import use_ui_tool\nasync def find(): await (use_ui_tool or f)('x')",
        "import weft\nasync def find(): await weft.other('x'), weft.use_ui_tool('ask')",
        # Functions of the package's own that have the same name.
        "def use_ui_tool(kind): ...\ndef find(): use_ui_tool('x')",
        "from weft import use_ui_tool\ndef use_ui_tool(kind): ...\ndef find(): use_ui_tool('x')",
        "from shared import use_ui_tool\ndef find(): use_ui_tool('x')",
        "import shared\ndef find(): shared.use_ui_tool('x')",
        "class Ui: ...\ndef find(): Ui().use_ui_tool('x')",
        "def find(self): self.use_ui_tool('x')",
    ],
)
def test_UI007_other_calls(text):
    own = {"tools/shared.py": "def use_ui_tool(kind): ...\n"}
    assert hits("UI007", shown(text, **own)) == []


def test_UI007_code_that_nothing_uses():
    text = "from weft import use_ui_tool\nasync def old(): await use_ui_tool('x')\n"
    files = {"tools/old.py": text}
    assert hits("UI007", shown("def find(): ...", **files)) == []
    assert hits("UI007", shown("def find(): ...", tool("gone", "gone.py"), **files)) == []
    assert hits("UI007", subject(tools=[tool("find")])) == []


def test_UI007_a_tool_that_tools_json_misspells_is_reported_there():
    checked = subject(PY, tools=[ui_tool("aks", response_schema=form())])
    assert codes(checked) == ["TOOL002"]
    assert hits("UI007", checked) == []


def approving(code, *tools, interaction="approval"):
    agents = [agent("A", human_interaction=interaction)]
    return subject(code, agents=agents, tools=list(tools))


def test_UI008_an_agent_that_works_by_approval_asks_nobody():
    code = {"tools/find.py": "def find(): ..."}
    checked = approving(code, tool("find", "find.py", agent="A"))
    hit = only("UI008", checked)
    assert hit.path == ("agents", 0, "human_interaction")
    assert hit.message == "A works by approval, but has no UI tool to ask for it"
    assert only("UI008", approving(PY, ui_tool("ask", agent="Other")))


@pytest.mark.parametrize("owner", ["A", "a"])
def test_UI008_an_agent_with_a_ui_tool(owner):
    assert hits("UI008", approving(PY, ui_tool("ask", agent=owner))) == []


def test_UI008_a_tool_that_shows_the_ui_tool_of_another():
    code = {"tools/find.py": "from weft import use_ui_tool\ndef find(): use_ui_tool('ask')"}
    assert hits("UI008", approving(code, tool("find", "find.py", agent="A"))) == []


@pytest.mark.parametrize("interaction", ["none", "context", "feedback", "single"])
def test_UI008_other_ways_to_work_with_people(interaction):
    assert hits("UI008", approving({}, interaction=interaction)) == []


def asked_of(addressee):
    code = {**PY, "tools/AskCard.jsx": "export default function AskCard() {}"}
    return subject(code, tools=[ui_tool("ask", **{"for": addressee})], variables={"boss": static()})


@pytest.mark.parametrize("addressee", ["user:{boss}", "role:clerk", "group:{app_id}-{boss}", None])
def test_UI009_somebody_to_ask(addressee):
    assert hits("UI009", asked_of(addressee)) == []


def test_UI009_somebody_to_approve():
    server = {"name": "crm", "command": ["crm"], "for": "role:{bos}"}
    hit = only("UI009", subject(mcp_servers=[server], variables={"boss": static()}))
    assert hit.path == ("mcp_servers", 0, "for")
    assert "the addressee of crm" in hit.message


def test_UI009_nobody_knows_whom_to_ask():
    hit = only("UI009", asked_of("user:{bos}"))
    assert hit.path == ("tools", 0, "for")
    assert (hit.offset, hit.length) == (6, 3)
    assert hit.message == 'the addressee of ask puts in "bos", which is no variable'
    assert hit.hint == ('did you mean "boss"?',)


def typed(key, schema, **more):
    trigger = {"type": "ui_response", "tool": "ask", "response_key": key}
    variables = {"x": derived("any", trigger, **more)}
    return subject(PY, tools=[ui_tool("ask", response_schema=schema)], variables=variables)


SIGN_IN = {
    "properties": {
        "pin": {"type": "string", "writeOnly": True},
        "account": {"properties": {"code": {"format": "password"}, "name": {"type": "string"}}},
        "vault": {"writeOnly": True, "properties": {"name": {"type": "string"}}},
        "link": {"$ref": "#/properties/pin"},
        "pins": {"type": "array", "items": {"format": "password"}},
        "rows": {"type": "array", "items": {"properties": {"pin": {"writeOnly": True}}}},
        "names": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
    }
}


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("pin", "pin"),
        ("account.code", "account.code"),
        ("vault.name", "vault"),
        ("link", "link"),
        ("pins", "pins"),
        ("rows", "rows"),
    ],
)
def test_UI010_a_secret_field_sets_nothing(key, field):
    hit = only("UI010", typed(key, SIGN_IN))
    assert hit.path == ("variables", "x", "source", "triggers", 0, "response_key")
    assert f'"{field}" in the answer to ask is a secret field' in hit.message


@pytest.mark.parametrize("key", ["account.name", "account", "names", "nowhere.at.all"])
def test_UI010_other_fields(key):
    assert hits("UI010", typed(key, SIGN_IN)) == []
    assert hits("UI010", typed("pin", {"type": "object"})) == []


def test_UI010_a_transition_has_its_own_value():
    trigger = {"type": "ui_response", "tool": "ask", "response_key": "pin"}
    steps = [{"from": 1, "to": 2, "trigger": trigger}]
    source = {"type": "derived", "default": 1, "transitions": steps}
    tools = [ui_tool("ask", response_schema=SIGN_IN)]
    checked = subject(PY, tools=tools, variables={"x": {"type": "int", "source": source}})
    assert hits("UI010", checked) == []
