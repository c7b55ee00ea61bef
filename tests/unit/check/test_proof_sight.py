"""Ways in which code may set a variable or ask a person without showing it plainly."""

import pytest

from unit.check.builders_proof import derived, proof, rule, tool

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))
TRAP = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
ACT = "def act(context_variables, a=None):\n    "
PUT = "(c):\n    c['x'] = True\n"
LATER = "def help():\n    c = ctx\n    c['x'] = True\n"
BOX = "class Box:\n    def {}(self, other):\n        other['x'] = True\n"


def seen(text, files=None):
    """Return what is said of a run that ends when x is set, and of one that is lost then."""
    code = {"tools/act.py": text, **(files or {})}
    spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": code}
    trap = proof(*TRAP, **spec)
    assert not trap.unreachable_agents
    return proof(*LOOP, agents="A", **spec).status, trap.status


def asked(text, files=None):
    """Return whether it may be that a person is asked what C alone, who never speaks, asks."""
    ui = {"tool_type": "UI_Tool", "ui": {"component": "Ask", "mode": "inline"}}
    answer = {"type": "ui_response", "tool": "ask", "response_key": "x"}
    found = proof(
        *TRAP,
        agents="ABC",
        variables={"x": derived(answer)},
        tools=[tool("A"), tool("C", "ask", "ask.py", **ui)],
        code={"tools/act.py": text, "tools/ask.py": "def ask(): ...", **(files or {})},
    )
    assert found.status == ("proven" if "B" in found.unreachable_agents else "not proven")
    return "B" not in found.unreachable_agents


def hinted(head, hint):
    return f"{head}\ndef act(c: {hint}, a=None):\n    c['x'] = True\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{ACT}[0 for context_variables['x'] in [True]]",
        f"{ACT}{{k: 0 for k, context_variables['x'] in a}}",
        # The type may be the context under another name.
        hinted("from weft import Context as C", "C"),
        hinted("from weft import Context as C", "'C'"),
        hinted("from weft import Context\nC = Context", "C"),
        hinted("from weft import Context\nC = Annotated[Context, 1]", "Annotated[C, 2]"),
        # Comparisons may ask the other side.
        f"{BOX.format('__eq__')}{ACT}context_variables == Box()",
        f"{BOX.format('__gt__')}{ACT}context_variables < Box()",
        f"{BOX.format('__contains__')}{ACT}context_variables in Box()",
        f"{ACT}isinstance(context_variables, Box)",
        # What looks like Python's own function may be another.
        f"def print{PUT}{ACT}print(context_variables)",
        f"from rich import print\n{ACT}print(context_variables)",
        f"from rich import *\n{ACT}print(context_variables)",
        f"def getattr(c, k):\n    c['x'] = True\n{ACT}getattr(context_variables, 'get')",
        f"def get_context_variable{PUT}{ACT}get_context_variable(context_variables)",
        f"{ACT}a.b.get_context_variable(context_variables)",
        # Other functions get at it under a name of the whole file.
        f"{LATER}{ACT}global ctx\n    ctx = context_variables\n    help()",
        f"def help(a, context, c):\n    c['x'] = True\n{ACT}help(*a, context_variables)",
        f"{ACT}context_variables.items()._mapping['x'] = True",
        f"{ACT}context_variables.get.__self__['x'] = True",
    ],
)
def test_the_context_may_get_out_of_sight(text):
    assert seen(text) == ("not proven", "not proven")


def test_the_context_may_be_named_so_in_another_file():
    names = {"tools/names.py": "from weft import Context\nC = Context\n"}
    assert seen(hinted("from names import C", "C"), names) == ("not proven", "not proven")
    assert seen(hinted("from names import *", "C"), names) == ("not proven", "not proven")


@pytest.mark.parametrize(
    "use",
    [
        "print(context_variables)",
        "'y' in context_variables",
        "context_variables is None",
        "isinstance(context_variables, dict)",
        "getattr(context_variables, 'get')('y')",
        "get_context_variable(context_variables, 'y')",
        "lib.get_context_variable(context_variables, 'y')",
    ],
)
def test_what_only_looks_at_the_context_sets_nothing(use):
    head = "import lib\nfrom lib import get_context_variable\nclass Model: ...\n"
    text = f"{head}def act(context_variables, a: Model):\n    {use}"
    code = {"variables": {"x": derived()}, "tools": [tool("A")], "code": {"tools/act.py": text}}
    assert proof(*TRAP, **code).unreachable_agents == ("B",)


HELP = "async def help():\n    await use_ui_tool('ask')\n"
ASYNC = "async def act(context_variables):\n    "


@pytest.mark.parametrize(
    "body",
    [
        "await getattr(weft, 'use_ui_tool')('ask')",
        "await use_ui_tool('other')\n    await getattr(weft, 'use_ui_tool')('ask')",
        "await attrgetter('runtime.asking.use_ui_tool')(weft)('ask')",
        "match weft:\n        case object(use_ui_tool=q):\n            await q('ask')",
    ],
)
def test_a_person_may_be_asked_by_a_name_in_a_text(body):
    assert asked(f"{ASYNC}{body}")
    assert not asked(f"{ASYNC}'This does not call use_ui_tool.'")


@pytest.mark.parametrize(
    "statement",
    [
        "reg.f = lambda: use_ui_tool('ask')",
        "reg.f = use_ui_tool",
        "own = reg.f = use_ui_tool",
        "reg.all += [lambda: use_ui_tool('ask')]",
        "reg.all.append(lambda: use_ui_tool('ask'))",
        "if reg:\n    reg.all['f'] = lambda: use_ui_tool('ask')",
    ],
)
def test_what_stands_outside_of_functions_may_be_called_by_any_tool(statement):
    files = {"tools/fill.py": f"import reg\n{statement}", "tools/reg.py": "f = None\nall = []"}
    assert asked(f"import reg\n{ASYNC}await reg.f()", files)


@pytest.mark.parametrize(
    ("imported", "use", "file"),
    [
        ("import lib", "lib.inner.help()", "lib/inner.py"),
        ("import lib.other", "lib.inner.help()", "lib/inner.py"),
        ("import lib.other", "lib.help()", "lib/__init__.py"),
        ("import lib.sub.other as it", "it.help()", "lib/sub/other/__init__.py"),
        ("from . import beside", "beside.inner.help()", "tools/beside/inner.py"),
        ("import beside", "beside.inner.help()", "tools/beside/inner.py"),
        ("from .. import lib", "lib.inner.help()", "lib/inner.py"),
        ("import workflows.W.lib", "workflows.W.tools.inner.help()", "tools/inner.py"),
        ("from workflows.W import lib", "lib.inner.help()", "lib/inner.py"),
    ],
)
def test_whoever_imports_a_folder_may_use_all_in_it(imported, use, file):
    files = {"lib/__init__.py": "", "lib/other.py": "", file: HELP}
    assert asked(f"{imported}\n{ASYNC}await {use}", files)
    assert asked(f"{ASYNC}{imported}\n    await {use}", files)
    assert not asked(f"from ... import lib\nimport os.path\n{ASYNC}pass", {"lib/a.py": HELP})
