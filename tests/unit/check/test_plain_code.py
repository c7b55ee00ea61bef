"""Only code that is written plainly says for certain what a call sets, and whom it asks."""

import ast

import pytest
from weft.check.explore.code_paths import ways_through

from unit.check.builders_proof import derived, proof, rule, tool
from weft.check.code.modules import Module, read_module
from weft.check.code.writes import Write

LOOP = (rule("A", "terminate", "x"), rule("A", "A"))
TRAP = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))
SET = "context_variables.set('x', True)"
HELP = "def help(context_variables):\n    context_variables.set('x', True)\n"
OWN = "import weft\nfrom weft import Ask, Context, Refuse, RetryModel, use_ui_tool\n"


def act(body, head="", kind="def"):
    lines = "\n    ".join(body.splitlines())
    text = f"{head}\n{kind} act(context_variables, a=None, b=None):\n    {lines}\n"
    return {"variables": {"x": derived()}, "tools": [tool("A")], "code": {"tools/act.py": text}}


def both(body, head="", kind="def"):
    """Return what is said of a run that ends when x is set, and of one that is lost then."""
    spec = act(body, head, kind)
    return proof(*LOOP, agents="A", **spec).status, proof(*TRAP, **spec).status


@pytest.mark.parametrize(
    "body",
    [
        SET,
        "context_variables.set(key='x', value=True)",
        "context_variables.__setitem__('x', True)",
        "context_variables['x'] = True",
        "context_variables.data['x'] = True",
        "context_variables.update({'x': True})",
        "context_variables.update(x=True)",
        f"return {SET}",
        f"found = look(a)\nfor it in found:\n    note(it)\n{SET}",
        f"try:\n    note()\nexcept OSError:\n    pass\n{SET}",
        f"def inner():\n    return 1\n{SET}\nreturn inner()",
        f"class Inner:\n    n = 1\n{SET}",
        f"{SET}\nif a:\n    note()",
    ],
)
def test_what_is_written_plainly_is_certain(body):
    assert both(body) == ("proven", "refuted")


@pytest.mark.parametrize(
    ("body", "head"),
    [
        # It is no longer the context, or never was.
        ("context_variables = {}\ncontext_variables['x'] = True", ""),
        (f"for context_variables in a:\n    pass\n{SET}", ""),
        (f"(context_variables := a)\n{SET}", ""),
        (f"with a as context_variables:\n    pass\n{SET}", ""),
        (f"import os as context_variables\n{SET}", ""),
        (f"def context_variables(): ...\n{SET}", ""),
        (f"del context_variables\n{SET}", ""),
        ("cache.set('x', True)", "import cache"),
        ("ctx.set('x', True)", "ctx = Store()"),
        ("ctx['x'] = True", "ctx = {}"),
        ("a.set('x', True)", ""),
        ("a.ctx.set('x', True)", ""),
        ("context_variables.copy().set('x', True)", ""),
        ("help({})", HELP),
        ("help(a)", HELP),
        ("help(context_variables)", f"async {HELP}"),
        # It may not come to this.
        (f"while True:\n    pass\n{SET}", ""),
        (f"while 1:\n    continue\n{SET}", ""),
        (f"sys.exit()\n{SET}", "import sys"),
        (f"with a:\n    return 1\n{SET}", ""),
        (f"for it in [1]:\n    return 1\n{SET}", ""),
        (f"match a:\n    case _:\n        return 1\n{SET}", ""),
        (f"try:\n    return 1\nfinally:\n    pass\n{SET}", ""),
        (f"try:\n    raise ValueError\nexcept KeyError:\n    pass\n{SET}", ""),
        (f"class Inner:\n    raise ValueError\n{SET}", ""),
        (f"if False:\n    {SET}", ""),
        (f"if (0 or None):\n    {SET}", ""),
        (f"if DEBUG:\n    {SET}", "DEBUG = False"),
        (f"if context_variables.get('y'):\n    {SET}", ""),
        (f"if context_variables:\n    {SET}", ""),
        (f"a = False\nif a:\n    {SET}", ""),
        (f"if a:\n    if not a:\n        {SET}", ""),
        (f"if a == 1:\n    pass\nelif a == 1:\n    {SET}", ""),
        (f"if a != 1:\n    pass\nelif a == 2:\n    {SET}", ""),
        (f"if a == True:\n    pass\nelif a == 1:\n    {SET}", ""),
        (f"if a == 'x':\n    pass\nelif b == 'x':\n    {SET}", ""),
        (f"if a == b'x':\n    {SET}", ""),
        (f"if a and {SET}:\n    pass", ""),
        (f"for it in []:\n    {SET}", ""),
        (f"a and {SET}", ""),
        (f"[{SET} for context_variables in []]", ""),
        (f"later = lambda: {SET}", ""),
        # It takes no such arguments.
        ("context_variables.set('x', True, False)", ""),
        ("context_variables.set('x', True, key='x')", ""),
        (f"context_variables.set('x', key='x')\n{SET}", ""),
        (f"context_variables.remove('x', key='x')\n{SET}", ""),
        ("context_variables.set('x', *a)", ""),
        ("context_variables.update({'x': True}, {})", ""),
        # What is set before something of unknown kind is raised may count or not.
        (f"{SET}\nraise Refuse('no')", "from lib import Refuse"),
        (f"{SET}\nraise Refuse('no')", "class Refuse(Exception): ..."),
        (f"{SET}\nraise Refuse('no')", "from weft import Refuse\nfrom lib import Refuse"),
        (f"{SET}\nraise lib.Refuse('no')", "import lib"),
        (f"{SET}\nraise No('no')", "from weft import Refuse\nNo = Refuse"),
        (f"{SET}\nraise ValueError", "from weft import Refuse as ValueError\nValueError = 1"),
        (f"{SET}\nraise a", ""),
        (f"{SET}\nact(context_variables)", ""),
    ],
)  # fmt: skip
def test_what_is_not_is_in_doubt(body, head):
    assert both(body, head) == ("not proven", "not proven")


@pytest.mark.parametrize(
    ("head", "decorator", "files"),
    [
        ("from weft import tool", "@tool()", {"tools/weft.py": ""}),
        ("from weft import tool\nfrom lib import *", "@tool()", {}),
        ("from weft import tool\ndef change():\n    global tool", "@tool()", {}),
        ("def staticmethod(function): ...", "@staticmethod", {}),
    ],
)
def test_a_decorator_of_another_meaning_may_do_anything(head, decorator, files):
    def status(head):
        code = f"{head}\n{decorator}\ndef act(context_variables):\n    {SET}\n"
        files["tools/act.py"] = code
        spec = {"variables": {"x": derived()}, "tools": [tool("A")], "code": files}
        return proof(*TRAP, **spec).status

    assert status(head) == "not proven"
    files.clear()
    assert status("from weft import tool") == "refuted"


def test_what_is_raised_is_known_by_what_is_imported():
    declined = f"{SET}\nraise No('no')"
    # What stands before a decline counts.
    assert both(declined, "from weft import Refuse as No") == ("proven", "refuted")
    assert both(f"{SET}\nif a:\n    raise weft.Refuse", "import weft") == ("proven", "refuted")
    assert both(f"{SET}\nraise ValueError") == ("refuted", "proven")
    assert both(f"{SET}\nraise weft.RetryModel('?')", "import weft") == ("refuted", "proven")


@pytest.mark.parametrize(
    ("hints", "test", "free"),
    [
        ("a, b", "a", True),
        ("a, b", "not a", True),
        ("a: bool, b", "a == True", True),
        ("a: str, b", "a != 'x'", True),
        ("a: str, b", "not a == 'x'", True),
        ("a: str, b", "a == 1", False),
        ("a: Model, b", "a", False),
        ("a: list[int], b", "a", False),
        ("a, b", "a > 1", False),
        ("a, b", "a and b", False),
        ("a, b", "c", False),
        ("a, b", "ctx.answers", False),
        ("a, b", "b.answers", False),
        ("a, b", "a == 1e999", False),
    ],
)
def test_a_decision_is_free_if_the_model_chooses(hints, test, free):
    assert ways(f"if {test}:\n        note()", hints).free is free


@pytest.mark.parametrize(
    ("body", "free"),
    [
        ("if a == 'x': pass\n    elif a == 'y': pass\n    elif a == 'z': pass", True),
        ("if a == 1: pass\n    elif a == 1: pass", False),
        ("if a == 1: pass\n    elif b == 2: pass", False),
        ("if a == 1: pass\n    elif a == 'x': pass", False),
        ("if a: pass\n    if b: pass", True),
        ("if a: pass\n    if a: pass", False),
        ("if a:\n        if b: pass", True),
        # A call is made again with the answer that it has asked for, and only then.
        ("if not ctx.answers: raise Ask('?')", True),
        ("if not ctx.answers:\n        told = note()\n        raise Ask(told)", True),
        ("if a: pass\n    elif not ctx.answers: raise Ask('?')", True),
        ("if ctx.answers: raise Ask('?')", False),
        ("if not ctx.answers: pass", False),
        ("if not ctx.answers:\n        if a: return\n        raise Ask('?')", False),
        ("if not ctx.answers: raise KeyError", False),
        ("if not b.answers: raise Ask('?')", False),
    ],
)
def test_decisions_are_free_if_none_settles_another(body, free):
    assert ways(body).free is free


def test_a_type_may_mean_something_else_in_a_file():
    assert ways("if a: note()", "a: bool").free
    assert not ways("if a: note()", "a: bool", "from lib import bool").free


def module(text) -> Module:
    found = read_module("tools/f.py", text, {})
    assert isinstance(found, Module)
    return found


def ways(body, hints="a, b", head=""):
    read = module(f"{OWN}{head}\nasync def f(ctx: Context, {hints}):\n    {body}\n")
    return ways_through(read, read.bodies["f"])


def write(name, value=True):
    return Write(name, constant=True, value=value)


X = write("x")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("pass", ((),)),
        ("ctx.set('x', True)\n    return 1\n    ctx.set('y', True)", ((X,),)),
        ("if a: raise KeyError\n    ctx.set('x', True)", ((X,),)),
        ("ctx.set('x', True)\n    raise KeyError", ()),
        ("ctx.set('x', True)\n    raise Refuse('no')", ((X,),)),
        ("ctx.set('x', True)\n    raise Ask('?')", ()),
        ("if a: raise weft.Refuse\n    ctx.set('x', True)", ((), (X,))),
        (
            "if a: ctx.set('x', True)\n    else: ctx['x'] = False",
            ((write("x", value=False),), (X,)),
        ),
        ("ctx['x'] += 1", ((Write("x"),),)),
        ("del ctx['x']", ((write("x", None),),)),
        ("for a in b:\n        return\n    ctx.set('x', True)", None),
        ("for a in b: c()\n    ctx.set('x', True)", ((X,),)),
        ("a and ctx.set('x', True)", None),
        ("try: ctx.set('x', True)\n    finally: d()", None),
        ("if a:\n        while b: ctx.set('x', True)", None),
        ("if a: pass\n    else:\n        for c in b: return", None),
        ("raise", None),
        ("raise E", None),
        ("assert a", None),
        ("\n    ".join(f"if a: ctx.set('x', {n})" for n in range(6)), None),
    ],
)
def test_ways_through_code(body, found):
    paths = ways(body).paths
    told = None if paths is None else tuple(sorted((it.writes for it in paths), key=repr))
    assert told == (found if found is None else tuple(sorted(found, key=repr)))


@pytest.mark.parametrize(
    ("body", "raises", "returns"),
    [
        ("pass", False, True),
        ("raise Ask('?')", True, False),
        ("if a: raise E", True, True),
        ("raise", True, False),
        ("assert a", True, True),
        ("os._exit(1)", True, True),
        ("while a: pass", False, True),
    ],
)
def test_code_that_raises_may_end_without_a_result(body, raises, returns):
    found = ways(body)
    assert (found.raises, found.returns) == (raises, returns)


def test_a_file_of_the_package_may_be_named_like_weft():
    text = "from weft import Refuse\ndef act(): raise Refuse('no')\n"
    found = read_module("tools/act.py", text, {"tools/weft.py": ""})
    assert isinstance(found, Module)
    assert found.means("Refuse") == ""
    assert module(text).means("Refuse") == "Refuse"
    assert isinstance(module(text).bodies["act"], ast.FunctionDef)
