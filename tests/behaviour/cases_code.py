"""Families TOOL, HOOK and UI: declared code that is not there, or cannot do what is asked."""

from typing import Final

from behaviour.cases_mistake import Add, Case, Drop, Rename, Swap, swapped

_LONG: Final = "Finds an order. " * 9
_FIND: Final = '"Finds an order by its number."'
_TICKETS: Final = "tools/tickets.py"

_TOOL: Final = [
    swapped("TOOL001", "tools.json", '"orders.py"', '"order.py"', '"order.py"'),
    swapped("TOOL001", "tools.json", '"orders.py"', '"Orders.py"', '"Orders.py"'),
    Case("TOOL001", "tools.json", '"orders.py"', (Drop("tools/orders.py"),)),
    Case("TOOL001", "tools.json", '"greeting.py"', (Drop("tools/greeting.py"),)),
    swapped("TOOL002", "tools.json", '"find_order"', '"find_orders"', '"find_orders"'),
    Case(
        "TOOL002",
        "tools.json",
        '"find_order"',
        (Swap("tools/orders.py", "def find_order", "def find_orders"),),
    ),
    Case(
        "TOOL002",
        "tools.json",
        '"find_order"',
        (Swap("tools/orders.py", "def find_order", "def findOrder"),),
    ),
    Case(
        "TOOL002", "tools.json", '"save_ticket"', (Swap(_TICKETS, "def save_ticket", "def keep"),)
    ),
    swapped("TOOL003", "tools/orders.py", "order_id: str,", "order_id: str, 5", "5 context"),
    swapped("TOOL003", "hooks/masking.py", "return messages", "return messages)", ")\n"),
    swapped("TOOL004", "tools/orders.py", "order_id: str,", "order_id,", "order_id, context"),
    swapped(
        "TOOL005",
        "tools/greeting.py",
        "context_variables)",
        "context_variables, language)",
        "language",
    ),
    Case("TOOL006", "tools.json", '"find_order"', (Swap("tools.json", _FIND, '""'),)),
    Case("TOOL006", "tools.json", 'Finds an order. "', (Swap("tools.json", _FIND, f'"{_LONG}"'),)),
    Case("TOOL007", "tools/old.py", '"""Old', (Add("tools/old.py", '"""Old."""\n'),)),
    Case(
        "TOOL008", "tools.json", '"save_ticket"', (Swap(_TICKETS, "(title: str", "(headline: str"),)
    ),
    Case(
        "TOOL009",
        "agents.json",
        'true,\n      "structured',
        (Swap("tools.json", ', "auto_invoke": true', ""),),
    ),
    Case(
        "TOOL009",
        "tools.json",
        "true}",
        (Swap("agents.json", '      "auto_tool_mode": true,\n', ""),),
    ),
    Case(
        "TOOL010",
        "tools/refunds.py",
        "async def",
        (
            Swap(
                "tools/refunds.py",
                'await use_ui_tool(tool_id="approve_refund", payload={"amount": amount})',
                '{"amount": amount}',
            ),
        ),
    ),
    swapped("TOOL011", "tools.json", '"orders.py"', '"../orders.py"', '"../orders.py"'),
    swapped("TOOL011", "tools.json", '"orders.py"', '"tools\\\\orders.py"', '"tools\\\\orders.py"'),
    Case(
        "TOOL012",
        "tools.json",
        "true }",
        (
            Swap(
                "tools.json",
                '"auto_invoke": true}',
                '"auto_invoke": true},\n    {"agent": "ClerkAgent", "file": "tickets.py", "function": "send_ticket",\n     "description": "Sends a ticket.", "auto_invoke": true }',
            ),
            Swap(
                _TICKETS,
                "    return title + body\n",
                "    return title + body\n\n\ndef send_ticket(title: str) -> str:\n    return title\n",
            ),
        ),
    ),
]

_HOOK: Final = [
    swapped("HOOK001", "hooks.json", '"masking.py"', '"maskin.py"', '"maskin.py"'),
    swapped("HOOK001", "hooks.json", '"masking.py"', '"Masking.py"', '"Masking.py"'),
    Case("HOOK001", "hooks.json", '"masking.py"', (Drop("hooks/masking.py"),)),
    swapped("HOOK002", "hooks.json", '"mask"', '"msk"', '"msk"'),
    swapped("HOOK002", "hooks.json", '"mask"', '"Mask"', '"Mask"'),
    swapped(
        "HOOK003",
        "hooks/masking.py",
        "mask(messages: list[dict[str, object]])",
        "mask()",
        "def mask",
    ),
    Case("HOOK004", "hooks/old.py", '"""Old', (Add("hooks/old.py", '"""Old."""\n'),)),
    swapped("HOOK005", "hooks.json", '"masking.py"', '"../masking.py"', '"../masking.py"'),
    swapped(
        "HOOK005", "hooks.json", '"masking.py"', '"hooks\\\\masking.py"', '"hooks\\\\masking.py"'
    ),
]

_SCHEMA: Final = ',\n     "response_schema": {"type": "object", "properties": {"accepted": {"type": "boolean"}}}}'

_UI: Final = [
    Case(
        "UI001",
        "tools.json",
        '"RefundCard"',
        (Swap("tools.json", _SCHEMA, "}"), Drop("tools/RefundCard.jsx")),
    ),
    Case(
        "UI001",
        "tools.json",
        '"RefundCrd"',
        (Swap("tools.json", _SCHEMA, "}"), Swap("tools.json", "RefundCard", "RefundCrd")),
    ),
    Case(
        "UI001",
        "tools.json",
        '"refundCard"',
        (Swap("tools.json", _SCHEMA, "}"), Swap("tools.json", "RefundCard", "refundCard")),
    ),
    swapped("UI002", "context_variables.json", '"accepted"', '"acepted"', 'acepted"'),
    swapped("UI002", "context_variables.json", '"accepted"', '"Accepted"', 'Accepted"'),
    swapped("UI003", "tools.json", '"boolean"', '"bool"', '"bool"'),
    Case("UI004", "tools.json", '"refundCard"', (Rename("RefundCard", "refundCard"),)),
    swapped("UI005", "tools/RefundCard.jsx", "export default ", "", "function RefundCard"),
    swapped(
        "UI005", "tools/RefundCard.jsx", "\n}\n", "\n}\n\nexport default 5;\n", "export default 5"
    ),
    Case(
        "UI006",
        "context_variables.json",
        '"accepted"',
        (Swap("tools.json", '"boolean"', '"string"'),),
    ),
]

CASES: Final = [*_TOOL, *_HOOK, *_UI]
