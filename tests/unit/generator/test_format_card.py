"""Every fact of the format card is true of the code."""

import ast
import inspect
import re
from typing import Any, get_args

import pytest

from support.generator_play import FORM
from weft.catalogue import CATALOGUE
from weft.generator.code_check import allowed, jsx_code
from weft.generator.code_check.files import code_faults
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.form import form_plan, read_form
from weft.generator.plans.data_rules import VARIABLE_KINDS
from weft.generator.reading import read_card
from weft.generator.steps import MAKERS, REPAIRER
from weft.ids import BUILT_IN_VARIABLES
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.runtime.tools import context_variables
from weft.spec import triggers, variables
from weft.spec.agents import REPLY_LIMITS, Agent, PromptSection
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.part import Part
from weft.spec.tools import Hook, HookType, Ui, UiTool
from weft.spec.type_parser import parse_type

CARD = read_card()
SECTIONS = {
    int(number): text
    for number, text in re.findall(r"^## (\d)\.(.*?)(?=^## |\Z)", CARD, re.MULTILINE | re.DOTALL)
}
GENERATOR = read_package(shipped_folder() / "Generator").spec


def words(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def keys(model: type[Part]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def members(union: Any) -> dict[str, type[Part]]:
    """Return the members of a union of parts by their `type`."""
    parts = get_args(get_args(union)[0])
    return {part.model_fields["type"].default: part for part in parts}


def test_the_card_is_short():
    assert len(CARD) < 14_000


@pytest.mark.parametrize("agent", [*MAKERS, REPAIRER])
def test_the_card_is_the_first_section_of_every_agent_that_writes(agent):
    found = next(each for each in GENERATOR.agents if each.agent_name == agent)
    sections = [(each.id, each.heading, each.content) for each in found.prompt_sections]
    assert sections[0] == ("format", "[FORMAT CARD]", "{format_card}")
    prefix = next(each for each in GENERATOR.agents if each.agent_name == MAKERS[0])
    assert sections[:3] == [
        (each.id, each.heading, each.content) for each in prefix.prompt_sections[:3]
    ]
    assert sections[-1][0] == "task"


def test_the_table_names_the_fields_of_the_sources():
    rows = re.findall(r"^\| (\w+) \| `(\w+)` \| (.*) \|$", SECTIONS[3], re.MULTILINE)
    sources = members(variables.Source)
    assert {source for _, source, _ in rows} == set(sources)
    for planned, source, fields in rows:
        assert planned == "constant" or VARIABLE_KINDS[planned]
        assert set(words(fields)) <= keys(sources[source]), source


def test_values_of_fields_exist():
    for alias in (variables.RefreshStrategy, variables.WriteStrategy):
        assert {f"`{value}`" for value in get_args(alias)} <= set(
            re.findall(r"`[^`]+`", SECTIONS[3])
        )
    for method in get_args(variables.Method):
        assert method in SECTIONS[3]
    for kind in ("bearer", "basic", "header"):
        assert kind in SECTIONS[3]


def test_built_in_variables_exist():
    [line] = re.findall(r"Built in, never declared: `([^`]+)`", SECTIONS[3])
    assert set(line.split()) <= set(BUILT_IN_VARIABLES)


def test_types_can_be_parsed():
    [line] = re.findall(r"^Types: `(.*)`\.$", SECTIONS[3], re.MULTILINE)
    for name in (
        line.replace("list[T]", "list[str]").replace("optional[T]", "optional[int]").split()
    ):
        parse_type(name)


def test_triggers_can_be_read():
    examples = re.findall(r'`(\{"type":.*?\})`', SECTIONS[3].partition("TRIGGERS")[2])
    known = members(triggers.Trigger)
    assert len(examples) >= 10
    for example in examples:
        names = dict.fromkeys(re.findall(r":([A-Z])\b", example))
        data = ast.literal_eval(
            re.sub(r":([A-Z])\b", r':"\1"', example).replace("true", "True")
            if names
            else example.replace("true", "True")
        )
        known[data["type"]].model_validate(data)


def test_agents_have_these_fields():
    first = SECTIONS[4].partition("In prompts")[0]
    assert set(words(first)) <= keys(Agent)
    assert {"id", "heading", "content"} == keys(PromptSection)
    for kind, limit in REPLY_LIMITS.items():
        assert f"{kind} {limit}" in first


def test_tools_and_hooks_have_these_fields():
    first = SECTIONS[5].partition("; the form is made")[0]
    names = set(words(first)) - {"UI_Tool", "Agent_Tool", "latter"}
    assert names <= keys(UiTool)
    assert {"component", "mode"} == keys(Ui)
    hooks = SECTIONS[6].partition("Hooks:")[2]
    fields, _, points = hooks.partition(": ")
    assert set(words(fields)) == {"hook_type", "file", "function", "agent", "on_error"}
    assert set(words(fields)) <= keys(Hook)
    named = set(re.findall(r"\b(?:before|after|on|process|update)_\w+\b", points)) - {"on_error"}
    assert named == set(get_args(HookType)) - {"on_start"}


def test_context_methods_exist():
    line = re.search(r"^Context: (.*?)\.$", SECTIONS[5], re.MULTILINE | re.DOTALL)
    assert line
    named = set(re.findall(r"\b(get\w*|set|refresh|ask|progress|user|run|key)\b", line[1]))
    attributes = re.findall(r"self\.(\w+): Final", inspect.getsource(context_variables))
    assert named <= {*dir(context_variables.Context), *attributes}
    assert named - {"get"} <= {*allowed.READS, *allowed.WRITES, *allowed.WITHOUT_NAME}


def test_modules_are_those_of_the_code_check():
    [listed] = re.findall(r"Modules: `([^`]+)`", SECTIONS[5], re.DOTALL)
    assert set(listed.split()) == set(allowed.NAMES)
    [kit] = re.findall(r"imports from (.*?); one", SECTIONS[6])
    assert set(re.findall(r"`([^`]+)`", kit)) == set(jsx_code.MODULES)


def test_the_orchestrator_has_these_fields():
    named = set(words(SECTIONS[7])) - {"terminate", "user"}
    patterns = {"DefaultPattern", "Pipeline", "Redundant", "FeedbackLoop"}
    assert named - patterns <= keys(Orchestrator)
    for mode in get_args(StartupMode):
        assert mode in SECTIONS[7]


def test_codes_exist():
    codes = re.findall(r"\b[A-Z]+\d{3}\b", CARD)
    assert len(codes) > 25
    assert set(codes) <= set(CATALOGUE)


#: What the rules of the code check forbid, by the words of the card.
FORBIDDEN = {
    "never under another name": "import json as j",
    "No files, sockets, os, getattr, eval, format": "import os",
    "no `re.compile`": "import re\n\nWORD = re.compile('a')",
    "never worked out": "def {0}:\n    return context_variables.get('a' + 'b')",
    "never pass `context_variables` on": "def {0}:\n    return _help(context_variables)\n\n\n"
    "def _help(it):\n    return it.get('damage')",
    "No attribute that begins with `_`": "def {0}:\n    return ''.__class__",
    "not `while`": "def {0}:\n    while True:\n        return 1",
    "no bare `except`": "def {0}:\n    try:\n        return 1\n    except:\n        return 2",
    "no `global`": "def {0}:\n    global X\n    return 1",
    "Do not name a local like a builtin": "def {0}:\n    list = 1\n    return list",
    "Await `use_ui_tool`": "def {0}:\n    return context_variables.refresh('damage')",
    "No type hints in quotes": "def {0} -> 'str':\n    return ''",
}


@pytest.mark.parametrize("words", FORBIDDEN)
def test_rules_of_the_code_check_are_those_of_the_card(words):
    assert words in " ".join(CARD.split())
    [draft] = compile_drafts(form_plan(read_form("form.yaml", FORM)))
    path = "tools/record_clerk.py"
    head = re.search(r"def (record_clerk\(.*?\))", draft.code[path], re.DOTALL)
    assert head
    assert code_faults(draft.spec, path, draft.code[path]) == []
    added = FORBIDDEN[words].replace("{0}", head[1])
    assert code_faults(draft.spec, path, f"{draft.code[path]}\n\n{added}\n")


COMPONENT = """export default function Form({{ payload, onResponse }}) {{
  {0}
  return <button onClick={{() => onResponse({{ decision: "yes" }})}}>{1}</button>;
}}
"""


@pytest.mark.parametrize(
    ("words", "code", "content"),
    [
        ("No `style`", "", '<p style={{ color: "red" }} />'),
        ("`open`", "const open = 1;", ""),
        ("fetch", 'fetch("/");', ""),
        ("addresses", "", '<a href="/">a</a>'),
        ("`{...spread}` in tags", "", "<p {...payload} />"),
        ("no index that is a variable", "const key = 1;", "{payload[key]}"),
        ("", "const [answer] = payload.answers;", "{payload.answers.map((one) => one.text)}"),
    ],
)
def test_rules_of_components_are_those_of_the_card(words, code, content):
    assert words in " ".join(SECTIONS[6].split())
    faults = jsx_code.jsx_faults(COMPONENT.format(code, content), "Form", ["decision"])
    assert bool(faults) == bool(words)
