"""The package and the workspace that every case spoils: nothing is found in them as they stand.

They are small, but have one of everything that a rule speaks about, so that most mistakes are a
change of one word.
"""

from typing import Final

NAME: Final = "OrderDesk"

_ORCHESTRATOR: Final = """\
{
  "workflow_name": "OrderDesk",
  "description": "Answers questions about orders, and pays back what went wrong.",
  "initial_agent": "FrontAgent",
  "max_turns": 30,
  "human_in_the_loop": true,
  "visual_agents": ["FrontAgent", "TechAgent", "RefundAgent", "ClerkAgent"],
  "default_target": "user",
  "runtime_extensions": [{"kind": "api_router", "entrypoint": "tools.api:get_router"}]
}
"""

_AGENTS: Final = """\
{
  "agents": [
    {
      "agent_name": "FrontAgent",
      "agent_type": "router",
      "prompt_sections": [
        {"id": "role", "content": "You welcome the customers of {shop_name}."},
        {"id": "task", "content": "Say TECH for a late order and REFUND for a broken one."}
      ]
    },
    {
      "agent_name": "TechAgent",
      "prompt_sections": [
        {"id": "role", "content": "You find orders. The plan of the customer is {customer_plan}."},
        {"id": "task", "content": "Prices: {price_list}. In stock: {stock_level}. VIP: {is_vip}."}
      ]
    },
    {
      "agent_name": "RefundAgent",
      "prompt_sections": [
        {"id": "role", "content": "You ask the customer about refunds. Hurry: {is_urgent}."},
        {"id": "mood", "content": "Excuse us if {is_upset} says true."}
      ]
    },
    {
      "agent_name": "ClerkAgent",
      "auto_tool_mode": true,
      "structured_outputs_required": true,
      "prompt_sections": [
        {"id": "role", "content": "You write a ticket about the order {order_record}."}
      ]
    }
  ]
}
"""

_CONTEXT_VARIABLES: Final = """\
{
  "context_variables": {
    "definitions": {
      "shop_name": {"type": "str", "source": {"type": "static", "value": "Corner Shop"}},
      "customer_plan": {
        "type": "str",
        "source": {
          "type": "database", "collection": "Customers", "search_by": "user_id", "field": "plan"
        }
      },
      "order_record": {
        "type": "dict",
        "source": {
          "type": "entity",
          "collection": "Orders",
          "search_by": "order_number",
          "schema": {"order_number": {"type": "str"}, "total": {"type": "float"}}
        },
        "writers": ["find_order"]
      },
      "price_list": {
        "type": "str",
        "source": {"type": "file", "path": "data/prices.txt", "default": "none"}
      },
      "stock_level": {
        "type": "int",
        "source": {
          "type": "external",
          "service": "stock",
          "operation": "count",
          "url": "https://stock.example/count?shop={shop_name}"
        }
      },
      "crm_key": {
        "type": "str",
        "source": {"type": "environment", "env_var": "CRM_KEY"},
        "secret": true
      },
      "domain": {
        "type": "literal[\\"unknown\\", \\"tech\\", \\"refund\\"]",
        "source": {
          "type": "derived",
          "default": "unknown",
          "triggers": [
            {"type": "agent_text", "agent": "FrontAgent",
             "match": {"equals": "TECH"}, "value": "tech"},
            {"type": "agent_text", "agent": "FrontAgent",
             "match": {"regex": "REFUNDS?"}, "value": "refund"}
          ]
        }
      },
      "order_found": {
        "type": "bool",
        "source": {
          "type": "derived",
          "default": false,
          "triggers": [{"type": "tool_call", "tool": "find_order"}]
        }
      },
      "order_number": {
        "type": "str",
        "source": {
          "type": "derived",
          "default": "",
          "triggers": [{"type": "tool_call", "tool": "find_order", "argument": "order_id"}]
        }
      },
      "refund_approved": {
        "type": "bool",
        "source": {
          "type": "derived",
          "default": false,
          "triggers": [
            {"type": "ui_response", "tool": "approve_refund", "response_key": "accepted"}
          ]
        }
      },
      "ticket_state": {
        "type": "literal[\\"open\\", \\"saved\\"]",
        "source": {
          "type": "derived",
          "default": "open",
          "transitions": [
            {"from": "open", "to": "saved",
             "trigger": {"type": "tool_call", "tool": "save_ticket"}}
          ]
        }
      },
      "is_upset": {
        "type": "bool",
        "source": {
          "type": "derived",
          "default": false,
          "triggers": [{"type": "function", "function": "tools.moods:is_upset"}]
        }
      },
      "is_urgent": {
        "type": "bool",
        "source": {
          "type": "computed",
          "computation": "order_found and is_upset",
          "inputs": ["order_found", "is_upset"]
        }
      },
      "is_vip": {
        "type": "bool",
        "source": {
          "type": "computed",
          "computation": "tools.moods:is_vip",
          "inputs": ["customer_plan"]
        }
      }
    },
    "agents": {
      "FrontAgent": {"variables": ["shop_name"]},
      "TechAgent": {"variables": ["customer_plan", "price_list", "stock_level", "is_vip"]},
      "RefundAgent": {"variables": ["is_urgent", "is_upset"]},
      "ClerkAgent": {"variables": ["order_record"]}
    }
  }
}
"""

_HANDOFFS: Final = """\
{
  "handoff_rules": [
    {"source_agent": "FrontAgent", "target_agent": "TechAgent",
     "condition": "domain == 'tech'"},
    {"source_agent": "FrontAgent", "target_agent": "RefundAgent",
     "condition": "domain == 'refund'"},
    {"source_agent": "TechAgent", "target_agent": "ClerkAgent", "condition": "order_found"},
    {"source_agent": "TechAgent", "target_agent": "user"},
    {"source_agent": "RefundAgent", "target_agent": "ClerkAgent", "condition": "refund_approved"},
    {"source_agent": "ClerkAgent", "target_agent": "terminate",
     "condition": "ticket_state == 'saved'", "reason": "The ticket is written."}
  ]
}
"""

_TOOLS: Final = """\
{
  "tools": [
    {"agent": "TechAgent", "file": "orders.py", "function": "find_order",
     "description": "Finds an order by its number."},
    {"agent": "RefundAgent", "file": "refunds.py", "function": "approve_refund",
     "tool_type": "UI_Tool", "description": "Asks the customer to accept a refund.",
     "ui": {"component": "RefundCard", "mode": "inline"}, "for": "user:{user_id}",
     "response_schema": {"type": "object", "properties": {"accepted": {"type": "boolean"}}}},
    {"agent": "ClerkAgent", "file": "tickets.py", "function": "save_ticket",
     "description": "Saves a ticket.", "auto_invoke": true}
  ],
  "lifecycle_tools": [
    {"file": "greeting.py", "function": "prepare", "trigger": "before_chat"}
  ],
  "mcp_servers": [
    {"name": "parcels", "command": ["parcel-server", "--quiet"], "env": {"REGION": "eu"}}
  ]
}
"""

_HOOKS: Final = """\
{
  "hooks": [
    {"hook_type": "process_last_received_message", "file": "masking.py", "function": "mask"}
  ]
}
"""

_STRUCTURED_OUTPUTS: Final = """\
{
  "models": [
    {"name": "Ticket", "fields": {"title": {"type": "str"}, "body": {"type": "str"}}}
  ],
  "registry": [
    {"agent": "ClerkAgent", "model": "Ticket"}
  ]
}
"""

_ORDERS_PY: Final = '''\
"""Orders."""


def find_order(order_id: str, context_variables) -> str:
    """Find an order by its number and remember it."""
    context_variables.set("order_record", {"order_number": order_id, "total": 12.5})
    return context_variables.get("order_number") or context_variables.get("crm_key")
'''

_REFUNDS_PY: Final = '''\
"""Refunds."""

from weft import use_ui_tool


async def approve_refund(amount: float) -> dict[str, object]:
    """Ask the customer."""
    return await use_ui_tool(tool_id="approve_refund", payload={"amount": amount})
'''

_TICKETS_PY: Final = '''\
"""Tickets."""


def save_ticket(title: str, body: str) -> str:
    """Save a ticket."""
    return title + body
'''

_MOODS_PY: Final = '''\
"""What can be told of a customer."""


def is_upset(message: str) -> bool:
    """Tell whether the customer is upset."""
    return "angry" in message


def is_vip(customer_plan: str) -> bool:
    """Tell whether the customer pays more than others."""
    return customer_plan == "gold"
'''

_GREETING_PY: Final = '''\
"""Before the chat."""


def prepare(context_variables) -> None:
    """Have nothing to prepare yet."""
'''

_API_PY: Final = '''\
"""What the server mounts."""


def get_router() -> object:
    """Return the router."""
    return object()
'''

_MASKING_PY: Final = '''\
"""Masks card numbers."""


def mask(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the messages without card numbers."""
    return messages
'''

_REFUND_CARD_JSX: Final = """\
export default function RefundCard(props) {
  return <button onClick={() => props.answer({accepted: true})}>Accept</button>;
}
"""

#: A package with one of everything, by file name.
PACKAGE: Final[dict[str, str]] = {
    "orchestrator.json": _ORCHESTRATOR,
    "agents.json": _AGENTS,
    "context_variables.json": _CONTEXT_VARIABLES,
    "handoffs.json": _HANDOFFS,
    "tools.json": _TOOLS,
    "hooks.json": _HOOKS,
    "structured_outputs.json": _STRUCTURED_OUTPUTS,
    "tools/orders.py": _ORDERS_PY,
    "tools/refunds.py": _REFUNDS_PY,
    "tools/tickets.py": _TICKETS_PY,
    "tools/moods.py": _MOODS_PY,
    "tools/greeting.py": _GREETING_PY,
    "tools/api.py": _API_PY,
    "tools/RefundCard.jsx": _REFUND_CARD_JSX,
    "hooks/masking.py": _MASKING_PY,
}


def _small(name: str, required: str) -> dict[str, str]:
    return {
        f"workflows/{name}/orchestrator.json": f"""\
{{
  "workflow_name": "{name}",
  "initial_agent": "Host",
  "workflow_dependencies": {{"required_workflows": [{required}]}}
}}
""",
        f"workflows/{name}/agents.json": """\
{"agents": [{"agent_name": "Host", "prompt_sections": [{"id": "role", "content": "Be kind."}]}]}
""",
    }


#: A workspace of two packages, one of which requires the other, and a pack of both.
WORKSPACE: Final[dict[str, str]] = {
    **_small("Welcome", ""),
    **_small("Billing", '"Welcome"'),
    "packs/shop.json": """\
{
  "pack_name": "Shop",
  "workflows": [
    {"name": "Welcome", "role": "primary"},
    {"name": "Billing", "role": "dependent"}
  ],
  "journeys": [{"name": "first day", "steps": [["Welcome"], ["Billing"]]}]
}
""",
}
