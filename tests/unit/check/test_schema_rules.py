"""Family SCHEMA, the part that speaks about a spec."""

from typing import Any

import pytest

from unit.check.builders_code import agent, hits, only, subject


@pytest.mark.parametrize(
    ("parts", "path", "part"),
    [
        (
            {"flow": {"steps": [{"kind": "agent", "name": "one", "agent": "RouterAgent"}]}},
            ("flow",),
            "a flow is declared",
        ),
        ({"board": {"artifacts": ["Ticket"]}}, ("board",), "a board is declared"),
    ],
)
def test_SCHEMA014_what_cannot_be_performed_yet(
    parts: dict[str, Any], path: tuple[str | int, ...], part: str
):
    hit = only("SCHEMA014", subject(**parts))
    assert (hit.path, hit.at_key) == (path, True)
    assert part in hit.message


def test_SCHEMA014_conversations_can_be_performed():
    assert hits("SCHEMA014", subject()) == []
    agents = [agent("RouterAgent", context=[{"kind": "history"}])]
    assert hits("SCHEMA014", subject(agents=agents)) == []
