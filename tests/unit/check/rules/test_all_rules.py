"""The rules that a check applies."""

from importlib import import_module
from pathlib import Path

import weft.check.rules
from weft.catalogue import CATALOGUE
from weft.check.run import RULES
from weft.check.subject import rules_of


def test_every_module_with_rules_is_applied():
    files = Path(weft.check.rules.__file__).parent.glob("[a-z]*.py")
    written = rules_of(*(import_module(f"weft.check.rules.{file.stem}") for file in files))
    assert sorted(rule.code for rule in written) == sorted(rule.code for rule in RULES)
    assert {rule.code for rule in RULES} <= set(CATALOGUE)
