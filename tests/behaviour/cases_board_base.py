"""The board that the cases of the family BOARD spoil: nothing is found in it as it stands."""

from typing import Final

_BOARD: Final = """\
{
  "artifacts": [
    "Lead",
    "Story",
    {"name": "Check", "schema": {"type": "object", "properties": {"headline": {"type": "string"}}}}
  ],
  "agents": [
    {
      "agent": "reporter",
      "labels": ["staff"],
      "consumes": [{"types": ["Lead"], "where": "urgency > 2", "activation": "Lead >= 2"}],
      "publishes": [{"type": "Story", "validate": "tools.desk:is_long"}],
      "context": {"kind": "redacting", "provider": {"kind": "correlated"}, "drop": ["phone"]}
    },
    {
      "agent": "checker",
      "labels": ["night"],
      "consumes": [{"types": ["Story"], "batch": {"size": 5}}],
      "publishes": [{"type": "Check", "visibility": {"kind": "labelled", "labels": ["staff"]}}],
      "engines": [{"kind": "function", "function": "tools.desk:check_facts"}]
    },
    {
      "agent": "editor",
      "labels": ["staff"],
      "consumes": [
        {
          "types": ["Story" , "Check"],
          "from_agents": ["checker", "reporter", "user:ada"],
          "join": {"by": "headline", "within_seconds": 60}
        }
      ],
      "components": [{"component": "tools.desk:Clerk", "hooks": ["pre_consume"]}],
      "context": {"kind": "state"}
    },
    {
      "agent": "clock",
      "publishes": [{"type": "Lead"}],
      "schedule": {"cron": "0 6 * * 1"}
    }
  ]
}
"""

_AGENTS: Final = """\
{
  "agents": [
    {"agent_name": "reporter", "description": "Writes a story about a lead."},
    {"agent_name": "checker"},
    {"agent_name": "editor", "prompt_sections": [{"id": "role", "content": "You sum up."}]},
    {"agent_name": "clock", "description": "Looks for leads."}
  ]
}
"""

_OUTPUTS: Final = """\
{
  "models": [
    {
      "name": "Lead",
      "fields": {
        "headline": {"type": "str"},
        "urgency": {"type": "int"},
        "phone": {"type": "str"}
      }
    },
    {"name": "Story", "fields": {"headline": {"type": "str"}, "body": {"type": "str"}}}
  ],
  "registry": []
}
"""

_CODE: Final = """\
class Clerk:
    def pre_consume(self, ctx, inputs):
        ctx.state["context_snapshot"] = []


def is_long(payload):
    return len(payload["body"]) > 20


def check_facts(inputs, ctx):
    return None
"""

BOARD: Final[dict[str, str]] = {
    "orchestrator.json": '{"workflow_name": "OrderDesk", "description": "Makes news of leads."}\n',
    "agents.json": _AGENTS,
    "structured_outputs.json": _OUTPUTS,
    "tools/desk.py": _CODE,
    "board.json": _BOARD,
}
