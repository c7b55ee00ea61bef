"""The flow that the cases of the family FLOW spoil: nothing is found in it as it stands."""

from typing import Final

_FLOW: Final = """\
{
  "state": "tools.steps:Draft",
  "steps": [
    {
      "kind": "step",
      "name": "outline",
      "work": {"kind": "agent", "agent": "Writer", "prompt": "Outline {topic}.", "output": "text"},
      "context": {
        "sources": [
          {"kind": "state", "path": "document.summary"},
          {"kind": "variable", "name": "style"},
          {
            "kind": "retrieval",
            "collection": "Library",
            "query_path": "topic",
            "top_k": 5,
            "min_relevance": 0.7,
            "filters": [{"key": "kind", "path": "kind"}]
          },
          {"kind": "board", "board": "NewsDesk"}
        ]
      },
      "validate": [{"condition": "topic != ''"}],
      "retry": {"attempts": 3, "delay_seconds": 2},
      "timeout_seconds": 60,
      "confidence": {"minimum": 0.8, "path": {"steps": [], "ends": true}},
      "compensate": {"kind": "function", "function": "tools.steps:forget"},
      "on_failure": {
        "steps": [
          {
            "kind": "step",
            "name": "tell",
            "work": {"kind": "function", "function": "tools.steps:tell"}
          }
        ]
      }
    },
    {
      "kind": "branch",
      "name": "by_kind",
      "on": "kind",
      "cases": [
        {"value": "letter", "path": {}},
        {
          "value": "book",
          "path": {
            "steps": [
              {"kind": "step", "name": "judge", "work": {"kind": "agent", "agent": "Judge"}}
            ]
          }
        }
      ]
    },
    {
      "kind": "fork",
      "name": "both",
      "paths": [
        {
          "name": "facts",
          "steps": [
            {
              "kind": "step",
              "name": "check_facts",
              "work": {"kind": "function", "function": "tools.steps:check_facts"}
            }
          ]
        },
        {
          "name": "style",
          "steps": [
            {
              "kind": "step",
              "name": "check_style",
              "work": {"kind": "agent", "agent": "Writer", "step": "tools.steps:Stylist"}
            }
          ],
          "on_failure": {"steps": []}
        }
      ],
      "join": {
        "kind": "step",
        "name": "join_both",
        "work": {"kind": "function", "function": "tools.steps:join"}
      }
    },
    {
      "kind": "repeat",
      "name": "improve",
      "until": "document.score > 3",
      "max_iterations": 4,
      "steps": [
        {
          "kind": "step",
          "name": "rewrite",
          "work": {"kind": "function", "function": "tools.steps:rewrite"}
        }
      ]
    },
    {
      "kind": "approval",
      "name": "print_it",
      "approver": "role:editor",
      "text": "Print {topic}?",
      "options": [{"name": "yes"}, {"name": "no", "rejects": true}],
      "default": "no",
      "escalate": [{"approver": "user:ada", "timeout_seconds": 3600}],
      "on_rejection": {"steps": [], "ends": true},
      "output": "decision"
    }
  ]
}
"""

_AGENTS: Final = """\
{
  "agents": [
    {"agent_name": "Writer", "description": "Writes."},
    {"agent_name": "Judge", "description": "Says how good a text is."}
  ]
}
"""

_VARIABLES: Final = """\
{
  "context_variables": {
    "definitions": {
      "topic": {"type": "str", "source": {"type": "derived"}},
      "kind": {
        "type": "literal[\\"letter\\", \\"book\\"]",
        "source": {"type": "derived", "default": "letter"}
      },
      "text": {"type": "str", "source": {"type": "derived", "default": ""}},
      "document": {"type": "optional[Document]", "source": {"type": "derived"}},
      "decision": {"type": "str", "source": {"type": "derived"}},
      "style": {"type": "str", "source": {"type": "static", "value": "plain"}}
    },
    "agents": {}
  }
}
"""

_OUTPUTS: Final = """\
{
  "models": [
    {"name": "Document", "fields": {"summary": {"type": "str"}, "score": {"type": "int"}}},
    {"name": "Verdict", "fields": {"document": {"type": "Document"}}}
  ],
  "registry": [{"agent": "Judge", "model": "Verdict"}]
}
"""

_CODE: Final = """\
class Draft:
    pass


class Stylist:
    def system_prompt(self):
        return "You know style."

    def user_prompt(self, state):
        return state.topic


def forget(state, context): ...


def tell(state): ...


def check_facts(state): ...


def join(state, context): ...


def rewrite(state): ...
"""

FLOW: Final[dict[str, str]] = {
    "orchestrator.json": '{"workflow_name": "OrderDesk", "description": "Writes letters."}\n',
    "agents.json": _AGENTS,
    "context_variables.json": _VARIABLES,
    "structured_outputs.json": _OUTPUTS,
    "tools/steps.py": _CODE,
    "flow.json": _FLOW,
}
