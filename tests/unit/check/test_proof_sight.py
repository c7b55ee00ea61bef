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
