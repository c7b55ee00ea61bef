"""Diagrams of plans, and all others, as the real Mermaid library reads them."""

import string
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.mermaid_play import Read, read_by_mermaid
from support.plan_play import (
    complete_data,
    extended,
    of_pattern,
    plan_of,
    planned_agent,
    planned_tool,
    two_workflows,
)
from weft.diagrams import draw
from weft.diagrams.mermaid import mermaid_graph, mermaid_sequence
from weft.diagrams.nodes import Edge, Graph, Node, NodeKind, short_label
from weft.diagrams.sequence import Block, Branch, Message, Note, Participant, Sequence
from weft.errors import UsageError
from weft.generator.plans.diagram import plan_drawing
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.spec.patterns import PATTERNS

HOSTILE = [
    "end", "a end b", "END", "else", "loop x", "; A->>B: stolen", "# 35;", "#35;", "#quot;", "a\nb",
    "a\r\nb", '"quoted"', "'single'", "<br/>", "<script>alert(1)</script>", "%% comment",
    "%%{init: {'theme': 'dark'}}%%", "`code`", "  blanks  ", "", " ", "\t", "-->>", "->>", ":",
    "::", "A: B", "{}", "[]", "()", "\\", "\\n", "$$x^2$$", "|", "~", "as", "participant X",
    "Note over A", "activate A", "wrap: text", "nowrap: text", "\ufb02°°35¶ß",
    "\u202eright to left", "e\u0301",
    "漢字", "🙂", "١٢٣", "\u0000", "\u2028", "---\ntitle: x\n---", "title",
    "autonumber", "&amp;", "@{",
]  # fmt: skip

TEXTS = [
    *HOSTILE,
    *string.printable,
    *(f"a{sign}b" for sign in string.printable),
    string.printable,
    string.punctuation,
    string.punctuation[::-1],
]


def parsed(diagrams: list[str]) -> list[Read]:
    read = read_by_mermaid(diagrams)
    failed = [
        (diagram, item.error) for diagram, item in zip(diagrams, read, strict=True) if item.error
    ]
    assert not failed
    return read


def speaking(text: str) -> Sequence:
    """Return a sequence that says a text wherever one can stand."""
    text = short_label(text)
    said = (Message("a", "b", text), Message("b", "a", text, before=True), Note("a", text))
    blocks = [
        Block("alt", (Branch(text, said), Branch(text, said))),
        Block("par", (Branch(text, said), Branch(text, said))),
        Block("opt", (Branch(text, said),)),
        Block("loop", (Branch(text, said),)),
    ]
    people = (Participant("a", "user", text), Participant("b", "agent", text))
    return Sequence(text, text, people, (*said, *blocks), (text,))


def test_mermaid_reads_every_text_as_it_was_meant():
    found = parsed([mermaid_sequence(speaking(text)) for text in TEXTS])
    for text, read in zip(TEXTS, found, strict=True):
        # A title, two participants, 3 + 6 * 3 messages and notes, 6 branches and the legend.
        assert read.texts == (short_label(text),) * (3 + 3 + 18 + 6 + 1), text


def test_mermaid_reads_every_text_of_a_graph_as_it_was_meant():
    kinds: tuple[NodeKind, ...] = get_args(NodeKind)
    said = [short_label(text) for text in TEXTS]

    def drawn(text: str) -> str:
        nodes = tuple(Node(kind, kind, text) for kind in kinds)
        after = Edge("start", "end", "rule", text)
        before = Edge("end", "end", "rule", text, before=True)
        return mermaid_graph(Graph(text, text, text, nodes, (after, before)))

    found = parsed([drawn(text) for text in said])
    for text, read in zip(said, found, strict=True):
        assert read.texts == (text,) * (len(kinds) + 2), text


def test_mermaid_reads_random_texts_as_they_were_meant():
    texts: list[str] = []

    @settings(
        max_examples=40 * TIMES,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.text(max_size=60))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    found = parsed([mermaid_sequence(speaking(text)) for text in texts])
    assert all(
        set(read.texts) == {short_label(text)} for text, read in zip(texts, found, strict=True)
    )


def test_mermaid_says_what_does_not_parse():
    broken, sound = read_by_mermaid(["sequenceDiagram\n    alt never closed", "graph LR\n  a-->b"])
    assert broken.error is not None
    assert sound.error is None


def named(name: str) -> dict[str, Any]:
    """Return a plan that says a text in all its prose."""
    data = complete_data()
    data["WorkflowStrategy"].update(workflow_name=name, workflow_description=name)
    data["WorkflowStrategy"]["modules"][0]["module_name"] = f"Module 1: {name}"
    data["TechnicalBlueprint"]["ui_components"][0].update(
        label=name, module_name=f"Module 1: {name}"
    )
    for agent in data["ModuleAgents"][0]["agents"]:
        agent["objective"] = name
    return data


def test_plans_of_every_pattern_and_with_any_text_parse():
    teams = [
        of_pattern(pattern.id, [planned_agent(name) for name in "ABCDEFGHIJKLMNOP"[:size]])
        for pattern in PATTERNS
        for size in (1, 2, 3, 16)
    ]
    hostile = [named(text) for text in HOSTILE if text.strip(" \t\0\u2028")]
    plans = [plan_of(data) for data in (*teams, *hostile, two_workflows(), extended())]
    parsed([plan.diagram.mermaid_diagram for plan in plans])
    for plan in plans:
        assert plan_drawing(plan).isascii()
        assert plan.diagram.legend[0].startswith("M1: ")


def lines_of(pattern_id: int, *names: str) -> list[str]:
    agents = [planned_agent(name) for name in names]
    return diagram_lines(of_pattern(pattern_id, agents))


def diagram_lines(data: dict[str, Any]) -> list[str]:
    """Return the messages of a diagram, without who takes part and what surrounds them."""
    lines = plan_of(data).diagram.mermaid_diagram.splitlines()
    begun = next(place for place, line in enumerate(lines) if "M1#58;" in line)
    ended = next(place for place, line in enumerate(lines) if "the run ends" in line)
    return [line.removeprefix("    ") for line in lines[begun + 1 : ended]]


@pytest.mark.parametrize(
    ("pattern_id", "told"),
    [
        (1, ["alt it is a matter for B", "    n1->>n2: routes the request",
             "else it is a matter for C", "    n1->>n3: routes the request", "end"]),
        (2, ["opt A cannot settle it", "    n1->>n2: escalates", "end",
             "opt B cannot settle it", "    n2->>n3: escalates", "end"]),
        (3, ["loop until C accepts", "    n1->>n2: passes on the draft",
             "    n2->>n3: passes on the draft", "    n3->>n1: sends comments, or accepts", "end"]),
        (4, ["n1->>n2: delegates", "n2->>n1: reports", "n1->>n3: delegates", "n3->>n1: reports"]),
        (5, ["loop until nothing is left to say", "    alt the talk turns to B",
             "        n1->>n2: hands off", "    else the talk turns to C",
             "        n1->>n3: hands off", "    end", "end"]),
        (6, ["n1->>n2: hands on its result", "n2->>n3: hands on its result"]),
        (7, ["par A", "    n1->>n3: gives its answer", "and B", "    n2->>n3: gives its answer",
             "end", "Note over n3: compares the answers and decides"]),
        (8, ["n1->>n2: asks", "n2->>n1: answers", "n1->>n3: asks", "n3->>n1: answers"]),
        (9, ["loop for each task", "    alt it is a task for B", "        n1->>n2: gives the task",
             "        n2->>n1: is done", "    else it is a task for C",
             "        n1->>n3: gives the task", "        n3->>n1: is done", "    end", "end"]),
    ],
)  # fmt: skip
def test_module_is_described_by_its_pattern(pattern_id: int, told: list[str]):
    assert lines_of(pattern_id, "A", "B", "C") == told


def test_a_lead_below_another_leads_those_after_it():
    agents = [
        planned_agent("Chief", agent_type="orchestrator"),
        planned_agent("Lead", agent_type="orchestrator"),
        planned_agent("Worker"),
    ]
    told = diagram_lines(of_pattern(4, agents))
    assert told == [
        "n1->>n2: delegates", "n2->>n1: reports", "n2->>n3: delegates", "n3->>n2: reports",
    ]  # fmt: skip


def test_the_evaluator_decides_wherever_it_stands():
    agents = [
        planned_agent("Judge", agent_type="evaluator"),
        planned_agent("A"),
        planned_agent("B"),
    ]
    assert "    n2->>n1: gives its answer" in diagram_lines(of_pattern(7, agents))


def test_surface_is_a_message_to_the_user_and_back():
    told = diagram_lines(complete_data())
    assert told[:3] == [
        "Note over n1: uses analyze_request",
        "n1->>n0: Need more information#58; ClarificationRequest (inline)",
        "n0->>n1: answers request_clarification",
    ]


def test_a_role_answers_for_itself_and_ways_are_alternatives():
    drawn = plan_of(extended()).diagram.mermaid_diagram
    assert "    actor n0 as User\n    actor n1 as role#58;duty\n" in drawn
    told = [line.strip() for line in drawn.splitlines()]
    assert "Note over n2: whenever the user says fire, smoke#58; to Emergency" in told
    ways = told.index("alt urgent")
    assert told[ways : ways + 13] == [
        "alt urgent",
        "n2->>n5: hands over#58; It cannot wait.",
        "else solved",
        "Note over n2: the run ends",
        "else unclear",
        "n2->>n0: waits for an answer",
        "end",
        "Note over n5: M2#58; Emergency (Context#45;Aware Routing)",
        "n5->>n1: Are you coming#63;#58; DutyAlert (inline)",
        "n1->>n5: answers alert_duty",
        "alt coming",
        "Note over n5: the run ends",
        "end",
    ]


@pytest.mark.parametrize(
    ("trigger", "initiated_by", "beginning"),
    [
        ("chat", "user", "n0->>n1: opens a chat"),
        ("chat", "system", "n1->>n0: begins a chat"),
        ("form_submit", "user", "Note over n1: a form is submitted"),
        ("schedule", "system", "Note over n1: the time has come"),
        ("database_condition", "system", "Note over n1: data has changed"),
        ("webhook", "external_event", "Note over n1: a webhook is called"),
    ],
)
def test_a_diagram_says_how_a_run_begins(trigger: str, initiated_by: str, beginning: str):
    data = complete_data()
    data["WorkflowStrategy"].update(trigger=trigger, initiated_by=initiated_by)
    assert f"    {beginning}\n" in plan_of(data).diagram.mermaid_diagram


def test_each_workflow_begins_and_ends():
    drawn = plan_of(two_workflows()).diagram.mermaid_diagram
    assert "Note over n4: Workflow Reports (dependent)\n" in drawn
    assert drawn.count("the run ends") == 2


def test_a_module_without_agents_is_named():
    data = complete_data()
    data["ModuleAgents"] = []
    assert "Note over n0: M1#58; Request Classification" in plan_of(data).diagram.mermaid_diagram


def drawings_of(name: str) -> list[str]:
    spec = read_package(shipped_folder() / name).spec
    assert spec is not None
    drawings = [draw(spec, kind="graph", form="mermaid")]
    with suppress(UsageError):  # boards and flows have no sequence
        drawings.append(draw(spec, kind="sequence", form="mermaid"))
    return drawings


def test_every_shipped_package_is_drawn_so_that_mermaid_reads_it():
    names = sorted(path.name for path in shipped_folder().iterdir() if path.is_dir())
    drawings = [drawing for name in names for drawing in drawings_of(name)]
    assert len(drawings) > len(names)
    parsed(drawings)


def test_the_largest_plan_is_drawn_in_brief():
    tools = [planned_tool(f"t{n}", "inline") for n in range(12)]
    data = complete_data()
    module = data["WorkflowStrategy"]["modules"][0]
    names = [f"{'A' * 60}{n}" for n in range(192)]
    data["WorkflowStrategy"]["modules"] = [
        {**module, "module_index": n, "module_name": f"Module {n + 1}: {'漢-' * 60}"}
        for n in range(12)
    ]
    data["ModuleAgents"] = [
        {
            "module_index": n,
            "agents": [
                planned_agent(name, agent_tools=tools) for name in names[n * 16 : n * 16 + 16]
            ],
        }
        for n in range(12)
    ]
    drawn = plan_of(data).diagram.mermaid_diagram
    assert "inline" not in drawn
    parsed([drawn])
