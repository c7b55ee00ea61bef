import re
import xml.etree.ElementTree as ET

import pytest

from weft.diagrams import draw
from weft.diagrams.svg import number
from weft.spec.workflow import WorkflowSpec

SPACE = "{http://www.w3.org/2000/svg}"


def workflow(names, *handoffs, tools=(), **settings):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Desk", "initial_agent": names[0], **settings},
            "agents": [{"agent_name": name} for name in names],
            "handoffs": handoffs,
            "tools": tools,
        }
    )


def rule(source, target, condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def picture(spec, kind="graph"):
    return ET.fromstring(draw(spec, kind=kind, form="svg"))


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SPACE}text")]


def classes(root):
    return [element.get("class", "") for element in root.iter()]


ALL_IN_ONE = workflow(
    ["Router", "Clerk", "Lost"],
    rule("Router", "Clerk", "a < 3 and b == 'x & y'"),
    rule("Router", "Router", "again"),
    rule("Clerk", "Router", "lost", condition_scope="pre"),
    rule("Clerk", "Ghost", "x"),
    rule("Clerk", "terminate", reason="<settled>"),
    initial_message_to_user='He said "hello"',
    orchestration_pattern="Star",
)


def test_a_graph_shows_every_node_and_label():
    root = picture(ALL_IN_ONE)
    shown = texts(root)
    assert shown[0] == "DeskStar"
    for text in ("start", "Router", "Clerk", "Lost", "Ghost", "user", "end", "lost", "otherwise"):
        assert text in shown
    assert 'a < 3 and b == "x & y"' in " ".join(shown)
    assert "again: again" in shown


def test_a_graph_draws_a_tip_for_every_edge_and_for_every_sample_of_the_legend():
    root = picture(ALL_IN_ONE)
    ways = [element for element in root.iter(f"{SPACE}path") if element.get("marker-end")]
    assert len(ways) == 8 + 3
    assert classes(root).count("edge before") == 2
    assert classes(root).count("edge unruled") == 3
    assert classes(root).count("undeclared") == 1


def test_without_differences_a_graph_has_no_legend():
    root = picture(workflow("A", rule("A", "terminate")))
    assert "after the agent replied" not in texts(root)


def test_a_graph_is_laid_out_in_the_direction_that_shows_it_larger():
    def size(spec):
        root = picture(spec)
        return float(root.get("width")), float(root.get("height"))

    fan = [rule("A", name, f"x == '{name}'") for name in "BCDEFGHIJK"]
    back = [rule(name, "user") for name in "BCDEFGHIJK"]
    wide, high = size(workflow("ABCDEFGHIJK", *fan, *back))
    assert wide < 2 * high
    line = workflow("ABCDEFGHIJK", orchestration_pattern="Pipeline")
    wide, high = size(line)
    assert high > wide


def test_a_sequence_shows_participants_messages_notes_and_frames():
    root = picture(ALL_IN_ONE, "sequence")
    shown = texts(root)
    assert shown[:3] == ["Desk", "user", "Router"]
    for text in ("hands over", "alt", "opt", "else", "nothing leads to Lost", "waits for the user"):
        assert text in shown
    assert 'He said "hello"' in " ".join(shown)
    assert "the run ends: <settled>" in shown
    assert classes(root).count("lifeline") == 5
    assert classes(root).count("edge before") == 1
    assert any("continues" in text for text in shown)


def test_a_sequence_without_anything_to_explain_has_no_legend():
    root = picture(workflow("A", rule("A", "terminate")), "sequence")
    assert texts(root)[-1] == "the run ends"


def test_everything_in_a_sequence_is_on_the_page():
    root = picture(ALL_IN_ONE, "sequence")
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter(f"{SPACE}rect"):
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        assert 0 <= x <= x + float(element.get("width")) <= width
        assert 0 <= y <= y + float(element.get("height")) <= height


@pytest.mark.parametrize("kind", ["graph", "sequence"])
def test_a_picture_holds_no_script_and_refers_to_nothing_outside(kind):
    name = "<script>alert(1)</script>"
    condition = '"/><a href="https://example.org">]]>&#0;'
    spec = workflow([name], rule(name, name, condition, condition_type="llm"))
    text = draw(spec, kind=kind, form="svg")
    root = ET.fromstring(text)
    tags = {element.tag.removeprefix(SPACE) for element in root.iter()}
    known = {
        "svg",
        "title",
        "style",
        "defs",
        "marker",
        "path",
        "rect",
        "line",
        "text",
        "tspan",
        "g",
    }
    assert tags <= known
    assert name in texts(root)
    assert text.count("http") == 1 + sum("http" in shown for shown in texts(root))
    assert set(re.findall(r"url\((.*?)\)", text)) == {"#weft-tip"}
    names = {attribute for element in root.iter() for attribute in element.attrib}
    assert not any(attribute.startswith("on") or "href" in attribute for attribute in names)


@pytest.mark.parametrize("kind", ["graph", "sequence"])
def test_a_picture_follows_dark_and_light(kind):
    assert "prefers-color-scheme: dark" in draw(ALL_IN_ONE, kind=kind, form="svg")


def test_numbers_are_written_short():
    assert [number(value) for value in (1.0, 2.25, -0.04, 123456.7, 99999.96)] == [
        "1",
        "2.2",
        "-0",
        "123457",
        "100000",
    ]
