"""Conditions that a model judges: asked in their turn, recorded with the reason, never guessed."""

import asyncio
import json

import pytest

from support.boundary_play import declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.check.run import check
from weft.check.subject import Subject
from weft.engine.events import ConditionJudged, HandedOff, RunEnded, Usage
from weft.errors import ModelError
from weft.inspect.replay import check_replay
from weft.ports.model import ModelReply
from weft.runtime.signals import Stop
from weft.testing.models import FunctionModel, ScriptedModel, call

ENABLED = {"llm_conditions": True, "human_in_the_loop": False}
ANGRY = {"source_agent": "A", "target_agent": "B", "condition": "The user sounds angry"}
TO_B = {**ANGRY, "condition_type": "llm"}
TO_C = {"source_agent": "A", "target_agent": "C"}
ENDS = [{"source_agent": name, "target_agent": "terminate"} for name in ("B", "C")]


def judging(*rules, orchestrator=ENABLED, **rest):
    return declared(
        "A", "B", "C", handoffs=[*rules, TO_C, *ENDS], orchestrator=orchestrator, **rest
    )


def verdict(holds, reason="because"):
    return json.dumps({"holds": holds, "reason": reason})


class Judge:
    """Speaks for agents by their names, and judges as it is told."""

    def __init__(self, *verdicts):
        self.judged = []
        self.spoke = []
        self._verdicts = list(verdicts)

    async def reply(self, request, _on_text=None):
        if request.output is None or request.output.name != "Judgement":
            self.spoke.append(request.agent)
            return ModelReply(f"I am {request.agent}")
        self.judged.append(request)
        line = self._verdicts.pop(0)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, ModelReply) else ModelReply(line)


@pytest.mark.parametrize(("holds", "next_"), [(True, "B"), (False, "C")])
def test_a_condition_of_type_llm_is_judged_by_the_model_of_the_agent_after_its_turn(holds, next_):
    model = Judge(verdict(holds, "he shouts"))
    played = play(judging(TO_B), model, message="WHAT?!")
    assert model.spoke == ["A", next_]
    (found,) = of(played, ConditionJudged)
    assert (found.rule, found.holds, found.error) == (0, holds, "")
    assert json.loads(found.text)["reason"] == "he shouts"
    (handed,) = [event for event in of(played, HandedOff) if event.source == "A"]
    assert (handed.target, handed.rule) == (next_, 0 if holds else 1)
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize(("holds", "spoke"), [(True, ["B"]), (False, ["A", "C"])])
def test_before_the_turn_it_is_judged_once_and_not_again_inside_it(holds, spoke):
    rule = {**TO_B, "condition_scope": "pre"}
    model = Judge(verdict(holds))
    played = play(judging(rule), model)
    assert model.spoke == spoke
    assert len(model.judged) == 1
    assert check_replay(played.workflow, played.run, played.events) == []


def test_judge_receives_condition_conversation_and_visible_values():
    variables = {"tier": derived("str", "gold"), "hidden": derived("str", "canary")}
    model = Judge(verdict(holds=False))
    spec = judging(TO_B, variables=variables, exposure={"A": ["tier"]})
    play(spec, model, message="WHAT?!")
    told = model.judged[0].messages[-1]["content"]
    assert "Condition for handing over to B: The user sounds angry" in told
    assert "user: WHAT?!\nA: I am A" in told
    assert 'Values: {"tier":"gold"}' in told
    assert "canary" not in str(model.judged[0].messages)
    assert model.judged[0].agent == "A"


def test_rules_are_asked_in_order_and_a_judge_only_where_it_matters():
    known = {**TO_B, "target_agent": "C", "condition": "done", "condition_type": "expression"}
    second = {**TO_B, "target_agent": "C", "condition": "Or is sad", "priority": 2}
    variables = {"done": derived("bool", True)}
    model = Judge()
    play(judging(known, TO_B, variables=variables), model)
    assert model.judged == [], "an earlier rule decided"
    model = Judge(verdict(holds=False), verdict(holds=True))
    played = play(judging(second, TO_B), model)
    assert [event.rule for event in of(played, ConditionJudged)] == [1, 0], "by priority"
    assert model.spoke == ["A", "C"]
    assert check_replay(played.workflow, played.run, played.events) == []


def findings(spec):
    return [finding.code for finding in check(Subject(spec=spec, folder="W", code={}))]


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_off_unless_llm_conditions_says_so(enabled):
    spec = judging(TO_B, orchestrator={"llm_conditions": enabled})
    assert ("COND006" in findings(spec)) is not enabled


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (ModelError("down"), "the model gave no answer: down"),
        (RuntimeError("broken"), "the model gave no answer: RuntimeError: broken"),
        ("Yes, I think so.", "the judgement is not JSON"),
        ('{"holds": "yes"}', 'the judgement has no "holds" that is true or false'),
        ("[true]", 'the judgement has no "holds" that is true or false'),
        ("\ud800", "UnicodeEncodeError"),
    ],
)
@pytest.mark.parametrize("scope", ["pre", "post"])
def test_a_judge_that_fails_or_talks_nonsense_ends_the_run_explained(line, told, scope):
    played = play(judging({**TO_B, "condition_scope": scope}), Judge(line))
    (found,) = of(played, ConditionJudged)
    assert told in found.error
    ended = played.at(RunEnded).data
    assert ended.outcome == "failed"
    assert ended.reason == f"a condition of A could not be judged: {found.error}"
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_judgement_in_a_fence_is_one():
    played = play(judging(TO_B), Judge(f"```json\n{verdict(holds=True)}\n```"))
    assert of(played, ConditionJudged)[0].holds is True


def test_cost_of_judging_is_counted():
    usage = Usage(100, 7, cost_usd=0.25)
    model = Judge(ModelReply(verdict(holds=True), usage=usage, model="m", answerer="model"))
    states = []

    async def look(host, run):
        states.append(await host.state(run, scope=ADA))

    played = play(judging(TO_B), model, after=look)
    assert states[0].spent.calls == 3
    assert states[0].spent.input_tokens == 100
    assert states[0].spent.cost_usd == 0.25
    assert of(played, ConditionJudged)[0].usage == usage


@pytest.mark.parametrize("scope", ["pre", "post"])
def test_a_crash_while_a_judge_thinks_asks_it_again_with_the_same_words(scope):
    asked = []
    thinking = asyncio.Event()

    async def reply(request):
        if request.output is None:
            return "I am A"
        asked.append((request.key, request.messages))
        if len(asked) == 1:
            thinking.set()
            await asyncio.Event().wait()
        return verdict(holds=True)

    async def break_off(host, run):
        await thinking.wait()

    models = [FunctionModel(reply), FunctionModel(reply)]
    spec = judging({**TO_B, "condition_scope": scope})
    played = asyncio.run(in_turns(spec, [break_off, rest], models))
    assert asked[0] == asked[1]
    assert len(of(played, ConditionJudged)) == 1
    assert played.at(RunEnded).data.outcome == "completed"
    assert check_replay(played.workflow, played.run, played.events) == []


@pytest.mark.parametrize("mode", ["now", "after_turn"])
def test_a_run_can_be_stopped_while_a_judge_thinks(mode):
    thinking = asyncio.Event()

    async def reply(request):
        if request.output is None:
            return "I am A"
        thinking.set()
        await asyncio.sleep(0.05 if mode == "after_turn" else 60)
        return verdict(holds=True)

    async def stop(host, run):
        await thinking.wait()
        await host.deliver(run, Stop(mode), scope=ADA)
        await rest(host, run)

    played = asyncio.run(in_turns(judging(TO_B), [stop], [FunctionModel(reply)]))
    assert played.at(RunEnded).data.outcome == "cancelled"
    assert len(of(played, ConditionJudged)) == (mode == "after_turn")


def test_the_judge_sees_what_the_turn_has_set():
    code = {
        "tools/t.py": b'''
def rate(context_variables, mood: str) -> str:
    """Rate."""
    context_variables.set("mood", mood)
    return "noted"
'''
    }
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "t.py", "function": "rate"}
    spec = judging(
        TO_B, tools=[tool], variables={"mood": derived("str", "calm")}, exposure={"A": ["mood"]}
    )
    lines = [call("rate", mood="wild"), "I am A", verdict(holds=True), "I am B"]
    model = ScriptedModel(lines)
    play(spec, model, code=code)
    assert '"mood":"wild"' in model.requests[2].messages[-1]["content"]
