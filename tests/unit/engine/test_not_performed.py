"""What a workflow declares and no run performs is named, all of it and nothing else."""

import pytest

from weft.engine.compile import not_performed, refusal
from weft.spec.workflow import WorkflowSpec


def declared(**fields):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "A",
                **fields.pop("orchestrator", {}),
            },
            "agents": [{"agent_name": "A"}],
            **fields,
        }
    )


def variable(source):
    return {"variables": {"v": {"type": "bool", "source": source}}}


def derived(**fields):
    return variable({"type": "derived", "default": False, **fields})


TIMER = {"type": "timer_expired", "after_seconds": 1}
PLUGGED = {"type": "x:mail"}
STEP = {"from": False, "to": True}


@pytest.mark.parametrize(
    ("fields", "place", "what"),
    [
        ({"orchestrator": {"loop_guard": {}}}, ("orchestrator", "loop_guard"), "loop_guard"),
        (
            derived(triggers=[{"type": "handoff"}, PLUGGED]),
            ("variables", "v", "source", "triggers", 1),
            "a trigger of v, x:mail",
        ),
        (
            derived(transitions=[STEP, {**STEP, "trigger": PLUGGED}]),
            ("variables", "v", "source", "transitions", 1, "trigger"),
            "a trigger of v, x:mail",
        ),
    ],
)
def test_it_is_named_with_its_place(fields, place, what):
    (left,) = not_performed(declared(**fields))
    assert (left.path, left.what) == (place, what)


@pytest.mark.parametrize(("kinds", "there"), [([], "none"), (["sms", "fax"], "x:fax, x:sms")])
def test_unknown_trigger_kind_is_reported_with_the_known_ones(kinds, there):
    (left,) = not_performed(declared(**derived(triggers=[PLUGGED])), dict.fromkeys(kinds))
    told = "W declares a trigger of v, x:mail, which no installed plug-in adds"
    assert refusal("W", left) == told
    assert left.hint.endswith(f"; installed: {there}")


JUDGED = {
    "source_agent": "A",
    "target_agent": "user",
    "condition": "it is late",
    "condition_type": "llm",
}


@pytest.mark.parametrize(
    "fields",
    [
        {"board": {"artifacts": []}},
        derived(triggers=[{"type": "handoff"}]),
        {"orchestrator": {"trigger": {"type": "webhook"}}},
        variable({"type": "computed", "computation": "x", "inputs": ["x"]}),
        derived(persist=True),
        derived(triggers=[TIMER]),
        {"handoffs": [JUDGED]},
        {"orchestrator": {"workflow_dependencies": {"required_workflows": ["Onboarding"]}}},
    ],
)
def test_supported_features_are_not_reported(fields):
    assert not_performed(declared(**fields)) == ()


def test_a_flow_calls_no_automatic_tool():
    agent = {"agent_name": "A", "auto_tool_mode": True}
    (left,) = not_performed(declared(agents=[agent], flow={"steps": []}))
    assert (left.path, left.what) == (("agents", 0, "auto_tool_mode"), "the automatic tool of A")
    assert left.hint == "write a step in its place"
