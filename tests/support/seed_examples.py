"""The examples of the seed documents, typed in field by field: names and shapes, not prose."""

from typing import Any


def variable(type_: str, **source: Any) -> dict[str, Any]:
    return {"type": type_, "description": "as in the seed", "source": source}


#: Seed 000: definitions by name, exposure as objects.
FOUR_KINDS: dict[str, Any] = {
    "context_variables": {
        "definitions": {
            "product_tier": variable("string", type="static", value="beta"),
            "max_items": variable("integer", type="static", value=25),
            "concept_overview": variable(
                "string",
                type="database",
                database_name="autogen_ai_agents",
                collection="Concepts",
                search_by="enterprise_id",
                field="ConceptOverview",
            ),
            "context_aware": variable(
                "boolean", type="environment", env_var="CONTEXT_AWARE", default=True
            ),
            "monetization_enabled": variable(
                "boolean", type="environment", env_var="MONETIZATION_ENABLED", default=False
            ),
            "interview_complete": variable(
                "boolean",
                type="derived",
                default=False,
                triggers=[
                    {"type": "agent_text", "agent": "InterviewAgent", "match": {"equals": "NEXT"}}
                ],
            ),
            "action_plan_acceptance": variable(
                "string",
                type="derived",
                default="pending",
                triggers=[
                    {
                        "type": "ui_response",
                        "tool": "action_plan",
                        "response_key": "plan_acceptance",
                    }
                ],
            ),
        },
        "agents": {
            "InterviewAgent": {
                "variables": ["context_aware", "concept_overview", "monetization_enabled"]
            },
            "ActionPlanArchitect": {
                "variables": [
                    "concept_overview",
                    "interview_complete",
                    "action_plan_acceptance",
                    "action_plan",
                ]
            },
            "ProjectOverviewAgent": {
                "variables": [
                    "action_plan",
                    "action_plan_acceptance",
                    "mermaid_sequence_diagram",
                    "mermaid_diagram_ready",
                ]
            },
        },
    }
}

#: Seed 000, the single definitions of its guidelines.
MORE_DEFINITIONS: dict[str, Any] = {
    "user_profile": variable(
        "document",
        type="database",
        database_name="autogen_ai_agents",
        collection="Users",
        search_by="user_id",
        field="Profile",
    ),
    "feature_x_enabled": variable(
        "boolean", type="environment", env_var="FEATURE_X_ENABLED", default=False
    ),
    "approval_received": variable(
        "boolean",
        type="derived",
        default=False,
        triggers=[
            {"type": "agent_text", "agent": "InterviewAgent", "match": {"equals": "APPROVED"}}
        ],
    ),
    "form_submission": variable(
        "object",
        type="derived",
        default=None,
        triggers=[{"type": "ui_response", "tool": "config_wizard", "response_key": "form_data"}],
    ),
}

#: Seed 000, its static entries in list form.
STATIC_LIST: list[dict[str, Any]] = [
    {"name": "product_tier", "value": "beta"},
    {"name": "max_items", "type": "integer", "value": 25},
]

#: Seed 001: the list of derived variables.
DERIVED_LIST: dict[str, Any] = {
    "context_variables": {
        "derived_variables": [
            {
                "name": "interview_complete",
                "description": "as in the seed",
                "default": False,
                "triggers": [
                    {
                        "type": "agent_text",
                        "agent": "InterviewAgent",
                        "match": {"equals": "TERMINATE"},
                    }
                ],
            }
        ]
    }
}

#: Seed 003 section 13.2: six kinds, exposure as bare lists.
SIX_KINDS: dict[str, Any] = {
    "ContextVariablesPlan": {
        "definitions": {
            "api_base": variable(
                "str", type="config", env_var="API_BASE", default_value="local", required=False
            ),
            "customer": variable(
                "dict",
                type="data_reference",
                database="crm",
                collection="customers",
                query_template={"email": "{user_email}"},
                fields=["name", "tier"],
                refresh_strategy="once",
            ),
            "ticket": variable(
                "dict",
                type="data_entity",
                database="crm",
                collection="tickets",
                search_by="ticket_id",
                schema={"ticket_id": "str", "state": {"type": "str", "description": "open or not"}},
                write_strategy="on_workflow_end",
            ),
            "is_urgent": variable(
                "bool",
                type="computed",
                computation="current_domain == 'tech'",
                inputs=["current_domain"],
                persist_to=None,
            ),
            "current_domain": variable(
                "str",
                type="state",
                initial="unknown",
                transitions=[
                    {"from": "unknown", "to": "tech"},
                    {"from": "unknown", "to": "finance"},
                ],
                trigger={"type": "tool_call", "tool": "analyze_request"},
                persist=False,
            ),
            "exchange_rate": variable(
                "dict",
                type="external",
                service="Rates",
                operation="latest",
                url="http://127.0.0.1/latest",
                auth=None,
                cache=300,
                retry=2,
            ),
        },
        "agents": {"RouterAgent": ["current_domain", "customer"]},
    }
}

#: Seed 003 section 13.1.
TOOLS: dict[str, Any] = {
    "tools": [
        {
            "agent": "RouterAgent",
            "file": "request_clarification.py",
            "function": "request_clarification",
            "description": "Asks for what is missing.",
            "tool_type": "UI_Tool",
            "auto_invoke": True,
            "ui": {"component": "ClarificationRequest", "mode": "inline"},
        },
        {
            "agent": "RouterAgent",
            "file": "analyze_request.py",
            "function": "analyze_request",
            "description": "Finds the domain.",
            "tool_type": "Agent_Tool",
            "auto_invoke": None,
            "ui": {"component": None, "mode": None},
        },
    ],
    "lifecycle_tools": [
        {
            "agent": None,
            "file": "initialize_context.py",
            "function": "initialize_context",
            "description": "Loads the profile.",
            "tool_type": "Lifecycle_Tool",
            "auto_invoke": None,
            "ui": {"component": None, "mode": None},
            "trigger": "before_chat",
            "integration": None,
        }
    ],
}

#: Seed 003 section 13.3.
AGENTS: dict[str, Any] = {
    "agents": [
        {
            "agent_name": "RouterAgent",
            "prompt_sections": [
                {"id": "role", "heading": "[ROLE]", "content": "You are the router."},
                {"id": "objective", "heading": "[OBJECTIVE]", "content": "Route."},
                {"id": "context", "heading": "[CONTEXT]", "content": "A help desk."},
                {"id": "instructions", "heading": "[INSTRUCTIONS]", "content": "Be brief."},
            ],
            "max_consecutive_auto_reply": 20,
            "auto_tool_mode": True,
            "structured_outputs_required": False,
        }
    ]
}

#: Seed 003 section 13.4.
HANDOFFS: dict[str, Any] = {
    "handoff_rules": [
        {
            "source_agent": "RouterAgent",
            "target_agent": "TechSpecialist",
            "condition": "When current_domain is tech",
            "condition_scope": "post",
            "priority": 1,
        }
    ]
}

#: Seed 003 section 13.5.
ORCHESTRATOR: dict[str, Any] = {
    "workflow_name": "CustomerSupportRouter",
    "max_turns": 30,
    "human_in_the_loop": True,
    "startup_mode": "UserDriven",
    "orchestration_pattern": "DefaultPattern",
    "initial_message_to_user": None,
    "initial_message": None,
    "initial_agent": "RouterAgent",
    "visual_agents": ["RouterAgent", "TechSpecialist"],
    "runtime_extensions": [
        {
            "kind": "api_router",
            "entrypoint": "workflows.CustomerSupportRouter.tools.api:get_router",
        },
        {
            "kind": "startup_service",
            "entrypoint": "workflows.CustomerSupportRouter.tools.services:OutboxProcessor",
        },
    ],
}

#: Seed 003 section 13.6.
STRUCTURED_OUTPUTS: dict[str, Any] = {
    "models": [
        {
            "name": "RoutingDecision",
            "type": "model",
            "fields": {
                "domain": {"type": "str", "description": "Which specialist."},
                "confidence": {"type": "int", "description": "In percent."},
                "tags": {"type": "list", "description": "Key words."},
                "details": {"type": "dict", "description": "Anything else."},
                "urgent": {"type": "bool", "description": "Whether it burns."},
            },
        }
    ],
    "registry": [
        {"agent": "RouterAgent", "model": "RoutingDecision"},
        {"agent": "InterviewAgent", "model": None},
    ],
}

#: Seed 003 sections 3.1 to 3.5: the five design outputs.
PATTERN_SELECTION: dict[str, Any] = {
    "PatternSelection": {
        "is_multi_workflow": False,
        "decomposition_reason": None,
        "pack_name": "Customer Support Router",
        "workflows": [
            {
                "name": "CustomerSupportRouter",
                "role": "primary",
                "description": "Routes support requests.",
                "pattern_id": 1,
                "pattern_name": "Context-Aware Routing",
            }
        ],
    }
}

WORKFLOW_STRATEGY: dict[str, Any] = {
    "WorkflowStrategy": {
        "workflow_name": "Customer Support Router",
        "workflow_description": "When asked, the workflow routes, resulting in an answer.",
        "human_in_loop": True,
        "pattern": ["ContextAwareRouting"],
        "trigger": "chat",
        "initiated_by": "user",
        "modules": [
            {
                "module_name": "Module 1: Request Classification",
                "module_index": 0,
                "module_description": "Classify requests by domain.",
                "pattern_id": 1,
                "pattern_name": "Context-Aware Routing",
                "agents_needed": ["RouterAgent", "TechSpecialist", "FinanceSpecialist"],
            }
        ],
    }
}

TECHNICAL_BLUEPRINT: dict[str, Any] = {
    "TechnicalBlueprint": {
        "global_context_variables": [
            {
                "name": "current_domain",
                "type": "state",
                "purpose": "Which specialist has the request.",
                "trigger_hint": "Set by RouterAgent.",
            }
        ],
        "ui_components": [
            {
                "module_name": "Module 1: Request Classification",
                "agent": "RouterAgent",
                "tool": "request_clarification",
                "label": "Need more information",
                "component": "ClarificationRequest",
                "display": "inline",
                "summary": "Asks when the request is not clear.",
            }
        ],
        "before_chat_lifecycle": {
            "name": "initialize_context",
            "purpose": "Load the profile.",
            "trigger": "before_chat",
            "integration": None,
        },
        "after_chat_lifecycle": None,
        "workflow_dependencies": {"required_workflows": []},
    }
}

MODULE_AGENTS: dict[str, Any] = {
    "ModuleAgents": [
        {
            "module_index": 0,
            "agents": [
                {
                    "agent_name": "RouterAgent",
                    "agent_type": "router",
                    "objective": "Route requests.",
                    "human_interaction": "context",
                    "generation_mode": None,
                    "max_consecutive_auto_reply": 20,
                    "agent_tools": [
                        {
                            "name": "analyze_request",
                            "integration": None,
                            "purpose": "Find the domain.",
                            "interaction_mode": "none",
                        }
                    ],
                    "lifecycle_tools": [],
                    "system_hooks": [],
                }
            ],
        }
    ]
}

MERMAID: dict[str, Any] = {
    "MermaidSequenceDiagram": {
        "workflow_name": "Customer Support Router",
        "mermaid_diagram": "sequenceDiagram\n    participant User",
        "legend": ["M1: Request Classification"],
    },
    "agent_message": "Please review.",
}
