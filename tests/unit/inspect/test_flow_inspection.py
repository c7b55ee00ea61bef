"""What an inspection says about flows, from the journals of runs that the engine decided."""

from types import SimpleNamespace

from pydantic_core import from_json, to_json, to_jsonable_python

from support.flow_play import FlowPlay, flow_spec, step, variable, work
from weft.cli.pages.events import summary
from weft.cli.pages.inspect import run_page, turn_page
from weft.cli.streams import Streams
from weft.context.step_context import AssembledContextBuilder, context_record
from weft.engine.events import Branched, ContextFetched, TimerSet, TurnFailed
from weft.inspect.flow import failed_turn, paths_by_name
from weft.inspect.replay import check_replay
from weft.inspect.run import inspect_run
from weft.inspect.turn import inspect_turn
from weft.ports.retrieval import RetrievalResult
from weft.spec.flow import (
    Approval,
    Branch,
    Case,
    Confidence,
    Escalation,
    Flow,
    Fork,
    ForkPath,
    Path,
    Repeat,
    Retry,
    StateIngredient,
    StepContext,
)


def workflow_of(play):
    return SimpleNamespace(
        spec=play.spec,
        compiled=play.workflow.compiled,
        views={},
        settings={},
        name="Flow",
        digest="digest",
    )


def inspect(play):
    return inspect_run(workflow_of(play), "run", play.events)


def steps(play):
    return [turn.step for turn in inspect(play).turns]


def lines(play, kind):
    workflow = workflow_of(play)
    return [summary(event, workflow) for event in play.events if isinstance(event.data, kind)]


def page_of(play):
    return run_page(inspect(play), Streams())


def broken(text="no"):
    return ValueError(text)


def test_every_attempt_at_a_step_is_recorded():
    flow = Flow(steps=(step("A", retry=Retry(attempts=3, delay_seconds=2)),))
    play = FlowPlay(flow_spec(flow, x=variable("int")), {"A": [broken(), broken(), {"x": 1}]})
    play.wait(60)
    first, second, third = steps(play)
    assert [(item.attempt, item.attempts) for item in (first, second, third)] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert 1 <= first.retry_seconds <= 2
    assert 2 <= second.retry_seconds <= 4
    assert third.retry_seconds is None
    assert first.failure["type"] == "ValueError"
    assert first.failure["message"] == "no"
    assert first.failure["stack"] == "here"
    assert (first.sets, [set_.name for set_ in third.sets]) == ([], ["x"])
    assert lines(play, TurnFailed)[0] == "A failed, attempt 1 of 3: no"
    assert lines(play, TimerSet) == [
        f"retry in {item.retry_seconds:.1f} s" for item in (first, second)
    ]
    page = page_of(play)
    assert "1  A  0.00 s\n     failed: ValueError: no\n     retry in" in page
    assert "2  A, attempt 2 of 3" in page
    assert "here" not in page
    assert "here" in turn_page(inspect_turn(workflow_of(play), "run", play.events, 1), Streams())


def test_a_deadline_is_recorded():
    play = FlowPlay(flow_spec(Flow(steps=(step("A", timeout_seconds=5),))), go=False)
    play.wait(5)
    assert lines(play, TimerSet) == ["timeout of the step in 5 s"]
    (only,) = steps(play)
    assert only.failure["type"] == "TimeoutError"


def test_branches_and_loops_record_where_they_led():
    branch = Branch(
        name="B",
        on="kind",
        cases=(Case(value="a", path=Path(steps=(step("A"),))), Case(value=7, path=Path())),
        otherwise=Path(),
    )
    loop = Repeat(name="L", until="n >= 2", steps=(step("N"),), max_iterations=5)
    spec = flow_spec(Flow(steps=(branch, loop)), kind=variable(), n=variable("int", 0))
    play = FlowPlay(spec, {"N": lambda values: {"n": values["n"] + 1}}, {"kind": "a"})
    told = [
        (branch.source, branch.why, branch.case, branch.iterations)
        for branch in inspect(play).flow.branches
    ]
    assert told == [("B", "case", "a", 0), ("L", "again", "", 1), ("L", "done", "", 2)]
    assert lines(play, Branched) == ["branch B -> a", "loop L: again", "loop L: done"]
    assert "  loop L: again (2)\n" in page_of(play)
    # Two cases lead to the same place: the one that was taken is not told from the other.
    assert lines(FlowPlay(spec, {"N": {"n": 2}}, {"kind": 7}), Branched)[0] == "branch B -> 7"
    assert lines(FlowPlay(spec, {"N": {"n": 2}}, {"kind": "?"}), Branched)[0] == (
        "branch B -> otherwise"
    )


def test_a_loop_that_gives_up():
    loop = Repeat(name="L", until="done", steps=(step("N"),), max_iterations=2)
    play = FlowPlay(flow_spec(Flow(steps=(loop,)), done=variable("bool", default=False)))
    assert lines(play, Branched)[-1] == "loop L: max_iterations reached, continues"


def forked(**fails):
    paths = (
        ForkPath(name="web", steps=(step("W", compensate=work("undo")), step("X"))),
        ForkPath(name="mail", steps=(step("M"),), on_failure=Path(steps=(step("R"),))),
        ForkPath(name="post", steps=(step("P"),)),
    )
    flow = Flow(steps=(Fork(name="F", paths=paths, join=step("J")),))
    return FlowPlay(flow_spec(flow), {name: broken() for name in fails})


def test_paths_say_how_they_ended():
    play = forked(X=1, M=1)
    (fork,) = inspect(play).flow.forks
    assert (fork.name, fork.paths) == ("F", ("web", "mail", "post"))
    assert fork.results == {"web": "failed", "mail": "recovered", "post": "success"}
    assert fork.joined > fork.seq
    assert {step.step: step.path for step in steps(play)} == {
        "W": "web", "X": "web", "M": "mail", "R": "mail", "P": "post", "J": "",
    }  # fmt: skip
    assert sorted(lines(play, Branched)) == ["path mail recovers -> R", "path web failed"]
    (undone,) = [step for step in steps(play) if step.kind == "compensation"]
    assert (undone.step, undone.undoes) == ("W", 1)
    assert "compensating W (turn 1), path web" in page_of(play)
    assert "join F: web failed, mail recovered, post success" in page_of(play)


def test_paths_within_paths():
    beside = ForkPath(name="beside", steps=(step("E"),))
    other = ForkPath(name="other", steps=(step("F"),))
    inner = Fork(name="I", paths=(ForkPath(name="in", steps=(step("A"),)), beside), join=step("B"))
    path = ForkPath(name="out", steps=(inner, step("C")), on_failure=Path(steps=(step("R"),)))
    flow = Flow(steps=(Fork(name="O", paths=(path, other)), step("D")))
    assert paths_by_name(flow) == {
        "I": "out", "A": "in", "E": "beside", "B": "out", "C": "out", "R": "out", "F": "other",
    }  # fmt: skip


def test_an_approval_records_who_was_asked_and_the_result():
    asked = Approval(
        name="Ok",
        approver="role:boss",
        timeout_seconds=60,
        escalate=(Escalation(approver="user:eve", timeout_seconds=60),),
        on_rejection=Path(steps=(step("R"),)),
        output="said",
    )
    play = FlowPlay(flow_spec(Flow(steps=(asked,)), said=variable("any")))
    play.wait(61)
    (only,) = steps(play)
    assert [(row.addressee, row.outcome) for row in only.asked] == [
        ("role:boss", "expired"),
        ("user:eve", "open"),
    ]
    assert "open until" in page_of(play)
    play.answer("reject", "eve")
    first, _ = steps(play)
    assert (first.asked[1].user, first.asked[1].decision) == ("eve", "reject")
    assert [set_.value for set_ in first.sets] == ["reject"]
    assert lines(play, Branched) == ["Ok rejected -> R"]
    late = FlowPlay(
        flow_spec(Flow(steps=(asked.model_copy(update={"on_timeout": Path(ends=True)}),)),
                  said=variable("any"))
    )  # fmt: skip
    late.wait(121)
    assert lines(late, Branched) == ["Ok timed out -> end of the run"]


def test_results_that_are_not_sure_enough():
    unsure = Confidence(minimum=0.8, path=Path(steps=(step("Look"),)))
    play = FlowPlay(flow_spec(Flow(steps=(step("A", confidence=unsure),))), {"A": ({}, 0.25)})
    assert steps(play)[0].confidence == 0.25
    assert lines(play, Branched) == ["A is below its confidence -> Look"]
    assert "     confidence 0.25\n" in page_of(play)


def test_the_context_of_a_step_is_recorded_with_scores_and_sources():
    hits = [RetrievalResult("Rain  is wet.", 0.91, "rain.md"), RetrievalResult("Snow.", 0.8)]
    context = AssembledContextBuilder().add_state_context("topic", "rain")
    context.add_retrieval_context("Library", hits)
    left_out = [
        {"kind": "retrieval", "origin": "Library", "names": ["hail.md"], "reason": "over budget"}
    ]
    shown = StepContext(sources=(StateIngredient(path="topic"),))
    play = FlowPlay(
        flow_spec(Flow(steps=(step("A", context=shown),)), topic=variable("str", "rain")), go=False
    )
    (fetch,) = play.open
    play.open.clear()
    given = {"messages": None, "context": context_record(context.build(), left_out)}
    play.take(ContextFetched({}, {}, step=given), turn=fetch.turn)
    play.work()
    (only,) = steps(play)
    state, library = only.segments
    assert (state.kind, state.name, state.text) == ("state", "topic", "rain")
    assert [(hit.score, hit.source) for hit in library.hits] == [(0.91, "rain.md"), (0.8, None)]
    assert lines(play, ContextFetched) == [
        "fetched context: state topic, retrieval Library: 2 passages; 1 left out"
    ]
    page = page_of(play)
    assert "context: retrieval Library, 2 passages, about" in page
    assert "0.91  rain.md: Rain is wet." in page
    assert "0.80  unknown source: Snow." in page
    assert "left out: retrieval Library hail.md, over budget" in page


def test_a_failed_flow_says_which_turn_failed():
    flow = Flow(
        steps=(step("A", compensate=work("undo")), step("B")),
        on_failure=Path(steps=(step("Z"),)),
    )
    play = FlowPlay(flow_spec(flow), {"B": broken()})
    assert inspect(play).outcome == "failed"
    assert failed_turn(play.events, inspect(play).reason) == 2
    assert failed_turn(play.events, "something else") == 0
    assert lines(play, Branched) == ["on failure of B -> Z"]


def test_an_inspection_of_a_flow_is_json_and_its_journal_is_decided_again():
    play = forked(X=1, M=1)
    plain = to_jsonable_python(inspect(play))
    assert from_json(to_json(plain)) == plain
    assert check_replay(workflow_of(play), "run", play.events) == []


def test_a_step_that_is_not_in_the_package_any_more():
    play = forked()
    other = FlowPlay(flow_spec(Flow(steps=(step("Other"),))))
    (found,) = check_replay(workflow_of(other), "run", play.events)
    assert "is not in this version of the package" in found.what
