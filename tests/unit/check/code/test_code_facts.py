"""What is known of Python code by its text: functions, imports, and the variables it sets."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import read_cases
from unit.check.builders_code import subject
from weft.check.code.facts import code_of, function_at, path_in, reachable
from weft.check.code.functions import Spot, Write
from weft.check.code.modules import Module, read_module
from weft.findings import Place

CASES = read_cases(__file__)


def module(text: str, path: str = "tools/a.py", *files: str) -> Module:
    found = read_module(path, text, {path, *files})
    assert isinstance(found, Module)
    return found


def writes(body: str) -> list[Write]:
    """The writes of a function with this one line."""
    return list(module(f"def f():\n    {body}\n").definitions["f"].writes)


def test_parameters_have_their_kinds():
    found = module("def f(a, /, b: int, c=1, *d, e, g: str = '', **h): ...").functions["f"]
    assert [(one.name, one.kind, one.hinted, one.required) for one in found.parameters] == [
        ("a", "positional", False, True),
        ("b", "positional", True, True),
        ("c", "positional", False, False),
        ("d", "args", False, False),
        ("e", "keyword", False, True),
        ("g", "keyword", True, False),
        ("h", "kwargs", False, False),
    ]
    assert found.parameters[1].spot == Spot(1, 12)


def test_the_last_definition_of_a_name_counts():
    found = module("def f(a): ...\n@x\nasync def f():\n    '''One.\n\n    Two.'''\n").functions["f"]
    assert (found.parameters, found.decorated, found.summary) == ((), True, "One.")
    assert found.spot == Spot(3, 0)


def test_places_count_characters_on_all_kinds_of_lines():
    text = "x = 'ü'\r\ny = '\f'\rdef f(é, ü): ...\n"
    found = module(text)
    second = found.functions["f"].parameters[1]
    assert found.place(second.spot) == Place("tools/a.py", 3, 10)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c as d", {"a", "d"}),
        ("from . import e as g\nfrom x import h", {"g", "h"}),
        ("i, (j, *k) = 1, (2, 3)\nl: int = 4", {"i", "j", "k", "l"}),
        ("for m in []:\n    n = 1\nelse:\n    o = 2", {"m", "n", "o"}),
        ("while (p := 1):\n    q = 1", {"p", "q"}),
        ("try:\n    r = 1\nexcept* E:\n    s = 1\nfinally:\n    t = 1", {"r", "s", "t"}),
        ("match x:\n    case 1:\n        u = 1", {"u"}),
        ("match x:\n    case None | C(a=1) | {'k': 2}:\n        y = 1", {"y"}),
        ("def g(*, a, b=1): ...\nglobal z", {"g"}),
        ("with a as v:\n    def w(): inner = 1", {"v", "w"}),
    ],
)
def test_names_at_the_top_level(text: str, names: set[str]):
    assert module(text).definitions.keys() == names


@pytest.mark.parametrize(
    ("path", "text", "origin"),
    [
        ("tools/a.py", "from .b import f as x", ("tools/b.py", "f")),
        ("tools/a.py", "from . import b as x", ("tools/b.py", "")),
        ("tools/a.py", "from .sub import x", ("tools/sub/__init__.py", "x")),
        ("tools/a.py", "from ..hooks.h import x", ("hooks/h.py", "x")),
        ("tools/a.py", "from hooks.h import x", ("hooks/h.py", "x")),
        ("tools/a.py", "from workflows.W.tools.b import x", ("tools/b.py", "x")),
        ("tools/a.py", "import b as x", ("tools/b.py", "")),
        ("tools/a.py", "from ...b import x", None),
        ("tools/a.py", "import json as x", None),
        ("tools/a.py", "import workflows as x", None),
        ("root.py", "from .tools import b as x", ("tools/b.py", "")),
        ("root.py", "from ..tools import b as x", None),
    ],
)
def test_imports_lead_to_files_of_the_package(path: str, text: str, origin: tuple[str, str] | None):
    files = ("tools/b.py", "tools/sub/__init__.py", "hooks/h.py")
    found = module(text, path, *files)
    assert found.definitions["x"].origin == origin
    assert found.imports == ({origin[0]} if origin else set())


@pytest.mark.parametrize(("body", "variable", "value"), CASES["test_a_write_of_a_constant"])
def test_a_write_of_a_constant(body: str, variable: str, value: Any):
    prefix = "async " if "await" in body else ""
    found = module(f"{prefix}def f():\n    {body}\n").definitions["f"].writes
    assert found == (Write(variable, constant=True, value=value),)


@pytest.mark.parametrize(("body", "variable"), CASES["test_a_write_that_is_known_in_part"])
def test_a_write_that_is_known_in_part(body: str, variable: str | None):
    assert writes(body) == [Write(variable)]


@pytest.mark.parametrize("body", CASES["test_calls_that_do_not_write"])
def test_calls_that_do_not_write(body: str):
    assert writes(body) == []


def test_writes_are_followed_through_the_package():
    code = {
        "tools/a.py": "from .b import keep\nimport tools.c as c\n"
        "def f(context_variables):\n    keep(context_variables)\n    g()\n"
        "def g():\n    context_variables.set('x', 1)\n    f()\n"
        "def other():\n    context_variables.set('not_this', 1)\n",
        "tools/b.py": "def keep(ctx):\n    ctx.set('y', 2)\n",
        "tools/c.py": "def far(ctx):\n    ctx.set('unused', 2)\n",
        "tools/d.py": "import tools.c as c\ndef f(ctx):\n    c.far(ctx)\n",
    }
    checked = subject(code)

    def written(path: str) -> set[str | None]:
        used = reachable(checked, path, "f")
        return {write.variable for definition in used for write in definition.writes}

    assert written("tools/a.py") == {"x", "y"}
    assert written("tools/d.py") == {"unused"}
    assert reachable(checked, "tools/a.py", "gone") == ()
    assert reachable(checked, "tools/gone.py", "f") == ()


def test_function_at_finds_what_is_defined_there():
    checked = subject({"tools/a.py": "from x import g\ndef f(): ..."})
    assert function_at(checked, "tools", "tools/a.py", "f") is not None
    assert function_at(checked, "tools", "a.py", "g") is None
    assert function_at(checked, "tools", "../a.py", "f") is None


def test_a_package_that_has_not_changed_is_not_read_again():
    code = {"tools/a.py": "def f(): ..."}
    assert code_of(subject(code)) is code_of(subject(dict(code)))
    assert code_of(subject(code)) is not code_of(subject({"tools/a.py": "def g(): ..."}))


def test_code_is_never_imported():
    checked = subject(
        {"tools/trap.py": "import sys\nsys.modules['trapped'] = sys\nraise SystemExit"}
    )
    assert code_of(checked).modules["tools/trap.py"].definitions.keys() == {"sys"}
    assert "trapped" not in sys.modules


@given(st.text(alphabet="abc/.\\:\n py", max_size=12))
def test_a_path_is_inside_its_folder_or_none(file: str):
    path = path_in("tools", file, ())
    assert path is None or (
        path.startswith("tools/") and path.endswith(".py") and ".." not in path.split("/")
    )


@given(st.text(max_size=60))
def test_any_text_is_a_module_or_a_fault(text: str):
    assert isinstance(read_module("tools/a.py", text, ()), Module | SyntaxError)


@pytest.mark.parametrize(
    "body",
    [
        f"context_variables{'.data' * 1400}['x'] = 1",
        f"help(context_variables{'.data' * 1400})",
        f"help({'context_variables if a else ' * 900}b)",
    ],
)
def test_code_of_any_depth_is_read(body: str):
    assert module(f"def f(context_variables):\n    {body}\n").definitions.keys() == {"f"}
