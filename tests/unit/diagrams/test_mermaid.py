from weft.diagrams import draw
from weft.diagrams.mermaid import escape
from weft.spec.workflow import WorkflowSpec

SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "Desk", "initial_agent": "Router"},
        "agents": [
            {"agent_name": "Router", "agent_type": "router"},
            {"agent_name": "Clerk"},
        ],
        "handoffs": [
            {
                "source_agent": "Router",
                "target_agent": "Clerk",
                "condition": 'topic == "bill"',
            },
            {
                "source_agent": "Clerk",
                "target_agent": "Ghost",
                "condition": "lost",
                "condition_scope": "pre",
            },
            {"source_agent": "Clerk", "target_agent": "terminate"},
        ],
    }
)

LEGEND = (
    "    Note over n0,n3: dashed arrow#58; hands off before the agent replies"
    "<br/>otherwise#58; none of the conditions before it holds"
    "<br/>by default#58; no rule says it, the default of the workflow does"
    "<br/>after the user's answer the agent that asked continues"
)


def test_a_graph_is_a_flowchart():
    assert draw(SPEC, kind="graph", form="mermaid").splitlines() == [
        "flowchart LR",
        '    n0(["start<br/>a chat is opened"])',
        '    n1["Router<br/>router"]',
        '    n2["Clerk<br/>worker"]',
        '    n3["Ghost<br/>not declared"]',
        '    n4(["user"])',
        '    n5(("end"))',
        '    n0 -->|"the user speaks first"| n1',
        '    n1 -->|"topic == #34;bill#34;"| n2',
        '    n1 <-->|"otherwise, by default"| n4',
        '    n2 -.->|"lost"| n3',
        '    n2 -->|"always"| n5',
        "    classDef undeclared stroke-dasharray:4 3",
        "    class n3 undeclared",
    ]


def test_a_sequence_is_a_sequence_diagram():
    assert draw(SPEC, kind="sequence", form="mermaid").splitlines() == [
        "sequenceDiagram",
        "    title Desk",
        "    actor n0 as user",
        "    participant n1 as Router<br/>router",
        "    participant n2 as Clerk<br/>worker",
        "    participant n3 as Ghost<br/>not declared",
        "    n0->>n1: a chat is opened",
        "    alt topic == #34;bill#34;",
        "        n1->>n2: hands over",
        "        opt lost, before Clerk replies",
        "            n2-->>n3: hands over",
        "        end",
        "        Note over n2: the run ends",
        "    else otherwise, by default",
        "        n1->>n0: waits for the user",
        "        n0->>n1: answers",
        "    end",
        LEGEND,
    ]


def test_legend_is_left_out_without_entries():
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "handoffs": [{"source_agent": "A", "target_agent": "terminate"}],
        }
    )
    text = draw(spec, kind="sequence", form="mermaid")
    assert text.endswith("Note over n1: the run ends\n")
    assert draw(spec).endswith('    n1 -->|"always"| n2\n')


DESCRIBED = SPEC.model_copy(
    update={
        "orchestrator": SPEC.orchestrator.model_copy(update={"description": "Bills:\n settled."}),
        "agents": (SPEC.agents[0].model_copy(update={"description": "Asks."}), SPEC.agents[1]),
    }
)


def test_the_description_of_a_workflow_is_a_comment_and_that_of_an_agent_a_line():
    flow = draw(DESCRIBED, kind="graph").splitlines()
    assert flow[1] == "    %% Bills#58; settled."
    assert flow[3] == '    n1["Router<br/>router<br/>Asks."]'
    story = draw(DESCRIBED, kind="sequence").splitlines()
    assert story[1:3] == ["    title Desk", "    %% Bills#58; settled."]
    assert "    Note over n1: Asks." in story


def test_descriptions_appear_in_plain_text():
    for kind in ("graph", "sequence"):
        text = draw(DESCRIBED, kind=kind, form="ascii")
        assert text.splitlines()[1:3] == ["Bills: settled.", ""]
        assert "Asks." in text


def test_no_character_keeps_a_meaning():
    assert escape('a_1 (x, y) = "b"') == "a_1 (x, y) = #34;b#34;"
    assert escape("end;[]{}|<>:`%&#") == (
        "end#59;#91;#93;#123;#125;#124;#60;#62;#58;#96;#37;#38;#35;"
    )
    assert escape("größe 名 😀") == "größe 名 #128512;"
    # Mermaid marks numbers with this letter and with these signs while it reads.
    assert escape("\ufb02°°34¶ß") == "#64258;#176;#176;34#182;ß"


def test_the_same_spec_gives_the_same_text():
    assert draw(SPEC) == draw(SPEC.model_copy(deep=True))
