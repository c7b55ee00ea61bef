"""The JSON that seeds 000 and 001 give, as it stands there; each is named with its lines."""

from pathlib import Path

#: Seed 000, lines 77-170: `workflows/<Workflow>/context_variables.json`.
FOUR_KINDS = Path(__file__).with_name("four_kinds.json").read_text(encoding="utf-8")

#: Seed 000, lines 38-46: entries of a list of static variables.
STATIC_ENTRIES = """
  {
    "name": "product_tier",
    "value": "beta"
  },
  {
    "name": "max_items",
    "type": "integer",
    "value": 25
  }
"""

#: Seed 000, lines 227-231.
AGENT_TEXT = """
{
  "type": "agent_text",
  "agent": "InterviewAgent",
  "match": { "equals": "NEXT" }
}
"""

#: Seed 000, lines 239-243.
UI_RESPONSE = """
{
  "type": "ui_response",
  "tool": "action_plan",
  "response_key": "plan_acceptance"
}
"""

#: Seed 000, lines 270-280.
USER_PROFILE = """
   "user_profile": {
     "type": "document",
     "description": "User account details from database",
     "source": {
       "type": "database",
       "database_name": "autogen_ai_agents",
       "collection": "Users",
       "search_by": "user_id",
       "field": "Profile"
     }
   }
"""

#: Seed 000, lines 288-296.
FEATURE_X = """
   "feature_x_enabled": {
     "type": "boolean",
     "description": "Flag to enable experimental feature X (dev/testing only)",
     "source": {
       "type": "environment",
       "env_var": "FEATURE_X_ENABLED",
       "default": false
     }
   }
"""

#: Seed 000, lines 304-318.
APPROVAL_RECEIVED = """
   "approval_received": {
     "type": "boolean",
     "description": "True when InterviewAgent emits approval signal",
     "source": {
       "type": "derived",
       "default": false,
       "triggers": [
         {
           "type": "agent_text",
           "agent": "InterviewAgent",
           "match": {"equals": "APPROVED"}
         }
       ]
     }
   }
"""

#: Seed 000, lines 327-341.
FORM_SUBMISSION = """
   "form_submission": {
     "type": "object",
     "description": "User-submitted form data from configuration wizard",
     "source": {
       "type": "derived",
       "default": null,
       "triggers": [
         {
           "type": "ui_response",
           "tool": "config_wizard",
           "response_key": "form_data"
         }
       ]
     }
   }
"""

#: Seed 000, lines 362-369.
PRODUCT_TIER = """
   "product_tier": {
     "type": "string",
     "description": "Static tier label shipped with workflow",
     "source": {
       "type": "static",
       "value": "beta"
     }
   }
"""

#: Seed 000, lines 378-382.
MY_AGENT = """
   "agents": {
     "MyAgent": {
       "variables": ["enterprise_id", "feature_x_enabled", "user_profile"]
     }
   }
"""

#: Seed 001, lines 40-53.
DERIVED_VARIABLES = """
"derived_variables": [
  {
    "name": "interview_complete",
    "description": "True once the interview agent terminates the onboarding chat.",
    "default": false,
    "triggers": [
      {
        "type": "agent_text",
        "agent": "InterviewAgent",
        "match": { "equals": "TERMINATE" }
      }
    ]
  }
]
"""


def file_of(*members: str) -> str:
    """Return a context_variables.json whose parts stand in it as they are written."""
    return f'{{"context_variables": {{{",".join(members)}}}}}'


def definitions_of(*members: str) -> str:
    """Return the definitions of a file, with each as it is written."""
    return f'"definitions": {{{",".join(members)}}}'
