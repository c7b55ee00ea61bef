"""Families EXPO, VAR and STATE: variables, what sets them and who sees them."""

from typing import Final

from behaviour.cases_mistake import Case, Rename, Swap, swapped_in

_FILE: Final = "context_variables.json"

_in_agents: Final = swapped_in("agents.json")
_in_context: Final = swapped_in(_FILE)

_SHOP: Final = '{"type": "static", "value": "Corner Shop"}'
_SHOWN: Final = '["shop_name"]'
_TO_FRONT: Final = '      "FrontAgent": {"variables": ["shop_name"]},\n'
_TO_CLERK: Final = '["order_record"]'

_ROUTER: Final = '"router",'


def _has(context: str) -> str:
    """The first agent, with a context of its own."""
    return f'{_ROUTER} "context": [{context}],'


_EXPO: Final = [
    _in_agents("EXPO001", "{shop_name}", "{shop_nam}", "shop_nam}"),
    _in_agents("EXPO001", "{shop_name}", "{shop_name} and {friends}", "friends}"),
    Case("EXPO002", "agents.json", "shop_name}", (Swap(_FILE, _SHOWN, "[]"),), mends=True),
    Case("EXPO002", "agents.json", "shop_name}", (Swap(_FILE, _TO_FRONT, ""),), mends=True),
    _in_context("EXPO003", _SHOWN, '["shop_nam"]', '"shop_nam"'),
    _in_context("EXPO003", _SHOWN, '["shopName"]', '"shopName"', mends=True),
    _in_context("EXPO003", _SHOWN, '["shop_name", "weather"]', '"weather"'),
    _in_context("EXPO004", _TO_CLERK, '["order_record", "shop_name" ]', '"shop_name" ]'),
    _in_agents("EXPO005", "You welcome", "Read order_found, welcome", "order_found"),
    _in_agents("EXPO006", "{shop_name}", "{ shop_name }", "{ shop_name }"),
    _in_agents("EXPO006", "{shop_name}", "${shop_name}", "${shop_name}"),
    Case(
        "EXPO007",
        _FILE,
        '"shop_name"]',
        (Swap(_FILE, _SHOP, f'{_SHOP}, "readers": ["TechAgent"]'),),
    ),
    _in_context("EXPO008", _TO_CLERK, '["order_record", "crm_key"]', '"crm_key"]'),
    _in_agents("EXPO008", "{shop_name}", "{shop_name} {crm_key}", "crm_key}"),
    _in_context(
        "EXPO009", _TO_CLERK, '["order_record", "order_record" ]', '"order_record" ]', mends=True
    ),
    _in_agents("EXPO010", _ROUTER, _has('{"kind": "variables", "names": ["is_vip"]}'), '"is_vip"'),
    _in_agents("EXPO010", _ROUTER, _has('{"kind": "variables", "names": ["shop"]}'), '"shop"'),
    _in_agents(
        "EXPO011",
        _ROUTER,
        _has('{"kind": "literal", "text": "Be kind.", "max_tokens": 1}'),
        '"Be kind."',
    ),
    _in_agents(
        "EXPO012",
        _ROUTER,
        _has('{"kind": "history"}, {"kind": "history" }'),
        '{"kind": "history" }',
    ),
    _in_agents(
        "EXPO012",
        _ROUTER,
        _has('{"kind": "variables", "names": ["shop_name"]}, {"kind": "variables" }'),
        '{"kind": "variables" }',
    ),
    Case(
        "EXPO013",
        _FILE,
        '"crm_key"]',
        (
            Swap(_FILE, '"secret": true', '"secret": false'),
            Swap(_FILE, '"stock_level", "is_vip"]', '"stock_level", "is_vip", "crm_key"]'),
        ),
    ),
]

_INPUTS: Final = '["order_found", "is_upset"]'
_ON_CALL: Final = '"triggers": [{"type": "tool_call", "tool": "find_order"}]'
_UNSET: Final = """\
{
          "type": "derived",
          "default": false,
          "triggers": []"""
_ARGUMENT: Final = '"argument": "order_id"'
_SAYING_TECH: Final = """\
"FrontAgent",
             "match": {"equals\""""
_KEPT: Final = '"inputs": ["customer_plan"]'
_KEY: Final = '{"type": "environment", "env_var": "CRM_KEY"}'
_IN_DATABASE: Final = '{\n          "type": "database"'
_BY_NUMBER: Final = '"search_by": "order_number"'

_DECLARATIONS: Final = [
    _in_context("VAR001", ' "search_by": "user_id",', "", _IN_DATABASE),
    _in_context("VAR002", '"Corner Shop"', "5", "5}"),
    Case(
        "VAR003",
        _FILE,
        '["is_urgent", "is_upset"]\n',
        (
            Swap(_FILE, _INPUTS, '["is_urgent", "is_upset"]'),
            Swap(_FILE, "order_found and", "is_urgent and"),
        ),
    ),
    _in_context(
        "VAR004", "and is_upset", "and is_vip", 'is_vip",\n          "inputs": ["order_found"'
    ),
    _in_context("VAR004", "and is_upset", "and", '",\n          "inputs": ["order_found"'),
    _in_context("VAR004", "moods:is_vip", "moods:is_vp", '"tools.moods:is_vp"'),
    _in_context("VAR004", "moods:is_vip", "mods:is_vip", '"tools.mods:is_vip"'),
    _in_context("VAR004", _INPUTS, '["orderFound", "is_upset"]', '"orderFound"', mends=True),
    _in_agents("VAR005", "{shop_name}", "{shop_name} sk-3fT9vL2mQ8xWz41k", '"You welcome'),
    _in_context("VAR005", '"Corner Shop"', '"sk-3fT9vL2mQ8xWz41k"', '"sk-'),
    Case("VAR006", _FILE, '"weft_name": {', (Rename("shop_name", "weft_name"),)),
    Case("VAR006", _FILE, '"chat_id": {', (Rename("shop_name", "chat_id"),)),
    _in_context("VAR013", _SHOP, f'{_SHOP}, "writers": ["FrontAgent"]', '["FrontAgent"]'),
    _in_context("VAR017", _KEPT, f'{_KEPT}, "persist_to": "shop_name" ', '"shop_name" '),
    _in_context(
        "VAR017", _KEPT, f'{_KEPT}, "persist_to": "orderRecord"', '"orderRecord"', mends=True
    ),
    _in_context("VAR018", "data/prices.txt", "../prices.txt", '"../prices.txt"'),
    _in_context("VAR018", "data/prices.txt", "data/.env", '"data/.env"'),
    _in_context("VAR019", _BY_NUMBER, '"search_by": "number"', '"number"'),
    _in_context("VAR019", _BY_NUMBER, '"search_by": "orderNumber"', '"orderNumber"', mends=True),
    _in_context("VAR020", _KEY, '{"type": "static" , "value": "open sesame"}', '"static" ,'),
]

_EVENTS: Final = [
    _in_context("VAR007", _SAYING_TECH, _SAYING_TECH.replace("Agent", "Agnt"), '"FrontAgnt"'),
    _in_context("VAR007", _SAYING_TECH, _SAYING_TECH.replace("A", "a"), '"Frontagent"', mends=True),
    _in_context("VAR008", '"find_order"}', '"find_ordr"}', '"find_ordr"'),
    _in_context("VAR008", '"find_order"}', '"findOrder"}', '"findOrder"', mends=True),
    _in_context("VAR009", "REFUNDS?", "REFUND(S", "(S"),
    _in_context("VAR009", "REFUNDS?", "REFUND(?=S)", "(?=S)"),
    _in_context("VAR010", '"TECH"', '"TECHNICAL"', '"TECHNICAL"'),
    _in_context("VAR011", _ON_CALL, '"triggers": []', _UNSET),
    Case(
        "VAR012",
        _FILE,
        '"is_vip": {',
        (Swap(_FILE, ', "is_vip"]', "]"), Swap("agents.json", " VIP: {is_vip}.", "")),
    ),
    Case(
        "VAR012",
        _FILE,
        '"ticket_state": {',
        (Swap("handoffs.json", "ticket_state == 'saved'", "order_found"),),
    ),
    _in_context("VAR014", _ARGUMENT, f'{_ARGUMENT}, "value": "A1"', '"A1"'),
    _in_context("VAR015", _ARGUMENT, '"argument": "order_nr"', '"order_nr"'),
    _in_context("VAR015", _ARGUMENT, '"argument": "orderId"', '"orderId"', mends=True),
    _in_context("VAR016", "moods:is_upset", "moods:is_angry", '"tools.moods:is_angry"'),
    _in_context("VAR016", "moods:is_upset", "mood:is_upset", '"tools.mood:is_upset"'),
]

_SETTING: Final = 'context_variables.set("order_record"'
_SEARCHED: Final = '"search_by": "user_id"'
_ADDRESS: Final = '"https://stock.example/count?shop={shop_name}"'
_in_orchestrator: Final = swapped_in("orchestrator.json")
_TURNS: Final = '"max_turns": 30,'
_SIGNED_IN: Final = '"auth": {"type": "bearer", "secret_env": '


def _code_sets(variable: str) -> Case:
    line = f'context_variables.set("{variable}", 5)'
    change = Swap("tools/orders.py", _SETTING, f"{line}\n    {_SETTING}")
    return Case("VAR021", "tools/orders.py", line, (change,))


def _starts(trigger: str, mark: str) -> Case:
    change = Swap("orchestrator.json", _TURNS, f'{_TURNS}\n  "trigger": {trigger},')
    also = dict.fromkeys(("HAND018", "HAND020"), "the desk asks customers, and none is there")
    return Case("VAR023", "orchestrator.json", mark, (change,), also=also)


def _budgets(*budgets: str) -> Case:
    listed = ", ".join(budgets)
    return _in_orchestrator("VAR024", _TURNS, f'{_TURNS} "budgets": [{listed}],', budgets[-1])


_CODE_SOURCES_STARTS: Final = [
    _code_sets("order_nmber"),
    _code_sets("shop_name"),
    _code_sets("order_number"),
    _in_context("VAR022", _SEARCHED, '"search_by": "mail"', '"mail"'),
    _in_context("VAR022", _SEARCHED, '"search_by": "userId"', '"userId"', mends=True),
    _in_context("VAR022", _SEARCHED, '"query_template": {"a": "{nope}"}', 'nope}"'),
    _in_context("VAR022", "{shop_name}", "{nope}", 'nope}"'),
    _in_context("VAR022", '"CRM_KEY"', '"CRM KEY=1"', '"CRM KEY'),
    _in_context("VAR022", "https://stock", "ftp://stock", '"ftp'),
    _in_context("VAR022", _ADDRESS, f'{_ADDRESS}, {_SIGNED_IN}"my key"}}', '"my key"'),
    _in_context(
        "VAR022", _ADDRESS, f'{_ADDRESS}, {_SIGNED_IN}"KEY", "header": "X-Key"}}', '"X-Key"'
    ),
    _starts('{"type": "schedule", "cron": "daily"}', '"daily"'),
    _starts('{"type": "schedule", "cron": "0 9 * * *", "timezone": "Berlin"}', '"Berlin"'),
    _starts('{"type": "database_condition", "collection": "Orders", "condition": "a =="}', '"},'),
    _in_orchestrator(
        "VAR023",
        _TURNS,
        f'{_TURNS} "trigger": {{"type": "webhook"}}, "startup_mode": "UserDriven",',
        '"UserDriven"',
    ),
    _budgets('{"level": "run"}'),
    _budgets('{"tokens": 9}', '{"steps": 9}'),
]

_STEP: Final = """\
            {"from": "open", "to": "saved",
             "trigger": {"type": "tool_call", "tool": "save_ticket"}}"""
_OPEN: Final = '"default": "open",'
_BACK: Final = (
    '\n          "triggers": [{"type": "tool_call", "tool": "find_order", "value": "open"}],'
)
_WIDER: Final = Swap(_FILE, r"[\"open\", \"saved\"]", r"[\"open\", \"saved\", \"lost\"]")


def _and_step(step: str) -> Swap:
    """Add a transition."""
    return Swap(_FILE, _STEP, f"{_STEP},\n            {step}")


_STATE: Final = [
    Case(
        "STATE001",
        _FILE,
        '"lost",\n',
        (
            _WIDER,
            Swap(_FILE, _OPEN, '"default": "lost",'),
            # Another way to the end: that the state is never reached would be reported too.
            Swap("handoffs.json", "'saved'", "'saved' or order_found"),
        ),
    ),
    Case("STATE002", _FILE, '"lost", "to"', (_WIDER, _and_step('{"from": "lost", "to": "saved"}'))),
    Case("STATE003", _FILE, '"lost"}', (_WIDER, _and_step('{"from": "open", "to": "lost"}'))),
    _in_context("STATE004", _OPEN, _OPEN + _BACK, '"open"}'),
    Case(
        "STATE005", _FILE, '{ "from"', (_and_step(_STEP.strip().replace("{", "{ ", 1)),), mends=True
    ),
]

CASES: Final = [*_EXPO, *_DECLARATIONS, *_EVENTS, *_CODE_SOURCES_STARTS, *_STATE]
