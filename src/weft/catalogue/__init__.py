"""The one catalogue of diagnostics: every code, what it means, why it matters, how to fix it."""

from typing import Final

from weft.catalogue import (
    bind,
    board,
    code,
    expo,
    flow,
    generator,
    hand,
    name,
    pack,
    schema,
    source,
    state,
    tool,
    ui,
    var,
)
from weft.findings import Rule

FAMILIES: Final[dict[str, tuple[Rule, ...]]] = {
    "SCHEMA": schema.RULES,
    "NAME": name.RULES,
    "TOOL": tool.RULES,
    "BIND": bind.BIND,
    "HAND": hand.RULES,
    "EXPO": expo.RULES,
    "VAR": (*var.RULES, *source.RULES),
    "STATE": state.STATE,
    "HOOK": code.HOOK,
    "OUT": bind.OUT,
    "BOARD": board.RULES,
    "FLOW": flow.RULES,
    "UI": ui.RULES,
    "ENV": state.ENV,
    "PACK": pack.RULES,
    "LINK": code.LINK,
    "GEN": generator.RULES,
}

CATALOGUE: Final[dict[str, Rule]] = {
    entry.code: entry for family in FAMILIES.values() for entry in family
}
