"""Families NAME, BIND and OUT: names that are badly formed, given twice, or nobody's."""

from typing import Final

from behaviour.cases_mistake import Case, Rename, Swap, swapped_in

_CONTEXT: Final = "context_variables.json"
_OUTPUTS: Final = "structured_outputs.json"

_in_agents: Final = swapped_in("agents.json")
_in_context: Final = swapped_in(_CONTEXT)
_in_hooks: Final = swapped_in("hooks.json")
_in_orchestrator: Final = swapped_in("orchestrator.json")
_in_outputs: Final = swapped_in(_OUTPUTS)
_in_tools: Final = swapped_in("tools.json")

_SECOND_TOOL: Final = '    {"agent": "RefundAgent"'
_AGAIN: Final = """\
    {"agent": "TechAgent", "file": "orders.py", "function": "find_order" ,
     "description": "%s"},
"""
_MODEL: Final = '    {"name": "Ticket", '
_OTHER_MODEL: Final = '    {"name": "Ticket" , "fields": {"title": {"type": "str"}}},\n'

_NAME: Final = [
    Case("NAME001", "agents.json", '"tech_agent"', (Rename("TechAgent", "tech_agent"),)),
    Case("NAME002", _CONTEXT, '"shopName": {', (Rename("shop_name", "shopName"),)),
    Case("NAME002", "tools.json", '"findOrder"', (Rename("find_order", "findOrder"),)),
    Case("NAME002", _OUTPUTS, '"Title"', (Rename("title", "Title"),)),
    _in_agents(
        "NAME003", "    }\n  ]", '    },\n    {"agent_name": "ClerkAgent"}\n  ]', '"ClerkAgent"}'
    ),
    _in_tools("NAME004", _SECOND_TOOL, _AGAIN % "Finds it." + _SECOND_TOOL, '"find_order" ,'),
    _in_tools(
        "NAME004",
        _SECOND_TOOL,
        _AGAIN % "Finds an order by its number." + _SECOND_TOOL,
        '"find_order" ,',
        mends=True,
    ),
    Case(
        "NAME004",
        "tools.json",
        '"find_order" ,',
        (
            Swap(
                "tools.json",
                _SECOND_TOOL,
                _AGAIN.replace("TechAgent", "ClerkAgent").replace("orders", "tickets") % "Finds it."
                + _SECOND_TOOL,
            ),
            Swap(
                "tools/tickets.py",
                "def save_ticket",
                "def find_order() -> None: ...\n\n\ndef save_ticket",
            ),
        ),
    ),
    _in_orchestrator("NAME005", '"OrderDesk"', '"OrderDesks"', '"OrderDesks"'),
    _in_agents("NAME006", '"mood"', '"role"', '"role", "content": "Excuse'),
    _in_outputs("NAME007", _MODEL, _OTHER_MODEL + _MODEL, '"Ticket", "fields"'),
    Case("NAME008", "agents.json", '"User"', (Rename("FrontAgent", "User"),)),
    Case("NAME009", _OUTPUTS, '"ticket_form", "fields"', (Rename("Ticket", "ticket_form"),)),
    Case("NAME009", _OUTPUTS, '"List", "fields"', (Rename("Ticket", "List"),)),
]

_INITIAL: Final = '"initial_agent": "FrontAgent"'
_WRITERS: Final = '["find_order"]'
_BOUND: Final = '"model": "Ticket"'

_AT_START: Final = '"trigger": "before_chat"'


def _at_turn(agent: str) -> str:
    return f'"agent": "{agent}", "trigger": "before_agent"'


_BIND: Final = [
    _in_tools("BIND001", '"TechAgent"', '"TechAgnt"', '"TechAgnt"'),
    _in_tools("BIND001", '"TechAgent"', '"tech_agent"', '"tech_agent"', mends=True),
    _in_outputs("BIND003", '"ClerkAgent"', '"ClerkAgnt"', '"ClerkAgnt"'),
    _in_outputs("BIND003", '"ClerkAgent"', '"clerk_agent"', '"clerk_agent"', mends=True),
    _in_hooks("BIND004", '"file"', '"agent": "FrontAgnt", "file"', '"FrontAgnt"'),
    _in_tools("BIND004", _AT_START, _at_turn("Front"), '"Front"'),
    _in_tools("BIND004", _AT_START, _at_turn("frontagent"), '"frontagent"', mends=True),
    _in_orchestrator("BIND005", _INITIAL, '"initial_agent": "Front"', '"Front"'),
    _in_orchestrator(
        "BIND005", _INITIAL, '"initial_agent": "frontAgent"', '"frontAgent"', mends=True
    ),
    _in_orchestrator("BIND006", '"RefundAgent"', '"RefundAgnt"', '"RefundAgnt"'),
    _in_orchestrator("BIND006", '"RefundAgent"', '"refundAgent"', '"refundAgent"', mends=True),
    Case(
        "BIND007",
        "agents.json",
        'true,\n      "prompt_sections"',
        (Swap(_OUTPUTS, _BOUND, '"model": null'),),
    ),
    _in_agents(
        "BIND007", '"agent_type"', '"structured_outputs_required": true , "agent_type"', "true ,"
    ),
    _in_context("BIND008", _WRITERS, '["find_odrer"]', '"find_odrer"'),
    _in_context("BIND008", _WRITERS, '["findOrder"]', '"findOrder"', mends=True),
    _in_context(
        "BIND008", _WRITERS, '["find_order"], "readers": ["ClerkAgent", "Nobody"]', '"Nobody"'
    ),
    _in_orchestrator("BIND009", "get_router", "get_routes", '"tools.api:get_routes"'),
    _in_orchestrator("BIND009", "tools.api:", "tools.apis:", '"tools.apis:get_router"'),
    _in_orchestrator("BIND009", '_router"}', '_router", "prefix": "a b"}', '"a b"'),
]

_OUT: Final = [
    _in_context("OUT001", '"dict"', '"Tickt"', '"Tickt"'),
    _in_context("OUT001", '"dict"', '"TICKET"', '"TICKET"', mends=True),
    _in_outputs("OUT001", '"body": {"type": "str"}', '"body": {"type": "Letter"}', '"Letter"'),
    _in_outputs("OUT002", _BOUND, '"model": "Tickt"', '"Tickt"'),
    _in_outputs("OUT002", _BOUND, '"model": "ticket"', '"ticket"', mends=True),
    _in_outputs("OUT003", _MODEL, '    {"name": "Letter", "fields": {}},\n' + _MODEL, '"Letter"'),
    _in_outputs(
        "OUT004",
        f"{_BOUND}}}",
        f'{_BOUND}}}, {{"agent": "ClerkAgent" , "model": null}}',
        '"ClerkAgent" ,',
    ),
    _in_outputs(
        "OUT004",
        f"{_BOUND}}}",
        f'{_BOUND}}}, {{"agent": "ClerkAgent" , {_BOUND}}}',
        '"ClerkAgent" ,',
        mends=True,
    ),
    _in_outputs("OUT005", '"body": {"type": "str"}', '"body": {"type": "Ticket"}', '"Ticket"}}'),
]

CASES: Final = [*_NAME, *_BIND, *_OUT]
