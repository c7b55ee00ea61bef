"""Whatever a plan says, it compiles to specs without errors, and always to the same ones."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.generator_plans import findings, plan
from weft.findings import is_error
from weft.generator.compile.compiler import compile_spec
from weft.generator.split import pack_of, workflow_plans
from weft.spec.plan import ActionPlan, SourceKind

KINDS = list(SourceKind.__args__)
NAMES = (
    "Alpha",
    "Beta",
    "User",
    "terminate",
    "class",
    "名前",
    "done",
    "open",
    "send",
    "next",
    "is",
)
PHRASES = ("customer tier", "order_status", "{order_status}", "record_alpha_next", "api key")
WORDS = st.sampled_from((*NAMES, *PHRASES, "a" * 60))
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
TOOLS = st.fixed_dictionaries(
    {
        "name": WORDS,
        "integration": st.sampled_from([None, "Slack", "名"]),
        "purpose": TEXTS.map(lambda it: it[:140]),
        "interaction_mode": st.sampled_from(["none", "none", "inline", "artifact"]),
    }
)
POINTS = st.sampled_from(["before_chat", "after_chat", "before_agent", "after_agent"])
LIFECYCLE = st.fixed_dictionaries({"name": WORDS, "purpose": TEXTS, "trigger": POINTS})
HOOKS = st.fixed_dictionaries({"name": WORDS, "purpose": WORDS})
AGENTS = st.fixed_dictionaries(
    {
        "agent_name": WORDS,
        "agent_type": st.sampled_from(["worker", "router", "orchestrator", "evaluator"]),
        "objective": TEXTS,
        "human_interaction": st.sampled_from(["none", "context", "approval", "feedback", "single"]),
        "max_consecutive_auto_reply": st.just(5),
        "agent_tools": st.lists(TOOLS, max_size=3),
        "lifecycle_tools": st.lists(LIFECYCLE, max_size=2),
        "system_hooks": st.lists(HOOKS, max_size=2),
    }
)
VARIABLES = st.fixed_dictionaries(
    {
        "name": WORDS,
        "type": st.sampled_from(KINDS),
        "purpose": TEXTS,
        "trigger_hint": st.none() | TEXTS,
    }
)
MODULES = st.tuples(st.integers(1, 9), st.lists(AGENTS, max_size=5))
WORKFLOWS = [
    {"name": name, "role": role, "description": "x", "pattern_id": 6, "pattern_name": "Pipeline"}
    for name, role in (("First", "primary"), ("Second", "dependent"), ("second!", "independent"))
]


@st.composite
def plans(draw: st.DrawFn) -> ActionPlan:
    modules = draw(st.lists(MODULES, min_size=1, max_size=4))
    given: dict[str, Any] = {
        "trigger": draw(
            st.sampled_from(["chat", "form_submit", "schedule", "database_condition", "webhook"])
        ),
        "initiated_by": draw(st.sampled_from(["user", "system", "external_event"])),
        "human_in_loop": draw(st.booleans()),
        "global_context_variables": draw(st.lists(VARIABLES, max_size=6)),
        "before_chat_lifecycle": draw(st.none() | LIFECYCLE),
    }
    if draw(st.booleans()):
        owners = st.sampled_from([None, "First", "Second", "second!", "nobody"])
        given["workflows"] = WORKFLOWS
        given["owners"] = [draw(owners) for _ in modules]
    return plan(*modules, **given)


@settings(max_examples=6 * TIMES)
@given(plans())
def test_any_plan_compiles_without_errors(made: ActionPlan):
    packages = workflow_plans(made)
    assert packages
    for workflow in packages:
        spec, shapes = compile_spec(workflow)
        assert (spec, shapes) == compile_spec(workflow)
        # What requires another workflow is not performed by every version.
        found = [finding for finding in findings(spec, shapes) if finding.code != "LINK003"]
        assert not [item for item in found if is_error(item)]
        assert "HAND012" not in {item.code for item in found}
    pack = pack_of(made)
    assert pack is None or [each.name for each in pack.workflows] == [
        package.name for package in packages
    ]
