"""Boards as pictures: who publishes what, and whom it wakes."""

import pytest

from support.cases import read_cases
from weft.diagrams import draw
from weft.diagrams.graph import graph
from weft.diagrams.nodes import Edge, Node, reachable_keys
from weft.errors import UsageError
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)

OUTSIDE = Node("start", "start", "outside", "publishes artifacts")


def board(*agents, declared=()):
    """A board of agents; those that begin with a capital are declared."""
    named = [{"agent_name": agent["agent"]} for agent in agents if agent["agent"][0].isupper()]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", "description": "Makes news."},
            "agents": [*named, *declared],
            "board": {"artifacts": ["Lead", "Story"], "agents": list(agents)},
        }
    )


def agent(name, *consumes, publishes=(), **fields):
    made = [publish if isinstance(publish, dict) else {"type": publish} for publish in publishes]
    return {"agent": name, "consumes": list(consumes), "publishes": made, **fields}


def wakes(**fields):
    return {"types": ["Lead"], **fields}


def edges(spec):
    return [(edge.source, edge.target, edge.label) for edge in graph(spec).edges]


def label(**fields):
    (edge, *_) = graph(board(agent("A", wakes(**fields)))).edges
    return edge.label


def test_artifacts_lead_from_who_publishes_them_to_whom_they_wake():
    spec = board(
        agent("A", wakes(), publishes=["Story"]),
        agent("B", wakes(types=["Story"]), publishes=["Story", "Issue"]),
    )
    drawn = graph(spec)
    assert drawn.edges == (
        Edge("start", "agent:A", "artifact", "Lead"),
        Edge("agent:A", "agent:B", "artifact", "Story"),
    )
    assert drawn.nodes == (
        OUTSIDE,
        Node("agent:A", "agent", "A", "worker"),
        Node("agent:B", "agent", "B", "worker", ("publishes Issue",)),
    )
    assert reachable_keys(drawn) == ["start", "agent:A", "agent:B"]


def test_an_agent_that_may_wake_itself_does():
    spec = board(agent("A", wakes(), publishes=["Lead"], prevent_self_trigger=False))
    assert edges(spec) == [("agent:A", "agent:A", "Lead")]
    assert [node.kind for node in graph(spec).nodes] == ["agent"]


def test_an_empty_board_is_drawn():
    assert graph(board()).nodes == (OUTSIDE,)


def test_agents_are_drawn_whether_they_are_declared_and_take_part_or_not():
    spec = board(agent("ghost", wakes()), declared=[{"agent_name": "Idle", "description": "Naps."}])
    assert graph(spec).nodes[1:] == (
        Node("agent:Idle", "agent", "Idle", "worker", ("Naps.",)),
        Node("agent:ghost", "undeclared", "ghost", "not declared"),
    )


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"every_seconds": 90}, "every 90 s"),
        ({"daily": "06:00"}, "daily at 06:00 UTC"),
        ({"at": "2026-01-31T09:00:00Z"}, "at 2026-01-31T09:00:00+00:00"),
        ({"cron": "0 6 * * 1"}, "cron 0 6 * * 1"),
    ],
)
def test_the_clock_is_where_scheduled_agents_begin(schedule, words):
    drawn = graph(board(agent("A", publishes=["Lead"], schedule=schedule), agent("B", wakes())))
    assert drawn.edges == (
        Edge("clock:A", "agent:A", "start", words),
        Edge("agent:A", "agent:B", "artifact", "Lead"),
    )
    assert drawn.nodes[0] == Node("clock:A", "start", "clock", "wakes by its schedule")
    assert reachable_keys(drawn) == ["clock:A", "agent:A", "agent:B"]


@pytest.mark.parametrize(("fields", "words"), CASES["test_gates_are_shown_on_the_label"])
def test_gates_are_shown_on_the_label(fields, words):
    assert label(**fields) == words


@pytest.mark.parametrize(
    ("consumes", "sources"),
    [
        ({}, ["agent:A", "agent:B"]),
        ({"from_agents": ["B"]}, ["agent:B"]),
        ({"from_agents": ["user:ada", "A"]}, ["start", "agent:A"]),
        ({"mode": "direct"}, ["start"]),
    ],
)
def test_an_artifact_is_connected_only_to_possible_publishers(consumes, sources):
    spec = board(
        agent("A", publishes=["Lead"]),
        agent("B", publishes=["Lead"]),
        agent("C", wakes(**consumes)),
    )
    assert [source for source, target, _ in edges(spec) if target == "agent:C"] == sources


@pytest.mark.parametrize(
    ("visibility", "seen"),
    [
        ({"kind": "private", "agents": ["C"]}, True),
        ({"kind": "private", "agents": ["A"]}, False),
        ({"kind": "after", "seconds": 9, "then": {"kind": "labelled", "labels": ["x"]}}, True),
        ({"kind": "labelled", "labels": ["x", "y"]}, False),
        ({"kind": "tenant", "tenant": "acme"}, True),
        ("tools.a:decide", True),
    ],
)
def test_permanently_hidden_artifact_wakes_no_agent(visibility, seen):
    published = [{"type": "Lead", "visibility": visibility}]
    spec = board(agent("A", publishes=published), agent("C", wakes(), labels=["x"]))
    assert edges(spec) == ([("agent:A", "agent:C", "Lead")] if seen else [])


@pytest.mark.parametrize("form", ["mermaid", "ascii"])
def test_every_form_draws_it(form):
    text = draw(board(agent("A", wakes(where="x > 2"), publishes=["Story"])), form=form)
    for word in ("outside", "Lead", "publishes Story"):
        assert word in text
    if form == "ascii":
        assert text.startswith("Desk   (board)\nMakes news.\n")


def test_a_board_has_no_sequence():
    with pytest.raises(UsageError, match="Desk is a board, which has no sequence") as raised:
        draw(board(agent("A", wakes())), kind="sequence")
    assert raised.value.hint == "draw what leads to what: --kind graph"
