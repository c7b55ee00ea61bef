"""Every option of the order of a flow does what it says: end to end, through a host."""

import pytest
from pydantic import BaseModel

from support.flow_hosts import SCOPE, derived
from support.flow_options import OptionPlay, waits
from weft.engine.events import Branched, Forked, Joined, RunEnded
from weft.runtime.signals import Stop
from weft.testing import ScriptedModel

N = {"n": derived("int", 0)}


def plus(state, context):
    return {"n": state["n"] + 1}


# -- the whole flow


def test_steps_are_done_in_order_and_finally_last():
    play = OptionPlay()
    ended = play.play(play.step("a"), play.step("b"), **{"finally": play.step("last")})
    assert ended.outcome == "completed"
    assert play.calls == play.steps == ["a", "b", "last"]


def test_a_run_that_a_path_has_completed_does_not_reach_finally():
    play = OptionPlay()
    branch = {
        "kind": "branch", "name": "stop", "on": "n == 0",
        "cases": [{"value": True, "path": play.path("early", ends=True)}],
    }  # fmt: skip
    ended = play.play(branch, play.step("b"), variables=N, **{"finally": play.step("last")})
    assert (ended.outcome, play.calls) == ("completed", ["early"])


class Counter(BaseModel):
    n: int = 0


def test_the_class_of_the_state_is_what_steps_are_given():
    play = OptionPlay()
    seen = []
    ended = play.play(
        play.step("a", lambda state, context: seen.append(state)),
        state=Counter,
        variables=N,
        values={"n": 3},
    )
    assert ended.outcome == "completed"
    assert seen == [Counter(n=3)]


def test_on_failure_of_the_flow_is_done_before_a_run_ends_as_failed():
    play = OptionPlay()
    ended = play.play(
        play.step("a", ValueError("no")), play.step("b"), on_failure=play.path("tell", "log")
    )
    assert (ended.outcome, play.calls) == ("failed", ["a", "tell", "log"])
    assert "ValueError" in ended.reason
    assert isinstance(play.events[-1].data, RunEnded)


@pytest.mark.parametrize("wanted", [True, False])
def test_compensate_on_cancel_undoes_what_was_done_when_the_run_is_stopped(wanted):
    async def whole():
        play = OptionPlay()
        steps = [play.step(name, compensate=play.undo(name)) for name in ("a", "b")]
        ask = {"kind": "approval", "name": "ask", "approver": "user:ada"}
        spec = play.spec(*steps, ask, compensate_on_cancel=wanted, on_failure=play.path("tell"))
        async with play.begun(spec) as begun:
            await begun.host.deliver(begun.run, Stop("now"), scope=SCOPE)
            ended = await begun.rest()
        return ended.outcome, play.calls[2:]

    assert waits(whole) == ("cancelled", ["undo:b", "undo:a"] if wanted else [])


# -- steps


def test_the_name_of_a_step_is_what_the_journal_and_its_code_know():
    play = OptionPlay()
    names = []
    work = play.work("f", lambda state, context: names.append(context.step))
    play.play(*({"kind": "step", "name": name, "work": work} for name in ("first", "second")))
    assert names == play.steps == ["first", "second"]


def test_a_function_of_a_class_is_made_with_its_options():
    class Add:
        def __init__(self, most: int = 1):
            self.most = most

        def run(self, state):
            return {"n": state["n"] + self.most}

    play = OptionPlay()
    work = {"kind": "function", "function": play.ref(Add), "options": {"most": 5}}
    ended = play.play({"kind": "step", "name": "add", "work": work}, variables=N)
    assert ended.variables["n"] == 5


def test_a_guard_whose_condition_does_not_hold_fails_the_step_with_its_message():
    play = OptionPlay()
    guards = [{"condition": "n >= 0"}, {"condition": "n < 5", "message": "n is large"}]
    guarded = play.step("a", plus, validate=guards, compensate=play.undo("a"))
    assert play.play(guarded, variables=N).variables["n"] == 1

    play = OptionPlay()
    guarded = play.step("a", plus, validate=guards, compensate=play.undo("a"))
    ended = play.play(guarded, variables=N, values={"n": 5}, on_failure=play.path("tell"))
    assert (ended.outcome, play.calls) == ("failed", ["tell"])
    assert ended.reason == "a was not started: n is large"


# -- branches


@pytest.mark.parametrize(
    ("kind", "calls"),
    [("letter", ["write", "end"]), ("book", ["print", "end"]), ("nothing", ["end"])],
)
def test_a_branch_asks_its_field_and_takes_the_case_of_the_value(kind, calls):
    play = OptionPlay()
    branch = {
        "kind": "branch",
        "name": "by_kind",
        "on": "what.kind",
        "cases": [
            {"value": "letter", "path": play.path("write")},
            {"value": "book", "path": play.path("print")},
            {"value": "nothing", "path": {}},
        ],
    }
    ended = play.play(
        branch,
        play.step("end"),
        variables={"what": derived("any")},
        values={"what": {"kind": kind}},
    )
    assert (ended.outcome, play.calls) == ("completed", calls)
    (way,) = play.of(Branched)
    assert (way.source, way.why) == ("by_kind", "case")


def test_otherwise_is_the_path_of_all_other_values():
    for value, calls in ((1, ["one"]), (7, ["others"]), (None, ["others"])):
        play = OptionPlay()
        branch = {
            "kind": "branch", "name": "b", "on": "n",
            "cases": [{"value": 1, "path": play.path("one")}],
            "otherwise": play.path("others"),
        }  # fmt: skip
        play.play(branch, variables=N, values={"n": value})
        assert play.calls == calls


def test_a_branch_without_a_case_fails_the_run():
    play = OptionPlay()
    case = {"value": 1, "path": play.path("one")}
    branch = {"kind": "branch", "name": "b", "on": "n", "cases": [case]}
    ended = play.play(branch, variables=N, values={"n": 7}, on_failure=play.path("tell"))
    assert (ended.outcome, play.calls) == ("failed", ["tell"])
    assert "b has no case for this value" in ended.reason


def test_a_path_that_ends_the_run_is_the_last():
    play = OptionPlay()
    for ends, calls in ((True, ["one"]), (False, ["one", "end"])):
        play = OptionPlay()
        case = {"value": 0, "path": play.path("one", ends=ends)}
        branch = {"kind": "branch", "name": "b", "on": "n", "cases": [case]}
        assert play.play(branch, play.step("end"), variables=N).outcome == "completed"
        assert play.calls == calls


# -- forks

LISTS = {"seen": derived("list[str]", [], "append"), "n": derived("int", 0), "m": derived("int", 0)}


def fork(play, left, right, **rest):
    return {
        "kind": "fork",
        "name": "both",
        "paths": [
            {"name": "left", "steps": [play.step("l", left)]},
            {"name": "right", "steps": [play.step("r", right)], **rest},
        ],
        "join": play.step("j", lambda state, context: {"seen": _ended(context)}),
    }


def _ended(context):
    return [f"{name} {path.status}" for name, path in context.paths.items()]


def test_paths_of_a_fork_are_gone_side_by_side_and_join_when_all_have_ended():
    play = OptionPlay()
    node = fork(play, {"n": 1, "seen": ["l"]}, {"m": 2, "seen": ["r"]})
    ended = play.play(node, play.step("end"), variables=LISTS)
    assert ended.variables["n"] == 1
    assert ended.variables["m"] == 2
    assert ended.variables["seen"] == ["l", "r", "left success", "right success"]
    assert play.calls[2:] == ["j", "end"]
    (begun,), (joined,) = play.of(Forked), play.of(Joined)
    assert (begun.name, begun.members) == ("both", ("left", "right"))
    assert joined.name == "both"


def test_a_path_sees_nothing_of_the_other_and_its_failure_leaves_no_value():
    play = OptionPlay()
    found = []
    node = fork(play, lambda state, context: found.append(state["n"]), {"n": 1})
    node["paths"][1]["steps"].append(play.step("broken", ValueError("no")))
    ended = play.play(node, variables=LISTS)
    assert found == [0]
    assert (ended.outcome, ended.variables["n"]) == ("completed", 0)
    assert ended.variables["seen"] == ["left success", "right failed"]


def test_on_failure_of_a_path_of_a_fork_lets_it_recover():
    play = OptionPlay()
    recovery = {"steps": [play.step("repair", {"m": 7})]}
    node = fork(play, {"n": 1}, ValueError("no"), on_failure=recovery)
    ended = play.play(node, variables=LISTS)
    assert (ended.outcome, ended.variables["m"]) == ("completed", 7)
    assert ended.variables["seen"] == ["left success", "right recovered"]


def test_paths_that_set_the_same_value_fail_the_run_unless_it_is_merged():
    play = OptionPlay()
    ended = play.play(fork(play, {"n": 1}, {"n": 2}), variables=LISTS)
    assert ended.outcome == "failed"
    assert "left and right have both set n" in ended.reason


def test_if_every_path_fails_so_does_the_run():
    play = OptionPlay()
    ended = play.play(fork(play, ValueError("x"), ValueError("y")), variables=LISTS)
    assert ended.outcome == "failed"
    assert "every path of both failed" in ended.reason
    assert "j" not in play.calls


# -- loops


def loop(play, **rest):
    return {"kind": "repeat", "name": "count", "until": "n >= 3", **rest}


def test_steps_of_a_loop_are_repeated_until_its_condition_holds():
    play = OptionPlay()
    ended = play.play(loop(play, steps=[play.step("up", plus)]), play.step("end"), variables=N)
    assert play.calls == ["up", "up", "up", "end"]
    assert ended.variables["n"] == 3
    assert [(event.source, event.why) for event in play.of(Branched)] == [
        ("count", "again"),
        ("count", "again"),
        ("count", "done"),
    ]


def test_a_loop_is_gone_through_at_least_once():
    play = OptionPlay()
    play.play(loop(play, steps=[play.step("up", plus)]), variables=N, values={"n": 9})
    assert play.calls == ["up"]


def test_a_loop_ends_at_max_iterations_and_the_journal_says_why():
    play = OptionPlay()
    node = loop(play, steps=[play.step("up", plus)], max_iterations=2)
    ended = play.play(node, play.step("end"), variables=N)
    assert (ended.outcome, play.calls) == ("completed", ["up", "up", "end"])
    assert play.of(Branched)[-1].why == "limit"


def test_loops_within_loops_begin_anew_each_time():
    play = OptionPlay()
    inner = {
        "kind": "repeat", "name": "inner", "until": "m >= 9", "max_iterations": 2,
        "steps": [play.step("in", lambda state, context: {"m": state["m"] + 1})],
    }  # fmt: skip
    ended = play.play(loop(play, steps=[inner, play.step("up", plus)]), variables=LISTS)
    assert play.calls == ["in", "in", "up"] * 3
    assert ended.variables["m"] == 6


# -- agents

WRITER = {"agents": ["Writer"]}
TEXTS = {"topic": derived("str", "looms"), "text": derived("str", ""), "n": derived("int", 0)}


def write(**rest):
    return {"kind": "step", "name": "write", "work": {"kind": "agent", "agent": "Writer", **rest}}


def test_agent_step_fills_its_prompt_and_sets_the_output():
    play = OptionPlay(**WRITER, model=ScriptedModel({"Writer": ["Looms are old."]}))
    ended = play.play(write(prompt="Write about {topic}.", output="text"), variables=TEXTS)
    assert ended.variables["text"] == "Looms are old."
    assert play.model.requests[0].messages[-1] == {
        "role": "user",
        "content": "Write about looms.",
    }


def test_without_output_a_structured_reply_sets_the_fields_it_names():
    play = OptionPlay(
        **WRITER,
        model=ScriptedModel(['{"text": "Old.", "n": 4, "mood": "calm"}']),
        models=[
            {
                "name": "Reply",
                "fields": {
                    item: {"type": of}
                    for item, of in (("text", "str"), ("n", "int"), ("mood", "str"))
                },
            }
        ],
        registry=[{"agent": "Writer", "model": "Reply"}],
    )
    ended = play.play(write(prompt="Write."), variables=TEXTS)
    assert ended.outcome == "completed", ended.reason
    assert (ended.variables["text"], ended.variables["n"]) == ("Old.", 4)
