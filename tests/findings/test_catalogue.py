"""The catalogue: every code is well formed, complete, and raised in one place."""

import ast
import re
from pathlib import Path

import pytest

import weft.packages
from weft.catalogue import CATALOGUE, FAMILIES
from weft.check import problems
from weft.check.run import RULES
from weft.check.workspace import WORKSPACE_RULES

CODE = re.compile(rf"({'|'.join(FAMILIES)})\d{{3}}")
#: What only a program that builds a flow, and what only the Generator or scenarios report.
ELSEWHERE = {f"FLOW{number:03}" for number in (2, 4, 11, 33, 34)} | {
    entry.code for family in ("GEN", "TEST") for entry in FAMILIES[family]
}


@pytest.mark.parametrize("family", FAMILIES)
def test_codes_are_well_formed_and_in_their_family(family):
    listed = [entry.code for entry in FAMILIES[family]]
    assert listed == sorted(listed)
    for code in listed:
        assert re.fullmatch(rf"{family}\d{{3}}", code)


def test_codes_are_unique():
    assert len(CATALOGUE) == sum(len(entries) for entries in FAMILIES.values())


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_every_entry_is_complete(entry):
    for text in (entry.title, entry.why, entry.fix, entry.example):
        assert text.strip()
    assert "\n" not in entry.title


def codes_in_reader():
    """Return the codes that are named where files are read and validated."""
    files = [*Path(weft.packages.__path__[0]).rglob("*.py"), Path(problems.__file__)]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and CODE.fullmatch(text)}


def test_every_code_is_raised_by_a_rule_by_the_reader_or_by_linking():
    by_rules = {rule.code for rule in RULES}
    linked = {entry.code for entry in FAMILIES["LINK"]}
    raised = by_rules | WORKSPACE_RULES.keys() | codes_in_reader() | linked | ELSEWHERE
    assert raised == set(CATALOGUE)
