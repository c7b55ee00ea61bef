"""Family PACK: packages of a workspace that do not fit together."""

from typing import Final

from behaviour.cases_mistake import Case, Swap, swapped

_PACK: Final = "packs/shop.json"
_BILLING: Final = "workflows/Billing/orchestrator.json"
_WELCOME: Final = "workflows/Welcome/orchestrator.json"

CASES: Final = [
    swapped("PACK001", _BILLING, '["Welcome"]', '["Welcom"]', '"Welcom"'),
    Case("PACK002", _BILLING, '"Welcome"', (Swap(_WELCOME, "[]", '["Billing"]'),)),
    swapped("PACK002", _BILLING, '["Welcome"]', '["Billing"]', '"Billing"]'),
    swapped("PACK003", _PACK, '"name": "Billing"', '"name": "Biling"', '"Biling"'),
    swapped("PACK004", _PACK, '"dependent"', '"primary"', '[\n    {"name": "Welcome"'),
    swapped("PACK004", _PACK, '"primary"', '"independent"', '[\n    {"name": "Welcome"'),
    swapped("PACK005", _PACK, '["Billing"]', '["Bilings"]', '"Bilings"'),
]
