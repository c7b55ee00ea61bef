"""The explorer: what it finds, the ways it shows, and what may happen in a run."""

import time
from itertools import pairwise

import pytest

from support.cases import read_cases
from unit.check.builders_explore import (
    derived,
    explored_by,
    judged,
    rule,
    said,
    tool,
    unknown,
    workflow,
)
from weft.check.explore import STATE_LIMIT, explore

CASES = read_cases(__file__)


def test_a_run_that_just_ends_can_end():
    found = explored_by(agents="A")
    assert (found.status, found.unused_rules, found.unreachable_agents) == ("can end", (), ())
    # start, enter, speak, end
    assert found.states == 4


def test_waiting_for_the_user_is_a_rest():
    assert explored_by(rule("A", "user"), agents="A").status == "can end"


def test_the_user_may_be_the_default():
    user_led = {"human_in_the_loop": True, "startup_mode": "UserDriven"}
    found = explored_by(agents="A", orchestrator=user_led)
    assert found.status == "can end"
    # start, wait, enter, speak
    assert found.states == 4


def test_the_user_answers_the_agent_that_asked():
    found = explored_by(
        rule("A", "B"),
        rule("B", "user"),
        rule("B", "A", "heard", condition_scope="pre"),
        rule("A", "terminate", "heard"),
        variables={"heard": derived({"type": "user_text", "match": {"contains": "yes"}})},
    )
    assert found.status == "can end"
    assert found.unused_rules == ()


# Dead ends and cycles


def test_an_agent_that_keeps_the_word():
    found = explored_by(
        rule("A", "B", "go"),
        rule("B", "B"),
        variables={"go": derived(said("A"))},
    )
    assert found.status == "endless"
    (end,) = found.endless
    assert end.agents == ("B",)
    assert end.witness == "A -> (go = true) -> B"
    assert end.cycle == "B -> B"
    assert end.values == ()


def test_values_that_last_are_named():
    found = explored_by(
        rule("A", "terminate", "done"),
        rule("A", "B"),
        rule("B", "B", "not done and x"),
        rule("B", "B"),
        variables={"done": derived(said("A")), "x": derived(said("B"), said("B", "NO", False))},
    )
    (end,) = found.endless
    assert end.values == (("done", "false"),)
    assert end.witness == "A -> B"


def test_a_circle_of_agents_is_a_cycle_and_no_dead_end():
    found = explored_by(rule("A", "B"), rule("B", "C"), rule("C", "B"), agents="ABC")
    (cycle,) = found.endless
    assert cycle.agents == ("B", "C")
    assert cycle.witness == "A -> B"
    assert cycle.cycle == "B -> C -> B"


def test_rules_before_the_reply_that_pass_the_word_in_a_circle():
    found = explored_by(
        rule("A", "B", "go"),
        rule("B", "C", "go", condition_scope="pre"),
        rule("C", "B", "go", condition_scope="pre"),
        agents="ABC",
        variables={"go": derived(said("A"))},
    )
    (cycle,) = found.endless
    assert cycle.agents == ("B", "C")
    assert cycle.values == (("go", "true"),)
    assert cycle.cycle == "B -> C -> B"
    assert found.unreachable_agents == ("B", "C")
    assert found.unvisited_agents == ()


def test_each_agent_is_named_in_one_trap_only():
    found = explored_by(
        rule("A", "B", "x == 1"),
        rule("A", "C", "x == 2"),
        rule("A", "D", "x == 3"),
        rule("B", "B"),
        rule("C", "D"),
        rule("D", "C"),
        agents="ABCD",
        variables={"x": derived(*(said("A", str(n), n) for n in (1, 2, 3)), kind="int", default=0)},
    )
    assert [end.agents for end in found.endless] == [("B",), ("C", "D")]


def test_no_more_than_ten_traps_are_described():
    names = [f"A{n}" for n in range(13)]
    handoffs = [judged("A0", name) for name in names[1:]] + [rule(n, n) for n in names[1:]]
    assert [
        end.agents
        for end in explored_by(
            *handoffs, agents=names, orchestrator={"initial_agent": "A0"}
        ).endless
    ] == [(name,) for name in names[1:11]]


def test_a_trap_behind_other_states_without_escape():
    found = explored_by(
        rule("A", "B"),
        rule("B", "C", "go"),
        rule("B", "B"),
        rule("C", "C"),
        agents="ABC",
        variables={"go": derived(said("B"))},
    )
    (end,) = found.endless
    assert end.agents == ("C",)
    assert end.witness == "A -> B -> (go = true) -> C"
    assert end.cycle == "C -> C"


def test_the_nearest_of_many_traps_is_shown():
    found = explored_by(
        rule("A", "B", "x or not x"), rule("B", "B"), variables={"x": derived(said("A"))}
    )
    assert found.endless[0].witness == "A -> B"


def test_a_long_way_is_shortened():
    names = [f"A{n}" for n in range(30)]
    links = [rule(one, other) for one, other in pairwise(names)]
    found = explored_by(
        *links,
        rule("A29", "A29"),
        rule("A0", "terminate", "x"),
        agents=names,
        orchestrator={"initial_agent": "A0"},
        variables={"x": derived(said("A0"))},
    )
    (end,) = found.endless
    assert end.witness.startswith("A0 -> A1 -> A2 ->")
    assert " -> ... -> " in end.witness
    assert end.witness.endswith("A28 -> A29")
    assert end.cycle == "A29 -> A29"


# What is not known


def test_unknown_values_do_not_matter_if_every_way_leads_on():
    found = explored_by(
        rule("A", "B", "puzzle == 1"),
        rule("A", "C", "puzzle == 2"),
        rule("B", "user"),
        agents="ABC",
        variables={"puzzle": unknown()},
    )
    assert found.status == "can end"
    assert found.unreachable_agents == ()


def test_only_the_ways_that_are_open_must_lead_on():
    given = {"type": "bool", "source": {"type": "environment", "env_var": "X"}}
    found = explored_by(
        rule("A", "B", "x and puzzle == 1"),
        rule("A", "C", "y and puzzle == 2"),
        rule("A", "user"),
        agents="ABC",
        variables={"x": given, "y": given, "puzzle": unknown()},
    )
    assert found.status == "can end"


def test_a_model_may_judge_either_way():
    assert explored_by(judged("A", "terminate"), rule("A", "A"), agents="A").status == "can end"
    endless = explored_by(judged("A", "B"), rule("B", "B"))
    assert endless.status == "endless"
    assert endless.endless[0].witness == "A -> B"


def test_a_model_may_let_an_agent_reply_or_not():
    found = explored_by(judged("A", "B", condition_scope="pre"), rule("B", "user"))
    assert (found.status, found.unreachable_agents) == ("can end", ())


def test_a_judged_rule_after_an_unknown_one_is_as_doubtful():
    found = explored_by(
        rule("A", "B", "puzzle == 1", priority=1),
        judged("A", "terminate", priority=2),
        rule("A", "A"),
        rule("B", "A"),
        variables={"puzzle": unknown()},
    )
    assert found.status == "can end"


# Computed variables


def test_computed_variables_are_worked_out():
    computed = {"type": "bool", "source": {"type": "computed", "inputs": ["a"], "computation": ""}}
    inner = {**computed, "source": {**computed["source"], "computation": "a and b"}}
    outer = {**computed, "source": {**computed["source"], "computation": "not inner"}}
    variables = {
        "outer": outer, "inner": inner, "unrelated": outer,
        "a": derived(said("A")), "b": derived(said("A", "B")),
    }  # fmt: skip
    found = explored_by(
        rule("A", "terminate", "not outer"), rule("A", "B", "outer and a and b"), rule("A", "A"),
        variables=variables,
    )  # fmt: skip
    assert found.status == "can end"
    assert [unused.index for unused in found.unused_rules] == [1]
    assert found.unreachable_agents == ("B",)


# Starts


def test_values_from_outside_may_be_any():
    environment = {"type": "bool", "source": {"type": "environment", "env_var": "X"}}
    found = explored_by(
        rule("A", "terminate", "x"), rule("A", "A"), agents="A", variables={"x": environment}
    )
    assert found.status == "endless"
    assert found.endless[0].witness == "(x = false) -> A"
    unset = explored_by(
        rule("A", "terminate", "x == true or x == false"),
        rule("A", "A"),
        agents="A",
        variables={"x": environment},
    )
    assert unset.endless[0].witness == "(x = null) -> A"


@pytest.mark.parametrize("settings", [{"required": True}, {"default": True}])
def test_in_production_nothing_comes_from_the_environment(settings):
    source = {"type": "environment", "env_var": "X", **settings}
    found = explored_by(
        rule("A", "terminate", "x == true or x == false"),
        rule("A", "A"),
        agents="A",
        variables={"x": {"type": "bool", "source": source}},
    )
    assert found.endless[0].witness == "(x = null) -> A"


def test_a_constant_never_changes():
    static = {"type": "str", "source": {"type": "static", "value": "on"}}
    found = explored_by(
        rule("A", "B", "x == 'on'"), rule("A", "C"), agents="ABC", variables={"x": static}
    )
    assert (found.status, found.unreachable_agents) == ("can end", ("C",))


# Turns


def test_a_handoff_sets_variables():
    passed = {"type": "handoff", "source_agent": "A", "target_agent": "B"}
    found = explored_by(
        rule("A", "B"),
        rule("B", "A"),
        rule("A", "terminate", "x"),
        variables={"x": derived(passed)},
    )
    assert found.status == "can end"
    other = {**passed, "target_agent": "user"}
    found = explored_by(
        rule("A", "B"), rule("B", "A"), rule("A", "terminate", "x"), variables={"x": derived(other)}
    )
    assert found.endless[0].agents == ("A", "B")


def test_one_event_sets_all_its_variables_at_once():
    found = explored_by(
        rule("A", "terminate", "x and y"),
        rule("A", "A", "not x and not y"),
        rule("A", "B"),
        rule("B", "B"),
        variables={"x": derived(said("A")), "y": derived(said("A"))},
    )
    assert (found.status, found.unreachable_agents) == ("can end", ("B",))


def test_events_of_their_own_may_happen_one_without_the_other():
    found = explored_by(
        rule("A", "terminate", "x and y"),
        rule("A", "A", "not x and not y"),
        rule("A", "B"),
        rule("B", "B"),
        variables={"x": derived(said("A")), "y": derived(said("A", "OTHER"))},
    )
    assert found.endless[0].witness == "A -> (x = true) -> B"


def test_of_several_values_for_one_event_the_last_counts():
    handoffs = (rule("A", "B", "x == 1"), rule("A", "user", "x == 2"), rule("B", "terminate"))
    two = derived(said("A", value=1), said("A", value=2), kind="int", default=0)
    once = [{"from": 0, "to": 1}, {"from": 0, "to": 2}]
    last = {**two, "source": {**two["source"], "transitions": once}}
    for x in (last, two):
        assert explored_by(*handoffs, variables={"x": x}).unreachable_agents == ("B",)


def test_the_order_of_triggers_is_that_of_the_file_and_not_of_their_texts():
    x = derived(
        said("A", "GO", value=1), said("A", "go", value=2), said("A", "GO", value=3),
        kind="int", default=0,
    )  # fmt: skip
    found = explored_by(
        rule("A", "B", "x == 2"), rule("A", "terminate", "x == 3"), variables={"x": x}
    )
    assert found.unreachable_agents == ("B",)


def test_transitions_refuse_every_other_change():
    chain = [{"from": "new", "to": "open"}, {"from": "open", "to": "done"}]
    handoffs = (rule("A", "terminate", "x == 'done'"), rule("A", "A"))
    refused = derived(said("A", value="done"), kind="str", default="new", transitions=chain)
    assert explored_by(*handoffs, agents="A", variables={"x": refused}).status == "endless"
    free = derived(kind="str", default="new", transitions=chain, writers=["A"])
    assert explored_by(*handoffs, agents="A", variables={"x": free}).status == "can end"
    by_word = [{**step, "trigger": said("A")} for step in chain]
    stepped = derived(kind="str", default="new", transitions=by_word)
    assert explored_by(*handoffs, agents="A", variables={"x": stepped}).status == "can end"


def test_a_whole_number_is_one_value_however_it_is_written():
    steps = [{"from": 0.0, "to": 1.0}]
    number = derived(said("A", value=1), kind="int", default=0, transitions=steps)
    handoffs = (rule("A", "terminate", "x == 1"), rule("A", "A"))
    assert explored_by(*handoffs, agents="A", variables={"x": number}).status == "can end"


@pytest.mark.parametrize("trigger", CASES["test_every_trigger_may_fire"])
def test_every_trigger_may_fire(trigger):
    ask = tool("A", "ask", "ask.py", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"})
    tidy = {"file": "tidy.py", "function": "tidy", "trigger": "after_agent"}
    code = {f"tools/{name}.py": f"def {name}(): ..." for name in ("act", "tidy")}
    code["tools/ask.py"] = "from weft import use_ui_tool\nasync def ask(): await use_ui_tool('ask')"
    spec = {
        "tools": [tool("A"), ask], "lifecycle_tools": [tidy], "code": code, "agents": "A",
        "mcp_servers": [{"name": "files", "command": ["files"]}],
    }  # fmt: skip
    handoffs = (rule("A", "terminate", "x"), rule("A", "A"))
    assert explored_by(*handoffs, variables={"x": derived(trigger)}, **spec).status == "can end"
    assert explored_by(*handoffs, variables={"x": derived()}, **spec).status == "endless"


@pytest.mark.parametrize(
    "trigger",
    [
        # They belong to the end of a run, at which nothing is decided any more.
        {"type": "lifecycle", "event": "after_chat"},
        {"type": "model_failed"},
        # These are calls at boundaries, and of others.
        {"type": "tool_call", "tool": "tidy"},
        {"type": "tool_call", "tool": "mail_send"},
        {"type": "tool_failed", "tool": "files_read"},
        {"type": "lifecycle", "event": "before_agent", "agent": "B"},
    ],
)
def test_triggers_that_never_fire_before_a_decision(trigger):
    tidy = {"file": "tidy.py", "function": "tidy", "trigger": "after_agent"}
    done = {"file": "tidy.py", "function": "done", "trigger": "after_chat"}
    text = "def tidy(): ...\ndef done(context_variables): context_variables.set('x', True)"
    found = explored_by(
        rule("A", "terminate", "x"), rule("A", "A"), agents="AB",
        variables={"x": derived(trigger)}, lifecycle_tools=[tidy, done],
        hooks=[{"file": "done.py", "function": "done", "hook_type": "on_complete"}],
        code={"tools/tidy.py": text, "hooks/done.py": text},
        mcp_servers=[{"name": "files", "command": ["files"], "agents": ["B"]}],
    )  # fmt: skip
    assert found.status == "endless"


def test_an_event_may_set_what_cannot_be_followed_as_well():
    variables = {
        "x": derived(said("A")),
        "u": derived(said("A"), kind="any", writers=["A"]),
    }
    found = explored_by(
        rule("A", "terminate", "x"), rule("A", "A", "u"), rule("A", "A"), agents="A",
        variables=variables,
    )  # fmt: skip
    assert found.status == "can end"


# Limits


def test_beyond_the_limit_nothing_is_claimed():
    variables = {f"x{n}": derived(said("A", f"{n}")) for n in range(4)}
    variables["many"] = derived(*(said("A", f"{n}", n) for n in range(9)), kind="int", default=0)
    handoffs = [rule("A", "A", f"{name}") for name in variables]
    found = explored_by(*handoffs, agents="A", variables=variables, limit=143)
    assert found.status == "unfinished"
    assert found.reason == (
        "agents times combinations of values make 1 x 144 states, more than 143; "
        "the most come from many, x0, x1"
    )
    assert (found.states, found.unused_rules) == (0, ())
    assert explored_by(*handoffs, agents="A", variables=variables, limit=144).states > 0


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


def test_slow_call_is_abandoned():
    assert explore(counter(6)).status == "can end"
    begin = time.process_time()
    found = explore(counter(16))
    assert time.process_time() - begin < 2
    assert found.status == "unfinished"
    assert found.reason == "to explore all states takes more than 1,000,000 steps of work"


# What is only possible


ENDLESS_IN_B = (rule("A", "B", "x"), rule("A", "terminate"), rule("B", "B"))


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        (unknown(), "x cannot be followed: its type any has too many values"),
        ({"type": "bool", "source": {"type": "environment", "env_var": "X"}, "secret": True},
         "x cannot be followed: it is secret"),
        ({"type": "bool", "source": {"type": "computed", "computation": "a.b:f", "inputs": []}},
         "x cannot be followed: a function computes it"),
        ({"type": "bool", "source": {"type": "computed", "computation": "u", "inputs": ["u"]}},
         "u cannot be followed: its type any has too many values"),
        ({"type": "bool", "source": {"type": "external", "url": "https://example.com",
                                      "service": "s", "operation": "o",
                                      "refresh_strategy": "per_phase"}},
         "x may change outside the run"),
        (derived(persist=True), "x may change outside the run"),
        (derived(writers=["A"]), "A may set x, or leave it"),
        (derived({"type": "agent_turn_count", "agent": "A", "count": 3}),
         "turn 3 of A, which sets x, is not counted"),
        (derived({"type": "timer_expired", "after_seconds": 5}),
         "a timer_expired trigger may set x"),
    ],
)  # fmt: skip
def test_no_error_rests_on_what_is_only_possible(variable, why):
    found = explored_by(*ENDLESS_IN_B, variables={"x": variable, "u": unknown()})
    assert (found.status, found.reason) == ("may be endless", why)
    assert found.endless[0].witness.endswith("-> B")
    ways_out = (rule("A", "terminate", "x"), rule("A", "A"))
    found = explored_by(*ways_out, agents="A", variables={"x": variable, "u": unknown()})
    assert found.status == "can end"


def test_values_that_cannot_be_compared_leave_a_condition_open():
    found = explored_by(
        rule("A", "B", "x < 'b'"), rule("B", "B"), rule("A", "user"), variables={"x": derived()}
    )
    assert found.reason == "the values of x do not settle a condition"


def test_an_unknown_choice_between_ways_that_never_end_is_an_error():
    found = explored_by(
        rule("A", "B", "puzzle == 1"), rule("A", "C"), rule("B", "B"), rule("C", "C"),
        agents="ABC", variables={"puzzle": unknown()},
    )  # fmt: skip
    assert found.status == "endless"
    assert found.endless[0].agents == ("B",)


def test_built_in_variables_differ_from_run_to_run():
    found = explored_by(rule("A", "B", "user_id == 'me'"), rule("A", "user"), rule("B", "B"))
    assert found.reason == "user_id cannot be followed: it is different in every run"
