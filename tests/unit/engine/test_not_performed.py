"""What a workflow declares and no run performs is named, all of it and nothing else."""

import pytest

from weft.engine.not_performed import not_performed
from weft.spec.workflow import WorkflowSpec


def declared(**fields):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "A",
                **fields.pop("orchestrator", {}),
            },
            "agents": [{"agent_name": "A", **fields.pop("agent", {})}],
            **fields,
        }
    )


def variable(source):
    return {"variables": {"v": {"type": "bool", "source": source}}}


def derived(**fields):
    return variable({"type": "derived", "default": False, **fields})


TIMER = {"type": "timer_expired", "after_seconds": 1}
STEP = {"from": False, "to": True}


@pytest.mark.parametrize(
    ("fields", "place", "what"),
    [
        ({"orchestrator": {"loop_guard": {}}}, ("orchestrator", "loop_guard"), "loop_guard"),
        (
            {"orchestrator": {"trigger": {"type": "webhook"}}},
            ("orchestrator", "trigger"),
            "a start by webhook",
        ),
        (
            variable({"type": "computed", "computation": "x", "inputs": ["x"]}),
            ("variables", "v", "source"),
            "the computed source of v",
        ),
        (derived(persist=True), ("variables", "v", "source", "persist"), "persist of v"),
        (
            derived(triggers=[{"type": "handoff"}, TIMER]),
            ("variables", "v", "source", "triggers", 1),
            "a timer_expired trigger of v",
        ),
        (
            derived(transitions=[STEP, {**STEP, "trigger": TIMER}]),
            ("variables", "v", "source", "transitions", 1, "trigger"),
            "a timer_expired trigger of v",
        ),
        (
            {
                "handoffs": [
                    {
                        "source_agent": "A",
                        "target_agent": "user",
                        "condition": "it is late",
                        "condition_type": "llm",
                    }
                ]
            },
            ("handoffs", 0),
            "a condition of A that a model is to judge",
        ),
        (
            {"agent": {"generation_mode": "image"}},
            ("agents", 0, "generation_mode"),
            "generation_mode of A",
        ),
    ],
)
def test_it_is_named_with_its_place(fields, place, what):
    assert not_performed(declared(**fields)) == ((place, what),)


def test_what_is_performed_is_not_named():
    assert not_performed(declared(**derived(triggers=[{"type": "handoff"}]))) == ()
    assert not_performed(declared(agent={"generation_mode": "text"})) == ()
