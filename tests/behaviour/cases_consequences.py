"""Mistakes with consequences elsewhere: told once, where they were made, and not again there."""

from typing import Final

from behaviour.cases_mistake import Case, Move, Swap, swapped_in

_CONTEXT: Final = "context_variables.json"

_in_context: Final = swapped_in(_CONTEXT)
_in_handoffs: Final = swapped_in("handoffs.json")

CASES: Final = [
    _in_context("BIND002", '"RefundAgent"', '"RefundAgnt"', '"RefundAgnt"'),
    _in_context("BIND002", '"RefundAgent"', '"refund_agent"', '"refund_agent"', mends=True),
    Case("SCHEMA013", "handoff.json", None, (Move("handoffs.json", "handoff.json"),)),
    Case("SCHEMA013", "tool.json", None, (Move("tools.json", "tool.json"),)),
    _in_context("SCHEMA008", '"tool": "save_ticket"', '"too": "save_ticket"', '"too"'),
    _in_handoffs("HAND015", "domain == 'tech'", "domain == 'technical'", "domain == 'technical'"),
    _in_context("VAR002", '"TECH"}, "value": "tech"', '"TECH"}, "value": "tec"', '"tec"'),
    _in_context("VAR002", '"default": "open"', '"default": "opn"', '"opn"'),
    _in_context("VAR002", '"to": "saved"', '"to": "savd"', '"savd"'),
    _in_context("VAR008", '"approve_refund"', '"find_order"', '"find_order", "response_key"'),
    Case(
        "STATE001",
        _CONTEXT,
        '"lost",\n',
        (
            Swap(_CONTEXT, r"[\"open\", \"saved\"]", r"[\"open\", \"saved\", \"lost\"]"),
            Swap(_CONTEXT, '"default": "open"', '"default": "lost"'),
        ),
    ),
]
