"""The proof against an explorer that is as plain as can be, and against runs at random.

The plain explorer looks at one state at a time and reads the triggers by itself; only the routing
is the engine's own in both. Whatever it finds, the proof must find too, and nothing else.
"""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.check.explore import prove
from weft.check.explore.draw import draw
from weft.check.explore.ground import survey
from weft.check.explore.reach import reached
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN, decide, evaluate
from weft.engine.defaults import startup_mode
from weft.engine.routing import link_routing, routes_after, routes_before
from weft.spec.condition_parser import parse_condition
from weft.spec.workflow import WorkflowSpec

AGENTS = ("A", "B", "C")
STATES = ("s0", "s1", "s2")
#: The proof leaves these points out where nothing happens at them.
PASSING = ("said", "decide")
CONDITIONS = (
    "flag",
    "not flag",
    "state == 's1'",
    "state != 's0' and flag",
    "state in ['s1', 's2'] or wish",
    "wish == true",
    "both",
    "not both and flag",
    "puzzle",
    "puzzle == 3 and flag",
    "flag or puzzle == 1",
    "never",
)

agent = st.sampled_from(AGENTS)
texts = st.sampled_from(("GO", "STOP"))


def with_value(kind, value, **fields):
    return st.fixed_dictionaries({"type": st.just(kind), "value": value, **fields})


def triggers(value):
    match = st.fixed_dictionaries({"equals": texts})
    either = st.none() | agent
    points = st.sampled_from(("before_chat", "after_chat", "before_agent", "after_agent"))
    return st.one_of(
        with_value("agent_text", value, agent=agent, match=match),
        with_value("agent_text", value, agent=agent, match=match),
        with_value("user_text", value, match=match),
        with_value("handoff", value, source_agent=either, target_agent=either),
        with_value("lifecycle", value, event=points, agent=either),
    )


@st.composite
def transitions(draw):
    pairs = draw(st.lists(st.tuples(st.sampled_from(STATES), st.sampled_from(STATES)), max_size=3))
    trigger = st.none() | triggers(st.just(True))
    return [{"from": old, "to": new, "trigger": draw(trigger)} for old, new in pairs]


@st.composite
def specs(draw):
    count = draw(st.integers(1, 3))
    names = AGENTS[:count]
    target = st.sampled_from((*names, *names, "user", "terminate"))
    states = st.sampled_from(STATES)
    variables = {
        "flag": {
            "type": "bool",
            "source": {
                "type": "derived",
                "default": draw(st.booleans()),
                "triggers": draw(st.lists(triggers(st.booleans()), max_size=3)),
                "persist": draw(st.booleans()),
            },
        },
        "state": {
            "type": "str",
            "source": {
                "type": "derived",
                "default": draw(states),
                "triggers": draw(st.lists(triggers(states), max_size=3)),
                "transitions": draw(transitions()),
            },
        },
        "wish": {
            "type": "bool",
            "source": {
                "type": "environment",
                "env_var": "WISH",
                "required": draw(st.booleans()),
            },
        },
        "both": {
            "type": "bool",
            "source": {
                "type": "computed",
                "computation": draw(st.sampled_from(("flag and wish", "flag and puzzle"))),
                "inputs": ["flag"],
            },
        },
        "puzzle": {
            "type": "any",
            "source": {"type": "database", "collection": "c", "search_by": "k"},
        },
        "never": {"type": "bool", "source": {"type": "static", "value": False}},
    }
    handoffs = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "source_agent": st.sampled_from(names),
                    "target_agent": target,
                    "condition": st.sampled_from(CONDITIONS),
                    "condition_scope": st.sampled_from(("post", "post", "pre")),
                    "condition_type": st.sampled_from(("expression",) * 5 + ("llm",)),
                    "priority": st.integers(0, 2),
                }
            ),
            max_size=7,
        )
    )
    fallbacks = draw(st.lists(st.tuples(st.sampled_from(names), target), max_size=3))
    handoffs += [{"source_agent": one, "target_agent": other} for one, other in fallbacks]
    spec = {
        "orchestrator": {
            "workflow_name": "Random",
            "initial_agent": draw(st.sampled_from(names)),
            "human_in_the_loop": draw(st.booleans()),
            "startup_mode": draw(st.sampled_from(("AgentDriven", "UserDriven"))),
            "default_target": draw(st.none() | target),
            "orchestration_pattern": draw(st.sampled_from(("DefaultPattern", "Star", "Pipeline"))),
        },
        "agents": [{"agent_name": name} for name in names],
        "variables": variables,
        "handoffs": handoffs,
    }
    known = {*names, None}
    for name in ("flag", "state"):
        source = spec["variables"][name]["source"]
        source["triggers"] = [t for t in source["triggers"] if named(t) <= known]
        for step in source.get("transitions", ()):
            step["trigger"] = step["trigger"] if named(step["trigger"] or {}) <= known else None
    return WorkflowSpec.model_validate(spec)


def named(trigger):
    return {trigger.get(key) for key in ("agent", "source_agent", "target_agent")}


class Plain:
    """One state at a time: a state is (kind, agent, values)."""

    NAMES = ("flag", "state", "wish")

    def __init__(self, spec):
        self.spec = spec
        self.routing = link_routing(spec)
        self.names = [name for name in self.NAMES if name in self.mentioned()]
        self.both = parse_condition(spec.variables["both"].source.computation)

    def mentioned(self):
        text = " ".join(h.condition or "" for h in self.spec.handoffs if h.condition_type != "llm")
        text += self.spec.variables["both"].source.computation if "both" in text else ""
        return text

    def values(self, state, puzzle=UNKNOWN):
        values = dict(zip(self.names, state[2], strict=True)) | {"never": False, "puzzle": puzzle}
        # What is not mentioned anywhere is asked by nobody, but stands in "both" all the same.
        for name in self.NAMES:
            values.setdefault(name, UNKNOWN)
        answer = decide(self.both, values)
        return values | {"both": UNKNOWN if answer is None else answer}

    def fired(self, trigger, moment, who=None, target=None, text=None):
        """Tell whether a trigger fires."""
        match trigger.type:
            case "agent_text":
                return moment == "said" and trigger.agent == who and trigger.match.equals == text
            case "user_text":
                return moment == "answered" and trigger.match.equals == text
            case "handoff":
                return (
                    moment == "handoff"
                    and trigger.source_agent in (None, who)
                    and trigger.target_agent in (None, target)
                )
            case "lifecycle":
                return moment == trigger.event and (
                    moment == "before_chat" or trigger.agent in (None, who)
                )
            case _:
                raise AssertionError(trigger)

    def after(self, values, moment, **event):
        """Return all values that may follow when an event happens."""
        options = []
        for name, old in zip(self.names, values, strict=True):
            source = self.spec.variables[name].source
            new = set()
            if source.type == "derived":
                steps = source.transitions
                pairs = {(step.from_, step.to) for step in steps}
                wanted = [t.value for t in source.triggers if self.fired(t, moment, **event)]
                wanted += [
                    s.to
                    for s in steps
                    if s.trigger and s.from_ == old and self.fired(s.trigger, moment, **event)
                ]
                taken = [it for it in wanted if it == old or not pairs or (old, it) in pairs]
                new = {taken[-1]} if taken else set()
            options.append(sorted(new, key=str) or [old])
        return set(product(*options))

    def begin(self, *, certain):
        choices = []
        for name in self.names:
            variable = self.spec.variables[name]
            if name == "wish":
                choices.append([False, True, None])
            elif variable.source.persist and not certain:
                wanted = [t.value for t in variable.source.triggers if t.type != "lifecycle"]
                wanted += [t.value for t in variable.source.triggers if self.counts(t)]
                choices.append([*{variable.source.default, *wanted}])
            else:
                choices.append([variable.source.default])
        return {
            ("start", "", after)
            for values in product(*choices)
            for after in self.after(values, "before_chat")
        }

    @staticmethod
    def counts(trigger):
        return trigger.type == "lifecycle" and trigger.event != "after_chat"

    def steps(self, state):
        """Return the certain next states, and those among which something unknown decides."""
        kind, who, values = state
        if kind == "start":
            first = "wait" if startup_mode(self.spec.orchestrator) == "UserDriven" else "enter"
            agent = self.spec.orchestrator.initial_agent
            heard = [self.after(values, "answered", text=text) for text in ("GO", "STOP")]
            words = {("enter", agent, new) for news in heard for new in news}
            # A run may be started with words of the user even if an agent is to speak first.
            unsure = {frozenset(words)} if first == "enter" else set()
            return {(first, agent, values)}, unsure, set()
        if kind == "end":
            return set(), set(), set()
        if kind == "wait":
            heard = [self.after(values, "answered", text=text) for text in ("GO", "STOP")]
            answered = {("enter", who, new) for news in heard for new in news}
            return answered | {("enter", who, values)}, set(), set()
        if kind == "speak":
            said = [self.after(values, "said", who=who, text=text) for text in ("GO", "STOP")]
            spoken = {("said", who, new) for news in said for new in news}
            return spoken | {("said", who, values)}, set(), set()
        if kind == "said":
            closed = self.after(values, "after_agent", who=who)
            return {("decide", who, new) for new in closed}, set(), set()
        return self.decision(state)

    def decision(self, state, puzzle=UNKNOWN, judge=None):
        kind, who, values = state
        answers = {}

        def test(rule):
            if rule.judged:
                answers[rule.index] = judge(rule) if judge else None
            elif puzzle is UNKNOWN:
                answers[rule.index] = decide(rule.condition, self.values(state))
            else:
                answers[rule.index] = evaluate(rule.condition, self.values(state, puzzle))
            return answers[rule.index]

        walk = routes_before if kind == "enter" else routes_after
        routes = list(walk(self.routing, who, test))
        ways = [(route.rule, self.land(state, route.target)) for route in routes]
        if kind == "enter" and True not in answers.values():
            opened = self.after(values, "before_agent", who=who)
            ways.append((None, {("speak", who, new) for new in opened}))
        judged = {i for i, h in enumerate(self.spec.handoffs) if h.condition_type == "llm"}
        unknown = [i for i, answer in answers.items() if answer is None and i not in judged]
        cut = next((n for n, (rule, _) in enumerate(ways) if rule in unknown), len(ways))
        sure = {state for _, states in ways[:cut] for state in states}
        late = [states for _, states in ways[cut:]]
        places = {tuple(sorted(s[:2] for s in states)) for states in late}
        used = {rule for rule, _ in ways if rule is not None}
        if len(places) == 1:
            return sure | late[0], set(), used
        return sure, {frozenset(states) for states in late}, used

    def land(self, state, target):
        _, who, values = state
        news = self.after(values, "handoff", who=who, target=target)
        place = {"user": ("wait", who), "terminate": ("end", "")}.get(target, ("enter", target))
        return {(*place, new) for new in news}

    def limits(self, state):
        """Return where an agent's limit leads that has used up its replies in a row."""
        kind, who, _ = state
        attended = self.spec.orchestrator.human_in_the_loop
        replies = kind == "enter" and any(one[0] == "speak" for one in self.all_steps(state))
        if not attended or not replies or who not in self.next_after(who):
            return set()
        return self.land(state, "user")

    def all_steps(self, state):
        sure, unsure, _ = self.steps(state)
        return sure | {one for group in unsure for one in group}

    def next_after(self, who):
        met, waiting = set(), [rule.target for rule in self.routing.post.get(who, ())]
        waiting.append(self.routing.otherwise[who].target)
        while waiting:
            target = waiting.pop()
            if target not in met:
                met.add(target)
                waiting += [rule.target for rule in self.routing.pre.get(target, ())]
        return met

    def explore(self, start, *, certain):
        seen, waiting, used = set(start), list(start), set()
        while waiting:
            state = waiting.pop()
            sure, unsure, rules = self.steps(state)
            used |= rules
            groups = () if certain else unsure
            limits = set() if certain else self.limits(state)
            for state in {*sure, *limits, *(one for group in groups for one in group)} - seen:
                seen.add(state)
                waiting.append(state)
        return seen, used

    def ending(self, seen, *, assured):
        good = {state for state in seen if state[0] in ("wait", "end")}
        while True:
            more = set()
            for state in seen - good:
                sure, unsure, _ = self.steps(state)
                some = not sure.isdisjoint(good)
                if assured and state[0] != "start":
                    group = bool(unsure) and all(not one.isdisjoint(good) for one in unsure)
                else:
                    group = any(not one.isdisjoint(good) for one in unsure)
                if some or group:
                    more.add(state)
            if not more:
                return good
            good |= more

    def verdict(self):
        seen, used = self.explore(self.begin(certain=False), certain=False)
        surely, _ = self.explore(self.begin(certain=True), certain=True)
        lost = seen - self.ending(seen, assured=False)
        if lost & surely:
            return "refuted", seen, used
        unsure = seen - self.ending(seen, assured=True)
        return ("not proven" if unsure else "proven"), seen, used


def proof_states(subject):
    """Return the reached states of the proof in the form of the plain explorer."""
    chart = draw(subject, survey(subject, 10**6))
    seen = reached(chart, chart.begin(chart.possible), by="limits")
    names = [name for name in Plain.NAMES if name in chart.ground.domains]
    return {
        (point.kind, point.agent, tuple(axis.value_at(n) for axis in axes))
        for point, bits in zip(chart.points, seen, strict=True)
        for axes in [[chart.ground.space.axes[name] for name in names]]
        for n in range(bits.bit_length())
        if bits >> n & 1
    }, names


@settings(max_examples=250, deadline=None)
@given(specs())
def test_same_verdict_as_the_plain_explorer(spec):
    subject, plain = Subject(spec), Plain(spec)
    status, seen, used = plain.verdict()
    proof = prove(subject)
    assert proof.status == status
    assert {unused.index for unused in proof.unused_rules} == set(range(len(spec.handoffs))) - used
    speaking = {agent for kind, agent, _ in seen if kind == "speak"}
    assert set(proof.unreachable_agents) == set(subject.agents) - speaking
    states, names = proof_states(subject)
    assert names == plain.names
    merged = {state for state in seen if state[0] not in PASSING}
    assert {state for state in states if state[0] not in PASSING} == merged


@settings(max_examples=60, deadline=None)
@given(specs())
def test_a_way_to_the_end_from_every_agent_proves_everything(spec):
    data = spec.model_dump(mode="json")
    ends = [{"source_agent": a.agent_name, "target_agent": "terminate"} for a in spec.agents]
    judged = {"condition": "it is time", "condition_type": "llm", "condition_scope": "pre"}
    data["handoffs"] += [{**end, **judged, "priority": -1} for end in ends]
    assert prove(Subject(WorkflowSpec.model_validate(data))).status == "proven"
    data["handoffs"] = ends
    assert prove(Subject(WorkflowSpec.model_validate(data))).status == "proven"


@settings(max_examples=120, deadline=None)
@given(specs(), st.randoms(use_true_random=False))
def test_runs_at_random_stay_within_what_was_explored(spec, random):
    subject, plain = Subject(spec), Plain(spec)
    states, _ = proof_states(subject)
    proof = prove(subject)
    unused = {rule.index for rule in proof.unused_rules}
    state = random.choice(sorted(plain.begin(certain=True), key=str))
    for _ in range(40):
        assert state in states or state[0] in PASSING
        if state[0] in ("enter", "decide"):
            puzzle = random.choice([None, False, 1, 3, "text"])
            following, unsure, used = plain.decision(state, puzzle, lambda _: random.random() < 0.5)
            assert not unsure
            assert not used & unused
        else:
            following, _, _ = plain.steps(state)
        if not following:
            break
        state = random.choice(sorted(following, key=str))


@settings(max_examples=100, deadline=None)
@given(specs())
def test_the_same_answer_every_time(spec):
    assert prove(Subject(spec)) == prove(Subject(WorkflowSpec.model_validate(spec.model_dump())))
