"""Families EXPO, VAR and STATE: variables, what sets them and who sees them."""

from typing import Final

from behaviour.cases_mistake import Case, Rename, Swap, swapped

_FILE: Final = "context_variables.json"
_SHOP: Final = '{"type": "static", "value": "Corner Shop"}'

_EXPO: Final = [
    swapped("EXPO001", "agents.json", "{shop_name}", "{shop_nam}", "shop_nam}"),
    swapped("EXPO001", "agents.json", "{shop_name}", "{shop_name} and {friends}", "friends}"),
    Case(
        "EXPO002",
        "agents.json",
        "shop_name}",
        (Swap(_FILE, '{"variables": ["shop_name"]}', '{"variables": []}'),),
    ),
    Case(
        "EXPO002",
        "agents.json",
        "shop_name}",
        (Swap(_FILE, '      "FrontAgent": {"variables": ["shop_name"]},\n', ""),),
    ),
    swapped("EXPO003", _FILE, '["shop_name"]', '["shop_nam"]', '"shop_nam"'),
    swapped("EXPO003", _FILE, '["shop_name"]', '["shopName"]', '"shopName"'),
    swapped("EXPO003", _FILE, '["shop_name"]', '["shop_name", "weather"]', '"weather"'),
    swapped(
        "EXPO004",
        _FILE,
        '["order_record"]',
        '["order_record", "shop_name"]',
        '"shop_name"]}\n    }',
    ),
    swapped(
        "EXPO005",
        "agents.json",
        "You find orders.",
        "You find orders by order_found.",
        "order_found",
    ),
    swapped("EXPO006", "agents.json", "{shop_name}", "{ shop_name }", "{ shop_name }"),
    swapped("EXPO006", "agents.json", "{shop_name}", "${shop_name}", "${shop_name}"),
    Case(
        "EXPO007",
        _FILE,
        '"shop_name"]',
        (Swap(_FILE, _SHOP, f'{_SHOP}, "readers": ["TechAgent"]'),),
    ),
    swapped("EXPO008", _FILE, '["order_record"]', '["order_record", "crm_key"]', '"crm_key"]'),
    swapped("EXPO008", "agents.json", "{shop_name}", "{shop_name} {crm_key}", "crm_key}"),
    swapped(
        "EXPO009", _FILE, '["order_record"]', '["order_record", "order_record"]', '"order_record"]'
    ),
]

_FOUND: Final = '"triggers": [{"type": "tool_call", "tool": "find_order"}]'

_VAR: Final = [
    swapped("VAR001", _FILE, ', "search_by": "user_id"', "", '{"type": "database"'),
    swapped("VAR002", _FILE, '"Corner Shop"', "5", "5}"),
    swapped(
        "VAR002",
        _FILE,
        '"TECH"}, "value": "tech"',
        '"TECH"}',
        '{"type": "agent_text", "agent": "FrontAgent", "match": {"equals"',
    ),
    Case(
        "VAR003",
        _FILE,
        '["is_urgent", "is_upset"]\n',
        (
            Swap(_FILE, '["order_found", "is_upset"]', '["is_urgent", "is_upset"]'),
            Swap(_FILE, "order_found and", "is_urgent and"),
        ),
    ),
    swapped("VAR004", _FILE, "order_found and is_upset", "order_found and is_vip", 'is_vip"'),
    swapped("VAR004", _FILE, "order_found and is_upset", "order_found and", "X"),
    swapped("VAR004", _FILE, "tools.moods:is_vip", "tools.moods:is_vp", '"tools.moods:is_vp"'),
    swapped("VAR004", _FILE, "tools.moods:is_vip", "tools.mods:is_vip", '"tools.mods:is_vip"'),
    swapped(
        "VAR004", _FILE, '["order_found", "is_upset"]', '["orderFound", "is_upset"]', '"orderFound"'
    ),
    swapped("VAR005", _FILE, '"Corner Shop"', '"sk-3fT9vL2mQ8xWz41k"', '"sk-'),
    Case("VAR006", _FILE, '"weft_name": {', (Rename("shop_name", "weft_name"),)),
    Case("VAR006", _FILE, '"chat_id": {', (Rename("shop_name", "chat_id"),)),
    swapped(
        "VAR007",
        _FILE,
        '"FrontAgent", "match": {"equals"',
        '"FrontAgnt", "match": {"equals"',
        '"FrontAgnt"',
    ),
    swapped(
        "VAR007",
        _FILE,
        '"FrontAgent", "match": {"equals"',
        '"frontAgent", "match": {"equals"',
        '"frontAgent"',
    ),
    swapped("VAR008", _FILE, '"tool": "find_order"}', '"tool": "find_ordr"}', '"find_ordr"'),
    swapped("VAR008", _FILE, '"tool": "find_order"}', '"tool": "findOrder"}', '"findOrder"'),
    swapped("VAR008", _FILE, '"approve_refund"', '"find_order"', '"find_order", "response_key"'),
    swapped("VAR009", _FILE, "REFUNDS?", "REFUND(S", "(S"),
    swapped("VAR009", _FILE, "REFUNDS?", "REFUND(S+)+", "(S+)+"),
    swapped("VAR010", _FILE, '"TECH"', '"TECHNICAL"', '"TECHNICAL"'),
    swapped(
        "VAR011",
        _FILE,
        _FOUND,
        '"triggers": []',
        '{\n          "type": "derived",\n          "default": false,\n          "triggers": []',
    ),
    Case(
        "VAR012",
        _FILE,
        '"is_vip": {',
        (Swap(_FILE, ', "is_vip"]', "]"), Swap("agents.json", " VIP: {is_vip}.", "")),
    ),
    swapped("VAR013", _FILE, _SHOP, f'{_SHOP}, "writers": ["FrontAgent"]', '["FrontAgent"]'),
    swapped(
        "VAR014", _FILE, '"argument": "order_id"', '"argument": "order_id", "value": "A1"', '"A1"'
    ),
    swapped("VAR015", _FILE, '"argument": "order_id"', '"argument": "order_nr"', '"order_nr"'),
    swapped("VAR015", _FILE, '"argument": "order_id"', '"argument": "orderId"', '"orderId"'),
    swapped(
        "VAR016",
        _FILE,
        '"tools.moods:is_upset"',
        '"tools.moods:is_angry"',
        '"tools.moods:is_angry"',
    ),
    swapped(
        "VAR016", _FILE, '"tools.moods:is_upset"', '"tools.mood:is_upset"', '"tools.mood:is_upset"'
    ),
    swapped(
        "VAR017",
        _FILE,
        '"inputs": ["customer_plan"]',
        '"inputs": ["customer_plan"], "persist_to": "shop_name"',
        '"shop_name"\n',
    ),
    swapped(
        "VAR017",
        _FILE,
        '"inputs": ["customer_plan"]',
        '"inputs": ["customer_plan"], "persist_to": "orderRecord"',
        '"orderRecord"\n',
    ),
    swapped("VAR018", _FILE, "data/prices.txt", "../prices.txt", '"../prices.txt"'),
    swapped("VAR018", _FILE, "data/prices.txt", "data/.env", '"data/.env"'),
    swapped("VAR019", _FILE, '"search_by": "order_id"', '"search_by": "number"', '"number"'),
    swapped("VAR019", _FILE, '"search_by": "order_id"', '"search_by": "orderId"', '"orderId"'),
    swapped(
        "VAR020",
        _FILE,
        '{"type": "environment", "env_var": "CRM_KEY"}',
        '{"type": "static", "value": "open sesame"}',
        '"static", "value": "open',
    ),
]

_STEP: Final = (
    '{"from": "open", "to": "saved", "trigger": {"type": "tool_call", "tool": "save_ticket"}}'
)
_STATES: Final = '"literal[\\"open\\", \\"saved\\"]"'
_THREE: Final = '"literal[\\"open\\", \\"saved\\", \\"lost\\"]"'
_WIDER: Final = Swap(_FILE, _STATES, _THREE)

_STATE: Final = [
    Case(
        "STATE001",
        _FILE,
        '"lost",\n',
        (_WIDER, Swap(_FILE, '"default": "open"', '"default": "lost"')),
    ),
    Case(
        "STATE002",
        _FILE,
        '"lost", "to"',
        (_WIDER, Swap(_FILE, _STEP, f'{_STEP},\n            {{"from": "lost", "to": "saved"}}')),
    ),
    Case(
        "STATE003",
        _FILE,
        '"lost"}',
        (_WIDER, Swap(_FILE, _STEP, f'{_STEP},\n            {{"from": "open", "to": "lost"}}')),
    ),
    Case(
        "STATE003",
        _FILE,
        '"saved", "trigger"',
        (Swap("handoffs.json", "ticket_state == 'saved'", "order_found"),),
    ),
    swapped(
        "STATE004",
        _FILE,
        '"default": "open",',
        '"default": "open",\n          "triggers": [{"type": "tool_call", "tool": "find_order", "value": "open"}],',
        '"open"}',
    ),
    swapped("STATE005", _FILE, _STEP, f"{_STEP},\n            {_STEP[:-1]} }}", f"{_STEP[:-1]} }}"),
]

CASES: Final = [*_EXPO, *_VAR, *_STATE]
