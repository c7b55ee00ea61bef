"""The order of steps: lines, branches, loops, paths side by side."""

import pytest

from support.flow_play import FlowPlay, flow_spec, step, variable
from weft.engine.events import Branched, Joined, TurnStarted, VariableSet
from weft.engine.reduce import fold
from weft.spec.flow import Branch, Case, Flow, Fork, ForkPath, Guard, Path, Repeat
from weft.spec.type_parser import parse_type
from weft.spec.variables import FileSource, Variable


def play(*nodes, does=None, values=None, **options):
    variables = options.pop("variables", {})
    return FlowPlay(flow_spec(Flow(steps=nodes, **options), **variables), does, values)


def path(*names, ends=False):
    return Path(steps=tuple(step(name) for name in names), ends=ends)


def test_steps_follow_each_other_and_finally_is_last():
    run = play(step("a"), step("b"), finally_=step("z"))

    assert run.calls == ["a", "b", "z"]
    assert (run.outcome, run.state.reason) == ("completed", "the flow is complete")


def test_a_patch_counts_when_its_step_has_ended():
    run = play(
        step("a"),
        step("b"),
        does={"a": {"x": 1}, "b": lambda entry: {"y": entry["x"] + 1}},
        variables={"x": variable("int"), "y": variable("int")},
    )

    assert (run.values["x"], run.values["y"]) == (1, 2)
    assert [event.writer for event in run.of(VariableSet)] == ["step:a", "step:b"]


def test_reducers_add_to_what_is_there():
    run = play(
        step("a"),
        step("b"),
        does={"a": {"notes": ["1"], "seen": {"a": 1}}, "b": {"notes": ["2"], "seen": {"b": 2}}},
        variables={
            "notes": variable("list[str]", [], "append"),
            "seen": variable("dict[int]", None, "merge"),
        },
    )

    assert run.values["notes"] == ["1", "2"]
    assert run.values["seen"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"x": "text"}, "a: x: expected int"),
        ({"y": 1}, "there is no variable y"),
        ({"notes": "no list"}, "a: notes"),
        ({"seen": 3}, "a: seen"),
    ],
)
def test_a_patch_that_does_not_fit_fails_the_step(change, told):
    variables = {
        "x": variable("int"),
        "notes": variable("list[str]", [], "append"),
        "seen": variable("dict", {}, "merge"),
    }
    run = play(step("a"), does={"a": change}, variables=variables)

    assert run.outcome == "failed"
    assert told in run.state.reason
    assert run.values["x"] is None


@pytest.mark.parametrize(
    ("kind", "calls", "why"),
    [
        ("card", ["pay", "z"], "case"),
        ("free", ["z"], "case"),
        ("barter", ["odd"], "otherwise"),
    ],
)
def test_a_branch_takes_the_path_of_its_value(kind, calls, why):
    node = Branch(
        name="by_kind",
        on="order.kind",
        cases=(Case(value="card", path=path("pay")), Case(value="free", path=Path())),
        otherwise=path("odd", ends=True),
    )
    run = play(node, step("z"), variables={"order": variable("any", {"kind": kind})})

    assert run.calls == calls
    assert run.outcome == "completed"
    assert run.of(Branched)[0].why == why


def test_a_branch_on_a_condition_is_true_or_false():
    cases = (Case(value=True, path=path("big")), Case(value=False, path=path("small")))
    node = Branch(name="size", on="total > 100", cases=cases)

    for total, calls in ((101, ["big"]), (100, ["small"])):
        assert play(node, values={"total": total}, variables={"total": variable()}).calls == calls


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("kind", "has no case for this value; it has cases for 'a'"),
        ("nothing", "could not be evaluated"),
    ],
)
def test_a_branch_without_an_answer_fails(on, told):
    node = Branch(name="where", on=on, cases=(Case(value="a", path=Path()),))
    run = play(node, variables={"kind": variable("str", "b")})

    assert run.outcome == "failed"
    assert told in run.state.reason


def counting(name="n"):
    return lambda values: {name: (values[name] or 0) + 1}


def test_a_loop_is_done_until_its_condition_holds():
    loop = Repeat(name="refine", until="n >= 3", steps=(step("write"), step("judge")))
    run = play(loop, step("z"), does={"write": counting()}, variables={"n": variable("int", 0)})

    assert run.calls == ["write", "judge"] * 3 + ["z"]
    assert [event.why for event in run.of(Branched)] == ["again", "again", "done"]


def test_a_loop_ends_at_its_limit():
    loop = Repeat(name="refine", until="n > 9", steps=(step("write"),), max_iterations=2)
    run = play(loop, step("z"), variables={"n": variable("int", 0)})

    assert run.calls == ["write", "write", "z"]
    assert run.of(Branched)[-1].why == "limit"


def test_a_loop_in_a_loop_begins_anew():
    inner = Repeat(name="inner", until="n == 0", steps=(step("b"),), max_iterations=2)
    outer = Repeat(name="outer", until="n == 2", steps=(step("a"), inner))
    run = play(outer, does={"a": counting()}, variables={"n": variable("int", 0)})

    assert run.calls == ["a", "b", "b"] * 2
    assert run.state.outcome == "completed"


def test_a_loop_that_cannot_be_asked_fails():
    run = play(Repeat(name="again", until="gone", steps=(step("a"),)))

    assert run.outcome == "failed"
    assert "again could not be evaluated" in run.state.reason


def fork(*paths, join="j", **recovery):
    return Fork(
        name="fork",
        paths=tuple(
            ForkPath(name=path, steps=(step(path),), on_failure=recovery.get(path))
            for path in paths
        ),
        join=step(join),
    )


def test_paths_have_the_state_for_themselves_until_they_join():
    seen = {}
    does = {
        "a": {"x": 1},
        "b": lambda entry: seen.update(b=entry["x"]) or {"y": 2},
        "j": lambda entry: seen.update(j=(entry["x"], entry["y"])) or {},
    }
    variables = {"x": variable("int", 0), "y": variable("int", 0)}
    run = play(fork("a", "b"), does=does, variables=variables)

    assert seen == {"b": 0, "j": (1, 2)}
    assert run.of(Joined)[0].results == {"a": "success", "b": "success"}


@pytest.mark.parametrize("order", [(0, 0), (1, 0)])
def test_state_does_not_depend_on_speed(order):
    variables = {
        "notes": variable("list[str]", ["0"], "append"),
        "n": variable("dict", {}, "merge"),
    }
    does = {"a": {"notes": ["a"], "n": {"a": 1}}, "b": {"notes": ["b"], "n": {"b": 2}}}
    spec = flow_spec(Flow(steps=(fork("a", "b"),)), **variables)
    run = FlowPlay(spec, does, go=False)
    for at in order:
        run.perform(at)
    run.work()

    assert run.values["notes"] == ["0", "a", "b"]
    assert run.values["n"] == {"a": 1, "b": 2}


def test_two_paths_that_set_the_same_fail_unless_they_agree():
    variables = {"x": variable("int", 0)}
    same = play(fork("a", "b"), does={"a": {"x": 1}, "b": {"x": 1}}, variables=variables)
    other = play(fork("a", "b"), does={"a": {"x": 1}, "b": {"x": 2}}, variables=variables)

    assert (same.outcome, same.values["x"]) == ("completed", 1)
    assert other.outcome == "failed"
    assert "a and b have both set x: declare merge" in other.state.reason
    assert "j" not in other.calls


def test_a_fork_in_a_path_of_a_fork():
    inner = Fork(
        name="inner",
        paths=(ForkPath(name="c", steps=(step("c"),)), ForkPath(name="d", steps=(step("d"),))),
        join=step("k"),
    )
    outer = Fork(
        name="outer",
        paths=(ForkPath(name="a", steps=(step("a"),)), ForkPath(name="b", steps=(inner,))),
        join=step("j"),
    )
    does = {letter: {"notes": [letter]} for letter in "acdkj"}
    run = play(outer, does=does, variables={"notes": variable("list[str]", [], "append")})

    assert run.values["notes"] == ["a", "c", "d", "k", "j"]
    assert run.outcome == "completed"


def test_a_loop_and_a_branch_in_a_path():
    loop = Repeat(name="loop", until="n == 2", steps=(step("a"),))
    choice = Branch(name="choice", on="n", cases=(Case(value=0, path=path("b")),))
    node = Fork(
        name="fork",
        paths=(ForkPath(name="one", steps=(loop,)), ForkPath(name="two", steps=(choice,))),
        join=step("j"),
    )
    run = play(node, does={"a": counting()}, variables={"n": variable("int", 0)})

    assert sorted(run.calls) == ["a", "a", "b", "j"]
    assert run.values["n"] == 2


def test_failed_guard_prevents_a_step():
    guards = (Guard(condition="x"), Guard(condition="x > 3", message="x must be above 3"))
    for x, told in ((0, "x does not hold"), (2, "x must be above 3"), ("a", "cannot be answered")):
        run = play(step("a", validate=guards), values={"x": x}, variables={"x": variable()})
        assert (run.calls, run.outcome) == ([], "failed")
        assert told in run.state.reason
    fine = play(step("a", validate=guards), values={"x": 4}, variables={"x": variable()})
    assert fine.calls == ["a"]


def test_a_journal_folds_to_the_same_state():
    loop = Repeat(name="loop", until="n == 2", steps=(step("a"), fork("b", "c")))
    run = play(loop, does={"a": counting()}, variables={"n": variable("int", 0)})

    assert fold(run.workflow.compiled, "run", run.events) == run.state
    assert [event.attempt for event in run.of(TurnStarted)] == [1] * 8


def test_a_flow_begins_when_what_comes_from_outside_is_there():
    read = Variable(type=parse_type("str"), source=FileSource(path="a.txt", default="x"))
    run = FlowPlay(flow_spec(Flow(steps=(step("a"),)), text=read), go=False)

    assert [type(item).__name__ for item in run.open] == ["Fetch"]
    assert run.work().calls == ["a"]
