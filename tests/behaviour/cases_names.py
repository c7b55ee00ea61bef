"""Families NAME, BIND and OUT: names that are badly formed, taken twice, or nobody's."""

from typing import Final

from behaviour.cases_mistake import Case, Rename, Swap, swapped

_CONTEXT: Final = "context_variables.json"
_OUTPUTS: Final = "structured_outputs.json"
_TICKET: Final = '{"name": "Ticket", '

_NAME: Final = [
    Case("NAME001", "agents.json", '"tech_agent"', (Rename("TechAgent", "tech_agent"),)),
    Case("NAME002", _CONTEXT, '"shopName": {', (Rename("shop_name", "shopName"),)),
    Case("NAME002", "tools.json", '"findOrder"', (Rename("find_order", "findOrder"),)),
    Case("NAME002", _OUTPUTS, '"Title"', (Rename("title", "Title"),)),
    swapped(
        "NAME003",
        "agents.json",
        "    }\n  ]\n}",
        '    },\n    {"agent_name": "ClerkAgent"}\n  ]\n}',
        '"ClerkAgent"}',
    ),
    swapped(
        "NAME004",
        "tools.json",
        '    {"agent": "RefundAgent"',
        '    {"agent": "TechAgent", "file": "orders.py", "function": "find_order",\n'
        '     "description": "Finds one."},\n'
        '    {"agent": "RefundAgent"',
        '"find_order",\n     "description": "Finds one."',
    ),
    swapped(
        "NAME004",
        "tools.json",
        '    {"agent": "RefundAgent"',
        '    {"agent": "TechAgent", "file": "orders.py", "function": "find_order",\n'
        '     "description": "Finds an order by its number." },\n'
        '    {"agent": "RefundAgent"',
        '"find_order",\n     "description": "Finds an order by its number." }',
    ),
    swapped("NAME005", "orchestrator.json", '"OrderDesk"', '"OrderDesks"', '"OrderDesks"'),
    swapped("NAME006", "agents.json", '"mood"', '"role"', '"role", "content": "Excuse us'),
    swapped(
        "NAME007",
        _OUTPUTS,
        f"    {_TICKET}",
        f'    {_TICKET}"fields": {{"title": {{"type": "str"}}, "body": {{"type": "any"}}}}}},\n'
        f"    {_TICKET}",
        '"Ticket", "fields": {"title": {"type": "str"}, "body": {"type": "str"}',
    ),
    Case("NAME008", "agents.json", '"User"', (Rename("FrontAgent", "User"),)),
    Case("NAME009", _OUTPUTS, '"ticket_form", "fields"', (Rename("Ticket", "ticket_form"),)),
    Case("NAME009", _OUTPUTS, '"List", "fields"', (Rename("Ticket", "List"),)),
]

_BIND: Final = [
    swapped("BIND001", "tools.json", '"TechAgent"', '"TechAgnt"', '"TechAgnt"'),
    swapped("BIND001", "tools.json", '"TechAgent"', '"tech_agent"', '"tech_agent"'),
    swapped("BIND002", _CONTEXT, '"RefundAgent": {', '"RefundAgnt": {', '"RefundAgnt"'),
    swapped("BIND002", _CONTEXT, '"RefundAgent": {', '"refund_agent": {', '"refund_agent"'),
    swapped("BIND003", _OUTPUTS, '"ClerkAgent"', '"ClerkAgnt"', '"ClerkAgnt"'),
    swapped("BIND003", _OUTPUTS, '"ClerkAgent"', '"clerk_agent"', '"clerk_agent"'),
    swapped("BIND004", "hooks.json", '"file"', '"agent": "FrontAgnt", "file"', '"FrontAgnt"'),
    swapped(
        "BIND004", "tools.json", '"trigger"', '"agent": "frontagent", "trigger"', '"frontagent"'
    ),
    swapped(
        "BIND005",
        "orchestrator.json",
        '"initial_agent": "FrontAgent"',
        '"initial_agent": "FrontAgnt"',
        '"FrontAgnt"',
    ),
    swapped(
        "BIND005",
        "orchestrator.json",
        '"initial_agent": "FrontAgent"',
        '"initial_agent": "front_agent"',
        '"front_agent"',
    ),
    swapped("BIND006", "orchestrator.json", '"RefundAgent"', '"RefundAgnt"', '"RefundAgnt"'),
    swapped("BIND006", "orchestrator.json", '"RefundAgent"', '"refund agent"', '"refund agent"'),
    swapped("BIND007", _OUTPUTS, '"model": "Ticket"', '"model": null', "X"),
    Case(
        "BIND007",
        "agents.json",
        'true,\n      "prompt_sections"',
        (Swap(_OUTPUTS, '"model": "Ticket"', '"model": null'),),
    ),
    swapped("BIND008", _CONTEXT, '["find_order"]', '["find_odrer"]', '"find_odrer"'),
    swapped("BIND008", _CONTEXT, '["find_order"]', '["findOrder"]', '"findOrder"'),
    swapped(
        "BIND008",
        _CONTEXT,
        '"writers": ["find_order"]',
        '"writers": ["find_order"], "readers": ["ClerkAgent", "Nobody"]',
        '"Nobody"',
    ),
    swapped("BIND009", "orchestrator.json", "get_router", "get_routes", '"tools.api:get_routes"'),
    swapped("BIND009", "orchestrator.json", "tools.api:", "tools.apis:", '"tools.apis:get_router"'),
]

_OUT: Final = [
    swapped("OUT001", _CONTEXT, '"type": "dict"', '"type": "Tickt"', '"Tickt"'),
    swapped("OUT001", _CONTEXT, '"type": "dict"', '"type": "TICKET"', '"TICKET"'),
    swapped(
        "OUT001", _OUTPUTS, '"body": {"type": "str"}', '"body": {"type": "Letter"}', '"Letter"'
    ),
    swapped("OUT002", _OUTPUTS, '"model": "Ticket"', '"model": "Tickt"', '"Tickt"'),
    swapped("OUT002", _OUTPUTS, '"model": "Ticket"', '"model": "ticket"', '"ticket"'),
    swapped(
        "OUT003", _OUTPUTS, _TICKET, '{"name": "Letter", "fields": {}},\n    ' + _TICKET, '"Letter"'
    ),
    swapped(
        "OUT004",
        _OUTPUTS,
        '"model": "Ticket"}',
        '"model": "Ticket"}, {"agent": "ClerkAgent", "model": null}',
        '"ClerkAgent", "model": null',
    ),
    swapped(
        "OUT004",
        _OUTPUTS,
        '"model": "Ticket"}',
        '"model": "Ticket"}, {"agent": "ClerkAgent", "model": "Ticket" }',
        '"ClerkAgent", "model": "Ticket" }',
    ),
    swapped(
        "OUT005", _OUTPUTS, '"body": {"type": "str"}', '"body": {"type": "Ticket"}', '"Ticket"}}'
    ),
]

CASES: Final = [*_NAME, *_BIND, *_OUT]
