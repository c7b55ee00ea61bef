"""Families TOOL, HOOK and UI: declared code that is not there, or cannot do what is asked."""

from typing import Final

from behaviour.cases_mistake import Add, Case, Drop, Rename, Swap, swapped_in

_ORDERS: Final = "tools/orders.py"
_REFUNDS: Final = "tools/refunds.py"
_TICKETS: Final = "tools/tickets.py"
_CARD: Final = "tools/RefundCard.jsx"

_in_agents: Final = swapped_in("agents.json")
_in_card: Final = swapped_in(_CARD)
_in_context: Final = swapped_in("context_variables.json")
_in_hooks: Final = swapped_in("hooks.json")
_in_masking: Final = swapped_in("hooks/masking.py")
_in_orders: Final = swapped_in(_ORDERS)
_in_refunds: Final = swapped_in(_REFUNDS)
_in_tools: Final = swapped_in("tools.json")

_DESCRIBED: Final = '"Finds an order by its number."'
_LONG: Final = "Finds an order. " * 9
_ASKED: Final = 'await use_ui_tool(tool_id="approve_refund", payload={"amount": amount})'
_CLERK: Final = '"agent_name": "ClerkAgent",'
_AUTOMATIC: Final = '"auto_invoke": true}'
_SECOND: Final = """,
    {"agent": "ClerkAgent", "file": "tickets.py", "function": "send_ticket",
     "description": "Sends a ticket.", "auto_invoke": true }"""
_SENDING: Final = """

def send_ticket(title: str) -> str:
    return title
"""

_TOOL: Final = [
    _in_tools("TOOL001", '"orders.py"', '"order.py"', '"order.py"'),
    _in_tools("TOOL001", '"orders.py"', '"Orders.py"', '"Orders.py"', mends=True),
    Case("TOOL001", "tools.json", '"orders.py"', (Drop(_ORDERS),)),
    Case("TOOL001", "tools.json", '"greeting.py"', (Drop("tools/greeting.py"),)),
    _in_tools("TOOL002", '"find_order"', '"find_orders"', '"find_orders"'),
    _in_tools("TOOL002", '"find_order"', '"findOrder"', '"findOrder"', mends=True),
    Case("TOOL002", "tools.json", '"find_order"', (Swap(_ORDERS, "def find_order", "def get"),)),
    Case(
        "BIND011", "agents.json", "[]", (Drop("agents.json"), Add("agents.json", '{"agents": []}'))
    ),
    _in_refunds("UI011", "return await", "return", "use_ui_tool(tool_id"),
    _in_orders("VAR029", '.get("crm_key")', '.get("crm_kay")', 'context_variables.get("crm_kay")'),
    _in_orders("TOOL003", "order_id: str,", "order_id: str;", "; context"),
    _in_masking("TOOL003", "return messages", "return messages)", ")\n"),
    _in_orders("TOOL004", "order_id: str,", "order_id,", "order_id, context"),
    swapped_in("tools/greeting.py")("TOOL005", "context_variables)", "language)", "language"),
    Case(
        "TOOL006",
        "tools.json",
        '"find_order"',
        (Swap("tools.json", _DESCRIBED, '" "'),),
        mends=True,
    ),
    Case(
        "TOOL006",
        "tools.json",
        '"find_order"',
        (
            Swap("tools.json", _DESCRIBED, '""'),
            Swap(_ORDERS, '"""Find an order by its number and remember it."""', '""""""'),
        ),
    ),
    _in_tools("TOOL006", _DESCRIBED, f'"{_LONG}"', f'{_LONG[140:]}"'),
    Case("TOOL007", "tools/old.py", '"""Old', (Add("tools/old.py", '"""Old."""\n'),)),
    Case("TOOL008", "tools.json", '"save_ticket"', (Swap(_TICKETS, "(title: str", "(name: str"),)),
    Case(
        "TOOL009",
        "agents.json",
        'true,\n      "structured',
        (Swap("tools.json", _AUTOMATIC, '"auto_invoke": false}'),),
        severity="warning",
    ),
    Case(
        "BIND010",
        "agents.json",
        '"opnai:x"',
        (Swap("agents.json", '"auto_tool_mode"', '"model": "opnai:x", "auto_tool_mode"'),),
    ),
    Case(
        "TOOL009",
        "tools.json",
        "true}",
        (Swap("agents.json", '"auto_tool_mode": true', '"auto_tool_mode": false'),),
    ),
    Case("TOOL010", _REFUNDS, "async def", (Swap(_REFUNDS, _ASKED, "{}"),)),
    _in_tools("TOOL011", '"orders.py"', '"../orders.py"', '"../orders.py"'),
    _in_tools("TOOL011", '"orders.py"', r'"tools\\orders.py"', r'"tools\\orders.py"', mends=True),
    Case(
        "TOOL012",
        "tools.json",
        "true }",
        (
            Swap("tools.json", _AUTOMATIC, _AUTOMATIC + _SECOND),
            Swap(_TICKETS, "title + body\n", "title + body\n" + _SENDING),
        ),
    ),
]

_HOOK: Final = [
    _in_hooks("HOOK001", '"masking.py"', '"maskin.py"', '"maskin.py"'),
    _in_hooks("HOOK001", '"masking.py"', '"Masking.py"', '"Masking.py"', mends=True),
    Case("HOOK001", "hooks.json", '"masking.py"', (Drop("hooks/masking.py"),)),
    _in_hooks("HOOK002", '"mask"', '"msk"', '"msk"'),
    _in_hooks("HOOK002", '"mask"', '"Mask"', '"Mask"', mends=True),
    _in_masking("HOOK003", "mask(messages", "mask(texts", "texts"),
    Case(
        "HOOK003",
        "hooks/masking.py",
        "agents, messages",
        (
            Swap("hooks.json", "process_last_received_message", "on_complete"),
            Swap("hooks/masking.py", "mask(messages", "mask(agents, messages"),
        ),
    ),
    Case("HOOK004", "hooks/old.py", '"""Old', (Add("hooks/old.py", '"""Old."""\n'),)),
    _in_hooks("HOOK005", '"masking.py"', '"../masking.py"', '"../masking.py"'),
    _in_hooks(
        "HOOK005", '"masking.py"', r'"hooks\\masking.py"', r'"hooks\\masking.py"', mends=True
    ),
]

_ANSWER: Final = """,
     "response_schema": {"type": "object", "properties": {"accepted": {"type": "boolean"}}}}"""
_NO_FORM: Final = Swap("tools.json", _ANSWER, "}")

_UI: Final = [
    Case("UI001", "tools.json", '"RefundCard"', (_NO_FORM, Drop(_CARD))),
    Case(
        "UI001",
        "tools.json",
        '"RefundCrd"',
        (_NO_FORM, Swap("tools.json", "RefundCard", "RefundCrd")),
    ),
    Case(
        "UI001",
        "tools.json",
        '"Refundcard"',
        (_NO_FORM, Swap("tools.json", "RefundCard", "Refundcard")),
        mends=True,
    ),
    _in_context("UI002", '"accepted"', '"acepted"', 'acepted"'),
    _in_context("UI002", '"accepted"', '"Accepted"', 'Accepted"', mends=True),
    _in_tools("UI003", '"boolean"', '"bool"', '"bool"', mends=True),
    Case("UI004", "tools.json", '"refundCard"', (Rename("RefundCard", "refundCard"),)),
    _in_card("UI005", "export default ", "", "function RefundCard"),
    _in_card("UI005", "\n}\n", "\n}\n\nexport default 5;\n", "export default 5"),
    Case(
        "UI006",
        "context_variables.json",
        '"accepted"',
        (Swap("tools.json", '"boolean"', '"string"'),),
    ),
    _in_refunds("UI007", '"approve_refund"', '"aprove_refund"', '"aprove_refund"'),
    _in_refunds("UI007", '"approve_refund"', '"find_order"', '"find_order"'),
    _in_agents("UI008", _CLERK, f'{_CLERK} "human_interaction": "approval",', '"approval"'),
    _in_tools("UI009", "{user_id}", "{usr_id}", "usr_id}"),
    Case(
        "UI010",
        "context_variables.json",
        '"accepted"',
        (Swap("tools.json", '"boolean"', '"boolean", "writeOnly": true'),),
    ),
]

CASES: Final = [*_TOOL, *_HOOK, *_UI]
