import pytest

from support.cases import read_cases
from weft.diagrams.ascii import ascii_graph
from weft.diagrams.graph import graph
from weft.diagrams.mermaid import mermaid_graph
from weft.diagrams.nodes import Edge, Node, reachable_keys
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)


def workflow(*agents, handoffs=(), initial=None, tools=(), lifecycle_tools=(), **settings):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Support",
                "initial_agent": initial or agents[0],
                **settings,
            },
            "agents": [{"agent_name": name} for name in agents],
            "handoffs": handoffs,
            "tools": tools,
            "lifecycle_tools": lifecycle_tools,
        }
    )


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def edges(spec):
    return [
        (edge.source.removeprefix("agent:"), edge.target.removeprefix("agent:"), edge.label)
        for edge in graph(spec).edges
    ]


def test_start_agents_user_and_end_are_nodes():
    drawn = graph(
        workflow("A", "B", handoffs=[rule("A", "B"), rule("B", "terminate", "done")]),
    )
    assert drawn.title == "Support"
    assert drawn.nodes == (
        Node("start", "start", "start", "a chat is opened"),
        Node("agent:A", "agent", "A", "worker"),
        Node("agent:B", "agent", "B", "worker"),
        Node("user", "user", "user"),
        Node("end", "end", "end"),
    )


def test_user_and_end_are_left_out_when_no_way_leads_there():
    kinds = [node.kind for node in graph(workflow("A", handoffs=[rule("A", "A")])).nodes]
    assert kinds == ["start", "agent"]


def test_edges_are_in_the_order_in_which_they_are_tried():
    spec = workflow(
        "A",
        "B",
        "C",
        handoffs=[
            rule("A", "user"),
            rule("A", "B", "x", priority=5),
            rule("A", "C", "When y is true"),
            rule("A", "terminate", "z", condition_scope="pre", reason="over"),
            rule("B", "terminate"),
            rule("C", "terminate"),
        ],
    )
    drawn = graph(spec)
    assert drawn.edges[1:5] == (
        Edge("agent:A", "end", "rule", "z", before=True, reason="over"),
        Edge("agent:A", "agent:C", "rule", "y == true"),
        Edge("agent:A", "agent:B", "rule", "x (priority 5)"),
        Edge("agent:A", "user", "fallback", "otherwise"),
    )


def test_without_a_fallback_the_pattern_or_the_default_decides():
    spec = workflow(
        "A",
        "B",
        "C",
        handoffs=[rule("B", "A", "again")],
        orchestration_pattern="Pipeline",
        human_in_the_loop=False,
    )
    assert edges(spec)[1:] == [
        ("A", "B", "by the pattern"),
        ("B", "A", "again"),
        ("B", "C", "otherwise, by the pattern"),
        ("C", "end", "by default"),
    ]


def test_a_fallback_alone_is_taken_always():
    spec = workflow("A", handoffs=[rule("A", "user")])
    assert edges(spec)[1:] == [("A", "user", "always")]


@pytest.mark.parametrize(
    ("condition", "kind", "shown"),
    [
        ("a   ==  'x'", "expression", 'a == "x"'),
        ("needs (bad\nsyntax", "expression", "needs (bad syntax"),
        (" ", "expression", "(blank)"),
        ("the user is  angry", "llm", "a model says: the user is angry"),
        ("x\u202e\x00y", "llm", "a model says: x\ufffd\ufffdy"),
        ("about  refunds", "nearest", "nearest to: about refunds"),
    ],
)
def test_conditions_are_shown_in_short_even_if_they_do_not_parse(condition, kind, shown):
    spec = workflow("A", handoffs=[rule("A", "user", condition, condition_type=kind)])
    assert edges(spec)[1] == ("A", "user", shown)


def test_long_texts_are_cut():
    spec = workflow("A" * 100, handoffs=[rule("A" * 100, "user", "word " * 2000)])
    drawn = graph(spec)
    assert drawn.nodes[1].title == "A" * 45 + "..."
    assert len(drawn.edges[1].label) == 120
    assert drawn.edges[1].label.endswith("word wo...")


def test_undeclared_names_are_shown_as_undeclared():
    spec = workflow(
        "A",
        initial="Ghost",
        handoffs=[rule("Spirit", "A", "x"), rule("A", "Shade")],
        default_target="Wraith",
    )
    strangers = [node for node in graph(spec).nodes if node.kind == "undeclared"]
    assert [node.title for node in strangers] == ["Ghost", "Shade", "Spirit"]
    assert {node.role for node in strangers} == {"not declared"}


def test_an_agent_called_user_is_not_the_user():
    spec = workflow("user", handoffs=[rule("user", "user")])
    assert [node.key for node in graph(spec).nodes] == ["start", "agent:user", "user"]
    assert edges(spec)[1] == ("user", "user", "always")
    assert graph(spec).edges[1].target == "user"


def test_an_agent_declared_twice_is_drawn_once():
    assert [node.title for node in graph(workflow("B", "A", "B")).nodes[1:3]] == ["B", "A"]


def test_tools_and_lifecycle_tools_are_notes_of_their_nodes():
    ui = {
        "tool_type": "UI_Tool",
        "agent": "A",
        "file": "f.py",
        "function": "approve",
        "ui": {"component": "Card", "mode": "artifact"},
    }
    python = {"tool_type": "Agent_Tool", "agent": "A", "file": "f.py", "function": "look_up"}
    automatic = {**python, "agent": "B", "function": "save", "auto_invoke": True}
    begin = {"trigger": "before_chat", "file": "f.py", "function": "load"}
    end = {"trigger": "after_agent", "file": "f.py", "function": "log", "agent": "A"}
    spec = workflow("A", "B", tools=[ui, python, automatic], lifecycle_tools=[begin, end])
    start, first, second, _ = graph(spec).nodes
    assert start.notes == ("before_chat: load",)
    assert first.notes == ("asks: approve (Card, artifact)", "calls: look_up", "after_agent: log")
    assert second.notes == ("calls: save (automatic)",)


def test_tool_servers_and_handoff_tools_are_shown_on_their_nodes():
    servers = [
        {"name": "files", "command": ["serve"]},
        {"name": "mail", "command": ["serve"], "agents": ["B"]},
    ]
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "x"},
        {"source_agent": "A", "target_agent": "user"},
    ]
    spec = workflow("A", "B", handoffs=rules).model_dump(by_alias=True)
    spec["agents"][0]["handoff_tools"] = True
    drawn = graph(WorkflowSpec.model_validate({**spec, "mcp_servers": servers}))
    notes = {node.title: node.notes for node in drawn.nodes}
    assert notes["A"] == ("tool server: files", "may hand off by a tool: B, user")
    assert notes["B"] == ("tool server: files", "tool server: mail")
    for picture in (ascii_graph(drawn), mermaid_graph(drawn)):
        assert "mail" in picture
        assert "may hand off by a tool" in picture


@pytest.mark.parametrize(("trigger", "words"), CASES["test_the_start_says_how_a_run_begins"])
def test_the_start_says_how_a_run_begins(trigger, words):
    assert graph(workflow("A", trigger=trigger)).nodes[0].role == words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "the user speaks first"),
        ({"initiated_by": "system"}, "the agent speaks first"),
        ({"startup_mode": "BackendOnly"}, "no user takes part"),
    ],
)
def test_the_first_way_says_who_opens(settings, words):
    assert edges(workflow("A", **settings))[0] == ("start", "A", words)


def test_reachable_nodes_come_nearest_first():
    spec = workflow(
        "A",
        "B",
        "C",
        "Lost",
        handoffs=[rule("A", "C", "x"), rule("A", "B"), rule("B", "C"), rule("C", "A")],
    )
    assert reachable_keys(graph(spec)) == ["start", "agent:A", "agent:C", "agent:B"]
