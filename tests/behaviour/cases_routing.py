"""Families HAND and ENV: who hands off to whom, and when."""

from typing import Final

from behaviour.cases_mistake import Case, Swap, swapped

_FILE: Final = "handoffs.json"
_FOUND: Final = '"condition": "order_found"'
_TO_USER: Final = '{"source_agent": "TechAgent", "target_agent": "user"}'
_TECH_RULES: Final = """\
    {"source_agent": "TechAgent", "target_agent": "ClerkAgent", "condition": "order_found"},
    {"source_agent": "TechAgent", "target_agent": "user"},
"""
_BY_TECH: Final = '"target_agent": "TechAgent", "condition": "domain == \'tech\'"'
_DOMAIN: Final = "\"domain == 'tech'\""
_REFUND_RULE: Final = """\
    {"source_agent": "FrontAgent", "target_agent": "RefundAgent", "condition": "domain == 'refund'"},
"""


def _tech(rules: str) -> Swap:
    return Swap(_FILE, _TECH_RULES, rules)


_HAND: Final = [
    swapped(
        "HAND001", _FILE, '"target_agent": "TechAgent"', '"target_agent": "TechAgnt"', '"TechAgnt"'
    ),
    swapped(
        "HAND001",
        _FILE,
        '"target_agent": "TechAgent"',
        '"target_agent": "tech_agent"',
        '"tech_agent"',
    ),
    swapped(
        "HAND002",
        _FILE,
        '"source_agent": "RefundAgent"',
        '"source_agent": "RefundAgnt"',
        '"RefundAgnt"',
    ),
    swapped(
        "HAND002",
        _FILE,
        '"source_agent": "RefundAgent"',
        '"source_agent": "refund_agent"',
        '"refund_agent"',
    ),
    swapped("HAND003", _FILE, "domain == 'tech'", "domain = 'tech'", "= 'tech'"),
    swapped("HAND003", _FILE, "domain == 'tech'", "domain == 'tech", "'tech\""),
    swapped("HAND004", _FILE, '"order_found"', '"order_found and customer_plan"', "customer_plan"),
    swapped("HAND004", _FILE, '"order_found"', "\"order_found and user_id == 'u'\"", "user_id"),
    swapped("HAND005", _FILE, '"order_found"', '"order_fond"', 'order_fond"'),
    swapped("HAND005", _FILE, "domain == 'tech'", "domain == tech", 'tech"'),
    swapped(
        "HAND006",
        _FILE,
        _TO_USER,
        f'{_TO_USER}, {{"source_agent": "TechAgent", "target_agent": "ClerkAgent"}}',
        '"TechAgent", "target_agent": "ClerkAgent"}',
    ),
    swapped(
        "HAND006",
        _FILE,
        _TO_USER,
        f'{_TO_USER}, {{"source_agent": "TechAgent", "target_agent": "user" }}',
        '"TechAgent", "target_agent": "user" }',
    ),
    swapped("HAND007", _FILE, "domain == 'refund'", "domain != 'unknown'", '"domain != '),
    Case("HAND008", "agents.json", '"RefundAgent"', (Swap(_FILE, _REFUND_RULE, ""),)),
    Case(
        "HAND009",
        _FILE,
        '"order_found and is_upset"',
        (
            Swap(
                _FILE,
                _TO_USER,
                '{"source_agent": "TechAgent", "target_agent": "RefundAgent", "condition": "order_found and is_upset",\n     "priority": 2}',
            ),
        ),
    ),
    Case(
        "HAND010",
        "agents.json",
        '"TechAgent"',
        (_tech('    {"source_agent": "TechAgent", "target_agent": "TechAgent"},\n'),),
    ),
    Case(
        "HAND011",
        "agents.json",
        '"FrontAgent"',
        (
            _tech('    {"source_agent": "TechAgent", "target_agent": "FrontAgent"},\n'),
            Swap(_FILE, _BY_TECH, f'{_BY_TECH}, "condition_scope": "pre"'),
        ),
    ),
    Case(
        "HAND012",
        "context_variables.json",
        '"str",\n        "source": {\n          "type": "derived"',
        (
            Swap(_FILE, '"order_found"', "\"'A' in order_number\""),
            Swap(
                _FILE,
                '"TechAgent", "target_agent": "user"',
                '"TechAgent", "target_agent": "TechAgent"',
            ),
        ),
    ),
    Case(
        "HAND013",
        _FILE,
        '"order_found or is_upset"',
        (
            Swap(
                "orchestrator.json", '"max_turns"', '"condition_profile": "strict",\n  "max_turns"'
            ),
            Swap(_FILE, '"order_found"', '"order_found or is_upset"'),
        ),
    ),
    swapped(
        "HAND014",
        _FILE,
        _FOUND,
        '"condition": "the order was found", "condition_type": "llm"',
        '"llm"',
    ),
    swapped("HAND015", _FILE, "domain == 'tech'", "domain == 'technical'", "domain == 'technical'"),
    swapped("HAND015", _FILE, "domain == 'tech'", "domain == true", "domain == true"),
    swapped("HAND015", _FILE, "'saved'", "'save'", "ticket_state == 'save'"),
    swapped(
        "HAND016", _FILE, _TO_USER, f'{_TO_USER[:-1]}, "reason": "Not found."}}', '"Not found."'
    ),
    swapped("HAND017", _FILE, _TO_USER, f'{_TO_USER[:-1]}, "condition_scope": "pre"}}', '"pre"'),
    Case(
        "HAND018",
        _FILE,
        '"user"',
        (
            Swap("orchestrator.json", '"human_in_the_loop": true', '"human_in_the_loop": false'),
            Swap("orchestrator.json", '"user"', '"terminate"'),
        ),
    ),
    swapped("HAND019", _FILE, _TO_USER, f'{_TO_USER[:-1]}, "condition_type": "llm"}}', '"llm"'),
    swapped("HAND020", "orchestrator.json", '"user"', '"TechAgnt"', '"TechAgnt"'),
    swapped("HAND020", "orchestrator.json", '"user"', '"tech_agent"', '"tech_agent"'),
    Case(
        "HAND020",
        "orchestrator.json",
        '"user"',
        (
            Swap("orchestrator.json", '"human_in_the_loop": true', '"human_in_the_loop": false'),
            Swap(_FILE, '"user"', '"terminate"'),
        ),
    ),
]

_APPROVED: Final = """\
          "type": "derived",
          "default": false,
          "triggers": [{"type": "ui_response", "tool": "approve_refund", "response_key": "accepted"}]
"""

_ENV: Final = [
    Case(
        "ENV001",
        _FILE,
        'refund_approved"',
        (
            Swap(
                "context_variables.json",
                _APPROVED,
                '          "type": "environment", "env_var": "REFUND", "default": false\n',
            ),
        ),
    ),
    Case(
        "ENV002",
        "agents.json",
        "shop_name",
        (
            Swap(
                "context_variables.json",
                '{"type": "static", "value": "Corner Shop"}',
                '{"type": "environment", "env_var": "SHOP"}',
            ),
        ),
    ),
]

CASES: Final = [*_HAND, *_ENV]
