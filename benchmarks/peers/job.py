"""The job every peer does, in words and numbers that none of them may change.

Three agents, four model calls: the router hands off; the specialist asks for a tool, which sets a
variable, and then answers; the reviewer, who is shown the variable, approves. Only the standard
library is used here, because every peer imports this file in an environment of its own.
"""

from dataclasses import dataclass
from typing import Any, Final

MODEL: Final = "mock-model"
CALLS_PER_JOB: Final = 4
#: For this model, the mock server replies with the number of calls it has answered.
TALLY: Final = "tally"

ROUTER: Final = (
    "You are the router of a customer support desk. Read the question of the customer and decide "
    "who answers it. Questions about an order, a delivery or a parcel belong to the specialist. "
    "Do not answer the customer yourself. Hand the conversation to the specialist."
)
SPECIALIST: Final = (
    "You are the specialist for orders of a customer support desk. Look the order up with the tool "
    "lookup_order before you answer, and answer from what it returns and from nothing else. "
    "Two short sentences are enough. Be friendly, and do not promise a date that you do not know."
)
#: `{order_status}` is the variable that the tool sets: the reviewer must be shown its value.
REVIEWER: Final = (
    "You are the reviewer of a customer support desk. Compare the last answer with the status of "
    "the order as the shop knows it, which is: {order_status}. Reply with the one word APPROVED "
    "when the two agree, and otherwise say what is wrong."
)

#: What the router says where handing off is a matter of text and not of a tool.
HANDOFF_TEXT: Final = "HANDOFF specialist"
APPROVAL: Final = "APPROVED"

TOOL: Final = "lookup_order"
TOOL_DESCRIPTION: Final = "Look an order up in the shop and return its status."
TOOL_PARAMETER_DESCRIPTION: Final = "The number of the order, such as A-1001."
TOOL_SCHEMA: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": TOOL_DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "string", "description": TOOL_PARAMETER_DESCRIPTION}},
            "required": ["order"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one finished job says about itself, so that a wrong path cannot count as a fast one."""

    calls: int
    tool_runs: int
    order_status: str | None
    verdict: str


def order(number: int) -> str:
    """Return the order that job `number` asks about; no two jobs share one."""
    return f"A-{1000 + number}"


def question(number: int) -> str:
    """Return the message of the customer that starts job `number`."""
    return (
        f"Hello! I ordered a pair of boots two weeks ago, order {order(number)}, and have heard "
        "nothing since. Can you please tell me where my parcel is?"
    )


def status_of(order_number: str) -> str:
    """Return what the shop knows about an order: the value that the tool stores and returns."""
    return f"shipped:{order_number}"


def is_right(number: int, outcome: Outcome) -> bool:
    """Tell whether job `number` took the agreed path and ended as it must."""
    return (
        outcome.calls == CALLS_PER_JOB
        and outcome.tool_runs == 1
        and outcome.order_status == status_of(order(number))
        and outcome.verdict.strip() == APPROVAL
    )
