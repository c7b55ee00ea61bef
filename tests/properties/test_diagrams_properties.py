"""Whatever a workflow declares, it can be drawn, and the drawing is well formed."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.strategies import specs as any_specs
from weft.diagrams import draw
from weft.diagrams.graph import graph
from weft.diagrams.sequence import sequence
from weft.spec.workflow import WorkflowSpec

#: Texts that mean something to Mermaid or to a terminal.
TRAPS = [
    "end",
    'a"]-->b',
    "wrap: x",
    "%%{init: {}}%%",
    "subgraph x\nend",
    "#quot; &amp; ]]>",
    "<script>",
    "note over a: b; c",
    "\x1b[31m\x00\u202e",
    "\ufb02°°34¶ß",
    " ",
    "user",
    "terminate",
]
TEXTS = st.sampled_from(TRAPS) | st.text(min_size=1, max_size=60)
PATTERNS = ["DefaultPattern", "Pipeline", "Redundant", "FeedbackLoop", "Star"]
STARTS = [
    {"type": "chat"},
    {"type": "form_submit", "form": "F"},
    {"type": "schedule", "cron": "* * * * *"},
    {"type": "database_condition", "collection": "c", "condition": "x"},
    {"type": "webhook", "path": "p"},
]


@st.composite
def specs(draw_from):
    names = draw_from(st.lists(TEXTS, min_size=1, max_size=7))
    known = st.sampled_from([*names, "Ghost"])
    target = known | st.sampled_from(["user", "terminate"])
    handoffs = st.fixed_dictionaries({"source_agent": known, "target_agent": target})
    handoffs |= st.fixed_dictionaries(
        {
            "source_agent": known,
            "target_agent": target,
            "condition": TEXTS | st.just("x == 1 and y in ['a', 'b']"),
            "condition_type": st.sampled_from(["expression", "llm"]),
            "condition_scope": st.sampled_from(["pre", "post"]),
            "priority": st.integers(-3, 3),
            "reason": st.none() | TEXTS,
        }
    )
    ui_tools = st.fixed_dictionaries(
        {
            "tool_type": st.just("UI_Tool"),
            "agent": known,
            "file": st.just("f.py"),
            "function": TEXTS,
            "ui": st.fixed_dictionaries({"component": TEXTS, "mode": st.just("inline")}),
        }
    )
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": draw_from(TEXTS.filter(str.strip)),
                "description": draw_from(st.just("") | TEXTS),
                "initial_agent": draw_from(known),
                "orchestration_pattern": draw_from(st.sampled_from(PATTERNS)),
                "trigger": draw_from(st.sampled_from(STARTS)),
                "human_in_the_loop": draw_from(st.booleans()),
                "default_target": draw_from(st.none() | known),
                "initial_message_to_user": draw_from(st.none() | TEXTS),
            },
            "agents": [
                {"agent_name": name, "description": draw_from(st.just("") | TEXTS)}
                for name in names
            ],
            "handoffs": draw_from(st.lists(handoffs, max_size=12)),
            "tools": draw_from(st.lists(ui_tools, max_size=3)),
        }
    )


#: A label: what can follow is only a letter, a digit, a harmless sign or a number.
LABEL = r"(?:\w|[ .,()=/'+]|#\d+;|<br/>)+"
FLOWCHART = re.compile(
    rf"flowchart LR|    %% {LABEL}"
    rf'|    n\d+(?:\["{LABEL}"\]|\(\["{LABEL}"\]\)|\(\("{LABEL}"\)\))'
    rf'|    n\d+ <?(?:-->|-\.->)\|"{LABEL}"\| n\d+'
    r"|    classDef undeclared stroke-dasharray:4 3"
    r"|    class n\d+(?:,n\d+)* undeclared"
)
SEQUENCE_DIAGRAM = re.compile(
    rf"sequenceDiagram|    title {LABEL}|    %% {LABEL}|    (?:actor|participant) n\d+ as {LABEL}"
    rf"| +n\d+-?->>n\d+: {LABEL}| +Note over n\d+(?:,n\d+)?: {LABEL}"
    rf"| +(?:alt|opt|else|par|and) {LABEL}| +end"
)


def lines(text):
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


@settings(deadline=None)
@given(specs())
def test_every_flowchart_fits_the_grammar(spec):
    found = lines(draw(spec, kind="graph", form="mermaid"))
    assert [line for line in found if not FLOWCHART.fullmatch(line)] == []
    declared = [line.split("[")[0].split("(")[0].strip() for line in found if line.endswith('"]')]
    assert len(declared) == len(set(declared))


@settings(deadline=None)
@given(specs())
def test_every_sequence_diagram_fits_the_grammar_and_closes_its_blocks(spec):
    found = lines(draw(spec, kind="sequence", form="mermaid"))
    assert [line for line in found if not SEQUENCE_DIAGRAM.fullmatch(line)] == []
    open_blocks = 0
    for line in found:
        word = line.split()[0]
        open_blocks += {"alt": 1, "opt": 1, "par": 1, "end": -1}.get(word, 0)
        assert open_blocks > 0 or word != "else"
        assert open_blocks >= 0
    assert open_blocks == 0


@settings(deadline=None)
@given(specs())
def test_every_plain_drawing_is_ascii_and_fits_a_terminal(spec):
    for kind in ("graph", "sequence"):
        text = draw(spec, kind=kind, form="ascii")
        assert text.isascii()
        assert all(line.isprintable() and len(line) <= 100 for line in lines(text))


@settings(deadline=None)
@given(specs())
def test_every_agent_and_every_rule_is_drawn(spec):
    drawn = graph(spec)
    keys = [node.key for node in drawn.nodes]
    assert len(keys) == len(set(keys))
    assert {f"agent:{agent.agent_name}" for agent in spec.agents} <= set(keys)
    assert {key for edge in drawn.edges for key in (edge.source, edge.target)} <= set(keys)
    ruled = [edge for edge in drawn.edges if edge.kind in ("rule", "fallback")]
    assert len(ruled) == len(spec.handoffs)
    told = {one.key for one in sequence(spec).participants}
    assert {key for key in keys if key.startswith("agent:")} <= told


@settings(deadline=None, max_examples=8 * TIMES)
@given(specs())
def test_a_drawing_is_always_the_same(spec):
    for kind in ("graph", "sequence"):
        for form in ("mermaid", "ascii"):
            again = WorkflowSpec.model_validate_json(spec.model_dump_json())
            assert draw(spec, kind=kind, form=form) == draw(again, kind=kind, form=form)


@settings(max_examples=10 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_specs("board"))
def test_boards_can_be_drawn(spec):
    keys = {node.key for node in graph(spec).nodes}
    for edge in graph(spec).edges:
        assert {edge.source, edge.target} <= keys
    if spec.board is not None:
        assert draw(spec, form="ascii").isascii()
        assert draw(spec, form="mermaid") == draw(spec, form="mermaid")
