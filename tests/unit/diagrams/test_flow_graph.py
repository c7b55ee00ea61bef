"""Flows as pictures: steps in order, branches, loops, paths side by side, and failures."""

import pytest

from support.flow_play import flow_spec, step, work
from weft.diagrams import draw
from weft.diagrams.graph import graph
from weft.errors import UsageError
from weft.spec.flow import (
    AgentWork,
    Approval,
    Branch,
    Case,
    Confidence,
    Escalation,
    Flow,
    Fork,
    ForkPath,
    Guard,
    Option,
    Path,
    Repeat,
    Retry,
    Step,
)


def edges(*nodes, **flow):
    """Return the edges of a flow by the names of their ends; dotted are those that are dashed."""
    drawn = graph(flow_spec(Flow(steps=nodes, **flow)))
    names = {node.key: node.title for node in drawn.nodes}
    return {
        (names[edge.source], names[edge.target], edge.label, edge.dashed) for edge in drawn.edges
    }


def node(title, *nodes, **flow):
    drawn = graph(flow_spec(Flow(steps=nodes, **flow)))
    (found,) = [node for node in drawn.nodes if node.title == title]
    return found


def plain(source, target, label=""):
    return (source, target, label, False)


def dashed(source, target, label=""):
    return (source, target, label, True)


def test_steps_follow_each_other_to_the_end():
    assert edges(step("A"), step("B")) == {
        plain("start", "A"),
        plain("A", "B"),
        plain("B", "end"),
    }
    assert node("A", step("A")).role == "function A"


def test_the_last_step_of_every_run():
    assert edges(step("A"), finally_=step("Z")) == {
        plain("start", "A"),
        plain("A", "Z"),
        plain("Z", "end"),
    }
    assert node("Z", step("A"), finally_=step("Z")).role == "finally, function Z"


def test_a_branch_leads_where_its_cases_say_and_back():
    branch = Branch(
        name="ByKind",
        on="kind",
        cases=(
            Case(value="card", path=Path(steps=(step("Charge"),))),
            Case(value=7, path=Path()),
            Case(value=None, path=Path(steps=(step("Give"),), ends=True)),
        ),
        otherwise=Path(steps=(step("Ask"),)),
    )
    assert edges(branch, step("Z")) == {
        plain("start", "ByKind"),
        plain("ByKind", "Charge", "card"),
        plain("ByKind", "Z", "7"),
        plain("ByKind", "Give", "none"),
        plain("ByKind", "Ask", "otherwise"),
        plain("Charge", "Z"),
        plain("Ask", "Z"),
        plain("Give", "end"),
        plain("Z", "end"),
    }


@pytest.mark.parametrize(
    ("cases", "otherwise", "notes"),
    [
        ((Case(value="a", path=Path()),), None, ("another value fails the run",)),
        ((Case(value="a", path=Path()),), Path(), ()),
        ((Case(value=True, path=Path()), Case(value=False, path=Path())), None, ()),
    ],
)
def test_diagram_shows_whether_a_branch_may_fail(cases, otherwise, notes):
    branch = Branch(name="B", on="kind", cases=cases, otherwise=otherwise)
    assert node("B", branch).notes == notes
    assert node("B", branch).role == "branch on kind"


def test_paths_of_a_fork_come_together():
    paths = (
        ForkPath(name="a", steps=(step("A"),)),
        ForkPath(name="b", steps=(step("B"),), on_failure=Path(steps=(step("R"),))),
    )
    assert edges(Fork(name="F", paths=paths, join=step("J"))) == {
        plain("start", "fork F"),
        plain("fork F", "A", "path a"),
        plain("fork F", "B", "path b"),
        dashed("fork F", "R", "path b failed"),
        plain("A", "J"),
        plain("B", "J"),
        plain("R", "J"),
        plain("J", "end"),
    }
    assert plain("join F", "end") in edges(Fork(name="F", paths=paths))


def test_the_condition_of_a_loop_is_evaluated_after_its_steps():
    loop = Repeat(name="L", until="good", steps=(step("A"), step("B")), max_iterations=3)
    assert edges(loop, step("Z")) == {
        plain("start", "A"),
        plain("A", "B"),
        plain("B", "L"),
        plain("L", "A", "again"),
        plain("L", "Z", "done"),
        plain("Z", "end"),
    }
    assert (node("L", loop).role, node("L", loop).notes) == (
        "loop until good",
        ("at most 3 times",),
    )


def test_a_loop_that_begins_with_a_loop():
    inner = Repeat(name="I", until="x", steps=(step("A"),))
    assert {
        edge for edge in edges(Repeat(name="O", until="y", steps=(inner,))) if edge[0] != "A"
    } == {
        plain("start", "A"),
        plain("I", "A", "again"),
        plain("I", "O", "done"),
        plain("O", "A", "again"),
        plain("O", "end", "done"),
    }


def test_failures_and_what_undoes_a_step_are_dashed():
    one = step("A", on_failure=Path(steps=(step("Tell"),)), compensate=work("back"))
    assert edges(one, on_failure=Path(steps=(step("Last"),))) == {
        plain("start", "A"),
        plain("A", "end"),
        dashed("A", "undo A", "compensate"),
        dashed("A", "Tell", "on failure"),
        plain("Tell", "failed"),
        dashed("on failure", "Last"),
        plain("Last", "failed"),
    }
    assert node("undo A", one).kind == "undo"


def test_missing_confidence_fails_the_step():
    unsure = Confidence(minimum=0.8, path=Path(steps=(step("Look"),), ends=True))
    assert edges(step("A", confidence=unsure), step("Z")) >= {
        plain("A", "Look", "confidence below 0.8"),
        plain("Look", "end"),
    }
    failing = step("A", confidence=Confidence(minimum=0.5))
    assert node("A", failing).notes == ("fails below confidence 0.5",)


def test_a_step_says_how_it_is_tried():
    one = step(
        "A", validate=(Guard(condition="n > 0"),), retry=Retry(attempts=3), timeout_seconds=2.5
    )
    assert node("A", one).notes == ("requires n > 0", "up to 3 attempts", "timeout 2.5 s")
    agent = Step(name="W", work=AgentWork(agent="Writer"))
    assert node("W", agent).role == "agent Writer"


def test_an_approval_leads_where_its_answers_say():
    options = (Option(name="yes"), Option(name="later"), Option(name="no", rejects=True))
    asked = Approval(name="Ok", approver="role:boss", options=options, timeout_seconds=60)
    assert edges(asked) == {
        plain("start", "Ok"),
        plain("Ok", "end", "yes or later"),
        dashed("Ok", "failed", "no"),
    }
    assert node("Ok", asked).role == "approval of role:boss"
    assert node("Ok", asked).notes == ("after 60 s: fails",)


def test_an_approval_that_is_rejected_or_not_answered():
    asked = Approval(
        name="Ok",
        approver="role:boss",
        timeout_seconds=60,
        escalate=(Escalation(approver="user:ada", timeout_seconds=5),),
        on_rejection=Path(steps=(step("R"),)),
        on_timeout=Path(steps=(step("T"),), ends=True),
    )
    assert edges(asked, step("Z")) >= {
        plain("Ok", "R", "reject"),
        plain("R", "Z"),
        plain("Ok", "T", "no answer"),
        plain("T", "end"),
    }
    assert node("Ok", asked).notes == ("after 60 s: asks user:ada",)
    settled = asked.model_copy(update={"default": "approve", "on_timeout": None})
    assert node("Ok", settled).notes == ("after 60 s: asks user:ada", "after 5 s more: approve")


def test_a_rejection_in_a_path_leads_to_its_join():
    asked = Approval(name="Ok", approver="role:boss")
    paths = (ForkPath(name="a", steps=(asked,)), ForkPath(name="b", steps=(step("B"),)))
    assert dashed("Ok", "J", "reject") in edges(Fork(name="F", paths=paths, join=step("J")))


def test_a_flow_is_a_flowchart():
    branch = Branch(
        name="B", on="x > 1", cases=(Case(value=True, path=Path(steps=(step("A"),))),),
        otherwise=Path(),
    )  # fmt: skip
    spec = flow_spec(Flow(steps=(branch, step("Z", compensate=work("undo")))))
    assert (
        draw(spec)
        == """\
flowchart TD
    n0(["start<br/>the run begins"])
    n1{"B<br/>branch on x #62; 1"}
    n2["A<br/>function A"]
    n3["Z<br/>function Z"]
    n4(("end"))
    n5["undo Z<br/>function undo"]
    n0 --> n1
    n1 -->|"true"| n2
    n1 -->|"otherwise"| n3
    n2 --> n3
    n3 --> n4
    n3 -.->|"compensate"| n5
    classDef undo stroke-dasharray:4 3
    class n5 undo
"""
    )


def test_a_flow_in_plain_text():
    text = draw(flow_spec(Flow(steps=(step("A", compensate=work("undo")),))), form="ascii")
    assert text.startswith("Flow   (flow)\n")
    assert "  +--> end      then\n  +..> undo A   compensate\n" in text


def test_a_flow_with_faults_is_drawn_all_the_same():
    """The same name twice, a condition that does not parse, and no steps at all."""
    loop = Repeat(name="A", until="((", steps=(step("A"),))
    assert len(graph(flow_spec(Flow(steps=(step("A"), step("A"), loop)))).nodes) == 6
    for form in ("mermaid", "ascii"):
        assert draw(flow_spec(Flow(steps=(step("A"), loop))), form=form)
        assert draw(flow_spec(Flow()), form=form)


def test_a_flow_has_no_sequence():
    with pytest.raises(UsageError, match="is a flow"):
        draw(flow_spec(Flow(steps=(step("A"),))), kind="sequence")
