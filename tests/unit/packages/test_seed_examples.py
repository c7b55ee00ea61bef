"""Every example of the seeds loads as it stands."""

import json

import pytest

from support import seed_examples as seed
from weft.findings import is_error
from weft.packages.reader import read_package
from weft.spec import plan
from weft.spec.triggers import AgentTextTrigger, Equals, Exact
from weft.spec.type_parser import parse_type
from weft.spec.variables import DerivedSource

FILES = {
    "orchestrator.json": seed.ORCHESTRATOR,
    "agents.json": seed.AGENTS,
}


@pytest.fixture
def load(tmp_path):
    def read(**files):
        folder = tmp_path / "CustomerSupportRouter"
        folder.mkdir()
        for name, data in {**FILES, **{f"{k}.json": v for k, v in files.items()}}.items():
            (folder / name).write_text(json.dumps(data, indent=2))
        package = read_package(folder)
        assert [finding for finding in package.findings if is_error(finding)] == []
        assert package.broken == frozenset()
        return package

    return read


def test_four_kinds_with_definitions_and_variables_per_agent(load):
    spec = load(context_variables=seed.FOUR_KINDS).spec
    kinds = {name: variable.source.type for name, variable in spec.variables.items()}
    assert kinds == {
        "product_tier": "static",
        "max_items": "static",
        "concept_overview": "database",
        "context_aware": "environment",
        "monetization_enabled": "environment",
        "interview_complete": "derived",
        "action_plan_acceptance": "derived",
    }
    overview = spec.variables["concept_overview"].source
    assert (overview.database, overview.search_by) == ("autogen_ai_agents", "enterprise_id")
    assert spec.variables["max_items"].type == parse_type("int")
    assert spec.variables["interview_complete"].source == DerivedSource(
        default=False,
        triggers=(AgentTextTrigger(agent="InterviewAgent", match=Equals(equals="NEXT")),),
    )
    assert spec.exposure["InterviewAgent"] == (
        "context_aware",
        "concept_overview",
        "monetization_enabled",
    )


def test_only_the_older_key_is_pointed_out(load):
    package = load(context_variables=seed.FOUR_KINDS)
    assert [(finding.code, finding.message) for finding in package.findings] == [
        ("SCHEMA010", "older spelling: database_name is now database")
    ]


def test_single_definitions_of_the_guidelines(load):
    data = {"context_variables": {"definitions": seed.MORE_DEFINITIONS}}
    spec = load(context_variables=data).spec
    assert list(spec.variables) == list(seed.MORE_DEFINITIONS)
    assert spec.variables["user_profile"].type == parse_type("dict")


def test_static_entries_in_list_form(load):
    spec = load(
        context_variables={"context_variables": {"static_variables": seed.STATIC_LIST}}
    ).spec
    assert spec.variables["product_tier"].source.value == "beta"
    assert spec.variables["product_tier"].type == parse_type("str")
    assert spec.variables["max_items"].type == parse_type("int")


def test_derived_list_matches_to_the_letter(load):
    spec = load(context_variables=seed.DERIVED_LIST).spec
    (trigger,) = spec.variables["interview_complete"].source.triggers
    assert trigger.match == Exact(exact="TERMINATE")
    assert spec.variables["interview_complete"].type == parse_type("bool")


def test_six_kinds_with_bare_exposure_lists(load):
    spec = load(context_variables=seed.SIX_KINDS).spec
    kinds = {name: variable.source.type for name, variable in spec.variables.items()}
    assert kinds == {
        "api_base": "environment",
        "customer": "database",
        "ticket": "entity",
        "is_urgent": "computed",
        "current_domain": "derived",
        "exchange_rate": "external",
    }
    assert spec.exposure == {"RouterAgent": ("current_domain", "customer")}
    domain = spec.variables["current_domain"].source
    assert domain.default == "unknown"
    assert domain.triggers[0].tool == "analyze_request"
    assert [(step.from_, step.to) for step in domain.transitions] == [
        ("unknown", "tech"),
        ("unknown", "finance"),
    ]
    assert spec.variables["exchange_rate"].source.cache.ttl_seconds == 300
    assert spec.variables["exchange_rate"].source.retry.attempts == 2
    assert spec.variables["ticket"].source.document["state"].description == "open or not"


def test_tools_of_all_three_types(load):
    spec = load(tools=seed.TOOLS).spec
    assert [tool.tool_type for tool in spec.tools] == ["UI_Tool", "Agent_Tool"]
    assert [tool.auto_invoke for tool in spec.tools] == [True, False]
    assert spec.lifecycle_tools[0].trigger == "before_chat"


def test_handoffs(load):
    (rule,) = load(handoffs=seed.HANDOFFS).spec.handoffs
    assert (rule.condition, rule.condition_scope, rule.priority) == (
        "When current_domain is tech",
        "post",
        1,
    )


def test_orchestrator_and_agents(load):
    spec = load().spec
    assert spec.orchestrator.runtime_extensions[1].kind == "startup_service"
    assert [section.id for section in spec.agents[0].prompt_sections] == [
        "role",
        "objective",
        "context",
        "instructions",
    ]


def test_structured_outputs(load):
    spec = load(structured_outputs=seed.STRUCTURED_OUTPUTS).spec
    assert spec.models[0].fields["tags"].type == parse_type("list")
    assert [(entry.agent, entry.model) for entry in spec.registry] == [
        ("RouterAgent", "RoutingDecision"),
        ("InterviewAgent", None),
    ]


@pytest.mark.parametrize("spelling", ["ContextAwareRouting", "Context-Aware Routing", "1"])
def test_both_spellings_of_patterns(load, spelling):
    spec = load(orchestrator={**seed.ORCHESTRATOR, "orchestration_pattern": spelling}).spec
    assert spec.orchestrator.orchestration_pattern == "ContextAwareRouting"


@pytest.mark.parametrize("key", ["human_in_loop", "human_in_the_loop"])
def test_both_spellings_of_human_in_the_loop(load, key):
    data = {name: value for name, value in seed.ORCHESTRATOR.items() if "human" not in name}
    assert load(orchestrator={**data, key: False}).spec.orchestrator.human_in_the_loop is False


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (plan.PatternSelectionOutput, seed.PATTERN_SELECTION),
        (plan.WorkflowStrategyOutput, seed.WORKFLOW_STRATEGY),
        (plan.TechnicalBlueprintOutput, seed.TECHNICAL_BLUEPRINT),
        (plan.ModuleAgentsOutput, seed.MODULE_AGENTS),
        (plan.MermaidSequenceDiagramOutput, seed.MERMAID),
    ],
)
def test_design_outputs(model, data):
    read = model.model_validate_json(json.dumps(data), strict=True)
    assert json.loads(read.model_dump_json(by_alias=True, exclude_unset=True)) == data


def test_action_plan_is_one_record_of_five_parts():
    data = {
        "version": 2,
        **seed.PATTERN_SELECTION,
        **seed.WORKFLOW_STRATEGY,
        **seed.TECHNICAL_BLUEPRINT,
        **seed.MODULE_AGENTS,
        "MermaidSequenceDiagram": seed.MERMAID["MermaidSequenceDiagram"],
    }
    read = plan.ActionPlan.model_validate_json(json.dumps(data), strict=True)
    assert read.strategy.pattern == ("ContextAwareRouting",)
    assert read.modules[0].agents[0].agent_name == "RouterAgent"


def test_pattern_legend_is_enforced():
    data = json.loads(json.dumps(seed.PATTERN_SELECTION))
    data["PatternSelection"]["workflows"][0]["pattern_id"] = 6
    with pytest.raises(ValueError, match="pattern 6 is Pipeline, not Context-Aware Routing"):
        plan.PatternSelectionOutput.model_validate_json(json.dumps(data), strict=True)
