"""Families HAND and ENV: who hands off to whom, and when."""

from typing import Final

from behaviour.cases_mistake import Case, Swap, swapped_in

_FILE: Final = "handoffs.json"
_CONTEXT: Final = "context_variables.json"
_ORCHESTRATOR: Final = "orchestrator.json"

_in_handoffs: Final = swapped_in(_FILE)
_in_orchestrator: Final = swapped_in(_ORCHESTRATOR)

_TO_TECH: Final = '"target_agent": "TechAgent"'
_OF_REFUND: Final = '"source_agent": "RefundAgent"'
_FOUND: Final = '"order_found"'
_TO_USER: Final = '{"source_agent": "TechAgent", "target_agent": "user"}'
_BY_TECH: Final = "domain == 'tech'"
_TO_REFUND: Final = """\
    {"source_agent": "FrontAgent", "target_agent": "RefundAgent",
     "condition": "domain == 'refund'"},
"""
_TECH_RULES: Final = """\
    {"source_agent": "TechAgent", "target_agent": "ClerkAgent", "condition": "order_found"},
    {"source_agent": "TechAgent", "target_agent": "user"},
"""
_LATE_RULE: Final = """\
"target_agent": "RefundAgent",
     "condition": "order_found and is_upset", "priority": 2}"""
_ALONE: Final = Swap(_ORCHESTRATOR, '"human_in_the_loop": true', '"human_in_the_loop": false')
_STRICT: Final = Swap(_ORCHESTRATOR, '"max_turns"', '"condition_profile": "strict", "max_turns"')


def _always_to(target: str) -> Swap:
    """Let TechAgent hand off to one target, whatever happens."""
    rule = f'    {{"source_agent": "TechAgent", "target_agent": "{target}"}},\n'
    return Swap(_FILE, _TECH_RULES, rule)


def _after_user_rule(rule: str) -> str:
    """Put another rule of TechAgent behind its last one."""
    return f'{_TO_USER},\n    {{"source_agent": "TechAgent", {rule}'


def _with(key_and_value: str) -> str:
    """Give the last rule of TechAgent another key."""
    return f"{_TO_USER[:-1]}, {key_and_value}}}"


_NAMES: Final = [
    _in_handoffs("HAND001", _TO_TECH, '"target_agent": "TechAgnt"', '"TechAgnt"'),
    _in_handoffs("HAND001", _TO_TECH, '"target_agent": "techAgent"', '"techAgent"', mends=True),
    _in_handoffs("HAND001", '"terminate"', '"terminte"', '"terminte"'),
    _in_handoffs("HAND002", _OF_REFUND, '"source_agent": "RefundAgnt"', '"RefundAgnt"'),
    _in_handoffs(
        "HAND002", _OF_REFUND, '"source_agent": "refundAgent"', '"refundAgent"', mends=True
    ),
    _in_orchestrator("HAND020", '"user"', '"TechAgnt"', '"TechAgnt"'),
    _in_orchestrator("HAND020", '"user"', '"techAgent"', '"techAgent"', mends=True),
    Case("HAND020", _ORCHESTRATOR, '"user"', (_ALONE, Swap(_FILE, '"user"', '"terminate"'))),
    Case("HAND018", _FILE, '"user"', (_ALONE, Swap(_ORCHESTRATOR, '"user"', '"terminate"'))),
]

_CONDITIONS: Final = [
    _in_handoffs("HAND003", _BY_TECH, "domain = 'tech'", "= 'tech'"),
    _in_handoffs("HAND003", _BY_TECH, "domain == 'tech", "'tech\""),
    _in_handoffs("HAND004", _FOUND, '"order_found and customer_plan"', "customer_plan"),
    _in_handoffs("HAND004", _FOUND, '"order_found and user_id"', "user_id"),
    _in_handoffs("HAND004", _FOUND, '"order_found and crm_key"', "crm_key"),
    _in_handoffs("HAND005", _FOUND, '"order_fond"', 'order_fond"'),
    _in_handoffs("HAND005", _BY_TECH, "domain == tech", 'tech"'),
    Case(
        "HAND013",
        _FILE,
        '"order_found or',
        (_STRICT, Swap(_FILE, _FOUND, '"order_found or is_upset"')),
    ),
    _in_handoffs("HAND014", _FOUND, '"it was found", "condition_type": "llm"', '"llm"'),
    _in_handoffs("HAND015", "'saved'", "'save'", "ticket_state == 'save'"),
    _in_handoffs("HAND015", "'saved'", "true", "ticket_state == true"),
    _in_handoffs("HAND019", _TO_USER, _with('"condition_type": "llm"'), '"llm"'),
    _in_handoffs("HAND019", _TO_USER, _with('"condition_type": "nearest"'), '"nearest"'),
    _in_handoffs("HAND025", _TO_USER, _with('"threshold": 0.75'), "0.75"),
]

_WAYS: Final = [
    _in_handoffs(
        "HAND006",
        _TO_USER,
        _after_user_rule('"target_agent": "ClerkAgent"}'),
        '"TechAgent", "target_agent": "ClerkAgent"}',
    ),
    _in_handoffs(
        "HAND006",
        _TO_USER,
        _after_user_rule('"target_agent": "user" }'),
        '"TechAgent", "target_agent": "user" }',
        mends=True,
    ),
    _in_handoffs("HAND007", "domain == 'refund'", "domain != 'unknown'", '"domain != '),
    Case("HAND008", "agents.json", '"RefundAgent"', (Swap(_FILE, _TO_REFUND, ""),)),
    _in_handoffs(
        "HAND009",
        _TO_USER,
        _after_user_rule(_LATE_RULE),
        '"order_found and is_upset"',
    ),
    Case("HAND010", "agents.json", '"TechAgent"', (_always_to("TechAgent"),)),
    Case(
        "HAND011",
        "agents.json",
        '"FrontAgent"',
        (_always_to("FrontAgent"), Swap(_FILE, _BY_TECH, f'{_BY_TECH}", "condition_scope": "pre')),
    ),
    Case(
        "HAND012",
        "agents.json",
        '"TechAgent"',
        (Swap(_FILE, _BY_TECH, f"{_BY_TECH} and 'A' in order_number"), _always_to("TechAgent")),
    ),
    _in_handoffs("HAND016", _TO_USER, _with('"reason": "Not found."'), '"Not found."'),
    _in_handoffs("HAND017", _TO_USER, _with('"condition_scope": "pre"'), '"pre"'),
]

_APPROVED: Final = """\
          "type": "derived",
          "default": false,
          "triggers": [
            {"type": "ui_response", "tool": "approve_refund", "response_key": "accepted"}
          ]
"""
_BY_DEPLOYMENT: Final = '          "type": "environment", "env_var": "REFUND", "default": false\n'
_SHOP: Final = '{"type": "static", "value": "Corner Shop"}'

#: In production these are errors.
ENV_CASES: Final = [
    Case("ENV001", _FILE, 'refund_approved"', (Swap(_CONTEXT, _APPROVED, _BY_DEPLOYMENT),)),
    Case(
        "ENV002",
        "agents.json",
        "shop_name}",
        (Swap(_CONTEXT, _SHOP, '{"type": "environment", "env_var": "SHOP"}'),),
    ),
]

#: Where variables from databases do not exist this is a mistake as it stands.
LEAN_CASES: Final = [Case("ENV003", _CONTEXT, '"customer_plan"]', ())]


def _group(rest: str, members: str = '"RefundAgent", "ClerkAgent"', name: str = "Team") -> Swap:
    """Let TechAgent hand off to a group instead of RefundAgent's clerk."""
    group = f'"parallel": [{{"name": "{name}", "members": [{members}]{rest}}}], "max_turns"'
    return Swap(_ORCHESTRATOR, '"max_turns"', group)


_STARTED: Final = Swap(_FILE, _TO_USER, '{"source_agent": "TechAgent", "target_agent": "Team"}')
_BOTH: Final = """\
          "type": "derived",
          "default": false,
          "triggers": [
            {"type": "agent_turn_count", "agent": "RefundAgent", "count": 2},
            {"type": "agent_turn_count", "agent": "ClerkAgent", "count": 2},
            {"type": "ui_response", "tool": "approve_refund", "response_key": "accepted"}
          ]
"""

_GROUPS: Final = [
    Case("NAME010", _ORCHESTRATOR, '"TechAgent", "members', (_group("", name="TechAgent"),)),
    Case("NAME010", _ORCHESTRATOR, '"my team"', (_group("", name="my team"),)),
    Case(
        "HAND021",
        _ORCHESTRATOR,
        '"ClerkAgnt"',
        (_group("", '"RefundAgent", "ClerkAgnt"'), _STARTED),
    ),
    Case("HAND021", _ORCHESTRATOR, '"Nobody"', (_group(', "next": "Nobody"'), _STARTED)),
    Case("HAND022", _ORCHESTRATOR, '"custom"', (_group(', "merge": "custom"'), _STARTED)),
    Case(
        "HAND023",
        _ORCHESTRATOR,
        '["RefundAgent", "ClerkAgent"]',
        (_group(""), _STARTED, Swap(_CONTEXT, _APPROVED, _BOTH)),
    ),
]

CASES: Final = [*_NAMES, *_CONDITIONS, *_WAYS, *_GROUPS, *ENV_CASES, *LEAN_CASES]
