"""Family TOOL."""

import pytest

from unit.check.builders_code import (
    agent,
    codes,
    derived,
    hits,
    hook,
    lifecycle,
    model,
    only,
    subject,
    tool,
    ui_tool,
)
from weft.findings import Place, SetValue

FIND = {"tools/lookup.py": "def find(): ...\n"}
ASK = "from weft import use_ui_tool\n\nasync def ask():\n    return await use_ui_tool('ask')\n"
FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


def test_TOOL001_file_is_missing():
    checked = subject({"tools/look_up.py": "def find(): ..."}, tools=[tool("find")])
    hit = only("TOOL001", checked)
    assert hit.path == ("tools", 0, "file")
    assert hit.message == ("the tool find is declared in tools/lookup.py, which does not exist")
    assert hit.hint == ('did you mean "look_up.py"?',)
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("tools", 0, "file"), "look_up.py"),)
    assert codes(checked) == ["TOOL001"]


def test_TOOL001_reports_a_missing_file_once():
    checked = subject(
        tools=[tool("find"), tool("keep"), tool("find", agent="X")],
        lifecycle_tools=[lifecycle("load", "lookup.py")],
    )
    hit = only("TOOL001", checked)
    assert hit.cause == ("keep, find and load should be there too",)
    assert hit.hint == ("write tools/lookup.py with find in it",)
    assert hit.fix is None


@pytest.mark.parametrize("file", ["lookup.py", "tools/lookup.py"])
def test_TOOL001_file_is_there(file: str):
    checked = subject(FIND, tools=[tool("find", file)])
    assert codes(checked) == []


def test_TOOL001_a_folder_of_the_same_name_inside_tools_comes_first():
    code = {"tools/tools/a.py": "def find(): ...", "tools/a.py": "def other(): ..."}
    assert hits("TOOL002", subject(code, tools=[tool("find", "tools/a.py")])) == []


def test_TOOL002_function_is_missing():
    code = {"tools/lookup.py": "import json\ndef find_order(): ...\n"}
    checked = subject(code, tools=[tool("find_ordr"), tool("find_ordr", agent="X")])
    hit = only("TOOL002", checked)
    assert hit.path == ("tools", 0, "function")
    assert hit.message == "tools/lookup.py does not define the function find_ordr"
    assert hit.hint == ('did you mean "find_order"?',)
    assert hit.fix is None


def test_TOOL002_mends_another_spelling_wherever_it_stands():
    code = {"tools/lookup.py": "def find_order(): ...\n"}
    tools = [tool("findOrder"), tool("findOrder", agent="X")]
    hit = only("TOOL002", subject(code, tools=tools))
    assert hit.fix is not None
    assert hit.fix.edits == (
        SetValue(("tools", 0, "function"), "find_order"),
        SetValue(("tools", 1, "function"), "find_order"),
    )


def test_TOOL002_file_without_functions():
    hit = only("TOOL002", subject({"tools/lookup.py": ""}, tools=[tool("find")]))
    assert hit.hint == ("define find in tools/lookup.py",)


@pytest.mark.parametrize(
    "text",
    [
        "async def find(): ...",
        "from .other import find",
        "from elsewhere import search as find",
        "from elsewhere import *",
        "find = lambda: 1",
        "from elsewhere import search\nfind = search",
        "find: object = make()",
        "find, other = 1, 2",
        "def find(): ...\nfind: object",
        "def find(): ...\nNAMES = [find for find in 'ab']",
        "find = None\nfrom elsewhere import *",
        "find = None\ndef load():\n    global find\n    find = len\nload()",
        "find = None\ndef find(): ...",
        "find = None\nif True:\n    def find(): ...",
        "try:\n    from x import find\nexcept ImportError:\n    find = None",
        "@wrapped\nclass find: ...",
        "@wrapped\ndef find(): ...",
        "try:\n    import x\nexcept ImportError:\n    def find(): ...",
        "if True:\n    def find(): ...",
        "with open('x') as find: ...",
        "def __getattr__(name): ...",
    ],
)
def test_TOOL002_function_is_there_in_some_way(text: str):
    assert hits("TOOL002", subject({"tools/lookup.py": text}, tools=[tool("find")])) == []


def test_TOOL002_inner_functions_do_not_count():
    code = {"tools/lookup.py": "def outer():\n    def find(): ...\n"}
    assert hits("TOOL002", subject(code, tools=[tool("find")]))


def test_TOOL003_file_does_not_parse():
    checked = subject(
        {"tools/lookup.py": "def find():\n    return (1\n", "hooks/watch.py": "def"},
        tools=[tool("find")],
        hooks=[hook("go", "before_chat")],
    )
    first, second = hits("TOOL003", checked)
    assert first.message.startswith("tools/lookup.py is not valid Python: ")
    assert first.place == Place("tools/lookup.py", 2, 12)
    assert second.place is not None
    assert second.place.file == "hooks/watch.py"
    assert codes(checked) == ["TOOL003", "TOOL003"]


@pytest.mark.parametrize("text", ["a\0b", "x = '\ud800'", "(" * 5000, "-" * 100_000 + "1"])
def test_TOOL003_anything_that_python_refuses(text: str):
    place = only("TOOL003", subject({"tools/x.py": text})).place
    assert place is not None
    assert (place.file, place.line) == ("tools/x.py", 1)


def test_TOOL003_code_that_python_warns_of_is_fine():
    checked = subject({"tools/lookup.py": "def find():\n    return '\\d'\n"}, tools=[tool("find")])
    assert codes(checked) == []


def test_TOOL004_parameter_without_type_hint():
    code = {"tools/lookup.py": "def find(a: str,\n         é='ü', b=1, *c, d, **e): ...\n"}
    checked = subject(code, tools=[tool("find"), tool("find", agent="X")])
    hit = only("TOOL004", checked)
    assert hit.path == ("tools", 0, "function")
    assert hit.message == "find has no type hint for é, b and d"
    assert hit.hint == ("write the type, for example é: str",)
    assert hit.place == Place("tools/lookup.py", 2, 10)


def test_TOOL004_counts_columns_in_characters():
    code = {"tools/lookup.py": "def find(a: str = 'ü', b=1): ...\n"}
    assert only("TOOL004", subject(code, tools=[tool("find")])).place == Place(
        "tools/lookup.py", 1, 24
    )


@pytest.mark.parametrize(
    "signature",
    ["context_variables, a: int", "a: str, *, context", "*args, **kwargs", ""],
)
def test_TOOL004_hinted_and_injected_parameters(signature: str):
    code = {"tools/lookup.py": f"def find({signature}): ...\n"}
    assert hits("TOOL004", subject(code, tools=[tool("find")])) == []


def test_TOOL004_a_decorator_may_change_the_parameters():
    code = {"tools/lookup.py": "@by_name\ndef find(a: str, /): ...\n"}
    assert hits("TOOL004", subject(code, tools=[tool("find")])) == []


@pytest.mark.parametrize(
    "hint",
    [
        "Ordr",
        "list[Ordr]",
        "dict[str, Ordr | None]",
        "str | Ordr",
        "Ordr[int]",
        "Ordr.Kind",
        "Ordr.Kind[int]",
    ],
)
def test_TOOL004_hint_with_a_name_that_is_not_there(hint: str):
    code = {"tools/lookup.py": f"class Order: ...\ndef find(a: {hint}): ...\n"}
    hit = only("TOOL004", subject(code, tools=[tool("find")]))
    fact = "the type hint of a names Ordr, which tools/lookup.py neither defines nor imports"
    assert (hit.severity, hit.message) == ("error", fact)
    assert hit.hint == ('did you mean "Order"?',)
    assert hit.place == Place("tools/lookup.py", 2, 10)


def test_TOOL004_hint_with_a_name_that_is_like_no_other():
    code = {"tools/lookup.py": "def find(a: Undefined): ...\n"}
    hit = only("TOOL004", subject(code, tools=[tool("find")]))
    assert hit.hint == ("import Undefined, or correct the hint",)


@pytest.mark.parametrize(
    "hint",
    [
        "Order",
        "'Order'",
        "'list[Order | None]'",
        "Later",
        "Literal['Undefined']",
        "Annotated[str, 'of the Undefined']",
        "Imported['Undefined']",
        "other.Order",
        "'not a hint'",
        "'(' ",
        "None",
    ],
)
def test_TOOL004_hints_that_may_be_read(hint: str):
    text = (
        "import other\nfrom typing import Annotated, Literal\n"
        "from elsewhere import Imported\n"
        f"class Order: ...\ndef find(a: {hint}, context_variables: 'Anything'): ...\n"
        "class Later: ...\n"
    )
    assert hits("TOOL004", subject({"tools/lookup.py": text}, tools=[tool("find")])) == []


def test_TOOL004_a_star_import_may_bring_any_name():
    code = {"tools/lookup.py": "from elsewhere import *\ndef find(a: Undefined): ...\n"}
    assert hits("TOOL004", subject(code, tools=[tool("find")])) == []


def test_TOOL004_is_not_about_lifecycle_tools():
    code = {"tools/start.py": "def load(a=1): ...\n"}
    assert codes(subject(code, lifecycle_tools=[lifecycle("load")])) == []


@pytest.mark.parametrize("signature", ["a, context_variables, b", "message, *, a, b: int, c=1"])
def test_TOOL005_lifecycle_tool_requires_arguments(signature: str):
    code = {"tools/start.py": f"def load({signature}): ...\n"}
    hit = only("TOOL005", subject(code, lifecycle_tools=[lifecycle("load")]))
    assert hit.path == ("lifecycle_tools", 0, "function")
    assert hit.message == "before_chat calls load without a and b, which it requires"
    assert hit.place == Place("tools/start.py", 1, signature.index("a,") + 10)


@pytest.mark.parametrize(
    "text",
    [
        "def load(context_variables, a=1, *b, c=2, **d): ...",
        "@provided\ndef load(a): ...",
        "from .other import load",
    ],
)
def test_TOOL005_lifecycle_tool_can_be_called(text: str):
    code = {"tools/start.py": text}
    assert hits("TOOL005", subject(code, lifecycle_tools=[lifecycle("load")])) == []


def test_TOOL006_no_description():
    code = {"tools/lookup.py": 'def find():\n    """  Finds an order.\n\n    And more."""\n'}
    hit = only("TOOL006", subject(code, tools=[tool("find", description=" ")]))
    assert hit.path == ("tools", 0, "function")
    assert hit.message == "the tool find has no description"
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("tools", 0, "description"), "Finds an order."),)


@pytest.mark.parametrize("summary", ["", "x" * 141])
def test_TOOL006_is_not_mended_without_a_fitting_docstring(summary: str):
    code = {"tools/lookup.py": f'def find():\n    """{summary}"""\n'}
    for text in ("", " "):
        assert only("TOOL006", subject(code, tools=[tool("find", description=text)])).fix is None
    assert only("TOOL006", subject(tools=[tool("find", description="")])).fix is None


def test_TOOL006_the_docstring_is_sent_where_there_is_no_description():
    code = {"tools/lookup.py": f'def find():\n    """{"x" * 140}\n\n    And more."""\n'}
    assert hits("TOOL006", subject(code, tools=[tool("find", description="")])) == []
    code = {"tools/lookup.py": f'def find():\n    """{"x" * 141}"""\n'}
    hit = only("TOOL006", subject(code, tools=[tool("find", description="")]))
    assert "the first line of its docstring has 141 characters" in hit.message


def test_TOOL006_long_description():
    hit = only("TOOL006", subject(FIND, tools=[tool("find", description="x" * 150)]))
    assert hit.path == ("tools", 0, "description")
    assert "has 150 characters" in hit.message
    assert (hit.offset, hit.length) == (140, 10)


def test_TOOL006_description_of_140_characters():
    assert hits("TOOL006", subject(FIND, tools=[tool("find", description="x" * 140)])) == []


def test_TOOL007_file_that_nothing_uses():
    code = {**FIND, "tools/old.py": "import old", "tools/Card.jsx": "", "tools/__init__.py": ""}
    checked = subject(code, tools=[tool("find")])
    hit = only("TOOL007", checked)
    assert hit.message == "nothing refers to tools/old.py"
    assert hit.place == Place("tools/old.py", 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "from . import old",
        "from .old import x",
        "from .old import *",
        "from ..tools import old",
        "from ..tools.old import x as y",
        "import tools.old",
        "import tools.old as o",
        "import workflows.Support.tools.old",
        "from workflows.Support.tools import old",
        "import old",
        "def f():\n    import old",
    ],
)
def test_TOOL007_file_that_another_one_imports(text: str):
    code = {"tools/lookup.py": f"def find(): ...\n{text}\n", "tools/old.py": "x = 1"}
    assert hits("TOOL007", subject(code, tools=[tool("find")])) == []


@pytest.mark.parametrize("text", ["from ...tools import old", "import json", "from . import new"])
def test_TOOL007_imports_of_other_things_do_not_count(text: str):
    code = {"tools/lookup.py": f"def find(): ...\n{text}\n", "tools/old.py": "x = 1"}
    assert hits("TOOL007", subject(code, tools=[tool("find")]))


def test_TOOL007_file_that_a_setting_names():
    code = {f"tools/{name}.py": "def f(): ..." for name in ("a", "b", "c", "d", "e", "f")}
    code["tools/g/__init__.py"] = ""
    checked = subject(
        code,
        tools=[tool("f", "a.py")],
        lifecycle_tools=[lifecycle("f", "b.py")],
        orchestrator={"runtime_extensions": [{"kind": "api_router", "entrypoint": "tools.c:f"}]},
        variables={
            "x": derived("str", {"type": "function", "function": "workflows.Support.tools.d:f"}),
            "y": derived("str", {"type": "user_text", "match": {"equals": "y"}}),
            "z": {
                "type": "str",
                "source": {"type": "computed", "computation": "tools.e:f", "inputs": ["x"]},
            },
        },
        flow={
            "steps": [
                {"kind": "step", "name": "one", "work": {"kind": "agent", "agent": "RouterAgent"}},
                {
                    "kind": "step",
                    "name": "two",
                    "work": {"kind": "function", "function": "tools.f:f"},
                },
            ]
        },
    )
    assert hits("TOOL007", checked) == []


def test_TOOL007_is_silent_where_a_name_is_misspelt_or_a_file_is_broken():
    router = {"kind": "api_router", "entrypoint": "tools.looku:find"}
    misspelt = subject(FIND, orchestrator={"runtime_extensions": [router]})
    assert codes(misspelt) == ["BIND009"]
    assert codes(subject({**FIND, "tools/x.py": "("})) == ["TOOL003"]


def test_TOOL007_a_name_that_is_like_none_does_not_hide_the_file():
    router = {"kind": "api_router", "entrypoint": "zzzzzzz:find"}
    checked = subject(
        FIND, orchestrator={"runtime_extensions": [router]}, tools=[tool("f", "q.py")]
    )
    assert codes(checked) == ["BIND009", "TOOL001", "TOOL007"]


SAVE = {"tools/lookup.py": "def save(title: str, body: str, context, extra: int = 0): ...\n"}
TICKET = {
    "models": [model("Ticket", title="str", text="str")],
    "registry": [{"agent": "RouterAgent", "model": "Ticket"}],
}


def automatic(**more: object):
    return {
        "agents": [agent("RouterAgent", auto_tool_mode=True)],
        "tools": [tool("save", auto_invoke=True)],
        **TICKET,
        **more,
    }


def test_TOOL008_output_lacks_a_parameter():
    checked = subject(SAVE, **automatic())
    hit = only("TOOL008", checked)
    assert hit.path == ("tools", 0, "function")
    assert hit.message == "save is called with the fields of Ticket, which has no body"
    assert hit.cause == ("the fields of Ticket are title and text",)
    assert hit.hint == ("add the field to Ticket, or give the parameter a default value",)
    assert codes(checked) == ["TOOL008"]


def test_TOOL008_suggests_the_nearest_field():
    models = [model("Ticket", title="str", the_body="str")]
    hit = only("TOOL008", subject(SAVE, **automatic(models=models)))
    assert hit.hint == ('did you mean "the_body"?',)
    empty = only("TOOL008", subject(SAVE, **automatic(models=[model("Ticket")])))
    assert "has no title and body" in empty.message
    assert empty.cause == ()


@pytest.mark.parametrize(
    ("code", "more"),
    [
        (SAVE, {"models": [model("Ticket", title="str", body="str", more="str")]}),
        (SAVE, {"tools": [tool("save")], "agents": [agent("RouterAgent")]}),
        (SAVE, {"models": []}),
        (SAVE, {"registry": [{"agent": "RouterAgent", "model": None}]}),
        ({"tools/lookup.py": "@typed\ndef save(a): ..."}, {}),
        ({"tools/lookup.py": "from x import save"}, {}),
        ({}, {"tools": [tool("save", "../x.py", auto_invoke=True)]}),
    ],
)
def test_TOOL008_output_has_all_or_is_not_known(code: dict[str, str], more: dict[str, object]):
    assert hits("TOOL008", subject(code, **automatic(**more))) == []


def test_TOOL009_mode_without_tool_and_model():
    checked = subject(agents=[agent("RouterAgent", auto_tool_mode=True)])
    hit = only("TOOL009", checked)
    assert hit.path == ("agents", 0, "auto_tool_mode")
    assert hit.message == (
        "RouterAgent has auto_tool_mode, but not a tool with auto_invoke and "
        "a model bound in the registry"
    )


def test_TOOL009_leaves_a_required_model_to_BIND007():
    agents = [agent("RouterAgent", auto_tool_mode=True, structured_outputs_required=True)]
    tools = [tool("find", auto_invoke=True)]
    assert codes(subject(FIND, agents=agents, tools=tools)) == ["BIND007"]


def test_TOOL009_tool_without_mode():
    hit = only("TOOL009", subject(FIND, tools=[tool("find", auto_invoke=True)]))
    assert hit.path == ("tools", 0, "auto_invoke")
    assert hit.message == ("find has auto_invoke, but its agent RouterAgent has no auto_tool_mode")


def test_TOOL009_is_silent_where_the_agent_is_misspelt():
    checked = subject(
        FIND,
        agents=[agent("RouterAgent", auto_tool_mode=True)],
        tools=[tool("find", agent="RouterAgnt", auto_invoke=True)],
        models=[model("Ticket", title="str")],
        registry=[{"agent": "Routeragent", "model": "Ticket"}],
    )
    assert codes(checked) == ["BIND001", "BIND003"]


def test_TOOL009_complete():
    assert hits("TOOL009", subject(SAVE, **automatic())) == []


def test_TOOL010_ui_tool_never_asks():
    code = {"tools/ask.py": "def other():\n    use_ui_tool()\n\nasync def ask(): ...\n"}
    checked = subject(code, tools=[ui_tool("ask", response_schema=FORM)])
    hit = only("TOOL010", checked)
    assert hit.path == ("tools", 0, "function")
    assert hit.message == "the UI tool ask never calls use_ui_tool"
    assert hit.place == Place("tools/ask.py", 4, 1)


@pytest.mark.parametrize(
    "text",
    [
        ASK,
        "import weft\nasync def ask():\n    await weft.use_ui_tool()",
        "from weft import use_ui_tool as u\nasync def ask():\n    await u()",
        "async def inner():\n    use_ui_tool()\nasync def ask():\n    await inner()",
        "def a(): b()\ndef b(): a(), use_ui_tool()\ndef ask(): a()",
        "class Api:\n    def go(self): use_ui_tool()\ndef ask(): Api().go()",
        "from .shared import show\ndef ask(): show()",
        "from . import shared\ndef ask(): shared.show()",
        "import tools.shared as s\ndef ask(): s.show()",
        "from elsewhere import ask",
    ],
)
def test_TOOL010_ui_tool_asks_somehow(text: str):
    code = {"tools/ask.py": text, "tools/shared.py": "def show():\n    use_ui_tool()\n"}
    assert hits("TOOL010", subject(code, tools=[ui_tool("ask")])) == []


@pytest.mark.parametrize("shared", ["def show(): ...\n", "(", None])
def test_TOOL010_follows_imports_only_as_far_as_there_is_code(shared: str | None):
    code = {"tools/ask.py": "from .shared import show\ndef ask(): show()"}
    code |= {"tools/shared.py": shared} if shared else {}
    assert hits("TOOL010", subject(code, tools=[ui_tool("ask")]))


def test_TOOL010_is_not_about_agent_tools():
    assert hits("TOOL010", subject(FIND, tools=[tool("find")])) == []


@pytest.mark.parametrize(
    "file",
    ["/etc/x.py", "../x.py", "a/../x.py", "./x.py", "a//x.py", "C:x.py", "x.txt", "a\nb.py", "py"],
)
def test_TOOL011_file_outside_of_tools(file: str):
    checked = subject(tools=[tool("find", file)])
    hit = only("TOOL011", checked)
    assert hit.path == ("tools", 0, "file")
    assert hit.message == f'"{file}" is no path to a Python file under tools/'
    assert hit.fix is None
    assert codes(checked) == ["TOOL011"]


def test_TOOL011_mends_backslashes():
    hit = only("TOOL011", subject(FIND, lifecycle_tools=[lifecycle("find", "tools\\lookup.py")]))
    assert hit.path == ("lifecycle_tools", 0, "file")
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("lifecycle_tools", 0, "file"), "tools/lookup.py"),)


def test_TOOL011_file_in_a_folder_below():
    code = {"tools/a/b.py": "def find(): ..."}
    assert codes(subject(code, tools=[tool("find", "a/b.py")])) == []


def test_TOOL012_second_automatic_tool():
    tools = [tool(name, auto_invoke=True) for name in ("save", "find", "save")]
    checked = subject(**automatic(tools=tools))
    hit = only("TOOL012", checked)
    assert hit.path == ("tools", 1, "auto_invoke")
    assert hit.message == "RouterAgent has a second tool with auto_invoke: find"
    assert hit.cause == ("save has it already",)


def test_TOOL012_one_for_each_agent():
    tools = [tool("save", auto_invoke=True), tool("save", agent="Clerk", auto_invoke=True)]
    agents = [agent("RouterAgent"), agent("Clerk")]
    assert hits("TOOL012", subject(agents=agents, tools=tools)) == []
