"""Rules before the reply: asked before every reply whose ground has changed, and not otherwise."""

import asyncio
from dataclasses import replace

import pytest

from support.boundary_play import declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.engine.events import (
    HandedOff,
    RequestAnswered,
    RunEnded,
    ToolReturned,
    TurnEnded,
    VariableSet,
)
from weft.inspect.replay import check_replay
from weft.runtime.signals import Answer
from weft.testing.models import ScriptedModel, call

CODE = {
    "tools/approve.py": b'''
from weft import use_ui_tool


async def approve() -> dict:
    """Ask for approval."""
    return await use_ui_tool("approve", {"plan": "build it"})


def set_it(context_variables, name: str, value: str) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return f"{name} is {value}"


def look() -> str:
    """Look around."""
    return "nothing new"
'''
}
APPROVE = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "approve.py",
    "function": "approve",
    "ui": {"component": "Approve", "mode": "inline"},
}
OTHERS = [
    {"tool_type": "Agent_Tool", "agent": "A", "file": "approve.py", "function": name}
    for name in ("set_it", "look")
]
ANSWER = {"type": "ui_response", "tool": "approve", "response_key": "choice"}
VARIABLES = {"choice": derived("str", None, ANSWER), "other": derived("str", "")}
PRE = {
    "source_agent": "A",
    "target_agent": "B",
    "condition": "When choice is yes",
    "condition_scope": "pre",
}
#: The package of seed 003, 13.4: an answer decides before the agent replies again.
RULES = [
    PRE,
    {"source_agent": "A", "target_agent": "user"},
    {"source_agent": "B", "target_agent": "terminate"},
]


def approving(**rest):
    given = {"variables": VARIABLES, "handoffs": RULES, "tools": [APPROVE, *OTHERS], **rest}
    return declared("A", "B", **given)


def answering(choice):
    async def answer(host, run):
        await rest(host, run)
        (asked,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(asked.id, {"choice": choice}), scope=ADA)
        await rest(host, run)

    return answer


@pytest.mark.parametrize("anew", [False, True], ids=["in place", "in another process"])
def test_run_continues_with_the_next_agent_after_the_approval(anew):
    model = ScriptedModel({"A": [call("approve")], "B": ["I build it"]})
    scenes = [rest, answering("yes")] if anew else [answering("yes")]
    played = asyncio.run(in_turns(approving(), scenes, [model] * len(scenes), code=CODE))
    assert [request.agent for request in model.requests] == ["A", "B"], "A is not asked once more"
    assert played.at(RunEnded).data.outcome == "completed"
    first = of(played, HandedOff)[0]
    assert (first.target, first.why, first.rule) == ("B", "rule", 0)
    kinds = [type(event.data) for event in played.events]
    order = [RequestAnswered, ToolReturned, TurnEnded, HandedOff]
    assert [kind for kind in kinds if kind in order][1:5] == order, (
        "the tool has its answer, then A ends"
    )
    assert check_replay(played.workflow, played.run, played.events) == []


def test_an_answer_that_does_not_fit_the_rule_lets_the_agent_reply():
    model = ScriptedModel([call("approve"), "what then?"])
    played = play(approving(), model, code=CODE, after=answering("no"))
    assert [request.agent for request in model.requests] == ["A", "A"]
    assert of(played, HandedOff)[0].target == "user"


AUTOMATIC = [{**APPROVE, "auto_invoke": True}]
BOUND = {
    "models": [{"name": "Plan", "fields": {"plan": {"type": "str"}}}],
    "registry": [{"agent": "A", "model": "Plan"}],
    "tools": AUTOMATIC,
}
AUTO_CODE = {"tools/approve.py": CODE["tools/approve.py"].replace(b"approve()", b"approve(plan)")}


@pytest.mark.parametrize(("choice", "target"), [("yes", "B"), ("no", "user")])
def test_answer_to_an_automatic_tool_is_routed_before_the_fallback(choice, target):
    agents = ({"agent_name": "A", "auto_tool_mode": True}, "B")
    spec = declared(*agents, variables=VARIABLES, handoffs=RULES, **BOUND)
    model = ScriptedModel({"A": [{"plan": "build it"}], "B": ["I build it"]})
    played = play(spec, model, code=AUTO_CODE, after=answering(choice))
    assert of(played, HandedOff)[0].target == target
    assert check_replay(played.workflow, played.run, played.events) == []


def test_rules_after_an_automatic_tool_see_what_functions_compute_from_the_answer():
    computed = {"type": "computed", "computation": "tools.agree:agree", "inputs": ["choice"]}
    variables = {**VARIABLES, "agreed": {"type": "bool", "source": computed, "routing": True}}
    code = {**AUTO_CODE, "tools/agree.py": b"def agree(choice): return choice == 'yes'\n"}
    rules = [{**PRE, "condition": "agreed"}, *RULES[1:]]
    agents = ({"agent_name": "A", "auto_tool_mode": True}, "B")
    spec = declared(*agents, variables=variables, handoffs=rules, **BOUND)
    model = ScriptedModel({"A": [{"plan": "build it"}], "B": ["I build it"]})
    scenes = [rest, answering("yes")]
    played = asyncio.run(in_turns(spec, scenes, [model] * 2, code=code))
    assert of(played, HandedOff)[0].target == "B"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_tool_results_stay_in_the_conversation():
    again = [
        PRE,
        {"source_agent": "A", "target_agent": "user"},
        {"source_agent": "B", "target_agent": "A"},
    ]
    model = ScriptedModel(
        {
            "A": [call("look"), call("set_it", name="choice", value="yes"), "back again"],
            "B": [call("reset"), "done"],
        }
    )
    reset = {"tool_type": "Agent_Tool", "agent": "B", "file": "reset.py", "function": "reset"}
    code = {
        **CODE,
        "tools/reset.py": b'''
def reset(context_variables) -> str:
    """Reset."""
    context_variables.set("choice", "no")
    return "reset"
''',
    }
    spec = approving(handoffs=again, tools=[APPROVE, *OTHERS, reset])
    play(spec, model, code=code)
    last = [request for request in model.requests if request.agent == "A"][-1]
    tools = [message["content"] for message in last.messages if message["role"] == "tool"]
    assert tools == ["nothing new", "choice is yes"], (
        "A sees what it had done when it was taken over"
    )
    assert last.messages[-1]["content"] == "B: done"


@pytest.mark.parametrize(
    ("line", "spoke"),
    [
        (call("set_it", name="choice", value="yes"), ["A", "B"]),
        (call("set_it", name="choice", value="no"), ["A", "A"]),
        (call("look"), ["A", "A"]),
        ([call("look"), call("set_it", name="choice", value="yes")], ["A", "B"]),
    ],
)
def test_a_tool_that_changes_a_variable_has_the_rules_asked_again(line, spoke):
    model = ScriptedModel({"A": [line, "hm"], "B": ["I build it"]})
    played = play(approving(), model, code=CODE)
    assert [request.agent for request in model.requests] == spoke
    assert check_replay(played.workflow, played.run, played.events) == []


class Asked(dict):
    """The rules of agents before their replies; counts how often each is looked up."""

    def __init__(self, rules):
        super().__init__(rules)
        self.count = 0

    def get(self, agent, otherwise=None):
        self.count += agent == "A"
        return super().get(agent, otherwise)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["hm"], 1),
        ([call("look"), call("look"), "hm"], 1),
        ([call("set_it", name="other", value="x"), "hm"], 2),
        ([call("set_it", name="other", value=""), "hm"], 1),
        ([call("set_it", name="other", value="x"), call("look"), "hm"], 2),
    ],
)
def test_rules_are_asked_again_only_when_something_has_changed(lines, count, monkeypatch):
    from weft.engine import compile as compiling

    found = []

    def link(spec):
        routing = compiled_routing(spec)
        found.append(Asked(routing.pre))
        return replace(routing, pre=found[-1])

    compiled_routing = compiling.link_routing
    monkeypatch.setattr(compiling, "link_routing", link)
    play(approving(), ScriptedModel(lines), code=CODE)
    assert found[0].count == count


def test_a_rule_that_cannot_be_asked_inside_a_turn_ends_the_run_explained():
    rule = {**PRE, "condition": "other > 2"}
    variables = {**VARIABLES, "other": derived("any", 1)}
    spec = approving(handoffs=[rule, *RULES[1:]], variables=variables)
    model = ScriptedModel([call("set_it", name="other", value="text")])
    ended = play(spec, model, code=CODE).at(RunEnded).data
    assert ended.outcome == "failed"
    assert ended.reason.startswith("a rule of A could not be evaluated: ")


def test_a_variable_set_by_an_earlier_agent_is_seen_before_the_turn():
    rules = [
        {"source_agent": "A", "target_agent": "B"},
        {**PRE, "source_agent": "B", "target_agent": "C"},
    ]
    rules += [{"source_agent": name, "target_agent": "terminate"} for name in ("B", "C")]
    model = ScriptedModel({"A": [call("set_it", name="choice", value="yes"), "go"], "C": ["fine"]})
    spec = declared("A", "B", "C", variables=VARIABLES, handoffs=rules, tools=OTHERS)
    played = play(spec, model, code=CODE)
    assert [request.agent for request in model.requests] == ["A", "A", "C"]
    assert [event.writer for event in of(played, VariableSet)] == ["tool:set_it"]
