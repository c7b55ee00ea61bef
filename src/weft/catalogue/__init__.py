"""The one catalogue of diagnostics: every code, what it means, why it matters, how to mend it."""

from typing import Final

from weft.catalogue import (
    bind,
    env,
    expo,
    hand,
    hook,
    link,
    name,
    out,
    pack,
    schema,
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
    "BIND": bind.RULES,
    "HAND": hand.RULES,
    "EXPO": expo.RULES,
    "VAR": var.RULES,
    "STATE": state.RULES,
    "HOOK": hook.RULES,
    "OUT": out.RULES,
    "UI": ui.RULES,
    "ENV": env.RULES,
    "PACK": pack.RULES,
    "LINK": link.RULES,
}

CATALOGUE: Final[dict[str, Rule]] = {
    entry.code: entry for family in FAMILIES.values() for entry in family
}
