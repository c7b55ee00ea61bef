"""Family PACK: packages of a workspace that do not fit together."""

from typing import Final

from behaviour.cases_mistake import Add, Case, Swap, swapped_in

_BILLING: Final = "workflows/Billing/orchestrator.json"
_WELCOME: Final = "workflows/Welcome/orchestrator.json"

_in_billing: Final = swapped_in(_BILLING)
_in_pack: Final = swapped_in("packs/shop.json")

CASES: Final = [
    _in_billing("PACK001", '["Welcome"]', '["Welcom"]', '"Welcom"'),
    _in_billing("PACK002", '["Welcome"]', '["Billing"]', '"Billing"]'),
    Case("PACK002", _BILLING, '"Welcome"', (Swap(_WELCOME, "[]", '["Billing"]'),)),
    _in_pack("PACK003", '"name": "Billing"', '"name": "Biling"', '"Biling"'),
    _in_pack("PACK004", '"dependent"', '"primary"', '[\n    {"name": "Welcome"'),
    _in_pack("PACK004", '"primary"', '"independent"', '[\n    {"name": "Welcome"'),
    _in_pack("PACK005", '["Billing"]', '["Shipping"]', '"Shipping"'),
    Case("PACK006", "packs/more.JSON", None, (Add("packs/more.JSON", "{}\n"),)),
    Case("PACK006", "workflows/tool.json", None, (Add("workflows/tool.json", "{}\n"),)),
]
