"""Family OUT."""

from itertools import pairwise
from typing import Any

from unit.check.builders_code import codes, model, subject


def bound(*models: dict[str, Any], **more: Any):
    """Models of which the first is bound, so that it and what it contains are in use."""
    registry = [{"agent": "RouterAgent", "model": models[0]["name"]}]
    return subject(models=models, **{"registry": registry, **more})


def test_OUT005_long_chains_are_followed():
    names = [f"M{index}" for index in range(3000)]
    chain = [model(a, next=b) for a, b in pairwise(names)]
    assert codes(bound(*chain, model(names[-1], end="str"))) == []
    assert codes(bound(*chain, model(names[-1], end=names[0]))) == ["OUT005"]
