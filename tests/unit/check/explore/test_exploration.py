"""The reachability proof: verdicts, witnesses, and what may happen in a run."""

import time
from itertools import pairwise

import pytest

from unit.check.builders_explore import derived, judged, proof, rule, said, tool, unknown, workflow
from weft.check.explore import STATE_LIMIT, prove
from weft.check.explore.draw import draw
from weft.check.explore.ground import survey
from weft.check.explore.reach import shortest


def test_a_run_that_just_ends_is_proven():
    found = proof(agents="A")
    assert (found.status, found.unused_rules, found.unreachable_agents) == ("proven", (), ())
    assert "an end can be reached" in found.reason
    # start, enter, speak, end
    assert found.states == 4


def test_waiting_for_the_user_is_a_rest():
    assert proof(rule("A", "user"), agents="A").status == "proven"


def test_the_user_may_be_the_default():
    user_led = {"human_in_the_loop": True, "startup_mode": "UserDriven"}
    found = proof(agents="A", orchestrator=user_led)
    assert found.status == "proven"
    # start, wait, enter, speak
    assert found.states == 4


def test_the_user_answers_the_agent_that_asked():
    found = proof(
        rule("A", "B"),
        rule("B", "user"),
        rule("B", "A", "heard", condition_scope="pre"),
        rule("A", "terminate", "heard"),
        variables={"heard": derived({"type": "user_text", "match": {"contains": "yes"}})},
    )
    assert found.status == "proven"
    assert found.unused_rules == ()


# Dead ends and cycles


def test_an_agent_that_keeps_the_word():
    found = proof(
        rule("A", "B", "go"),
        rule("B", "B"),
        variables={"go": derived(said("A"))},
    )
    assert found.status == "refuted"
    (end,) = found.dead_ends
    assert end.agents == ("B",)
    assert end.witness == "A -> (go = true) -> B"
    assert end.cycle == "B -> B"
    assert end.values == ()
    assert found.cycles == ()
    assert found.reason == "once a run has come to B, it can go on without end"


def test_values_that_last_are_named():
    found = proof(
        rule("A", "terminate", "done"),
        rule("A", "B"),
        rule("B", "B", "not done and x"),
        rule("B", "B"),
        variables={"done": derived(said("A")), "x": derived(said("B"), said("B", "NO", False))},
    )
    (end,) = found.dead_ends
    assert end.values == (("done", "false"),)
    assert end.witness == "A -> B"


def test_a_circle_of_agents_is_a_cycle_and_no_dead_end():
    found = proof(rule("A", "B"), rule("B", "C"), rule("C", "B"), agents="ABC")
    assert found.dead_ends == ()
    (cycle,) = found.cycles
    assert cycle.agents == ("B", "C")
    assert cycle.witness == "A -> B"
    assert cycle.cycle == "B -> C -> B"


def test_rules_before_the_reply_that_pass_the_word_in_a_circle():
    found = proof(
        rule("A", "B", "go"),
        rule("B", "C", "go", condition_scope="pre"),
        rule("C", "B", "go", condition_scope="pre"),
        agents="ABC",
        variables={"go": derived(said("A"))},
    )
    (cycle,) = found.cycles
    assert cycle.agents == ("B", "C")
    assert cycle.values == (("go", "true"),)
    assert cycle.cycle == "B (passed over) -> C (passed over) -> B"
    assert found.unreachable_agents == ("B", "C")
    assert found.unvisited_agents == ()


def test_each_agent_is_named_in_one_trap_only():
    found = proof(
        rule("A", "B", "x == 1"),
        rule("A", "C", "x == 2"),
        rule("A", "D", "x == 3"),
        rule("B", "B"),
        rule("C", "D"),
        rule("D", "C"),
        agents="ABCD",
        variables={"x": derived(*(said("A", str(n), n) for n in (1, 2, 3)), kind="int", default=0)},
    )
    assert [end.agents for end in found.dead_ends] == [("B",)]
    assert [cycle.agents for cycle in found.cycles] == [("C", "D")]


def test_no_more_than_ten_traps_are_described():
    names = [f"A{n}" for n in range(13)]
    handoffs = [judged("A0", name) for name in names[1:]] + [rule(n, n) for n in names[1:]]
    assert [end.agents for end in proof(*handoffs, agents=names).dead_ends] == [
        (name,) for name in names[1:11]
    ]


def test_a_trap_behind_other_states_without_escape():
    found = proof(
        rule("A", "B"),
        rule("B", "C", "go"),
        rule("B", "B"),
        rule("C", "C"),
        agents="ABC",
        variables={"go": derived(said("B"))},
    )
    (end,) = found.dead_ends
    assert end.agents == ("C",)
    assert end.witness == "A -> B -> (go = true) -> C"
    assert end.cycle == "C -> C"


def test_lost_before_it_is_known_which_way_it_goes():
    found = proof(
        rule("A", "terminate", "not go"),
        rule("A", "B", "puzzle == 1"),
        rule("A", "C"),
        rule("B", "B"),
        rule("C", "C"),
        agents="ABC",
        variables={"go": derived(said("A")), "puzzle": unknown()},
    )
    assert found.status == "refuted"
    (end,) = found.cycles
    assert end.agents == ("B", "C")
    assert (end.witness, end.cycle) == ("A -> (go = true)", "")


def test_the_nearest_of_many_traps_is_shown():
    found = proof(rule("A", "B", "x or not x"), rule("B", "B"), variables={"x": derived(said("A"))})
    assert found.dead_ends[0].witness == "A -> B"


def test_a_long_way_is_shortened():
    names = [f"A{n}" for n in range(30)]
    links = [rule(one, other) for one, other in pairwise(names)]
    found = proof(*links, rule("A29", "A29"), rule("A0", "terminate", "x"), agents=names,
                  variables={"x": derived(said("A0"))})  # fmt: skip
    (end,) = found.dead_ends
    assert end.witness.startswith("A0 -> A1 -> A2 ->")
    assert " -> ... -> " in end.witness
    assert end.witness.endswith("A28 -> A29")
    assert end.cycle == "A29 -> A29"


def test_there_is_no_way_to_where_none_leads():
    subject = workflow()
    chart = draw(subject, survey(subject, 1))
    with pytest.raises(LookupError):
        shortest(chart, chart.begin(chart.initial), [0] * len(chart.points))


# What is not known


def test_an_exit_that_rests_on_something_unknown_is_not_proven():
    found = proof(
        rule("A", "terminate", "score > wanted"),
        rule("A", "A"),
        agents="A",
        variables={"score": derived(said("A"), kind="any", writers=["A"]), "wanted": unknown()},
    )
    assert found.status == "not proven"
    assert [doubt.variable for doubt in found.doubts] == ["score", "wanted"]
    assert found.reason == "score cannot be followed: its type any has too many values"
    assert found.witness == "A -> end"
    assert (found.dead_ends, found.cycles) == ((), ())


def test_it_does_not_matter_what_is_unknown_if_all_ways_lead_on():
    found = proof(
        rule("A", "B", "puzzle == 1"),
        rule("A", "C", "puzzle == 2"),
        rule("B", "user"),
        agents="ABC",
        variables={"puzzle": unknown()},
    )
    assert found.status == "proven"
    assert found.unreachable_agents == ()


def test_only_the_ways_that_are_open_must_lead_on():
    given = {"type": "bool", "source": {"type": "environment", "env_var": "X"}}
    found = proof(
        rule("A", "B", "x and puzzle == 1"),
        rule("A", "C", "y and puzzle == 2"),
        rule("A", "user"),
        agents="ABC",
        variables={"x": given, "y": given, "puzzle": unknown()},
    )
    assert found.status == "proven"


def test_all_ways_of_an_unknown_choice_must_lead_on():
    found = proof(
        rule("A", "B", "puzzle == 1"),
        rule("A", "terminate"),
        rule("B", "B"),
        variables={"puzzle": unknown()},
    )
    # It is not certain that a run gets to B, so this is no refutation.
    assert found.status == "not proven"
    assert [doubt.variable for doubt in found.doubts] == ["puzzle"]
    assert found.witness == "A -> B"


def test_an_unknown_choice_between_ways_to_one_place_is_certain():
    found = proof(
        rule("A", "B", "puzzle == 1"),
        rule("A", "B"),
        rule("B", "C", "go"),
        rule("B", "terminate"),
        rule("C", "C"),
        agents="ABC",
        variables={"puzzle": unknown(), "go": derived(said("B"))},
    )
    assert found.status == "refuted"
    assert found.unused_rules == ()


def test_a_model_may_judge_either_way():
    assert proof(judged("A", "terminate"), rule("A", "A"), agents="A").status == "proven"
    refuted = proof(judged("A", "B"), rule("B", "B"))
    assert refuted.status == "refuted"
    assert refuted.dead_ends[0].witness == "A -> B"


def test_a_model_may_let_an_agent_reply_or_not():
    found = proof(judged("A", "B", condition_scope="pre"), rule("B", "user"))
    assert (found.status, found.unreachable_agents) == ("proven", ())


def test_a_judged_rule_after_an_unknown_one_is_as_doubtful():
    found = proof(
        rule("A", "B", "puzzle == 1", priority=1),
        judged("A", "terminate", priority=2),
        rule("A", "A"),
        rule("B", "A"),
        variables={"puzzle": unknown()},
    )
    assert found.status == "not proven"


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        ({"type": "bool", "source": {"type": "environment", "env_var": "X"}, "secret": True},
         "x cannot be followed: it is secret"),
        ({"type": "bool", "source": {"type": "computed", "computation": "a.b:f", "inputs": []}},
         "x cannot be followed: a function computes it"),
        ({"type": "list[str]", "source": {"type": "file", "path": "f"}},
         "x cannot be followed: its type list[str] has too many values"),
    ],
)  # fmt: skip
def test_variables_that_cannot_be_followed(variable, why):
    found = proof(
        rule("A", "terminate", "x"), rule("A", "A"), agents="A", variables={"x": variable}
    )
    assert (found.status, found.reason) == ("not proven", why)


def test_built_in_variables_differ_from_run_to_run():
    found = proof(rule("A", "terminate", "user_id == 'me'"), rule("A", "A"), agents="A")
    assert found.reason == "user_id cannot be followed: it is different in every run"


def test_values_that_cannot_be_compared_leave_a_condition_open():
    found = proof(
        rule("A", "terminate", "x < 'b'"), rule("A", "A"), agents="A", variables={"x": derived()}
    )
    assert found.status == "not proven"
    assert found.reason == "the values of x do not settle a condition"


# Computed variables


def test_computed_variables_are_worked_out():
    computed = {"type": "bool", "source": {"type": "computed", "inputs": ["a"], "computation": ""}}
    inner = {**computed, "source": {**computed["source"], "computation": "a and b"}}
    outer = {**computed, "source": {**computed["source"], "computation": "not inner"}}
    variables = {
        "outer": outer, "inner": inner, "unrelated": outer,
        "a": derived(said("A")), "b": derived(said("A", "B")),
    }  # fmt: skip
    found = proof(
        rule("A", "terminate", "not outer"), rule("A", "B", "outer and a and b"), rule("A", "A"),
        variables=variables,
    )  # fmt: skip
    assert found.status == "proven"
    assert [unused.index for unused in found.unused_rules] == [1]
    assert found.unreachable_agents == ("B",)


def test_a_computed_variable_is_unknown_if_its_inputs_are():
    variables = {
        "c": {"type": "bool", "source": {"type": "computed", "inputs": ["u"], "computation": "u"}},
        "u": unknown(),
    }
    found = proof(rule("A", "terminate", "c"), rule("A", "A"), agents="A", variables=variables)
    assert [doubt.variable for doubt in found.doubts] == ["u"]


# Starts


def test_values_from_outside_may_be_any():
    environment = {"type": "bool", "source": {"type": "environment", "env_var": "X"}}
    found = proof(
        rule("A", "terminate", "x"), rule("A", "A"), agents="A", variables={"x": environment}
    )
    assert found.status == "refuted"
    assert found.dead_ends[0].witness == "(x = false) -> A"
    unset = proof(
        rule("A", "terminate", "x == true or x == false"),
        rule("A", "A"),
        agents="A",
        variables={"x": environment},
    )
    assert unset.dead_ends[0].witness == "(x = null) -> A"


@pytest.mark.parametrize("settings", [{"required": True}, {"default": True}])
def test_in_production_nothing_comes_from_the_environment(settings):
    source = {"type": "environment", "env_var": "X", **settings}
    found = proof(
        rule("A", "terminate", "x == true or x == false"),
        rule("A", "A"),
        agents="A",
        variables={"x": {"type": "bool", "source": source}},
    )
    assert found.dead_ends[0].witness == "(x = null) -> A"


def test_a_constant_never_changes():
    static = {"type": "str", "source": {"type": "static", "value": "on"}}
    found = proof(
        rule("A", "B", "x == 'on'"), rule("A", "C"), agents="ABC", variables={"x": static}
    )
    assert (found.status, found.unreachable_agents) == ("proven", ("C",))


def test_a_value_kept_from_an_earlier_run_may_lead_into_a_dead_end():
    found = proof(
        rule("A", "A", "x"),
        rule("A", "B"),
        rule("B", "terminate"),
        variables={"x": derived(said("B"), persist=True)},
    )
    assert found.status == "not proven"
    assert found.reason == "a value kept from an earlier run may lead there"
    assert found.witness == "(x = true) -> A"


def test_what_is_set_before_the_chat_holds_from_the_start():
    before = {"type": "lifecycle", "event": "before_chat"}
    found = proof(rule("A", "B", "x"), rule("A", "A"), variables={"x": derived(before)})
    assert (found.status, found.states) == ("proven", 6)


# Turns


def test_what_opens_or_closes_a_turn_is_set_without_fail():
    opens = {"type": "lifecycle", "event": "before_agent", "agent": "A"}
    closes = {"type": "lifecycle", "event": "after_agent"}
    loop = (rule("A", "terminate", "x"), rule("A", "B"), rule("B", "B"))
    assert proof(*loop, variables={"x": derived(opens)}).unreachable_agents == ("B",)
    assert proof(*loop, variables={"x": derived(closes)}).unreachable_agents == ("B",)
    after = {"type": "lifecycle", "event": "after_chat"}
    assert proof(*loop, variables={"x": derived(after)}).status == "refuted"


def test_a_handoff_sets_variables():
    passed = {"type": "handoff", "source_agent": "A", "target_agent": "B"}
    found = proof(
        rule("A", "B"),
        rule("B", "A"),
        rule("A", "terminate", "x"),
        variables={"x": derived(passed)},
    )
    assert found.status == "proven"
    other = {**passed, "target_agent": "user"}
    found = proof(
        rule("A", "B"), rule("B", "A"), rule("A", "terminate", "x"), variables={"x": derived(other)}
    )
    assert found.cycles[0].agents == ("A", "B")


def test_one_event_sets_all_its_variables_at_once():
    found = proof(
        rule("A", "terminate", "x and y"),
        rule("A", "A", "not x and not y"),
        rule("A", "B"),
        rule("B", "B"),
        variables={"x": derived(said("A")), "y": derived(said("A"))},
    )
    assert (found.status, found.unreachable_agents) == ("proven", ("B",))


def test_events_of_their_own_may_happen_one_without_the_other():
    found = proof(
        rule("A", "terminate", "x and y"),
        rule("A", "A", "not x and not y"),
        rule("A", "B"),
        rule("B", "B"),
        variables={"x": derived(said("A")), "y": derived(said("A", "OTHER"))},
    )
    assert found.dead_ends[0].witness == "A -> (x = true) -> B"


def test_of_several_values_for_one_event_the_last_counts():
    handoffs = (rule("A", "B", "x == 1"), rule("A", "user", "x == 2"), rule("B", "terminate"))
    two = derived(said("A", value=1), said("A", value=2), kind="int", default=0)
    once = [{"from": 0, "to": 1}, {"from": 0, "to": 2}]
    last = {**two, "source": {**two["source"], "transitions": once}}
    for x in (last, two):
        assert proof(*handoffs, variables={"x": x}).unreachable_agents == ("B",)


def test_the_order_of_triggers_is_that_of_the_file_and_not_of_their_texts():
    x = derived(
        said("A", "GO", value=1), said("A", "go", value=2), said("A", "GO", value=3),
        kind="int", default=0,
    )  # fmt: skip
    found = proof(rule("A", "B", "x == 2"), rule("A", "terminate", "x == 3"), variables={"x": x})
    assert found.unreachable_agents == ("B",)


def test_transitions_refuse_every_other_change():
    chain = [{"from": "new", "to": "open"}, {"from": "open", "to": "done"}]
    handoffs = (rule("A", "terminate", "x == 'done'"), rule("A", "A"))
    refused = derived(said("A", value="done"), kind="str", default="new", transitions=chain)
    assert proof(*handoffs, agents="A", variables={"x": refused}).status == "refuted"
    free = derived(kind="str", default="new", transitions=chain, writers=["A"])
    assert proof(*handoffs, agents="A", variables={"x": free}).status == "not proven"
    by_word = [{**step, "trigger": said("A")} for step in chain]
    stepped = derived(kind="str", default="new", transitions=by_word)
    assert proof(*handoffs, agents="A", variables={"x": stepped}).status == "proven"


def test_a_whole_number_is_one_value_however_it_is_written():
    steps = [{"from": 0.0, "to": 1.0}]
    number = derived(said("A", value=1), kind="int", default=0, transitions=steps)
    handoffs = (rule("A", "terminate", "x == 1"), rule("A", "A"))
    assert proof(*handoffs, agents="A", variables={"x": number}).status == "proven"


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "agent_turn_count", "agent": "A", "count": 3},
        {"type": "timer_expired", "after_seconds": 60},
        {"type": "tool_call", "tool": "act"},
        {"type": "tool_call", "tool": "act", "argument": "x"},
        {"type": "tool_response", "tool": "act"},
        {"type": "ui_response", "tool": "ask", "response_key": "x"},
        {"type": "tool_call", "tool": "tidy"},
    ],
)
def test_every_trigger_may_fire(trigger):
    ask = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"})
    tidy = {"file": "tidy.py", "function": "tidy", "trigger": "after_agent"}
    code = {f"tools/{name}.py": f"def {name}(): ..." for name in ("act", "tidy")}
    code["tools/ask.py"] = "from weft import use_ui_tool\nasync def ask(): await use_ui_tool('ask')"
    spec = {"tools": [tool("A"), ask], "lifecycle_tools": [tidy], "code": code, "agents": "A"}
    handoffs = (rule("A", "terminate", "x"), rule("A", "A"))
    assert proof(*handoffs, variables={"x": derived(trigger)}, **spec).status == "proven"
    assert proof(*handoffs, variables={"x": derived()}, **spec).status == "refuted"


def test_an_event_may_set_what_cannot_be_followed_as_well():
    variables = {
        "x": derived(said("A")),
        "u": derived(said("A"), kind="any", writers=["A"]),
    }
    found = proof(
        rule("A", "terminate", "x"), rule("A", "A", "u"), rule("A", "A"), agents="A",
        variables=variables,
    )  # fmt: skip
    assert found.status == "proven"


# Limits


def test_beyond_the_limit_nothing_is_claimed():
    variables = {f"x{n}": derived(said("A", f"{n}")) for n in range(4)}
    variables["many"] = derived(*(said("A", f"{n}", n) for n in range(9)), kind="int", default=0)
    handoffs = [rule("A", "A", f"{name}") for name in variables]
    found = proof(*handoffs, agents="A", variables=variables, limit=143)
    assert found.status == "not proven"
    assert found.reason == (
        "agents times combinations of values make 1 x 144 states, more than 143; "
        "the most come from many, x0, x1"
    )
    assert (found.states, found.unused_rules) == (0, ())
    assert proof(*handoffs, agents="A", variables=variables, limit=144).states > 0


def test_more_agents_than_states_allowed():
    found = proof(agents="AB", limit=1)
    assert found.reason.endswith("make 2 x 1 states, more than 1")


def test_the_limit_holds_twenty_agents_with_sixteen_booleans():
    assert STATE_LIMIT >= 20 * 2**16


def counter(bits):
    """A workflow that counts: each state leads to one other, so there are no short ways."""
    variables = {
        f"f{n}": derived(
            *(
                {"type": "handoff", "source_agent": "A", "target_agent": f"B{k}", "value": k == n}
                for k in range(n, bits)
            )
        )
        for n in range(bits)
    }
    handoffs = [
        rule("A", f"B{n}", " and ".join([f"not f{n}", *(f"f{k}" for k in range(n))]))
        for n in range(bits)
    ]
    handoffs += [rule(f"B{n}", "A") for n in range(bits)]
    agents = ["A", *(f"B{n}" for n in range(bits))]
    return workflow(*handoffs, rule("A", "terminate"), agents=agents, variables=variables)


def test_what_takes_too_long_is_given_up():
    assert prove(counter(6)).status == "proven"
    begin = time.process_time()
    found = prove(counter(16))
    assert time.process_time() - begin < 2
    assert found.status == "not proven"
    assert found.reason == "to explore all states takes more than 1,000,000 steps of work"
    assert (found.states, found.doubts[0].remedy) == (
        0,
        "let fewer variables decide handoffs, or give them fewer values",
    )


def test_what_is_known_is_told_although_the_rest_is_too_much_work():
    subject = workflow(
        rule("A", "B", "x"), rule("A", "C", "y"), rule("A", "A", "z"), rule("B", "B"),
        rule("C", "C"), agents="ABC",
        variables={"x": derived(said("A")), "y": derived(said("A", "yes")), "z": derived()},
    )  # fmt: skip
    whole = prove(subject)
    assert (whole.status, len(whole.dead_ends), len(whole.unused_rules)) == ("refuted", 2, 1)
    stages = [prove(subject, steps=steps) for steps in range(1000)]
    told = [(it.status, bool(it.states), len(it.unused_rules), len(it.dead_ends)) for it in stages]
    assert list(dict.fromkeys(told)) == [
        ("not proven", False, 0, 0),
        ("not proven", True, 1, 0),
        ("refuted", True, 1, 1),
        ("refuted", True, 1, 2),
    ]
    assert stages[-1] == whole


# What is not explored


@pytest.mark.parametrize(
    ("handoffs", "spec", "reason"),
    [
        ([], {"flow": {"steps": []}}, "the workflow is not led by handoffs"),
        ([], {"board": {"artifacts": []}}, "the workflow is not led by handoffs"),
        ([], {"agents": "AA"}, "two agents have the same name"),
        ([], {"agents": ["A", "user"]}, "an agent is named like the user or the end"),
        ([], {"orchestrator": {"initial_agent": "X"}}, "the initial agent does not exist"),
        ([], {"orchestrator": {"default_target": "X"}}, "the default target does not exist"),
        ([], {"tools": [tool("X")]}, "a tool or a hook belongs to an agent that does not exist"),
        ([], {"tools": [tool("A"), tool("A")]}, "an agent has a tool twice"),
        (
            [],
            {
                "agents": "ABC",
                "tools": [tool("A"), tool("B", file="tools/act.py"), tool("C", file="b.py")],
            },
            "a tool name stands for two functions",
        ),
        (
            [],
            {"registry": [{"agent": "A", "model": it} for it in (None, "F")]},
            "an agent is bound twice",
        ),
        ([rule("X", "A")], {}, "a handoff names an agent that does not exist"),
        ([rule("A", "X")], {}, "a handoff names an agent that does not exist"),
        ([rule("A", "B", "x ==")], {}, "a handoff has no condition"),
        ([rule("A", "B", condition_type="llm")], {}, "a handoff has no condition"),
        (
            [rule("A", "B", condition_scope="pre")],
            {},
            "a handoff has no condition that can be read",
        ),
        ([rule("A", "B", "x")], {}, "a condition names a variable that does not exist"),
    ],
)
def test_what_other_rules_report_is_not_explored(handoffs, spec, reason):
    found = proof(*handoffs, **spec)
    assert found.status == "not checked"
    assert found.reason.startswith(reason)


def computed(text):
    return {"type": "bool", "source": {"type": "computed", "computation": text, "inputs": []}}


@pytest.mark.parametrize(
    ("variable", "reason"),
    [
        (computed("x"), "a computed variable depends on itself"),
        (computed("y"), "a condition names a variable that does not exist"),
        (computed("x =="), "a computed variable has no computation that can be read"),
        (derived(said("X")), "a trigger names an agent or a tool that does not exist"),
        (
            derived({"type": "agent_turn_count", "agent": "X", "count": 1}),
            "a trigger names an agent",
        ),
        (derived({"type": "lifecycle", "event": "after_agent", "agent": "X"}), "a trigger names"),
        (derived({"type": "handoff", "target_agent": "X"}), "a trigger names an agent or a tool"),
        (derived({"type": "tool_call", "tool": "x"}), "a trigger names an agent or a tool"),
        (derived({"type": "tool_response", "tool": "x"}), "a trigger names an agent or a tool"),
        (derived({"type": "ui_response", "tool": "x", "response_key": "x"}), "a trigger names"),
        (
            derived(transitions=[{"from": False, "to": True, "trigger": said("X")}]),
            "a trigger names",
        ),
    ],
)
def test_variables_that_other_rules_report_are_not_explored(variable, reason):
    found = proof(rule("A", "B", "x"), variables={"x": variable})
    assert found.status == "not checked"
    assert found.reason.startswith(reason)
