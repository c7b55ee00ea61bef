"""Python that a model wrote: what passes, and what each refusal says. None of it is run."""

from dataclasses import replace

import pytest

from weft.generator.code_check.python_code import (
    MAX_BYTES,
    Declared,
    imported_libraries,
    python_faults,
)

PLAIN = '''"""Sums up."""

from pydantic import BaseModel, Field

from weft import Context


class SumResult(BaseModel):
    """What it works out."""

    summary: str = Field(description="Two sentences.")


async def sum_up(text: str, context_variables: Context) -> dict[str, object]:
    """Sum a text up."""
    context_variables.set("stage", "done")
    result = await context_variables.ask(text, output=SumResult)
    return result.model_dump(by_alias=True)
'''
GOOD = '''"""Sums up, with care."""

import json
import re
from typing import Literal

from pydantic import BaseModel, Field
from weft import Context, Refuse

_LIMITS = {"short": 40, "long": -1}


class SumResult(BaseModel):
    """What it works out."""

    summary: str = Field(description="Two sentences.")
    mood: Literal["good", "bad"] | None = None


def _tidy(text: str, most: int = 400) -> str:
    words = re.findall(r"\\w+", text)
    return " ".join(word.lower() for word in words)[:most]


async def sum_up(text: str, context_variables: Context) -> dict[str, object]:
    """Sum a text up."""
    if not text.strip():
        raise Refuse("there is nothing to sum up")
    tone = context_variables.get("tone") or context_variables["tone"]
    context_variables.progress(0.5, "asking")
    asked = json.dumps({"text": _tidy(text), "tone": tone})
    try:
        result = await context_variables.ask(asked, output=SumResult)
    except ValueError as error:
        return {"summary": f"{error}"}
    context_variables.set("stage", "done")
    return {"summary": result.summary, "by": context_variables.agent}
'''
BODY = '''
async def sum_up(text: str, context_variables: Context) -> dict[str, object]:
    """Sum a text up."""
    {body}
    return {{"summary": text}}
'''


def with_body(body: str, above: str = "") -> str:
    return f"from weft import Context\n{above}\n" + BODY.format(body=body)


SUM_UP = Declared(
    functions=frozenset({"sum_up"}),
    keys=frozenset({"summary"}),
    variables=frozenset({"tone"}),
    settable=frozenset({"stage"}),
)


def faults(source: str, **more) -> list[str]:
    return python_faults(source, replace(SUM_UP, **more))


def test_good_files_pass():
    assert faults(PLAIN) == []
    assert faults(GOOD) == []
    assert faults(with_body("summary = text")) == []


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def (", "not valid Python"),
        ("x = 1\n" * 4000, f"longer than {MAX_BYTES:,} bytes"),
        ("", "does not define sum_up"),
        ("# coding: utf-7\n" + PLAIN, "names an encoding"),
        (PLAIN + "\n# \u202e", "invisible sign U+202E"),
        (PLAIN + "\x00", "invisible sign U+0000"),
        (PLAIN + "\nreturn 1", "not valid Python"),
        ("(" * 3000, "not valid Python"),
        (PLAIN + "\nx = " + "-" * 9000 + "1\n", ""),
        (PLAIN.replace("context_variables: Context", "given: Context"), "named context_variables"),
        (PLAIN.replace("context_variables: Context", "context=None"), "named context_variables"),
        (PLAIN.replace("text: str,", "*text: str,"), "*args or **kwargs"),
        (PLAIN.replace("context_variables: Context", "**given"), "*args or **kwargs"),
        (PLAIN.replace("def sum_up", "def sum_app"), "does not define sum_up"),
        (PLAIN.replace("summary: str", "resume: str"), "its result lacks summary"),
    ],
)
def test_unknown_function_is_refused(source, why):
    found = faults(source)
    assert found
    assert why in "; ".join(found)


@pytest.mark.parametrize(
    "above",
    [
        "print('hello')",
        "open('x', 'w')",
        "X = open('x', 'w')",
        "if True:\n    X = 1",
        "for x in [1]:\n    pass",
        "X = [it for it in ()]",
        "X: print('x') = 1",
        "def _a(x: print('x')):\n    pass",
        "def _a(x=print('x')):\n    pass",
        "def _a() -> print('x'):\n    pass",
        "@print\ndef _a():\n    pass",
        "@tool(effect='read')\ndef _a():\n    pass",
        "class _A(print('x')):\n    pass",
        "class _A(metaclass=print):\n    pass",
        "class _A:\n    print('x')",
        "class _A:\n    x = print('x')",
        "class _A:\n    def __init_subclass__(cls):\n        pass",
        "class _A:\n    def _missing_(cls):\n        pass",
        "from pydantic import BaseModel\nclass _A(BaseModel):\n    x: \"print('x')\"",
        "from pydantic import BaseModel\nclass _A(BaseModel):\n    x: list[\"print('x')\"]",
        "from pydantic import Field\ndef Field(x):\n    pass\nclass _A:\n    x: int = Field(1)",
        "def Field(x):\n    pass\nclass _A:\n    x: int = Field(1)",
        "from pydantic import Field\nclass _A:\n    x: int = Field(default=print('x'))",
        "_F = lambda x=print('x'): x",
        "assert print('x')",
        "del Context",
    ],
)
def test_code_with_import_effects_is_refused(above):
    assert faults(with_body("pass", above))


@pytest.mark.parametrize(
    "above",
    [
        "import os",
        "import sys",
        "import subprocess",
        "import socket",
        "import importlib",
        "import builtins",
        "import json as os",
        "from os import system",
        "from json import codecs",
        "from re import *",
        "from . import other",
        "from weft import open_host",
        "from weft.app import hosts",
        "from pydantic import ImportString",
        "from typing import get_type_hints",
        "from string import Formatter",
        "import urllib.parse",
        "import httpx",
        "from httpx import AsyncClient",
    ],
)
def test_other_imports_are_refused(above):
    assert any("import" in fault for fault in faults(with_body("pass", above)))


@pytest.mark.parametrize(
    "body",
    [
        "eval(text)",
        "exec(text)",
        "compile(text, '', 'exec')",
        "open(text)",
        "__import__('os')",
        "getattr(text, 'x')",
        "globals()",
        "vars()",
        "type(text)",
        "print(text)",
        "input()",
        "text.__class__",
        "text.__class__.__mro__",
        "'{0.__class__}'.format(text)",
        "'{x}'.format_map({})",
        "(x for x in text).gi_frame.f_builtins",
        "(lambda: 1).__globals__",
        "import json; json.codecs.open(text)",
        "import json; x = json",
        "import json; x = [json]",
        "import json; json.dumps = repr",
        "Context.get = repr",
        "del Context.get",
        "from pydantic import BaseModel; BaseModel.model_config['extra'] = 'forbid'",
        "for Context.get in [repr]: pass",
        "while True: pass",
        "yield 1",
        "global X",
        "context_variables._state",
        "context_variables.to_dict()",
        "context_variables.data.set('route', 1)",
        "context_variables.set('route', 1)",
        "context_variables.set('tone', 1)",
        "context_variables.set(text, 1)",
        "context_variables['stage'] = 1",
        "context_variables.get('secret_key')",
        "context_variables.get(text)",
        "context_variables['secret_key']",
        "context_variables.update({'route': 1})",
        "x = context_variables",
        "_help(context_variables)",
        "x = context_variables.set",
        "repr('stage', context_variables.set)",
        "from weft import use_ui_tool; x = use_ui_tool",
        "x = text.context_variables",
        "context_variables.ask(text)",
        "from weft import use_ui_tool; await use_ui_tool('other', {})",
        "undefined_name",
        "str = repr",
        "match text:\n        case str(__class__=x):\n            pass",
        "try:\n        pass\n    except:\n        pass",
        "from pydantic import BaseModel; BaseModel.parse_raw(text, allow_pickle=True)",
    ],
)
def test_path_that_leads_out_is_refused(body):
    assert faults(with_body(body)), body


def test_a_library_may_be_used_if_it_is_required():
    source = with_body("isoparse('2026-01-01')", "from dateutil.parser import isoparse")
    assert faults(source)
    assert faults(source, requirements=frozenset({"python-dateutil"})) == []
    assert imported_libraries(source, ["python-dateutil"]) == ["python-dateutil"]
    assert faults(
        with_body("pass", "from requests import get"), requirements=frozenset({"requests"})
    )


def test_decorator_tool_passes():
    marked = GOOD.replace("Context, Refuse", "Context, Refuse, tool").replace(
        "async def", "@tool\nasync def"
    )
    assert faults(marked) == []


ASKS = """
from weft import use_ui_tool


async def approve(text: str) -> dict:
    \"\"\"Ask.\"\"\"
    return await use_ui_tool("{name}", {{"text": text}})
"""


@pytest.mark.parametrize(
    ("name", "asking", "why"),
    [
        ("approve", {"approve"}, ""),
        ("sign", {"approve"}, 'approve must ask with use_ui_tool("approve", ...)'),
        ("approve", set(), "approve asks with UI tools that are not declared in this file"),
    ],
)
def test_ui_tool_asks_with_its_own_name(name, asking, why):
    declared = Declared(functions=frozenset({"approve"}), asking=frozenset(asking))
    found = "; ".join(python_faults(ASKS.format(name=name), declared))
    assert why in found
    assert bool(found) == bool(why)


def test_nothing_is_run(tmp_path):
    mark = tmp_path / "mark"
    write = f"__import__('pathlib').Path({str(mark)!r}).write_text('x')"
    for source in (write, with_body(write), with_body("pass", write), f"def f(x={write}): pass"):
        assert faults(source)
    assert not mark.exists()
