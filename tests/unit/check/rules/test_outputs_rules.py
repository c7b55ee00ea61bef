"""Endless models."""

from itertools import pairwise

from weft.check.run import check
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec


def endless(models):
    """Return the findings about models of which the first is bound."""
    spec = {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
        "models": models,
        "registry": [{"agent": "A", "model": models[0]["name"]}],
    }
    found = check(Subject(WorkflowSpec.model_validate(spec)))
    return [finding.code for finding in found if finding.code in ("OUT005", "NAME003")]


def model(name, field, type_):
    return {"name": name, "fields": {field: {"type": type_}}}


def test_long_chains_of_models_are_followed():
    names = [f"M{index}" for index in range(3000)]
    chain = [model(first, "next", second) for first, second in pairwise(names)]
    assert endless([*chain, model(names[-1], "end", "str")]) == []
    assert endless([*chain, model(names[-1], "end", names[0])]) == ["OUT005"]
