"""The explorer against the engine: every run of a workflow is played out to the last state."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.engine_play import Play
from weft.check.explore import explore
from weft.check.subject import Subject
from weft.engine.commands import CallModel, CallTool
from weft.engine.compile import compile_workflow
from weft.engine.events import (
    ContextAssembled,
    HandedOff,
    ModelReplied,
    RequestAnswered,
    TimerFired,
    ToolFailed,
    ToolRequest,
    ToolReturned,
)
from weft.engine.reduce import pending
from weft.spec.workflow import WorkflowSpec

AGENTS = ("A", "B", "C")
#: For every set of matches that can hold at once, a text for which just these do.
TEXTS = ("GO", "we GO", "GO ON", "STOP", "hm")
MATCHES = ({"equals": "go"}, {"contains": "GO"}, {"contains": "GO ON"}, {"exact": "STOP"})
CONDITIONS = (
    "flag", "not flag", "other", "flag and not other", "other and not flag", "mode == 'b'",
    "mode == 'a' and flag", "mode == null", "both", "both == false and not flag",
)  # fmt: skip
CALL = {"type": "tool_call", "tool": "look"}
BOTH = {"type": "computed", "computation": "flag and other", "inputs": ["flag", "other"]}
#: What may happen or not, which the explorer knows less of.
PERHAPS = (
    {"type": "timer_expired", "after_seconds": 5},
    {"type": "tool_failed", "tool": "look"},
    {"type": "tool_failed"},
    {"type": "function", "function": "tools.t:ask"},
    {"type": "model_failed"},
    {"type": "lifecycle", "event": "after_chat"},
)


def said(names):
    return st.fixed_dictionaries(
        {
            "type": st.just("agent_text"),
            "agent": st.sampled_from(names),
            "match": st.sampled_from(MATCHES),
            # One value only: which of two for one text counts is not the question here.
            "value": st.just(True),
        }
    )


def boundaries(names):
    agent = st.sampled_from((None, *names))
    event = st.sampled_from(("before_agent", "after_agent"))
    turn = {"type": st.just("lifecycle"), "event": event, "agent": agent, "value": st.booleans()}
    first = {"type": "lifecycle", "event": "before_chat", "value": True}
    return st.fixed_dictionaries(turn) | st.just(first)


@st.composite
def specs(draw, perhaps=()):
    names = AGENTS[: draw(st.integers(1, 3))]
    target = st.sampled_from((*names, *names, "user", "terminate"))
    values = ({"value": "b"}, {"value": None}, {"argument": "mode"})
    called = st.sampled_from([{**CALL, **value} for value in values])
    handoff = st.fixed_dictionaries(
        {
            "source_agent": st.sampled_from(names),
            "target_agent": target,
            "condition": st.sampled_from(CONDITIONS),
            "condition_scope": st.sampled_from(("post", "post", "pre")),
            "priority": st.integers(0, 2),
        }
    )
    plain = st.fixed_dictionaries({"source_agent": st.sampled_from(names), "target_agent": target})

    def derived(triggers, kind="bool", default=False):
        source = {"type": "derived", "default": default, "triggers": draw(triggers)}
        return {"type": kind, "source": source}

    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "A",
                "max_turns": 500,
                "human_in_the_loop": draw(st.booleans()),
                "startup_mode": draw(st.sampled_from(("AgentDriven", "UserDriven"))),
            },
            "agents": [
                {
                    "agent_name": name,
                    "max_consecutive_auto_reply": 400,
                    "handoff_tools": draw(st.sampled_from((False, False, True))),
                }
                for name in names
            ],
            "variables": {
                "flag": derived(st.lists(said(names) | boundaries(names), max_size=2)),
                "other": derived(
                    st.lists(said(names) | st.sampled_from(perhaps), max_size=2)
                    if perhaps
                    else st.lists(said(names), max_size=2)
                ),
                "mode": derived(st.lists(called, max_size=1), "optional[literal['a', 'b']]", "a"),
                "both": {"type": "bool", "source": BOTH, "routing": True},
            },
            "handoffs": draw(st.lists(handoff, max_size=6)) + draw(st.lists(plain, max_size=3)),
            "tools": [
                {"tool_type": "Agent_Tool", "agent": "A", "file": "t.py", "function": "look"}
            ],
        }
    )


@dataclass
class World:
    """All states of all runs: who is to speak with which values, and what follows."""

    spec: WorkflowSpec
    failing: bool = False
    follow: dict = field(default_factory=dict)
    rests: set = field(default_factory=set)
    spoke: set = field(default_factory=set)
    rules: set = field(default_factory=set)

    def explore(self):
        first = Play(compile_workflow(self.spec))
        first.start(message=None)
        self.note(first)
        waiting = [first]
        while waiting:
            play = waiting.pop(0)
            key = self.key(play)
            if key in self.follow:
                continue
            self.follow[key] = set()
            for data in self.answers(play):
                after = Play(play.compiled, play.state)
                after.take(data)
                self.note(after)
                self.follow[key].add(self.key(after))
                waiting.append(after)
        return self

    def key(self, play):
        state = play.state
        agent = state.turn.agent if state.turn else ""
        asked = tuple(request.agent for request in state.requests.values())
        stage = state.turn.stage if state.turn else state.outcome or ""
        # Who is next may be settled while tools are called, and rules are asked where all is new.
        route = state.turn.route if state.turn else None
        known = (
            state.turn is None or state.turn.asked is None or state.turn.asked == state.variables
        )
        open_ = (tuple(state.calls), tuple(state.timers), str(route), known, bool(state.last_agent))
        key = (agent, asked, stage, open_, tuple(sorted(state.variables.items())))
        if asked or state.outcome == "completed":
            self.rests.add(key)
        return key

    def note(self, play):
        for event in play.events:
            match event.data:
                case ContextAssembled(agent=agent):
                    self.spoke.add(agent)
                case HandedOff(rule=rule):
                    self.rules.add(rule)
                case _:
                    continue

    def answers(self, play):
        for request in play.state.requests.values():
            yield RequestAnswered(request.id, "hello", "user")
        yield from (TimerFired(timer) for timer in play.state.timers)
        for command in pending(play.compiled, play.state):
            match command:
                case CallModel(agent=agent, turn=turn, call=call):
                    yield from (ModelReplied(call, text) for text in TEXTS)
                    for tools in self.called(agent, f"{turn}-{call}"):
                        yield ModelReplied(call, "", tools)
                case CallTool(id=id_, hook=hook):
                    if hook:
                        yield from (ToolReturned(id_, item) for item in (True, False, None))
                    else:
                        yield ToolReturned(id_, {})
                        if self.failing:
                            yield ToolFailed(id_, "broken")

    def called(self, agent, id_):
        """What a model may call in one reply: a tool, one that hands off, or both."""
        looks = [
            ToolRequest(id_, "look", {"mode": name}) for name in ("a", "b", "c") if agent == "A"
        ]
        handing = compile_workflow(self.spec).agents[agent].targets
        chosen = [ToolRequest(f"{id_}-next", item, {}) for item in handing]
        yield from ((look,) for look in (*looks, *chosen))
        yield from ((look, item) for look in looks for item in chosen)

    def lost(self):
        good = set(self.rests)
        while True:
            more = {key for key, after in self.follow.items() if after & good} - good
            if not more:
                return self.follow.keys() - good
            good |= more


@settings(max_examples=40 * TIMES, deadline=None)
@given(specs())
def test_the_explorer_says_what_the_engine_does(spec):
    world = World(spec).explore()
    subject = Subject(spec, code={"tools/t.py": "def look(mode='a'): ..."})
    found = explore(subject)
    assert found == explore(subject)
    assert (
        set(found.unreachable_agents) == {agent.agent_name for agent in spec.agents} - world.spoke
    )
    unused = {unused.index for unused in found.unused_rules}
    assert unused == set(range(len(spec.handoffs))) - world.rules
    assert found.status == ("endless" if world.lost() else "can end")


@settings(max_examples=20 * TIMES, deadline=None)
@given(specs(), st.sampled_from(("flag", "other", "mode")))
def test_code_that_may_set_something_only_adds_ways(spec, name):
    world = World(spec).explore()
    code = f"def look(context_variables, mode='a'):\n    context_variables.set('{name}', mode)"
    adds_ways(world, Subject(spec, code={"tools/t.py": code}))


@settings(max_examples=20 * TIMES, deadline=None)
@given(specs(PERHAPS))
def test_uncertain_settings_are_among_the_paths(spec):
    world = World(spec, failing=True).explore()
    adds_ways(world, Subject(spec, code={"tools/t.py": "def look(mode='a'): ..."}))


def adds_ways(world, subject):
    """All that the engine comes to is found; what is only possible is no error."""
    found = explore(subject)
    assert world.spoke.isdisjoint(found.unreachable_agents)
    assert world.rules.isdisjoint(unused.index for unused in found.unused_rules)
    assert world.lost() or found.status != "endless"
