from dataclasses import replace

import pytest
from pydantic import BaseModel, ConfigDict

from weft.check.rules import (
    secrets,
    sources,
    triggers,
    usage,
    variables,
    writes,
)
from weft.check.subject import Subject, rules_of
from weft.engine.variables.trigger_index import Fires
from weft.spec.workflow import WorkflowSpec

RULES = {
    rule.code: rule
    for rule in rules_of(
        variables,
        triggers,
        secrets,
        usage,
        writes,
        sources,
    )
}


def subject(variables, *, prompt="", code=None, **more):
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
                "agents": [
                    {
                        "agent_name": "RouterAgent",
                        "prompt_sections": [
                            {"id": "role", "heading": "[ROLE]", "content": prompt},
                            {"id": "rest", "content": "Be kind."},
                        ],
                    },
                    {"agent_name": "TechAgent"},
                ],
                "variables": variables,
                "tools": [
                    tool("look", "look.py"),
                    {**tool("ask", "ask.py"), "tool_type": "UI_Tool", "ui": UI},
                ],
                **more,
            }
        ),
        folder="Demo",
        code={"tools/look.py": "", "tools/ask.py": "", **(code or {})},
    )


UI = {"component": "Ask", "mode": "inline"}


def tool(function, file, agent="RouterAgent"):
    return {"tool_type": "Agent_Tool", "agent": agent, "file": file, "function": function}


def variable(type_="any", source="static", **fields):
    if source == "static":
        fields.setdefault("value", None)
    return {"type": type_, "source": {"type": source, **fields}}


def derived(*triggers, type_="any", **fields):
    return variable(type_, "derived", triggers=list(triggers), **fields)


def hits(code, checked):
    return list(RULES[code].check(checked))


SOURCE = ("variables", "x", "source")
FIRST = (*SOURCE, "triggers", 0)


class Often(BaseModel):
    model_config = ConfigDict(extra="forbid")

    times: int


class Anything(BaseModel):
    pass


class Kind:
    def __init__(self, settings):
        self.settings = settings

    def fires(self, *_):
        return Fires(value=True)


KINDS = {"often": Kind(Often), "any": Kind(Anything)}


def custom(kind, **settings):
    checked = subject({"x": derived({"type": f"x:{kind}", **settings})})
    return hits("VAR027", replace(checked, kinds=KINDS))


@pytest.mark.parametrize(
    ("settings", "place", "fact", "hint"),
    [
        ({"times": "many"}, (*FIRST, "times"), "times: Input should be", "it takes times"),
        ({}, FIRST, "times: Field required", "it takes times"),
        ({"times": 1, "tims": 2}, (*FIRST, "tims"), "tims: Extra inputs", 'did you mean "times"?'),
        ({"times": 1, "zz": 2}, (*FIRST, "zz"), "zz: Extra inputs", "it takes times"),
    ],
)
def test_VAR027_settings_that_do_not_fit(settings, place, fact, hint):
    (hit,) = custom("often", **settings)
    assert hit.path == place
    assert f"the trigger x:often of x does not fit: {fact}" in hit.message
    assert hit.hint == (hint,)


def test_LINK003_speaks_of_kinds_that_nobody_adds_alone():
    unknown = [{"type": "x:moon"}, {"type": "x:often", "times": "many"}, {"type": "x:any"}]
    found = hits("LINK003", replace(subject({"x": derived(*unknown)}), kinds=KINDS))
    assert [hit.path for hit in found] == [FIRST]


def test_VAR027_settings_that_fit_and_kinds_that_nobody_adds():
    assert custom("often", times=3) == custom("any", times=3) == custom("other", a=1) == []
